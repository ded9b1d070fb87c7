"""Windowed aggregates over one stream, alone or beside tables: `query` is the entry.

`windows` is what GROUP BY says of time, `tables` what the stream's rows get from tables, `aggregates` binds calls of
aggregate functions, `outputs` what is evaluated per result.
"""
