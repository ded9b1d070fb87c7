"""The command line: `weft init`, `check`, `register`, `run` and the rest.

`main` is where the command begins, `commands` the table of all of them, `output`, `stages`, `stopping` and `completing`
what they have in common. `init`, `check`, `resume`, `explaining`, `results` and `bench` are one command each,
`run/` and `demo/` one with several modules, `machine/` those about machines. `project/` is a project
folder: what its files say, what its checkpoint holds, and the commands that change its queries. `papers/`
are the commands that need neither a project nor Spark, `template/` the files that `weft init`
writes. What is not about arguments, files or printing belongs below, in `weft.runtime`.
"""
