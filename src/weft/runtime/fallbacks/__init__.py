"""Queries that weft does not share: each runs as its own plain streaming query.

`log` lists what a fallback has written, `batches` writes a micro-batch's rows once, `run` starts
the query again after an error and gives up after several. What is shared runs in the engines.
"""
