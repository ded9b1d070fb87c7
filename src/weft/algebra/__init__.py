"""Immutable values: windows, expressions, aggregates, queries and shared plans.

Nothing here knows Spark, files or a parser. Every value can be written to and read
from JSON with `weft.algebra.codec`, because plan snapshots live in the checkpoint; importing this
package registers the names under which they are stored.
"""

from weft.algebra import stored

__all__ = ["stored"]
