"""An independent oracle for windowed aggregates: nothing in here imports weft.

`spec` describes a query as data, `model` evaluates it by brute force in plain Python,
`generate` draws random schemas, batches and queries, `plain_spark` runs a query on plain
Spark Structured Streaming, and `compare` compares rows. `expressions`, `sparktypes`,
`evaluate` and `aggregates` are the parts that these are made of.
"""
