"""The engine of join queries: a follower of all streams that they read (docs/decisions/0011).

`publication` is what streams publish for it, `engine` the engine, `planner` keeps the network up to
date with the registered queries, `history` the files that the network lives on, `projection` what Spark
makes of matches, `editions` who sees which rows, `backfill` what new queries see of history, `unseen` what queries over derived streams have not seen, `passed` how far
it has come in each stream.
A step is computed by `driving` in memory, or in Spark tasks by `lanes/` when history is large; `outcome` is
what either gives. The computation itself is `weft.kernel.network`.
"""
