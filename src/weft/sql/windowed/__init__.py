"""Windowed aggregates: `query` is the entry for those over one stream, alone or beside tables, `derived` for
those over a join of streams.

`windows` is what GROUP BY says of time, `tables` what the stream's rows get from tables, `aggregates` binds calls of
aggregate functions, `outputs` what is evaluated per result.
"""
