"""The command line: `weft init`, `check`, `register`, `run` and the rest.

`main` is where the command begins, `commands` the table of all of them, `output` and `completing`
what they have in common; every other module here is one command. `project/` is a project folder:
what its files say, what its checkpoint holds, and the commands that change its queries. `run/` is
`weft run`, `papers/` the commands that need neither a project nor Spark, `template/` the files that
`weft init` writes. What is not about arguments, files or printing belongs below, in `weft.runtime`.
"""
