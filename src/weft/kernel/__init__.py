"""Vectorized computation in NumPy and Arrow, without Spark: levels 2 and 3 of windows, and joins.

`columns/` are columns as arrays, `fragments/` the open fragments of nodes, `windows/` the result
rows of due windows, `network/` the new matches of join queries, `joinagg/` aggregation joins at instants;
`failure` is a query that cannot be computed. Windows are computed from fragments, never from rows of a stream; their functions run on
the driver and, for large state, in Spark tasks. The kernel does what a plan says: choosing it is
the optimizer's business.
"""
