"""Hidden selections, found by transitivity (ARGUS, section 5.6).

From `r1.amount > 1000000`, `r2.amount > r1.amount * 0.5` and `r3.amount = r2.amount` follow
`r2.amount > 500000` and `r3.amount > 500000`: rows that cannot match are dropped before the joins.

A *link* is a literal that stands alone and speaks of several values: a sum of columns, or the order of
two sides. From what is known of all of its values but one follow bounds of this one: by exact division
for sums, by `ranges` for doubles, by the order itself for strings. An equality passes on whole sets, so
`a = b AND b IN ('x', 'y')` gives `a IN ('x', 'y')`. This is repeated until nothing new follows, at most
once more than there are slots, because bounds may creep for ever: `a < b AND b < a`.

Sound: every bound follows from literals that hold for every row that passes. What is already implied
is not added, and a set of values that becomes empty makes the whole set one that no row passes.
Time: (slots + 2) times the number of links, times the number of intervals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from weft.algebra.condition.values import NOT_NULL, Bound, Interval, Values, union, united
from weft.algebra.predicates.linear import quotient
from weft.algebra.predicates.literal import LiteralPredicate, clipped_for, holds
from weft.algebra.predicates.predicate_set import NEVER, PredicateSet, all_of, alone
from weft.algebra.predicates.ranges import UNBOUNDED, hull, range_of
from weft.algebra.predicates.subject import COMPARE, Linear, Subject, subject_of
from weft.algebra.scalar import Call, Literal, Scalar

MOST_PAIRS: Final = 10_000
"""Beyond this many pairs of intervals a set counts as the interval around it."""

Ends = tuple[int | None, int | None]
"""The least and the greatest of some integers; None where there is none."""


def inferred(predicates: PredicateSet, slots: int) -> PredicateSet:
    """The predicate set with the selections that follow from it by transitivity."""
    restricted = {literal.subject: literal.values for literal in predicates.single}
    links = [literal for literal in predicates.single if _is_link(literal)]
    hidden: dict[Subject, Values] = {}
    for _ in range(slots + 2):
        news = False
        for link in links:
            for literal in _consequences(link, restricted):
                before = restricted.get(literal.subject, NOT_NULL)
                values = clipped_for(literal.subject, before & literal.values)
                if values == before:
                    continue
                if values.empty:
                    return NEVER
                restricted[literal.subject] = hidden[literal.subject] = values
                news = True
        if not news:
            break
    if not hidden:
        return predicates
    selections = [alone(LiteralPredicate(subject, values)) for subject, values in hidden.items()]
    return all_of((*predicates.predicates, *selections))


def _is_link(literal: LiteralPredicate) -> bool:
    subject = literal.subject
    if literal.values.null:
        return False
    if isinstance(subject, Linear):
        return not subject.is_column
    return isinstance(subject, Call) and subject.operator == COMPARE


def _consequences(
    link: LiteralPredicate, restricted: Mapping[Subject, Values]
) -> Iterator[LiteralPredicate]:
    subject = link.subject
    if isinstance(subject, Linear):
        for index in range(len(subject.terms)):
            yield from _of_sum(subject, link.values, index, restricted)
    elif isinstance(subject, Call):
        left, right = subject.arguments
        orders = {order for order in (-1, 0, 1) if holds(link.values, order)}
        yield from _of_order(left, orders, right, restricted)
        yield from _of_order(right, {-order for order in orders}, left, restricted)


def _of_sum(
    subject: Linear, totals: Values, index: int, restricted: Mapping[Subject, Values]
) -> Iterator[LiteralPredicate]:
    """What follows for one column: factor * column = total - all others."""
    factor, ref = subject.terms[index]
    others = [term for position, term in enumerate(subject.terms) if position != index]
    spread: list[Ends] = []
    for other_factor, other in others:
        values = restricted.get(Linear(((1, other),)))
        if values is None:
            return
        ends = [_times(interval, other_factor) for interval in values.intervals]
        spread = ends if not spread else [_added(_around(spread), _around(ends))]
    if len(spread) * len(totals.intervals) > MOST_PAIRS:
        spread = [_around(spread)]
    possible = [
        quotient(_added(_ends(total), (_minus(upper), _minus(lower))), factor)
        for total in totals.intervals
        for lower, upper in spread
    ]
    intervals = united([interval for interval in possible if interval is not None])
    yield LiteralPredicate(Linear(((1, ref),)), Values(intervals))


def _ends(interval: Interval) -> Ends:
    low, high = interval
    return (
        low.value if low is not None and isinstance(low.value, int) else None,
        high.value - 1 if high is not None and isinstance(high.value, int) else None,
    )


def _minus(number: int | None) -> int | None:
    return None if number is None else -number


def _times(interval: Interval, factor: int) -> Ends:
    low, high = (None if end is None else end * factor for end in _ends(interval))
    return (low, high) if factor > 0 else (high, low)


def _added(one: Ends, other: Ends) -> Ends:
    low, high = (
        None if left is None or right is None else left + right for left, right in zip(one, other)
    )
    return low, high


def _around(spread: list[Ends]) -> Ends:
    lows, highs = [low for low, _ in spread], [high for _, high in spread]
    bounded_lows = [low for low in lows if low is not None]
    bounded_highs = [high for high in highs if high is not None]
    return (
        min(bounded_lows) if len(bounded_lows) == len(lows) else None,
        max(bounded_highs) if len(bounded_highs) == len(highs) else None,
    )


def _of_order(
    side: Scalar, orders: set[int], other: Scalar, restricted: Mapping[Subject, Values]
) -> Iterator[LiteralPredicate]:
    """What follows for one side, whose order to the other is one of these."""
    if isinstance(side, Literal) or side.type != other.type:
        return
    values = restricted.get(subject_of(other))
    if values is None:
        interval = range_of(other, restricted)
        if interval == UNBOUNDED:
            return
        values = Values((interval,))
    low, high = hull(values)
    possible = []
    if 0 in orders:
        possible.append(Values(values.intervals))
    if -1 in orders:
        possible.append(Values(((None, _before_last(high)),)))
    if 1 in orders:
        possible.append(Values(((_after_first(low), None),)))
    yield LiteralPredicate(subject_of(side), union(possible))


def _before_last(high: Bound | None) -> Bound | None:
    """Where values end that are below one of some values, which end at `high`."""
    if high is None:
        return None
    if isinstance(high.value, int):
        return Bound(high.value - 1)
    return Bound(high.value)


def _after_first(low: Bound | None) -> Bound | None:
    """Where values begin that are above one of some values, which begin at `low`."""
    if low is None:
        return None
    if isinstance(low.value, int):
        return Bound(low.value + 1)
    return Bound(low.value, after=True)
