"""Queries without aggregates: filters and joins of streams and tables. `query` is the entry.

`conditions` makes predicate sets of WHERE and ON, `evaluation` decides which of their parts Spark must
evaluate, `bound` holds the blocks of a query with them, `connected` refuses inputs that no condition connects,
`lookups` decides which tables are looked up for the rows of a stream, `partners` which streams only decide
whether a row counts.
"""
