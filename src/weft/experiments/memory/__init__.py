"""Section VIII of the Memory paper: figures 2 to 5, on generated flows.

`parameters` declares what is varied; `measured` gives statistics of an epoch (`zipf_fit` its skew),
`plans` plans and runs a tree under each configuration and counts its hash operations: `tree_run`
runs it over `bounded_table`s, with the groups of `node_codes`. `figures` turns these into data,
`charts` draws them, `claims` puts the paper's sentences beside our figures, `paper` is all of it.
Nothing here starts Spark.
"""
