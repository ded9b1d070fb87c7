"""Rule 1: what an early aggregation groups by, and what it computes.

From: the AggJoin paper, section 5. An early aggregation on an input S makes an aggregation set,
with which rows of the other inputs are joined instead of with the rows of S.

- It groups by the query's grouping attributes that belong to S, and by the join attributes of S.
- It computes the query's aggregates over attributes of S, and COUNT(*) if any aggregate of the query
  is not over S alone: a row of another input then stands for as many joined rows as the group has.

Preconditions: 1. the joins are equalities; 2. every aggregate can be scaled, that is, computed for n
copies of a value (n times it for counts and sums, the value itself for MIN and MAX; AVG is a sum
and a count).

Why it is sound: rows of S with equal join attributes meet the same rows of the others, and with equal
grouping attributes their joined rows fall into the same groups of the result. So replacing them by
their aggregate and their number changes no group (Theorems 1 and 2).

Beyond the paper: an aggregate over attributes of several inputs, such as SUM(a.x * b.y), is not in
Rule 1. Its attributes on S become grouping attributes of the early aggregation, which keeps their
values; the late aggregation computes it from them and the counts.

What the paper leaves out: without COUNT(*), which Rule 1 drops where S has all aggregation
attributes, nobody can tell a group whose rows have all left the window from one whose sum is 0
(Definition 4 never removes a group). An operator with decrements therefore counts always;
`counts` says only whether values of the result depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.algebra.predicates.slots import slot_of


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate of a query, with the columns it reads as `slot.column`; COUNT(*) reads none."""

    function: str
    attributes: tuple[str, ...] = ()

    @property
    def inputs(self) -> frozenset[int]:
        return frozenset(slot_of(attribute) for attribute in self.attributes)


@dataclass(frozen=True, slots=True)
class EarlyAggregation:
    """The operator on one input."""

    grouping: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    counts: bool


def early_aggregation(
    number: int,
    grouping: Iterable[str],
    joined: Iterable[str],
    aggregates: Sequence[AggregateCall],
) -> EarlyAggregation:
    """The early aggregation on input `number` of a query that groups by `grouping`, joins on the
    columns `joined` and computes `aggregates`. All columns are named `slot.column`.

    The number of bids (input 1) for each auction (input 0) of some sellers (input 2):

    >>> bids = early_aggregation(
    ...     1,
    ...     grouping=["0.auction"],
    ...     joined=["0.auction", "1.auction", "0.seller", "2.person"],
    ...     aggregates=[AggregateCall("count", ("1.bidder",))],
    ... )
    >>> bids.grouping, [call.function for call in bids.aggregates], bids.counts
    (('1.auction',), ['count'], False)
    """
    of_several = (
        attribute
        for call in aggregates
        if len(call.inputs) > 1
        for attribute in sorted(call.attributes)
    )
    columns = (column for columns in (grouping, joined, of_several) for column in columns)
    local = tuple(call for call in aggregates if call.inputs == {number})
    return EarlyAggregation(
        grouping=tuple(dict.fromkeys(column for column in columns if slot_of(column) == number)),
        aggregates=local,
        counts=len(local) < len(aggregates),
    )
