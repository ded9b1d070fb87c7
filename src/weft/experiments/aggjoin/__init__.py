"""Section 7 of the AggJoin paper: figures 4 to 6, by its cost functions, by its algorithm, in weft's kernel and in whole steps of weft.

`parameters` declares what is varied. `prototype/` is Algorithm 1, counted and timed; `tuning` fits the model's constants
to it, `expected_costs` is the model with expected sizes. `kernel_run` times weft's own evaluation of the same plans at the same points. `run` measures every point once, `figures`
turns that into data, `charts` draws them, `ranking` compares orders of plans, `trends` and `claims` put the paper's
sentences beside our figures, `paper` is all of it. `on_spark/` runs whole steps of weft; nothing else here starts Spark.
"""
