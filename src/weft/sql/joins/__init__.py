"""Queries without aggregates: filters and joins of streams and tables. `query` is the entry.

`conditions` makes one predicate set of WHERE and ON, `warnings` says what a user should know of a query
that is accepted.
"""
