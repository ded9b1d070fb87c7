"""The command line: `weft init`, `check`, `register`, `run` and the rest.

`main` is the application, with one small module per group of commands. `project` reads
`weft.yaml`, `queries` the SQL files beside it; `opening` turns them into a session and a `Weft`.
"""
