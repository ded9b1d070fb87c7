"""Levels 2 and 3: a vectorized kernel over fragments, in NumPy and Arrow, without Spark.

`state` holds the open fragments of a node, sorted by key and time; `weave` turns them into
the result rows of every due window. The same functions run on the driver and, for large
state, in Spark tasks. The kernel sees fragments, never rows of the stream.
"""
