"""Where results go, one kind of sink in each module, and the lists of result files.

`store` writes files that a commit names: exactly once. All others are handed a step's results
before its commit and may see a step again after a crash: they get the batch id, the query and a
sequence number to deduplicate by. Users make sinks with `weft.sinks`.
"""
