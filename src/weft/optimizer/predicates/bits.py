"""One bit per distinct predicate.

From: the data shards of the TriOps paper, section IV-A. Computes the list of distinct
conditions of a node; a row's signature has bit i set when condition i is true for it. Equal
conditions are one bit. Sound because a row reaches a query exactly if its WHERE is true
(not false, not NULL). Time and space: linear in the number of queries.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.algebra.query import Query
from weft.algebra.scalar import Expression


def bits(queries: Iterable[Query]) -> tuple[Expression, ...]:
    """The distinct predicates in the order of their first use."""
    distinct: dict[str, Expression] = {}
    for query in queries:
        if query.predicate is not None:
            distinct.setdefault(query.predicate.sql, query.predicate)
    return tuple(distinct.values())
