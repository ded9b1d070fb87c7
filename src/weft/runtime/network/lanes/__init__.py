"""The network's joins in Spark tasks, by key bucket (docs/decisions/0012).

`choice` says where a step runs. `computing` runs a step in tasks: `step` orders its stages, `stage` is what
the tasks of one are told, `task` what one of them does. `bucket_files` are the files in which rows come to
the joins, `node_rows` writes them, `layout` says which of them are still of use, `results` is what becomes
of rows that queries show. The computation is that of `weft.kernel.network`.
"""
