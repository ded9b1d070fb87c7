"""Everything that knows Spark or a checkpoint: compile, micro-batch, state, commit, sinks.

`loom` runs one stream step by step; `level1` compiles a plan's nodes to Spark; `log` is the
commit protocol; `api` is what users see.
"""
