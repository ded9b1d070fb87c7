"""Queries without aggregates: filters and joins of streams and tables. `query` is the entry.

`conditions` makes one predicate set of WHERE and ON, `evaluation` decides which of its parts Spark must
evaluate.
"""
