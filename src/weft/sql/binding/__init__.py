"""Syntax to bound queries: names to columns, expressions to types.

`bind` is the entry; `rows` binds what is evaluated per row, `outputs` what is evaluated per result,
`aggregates`, `windows` and `names` the rest of a SELECT; `scalars` is the whitelist of expressions that
weft knows, with `coercion`, and `analyzer` is who is asked for the others. `alone` and `safety` are
for queries that run by themselves. Reading the text is done before, in `sql.reading`.
"""
