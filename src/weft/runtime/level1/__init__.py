"""Level 1 and the aggregate tree in native Spark: from the rows of a batch to fragments in state files.

`lookups` joins the rows with tables first, `fragments` and `signatures` are Spark's expressions,
`subaggregate` writes the first level, `tree` all nodes below it, `combining` and `statefiles` merge and read
files, whose order is in `tiles`, `quarantine` finds the query that fails. What comes after fragments is the kernel's, through `runtime.windows`.
"""
