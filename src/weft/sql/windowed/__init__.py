"""Windowed aggregates: `query` is the entry for those over one stream, alone or beside tables, `derived` for
those over a join of streams.

`windows` is what GROUP BY says of time, `tables` what the stream's rows get from tables, `times` the window as a value
of groups. How keys, aggregates and result columns are bound is `sql.grouping`, since aggregation joins do it alike.
"""
