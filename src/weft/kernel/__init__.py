"""Levels 2 and 3: vectorized computation over fragments, in NumPy and Arrow, without Spark.

`columns/` are keys and partials as arrays, `fragments/` the open fragments of nodes, `windows/` the
result rows of due windows. Each uses those named before it. The same functions run on the driver
and, for large state, in Spark tasks. The kernel sees fragments, never rows of the stream, and does
what a plan says: choosing it is the optimizer's business.
"""
