"""What users touch: `weft` is the class `Weft`, `handle` that of a registered query.

Behind them: `opening` opens a checkpoint, `assembly` puts the steppers of a stream together,
`supervision` starts what is registered and takes up changes, `start_checks` refuses a session that
cannot run it, `bookkeeping` keeps the catalog up to
date; `inspection` answers what can be asked without running, for aggregation joins by
`aggregations`; `reading` reads results back;
`class_archive` lets Spark start sooner. What makes a step is below, in `protocol/` and the engines;
sinks are made with `weft.sinks`.
"""
