"""Everything that knows Spark or a checkpoint.

`api/` is what users touch, `queries/` are the registered queries and what they read, `run/`
supervises; `windows/`, `rows/`, `network/`, `derived/` and `joinagg/` are the engines, `fallbacks/` the queries that run
alone; `level1/` turns rows into fragments, `planning/` makes plan versions, `sinks/` take results;
`protocol/` is the order of things in a step, `tables` the contents of tables, `checkpoint/` what is on disk.
`settings`, `sessions`, `frames`, `tasks`, `quiet` and `cause` are for all rooms. Choosing plans and computing windows
need no Spark: see `optimizer` and `kernel`.
"""
