"""Windowed aggregates over one stream: `query` is the entry.

`windows` is what GROUP BY says of time, `aggregates` binds calls of aggregate functions, `outputs` what is
evaluated per result.
"""
