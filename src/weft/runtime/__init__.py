"""Everything that knows Spark or a checkpoint.

`api/` is what users touch, `run/` supervises, `protocol/` is the order of things in a step and what it
leaves on disk, `windows/` and `rows/` are its engines, `level1/` turns rows into fragments, `planning/`
makes plan versions, `sinks/` take results. Choosing plans and computing windows need no Spark: see
`optimizer` and `kernel`.
"""
