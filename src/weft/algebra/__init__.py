"""Immutable values: windows, expressions, conditions, aggregates, queries and shared plans.

`nodes/` says what stands between queries and the nodes of a plan. What two packages above need
lives here; what is chosen by cost does not. Nothing here knows Spark, files or a parser. Every value
can be written to and read from JSON with `weft.algebra.codec`, because plan snapshots live in the
checkpoint; importing this package registers the names under which they are stored.
"""

from weft.algebra import stored

__all__ = ["stored"]
