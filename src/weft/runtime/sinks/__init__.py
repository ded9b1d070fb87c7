"""Where results go, and the lists of result files.

A kind of sink is a module: `store`, `memory`, `callback`, `console`, `spark`, and `routes` to
several of them. `delivery` says what a sink is and how often it is tried, `outlet` is the way from
a stepper to one; `resultfiles` is the list of result files, `reading` reads them back.

`store` writes files that a commit names: exactly once. All others are handed a step's results
before its commit and may see a step again after a crash: they get the batch id, the query and a
sequence number to deduplicate by. Users make sinks with `weft.sinks`.
"""
