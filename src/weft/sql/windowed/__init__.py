"""Windowed aggregates: `query` is the entry for those over one stream, `derived` for those over a join.

`windows` is what GROUP BY says of time, `aggregates` binds calls of aggregate functions, `outputs` what is
evaluated per result.
"""
