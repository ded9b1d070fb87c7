"""A project folder, from its files to a `Weft` that runs it.

`folder` reads `weft.yaml` (`positions` and `validation` say where it is wrong), `queries` the SQL
files, `problems` is what is wrong with either. `session` and `opening` start Spark and a `Weft`,
`sync` makes the registered queries equal to the files. `recorded` reads a checkpoint without Spark,
`unaided` binds a query without it. `registration` and `listing` are the commands `register`, `drop`
and `list`. Running is in `cli.run`.
"""
