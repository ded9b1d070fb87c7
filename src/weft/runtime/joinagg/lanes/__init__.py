"""Aggregation joins in Spark tasks, by key bucket (docs/decisions/0019).

`choice` says where a step runs. `coverage` is what the driver must know of files that it does not read whole: when their panes end. `stage` is what tasks
are told, `task` what one of them does, `computing` runs them and puts together what they give. The computation is that of `weft.kernel.joinagg`.
"""
