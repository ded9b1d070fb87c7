"""Binds a query without aggregates to its branches: one, or those of a union.

A SELECT of the query is bound once for every choice of branches at the unions in its FROM. A branch that
can never have rows is left out, if there are others.

DISTINCT: a set operation or SELECT that removes duplicates makes a set of its branches' rows. Inside of a
set it does not matter whether duplicates are removed. Elsewhere, a subquery that removes duplicates must
be all that its SELECT reads, and all its columns must be shown: then equal rows of the subquery are equal
rows of the result, and the result is the set.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Final

from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery, SetQuery
from weft.sql.fallback import Unshared
from weft.sql.joins.query import join_query
from weft.sql.reading.syntax import QueryExpression
from weft.sql.scopes.sources import Sources
from weft.sql.scopes.unions import Choices, Leaf

MOST_BRANCHES: Final = 64


def network_query(
    name: str, query_id: str, query: QueryExpression, opened: Callable[[Choices], Sources]
) -> NetworkQuery:
    """The bound form of a query without aggregates. `opened` makes a reader of FROM."""
    known = Choices()
    first = opened(known)
    bound: list[tuple[JoinQuery, Hashable]] = []
    for number, leaf in enumerate(first.leaves(query, {})):
        for branch, within in _branches(name, query_id, leaf, Choices(known.known), opened):
            below = None if within is None else (number, within)
            bound.append((branch, below if leaf.distinct_in is None else leaf.distinct_in))
            if len(bound) > MOST_BRANCHES:
                raise first.source.error("TOO_MANY_BRANCHES", 0, most=MOST_BRANCHES)
    possible = [pair for pair in bound if not pair[0].predicates.never] or bound[:1]
    if len(possible) == 1:
        ((branch, within),) = possible
        return replace(branch, distinct=within is not None)
    sets = list(dict.fromkeys(within for _, within in possible if within is not None))
    return SetQuery(
        query_id,
        name,
        first.source.text,
        tuple(replace(branch, sql="", distinct=False) for branch, _ in possible),
        tuple(None if within is None else sets.index(within) for _, within in possible),
    )


def _branches(
    name: str,
    query_id: str,
    leaf: Leaf,
    choices: Choices,
    opened: Callable[[Choices], Sources],
) -> list[tuple[JoinQuery, Hashable]]:
    """The branches of one SELECT, each with the set that its rows go to."""
    branches: list[tuple[JoinQuery, Hashable]] = []
    more = True
    while more and len(branches) <= MOST_BRANCHES:
        sources = opened(choices)
        branch = join_query(name, query_id, leaf, sources)
        within = None if leaf.distinct_in is not None else _set_below(sources)
        branches.append((branch, within))
        more = choices.advance()
    return branches


def _set_below(sources: Sources) -> Hashable:
    """The set that the subqueries of a branch make of its rows; None if none removes duplicates."""
    if not sources.unremoved:
        return None
    for subquery in sources.unremoved:
        alone = len(subquery.slots) == len(sources.read)
        if not (alone and subquery.values <= sources.shown):
            raise Unshared(
                "a subquery that removes duplicates has no shared form here",
                subquery.key[0],
                "write SELECT DISTINCT at the beginning, or UNION ALL in the subquery",
            )
    return sources.unremoved[0].key
