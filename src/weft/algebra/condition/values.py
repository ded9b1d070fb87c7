"""Sets of values of one type, as intervals and a mark for NULL.

Closed under AND, OR and NOT. Order and equality are Spark's: NaN is equal to itself and above all
numbers, -0.0 is 0.0, strings compare by their UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import total_ordering
from itertools import pairwise
from typing import Any, Final

from weft.algebra.scalar import Value


@total_ordering
@dataclass(frozen=True, slots=True)
class Bound:
    """A position between values: just before one, or just after it.

    The value has the form of `constants.normal`: decimals are unscaled integers, booleans 0 and 1,
    NaN is None. So every type but strings, dates and floats is one of integers, and needs no "after".

    >>> Bound(3) < Bound(3, after=True) < Bound(4)
    True
    """

    value: Value
    after: bool = False

    @property
    def position(self) -> tuple[Any, bool]:
        return _rank(self.value), self.after

    def __lt__(self, other: Bound) -> bool:
        return self.position < other.position


Interval = tuple[Bound | None, Bound | None]
"""The values between two bounds; None is no bound."""


def _rank(value: Value) -> Any:
    """A form of a constant that Python orders as Spark orders its values. None is NaN."""
    if value is None:
        return (1, 0.0)
    if isinstance(value, float):
        return (0, value)
    return value.encode() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Values:
    """A set of values of one type: disjoint intervals in order, and whether NULL is in it."""

    intervals: tuple[Interval, ...] = ()
    null: bool = False

    def __or__(self, other: Values) -> Values:
        return Values(united((*self.intervals, *other.intervals)), self.null or other.null)

    def __and__(self, other: Values) -> Values:
        return ~(~self | ~other)

    def __invert__(self) -> Values:
        gaps: list[Interval] = []
        low: Bound | None = None
        for opening, closing in self.intervals:
            if opening is not None:
                gaps.append((low, opening))
            if closing is None:
                break
            low = closing
        else:
            gaps.append((low, None))
        return Values(tuple(gaps), not self.null)

    @property
    def empty(self) -> bool:
        return not self.intervals and not self.null


NOTHING: Final = Values()
NOT_NULL: Final = Values(((None, None),))
ALL: Final = Values(((None, None),), null=True)


def united(intervals: Sequence[Interval]) -> tuple[Interval, ...]:
    """The same values as disjoint intervals in order."""
    disjoint: list[Interval] = []
    unbounded = [interval for interval in intervals if interval[0] is None]
    bounded = sorted((interval for interval in intervals if interval[0] is not None), key=_opening)
    for low, high in [*unbounded, *bounded]:
        if disjoint and (disjoint[-1][1] is None or (low is None or low <= disjoint[-1][1])):
            last = disjoint[-1][1]
            high = None if last is None or high is None else max(last, high)
            disjoint[-1] = (disjoint[-1][0], high)
        else:
            disjoint.append((low, high))
    return tuple(disjoint)


def _opening(interval: Interval) -> Bound:
    assert interval[0] is not None
    return interval[0]


def union(sets: Sequence[Values]) -> Values:
    """The values that are in any of the sets."""
    intervals = [interval for values in sets for interval in values.intervals]
    return Values(united(intervals), any(values.null for values in sets))


def listed(values: Values, most: int) -> tuple[list[Value], Values]:
    """The values of intervals that hold at most so many, one by one, and the other values.

    >>> values, rest = listed(Values(((Bound(1), Bound(3)), (Bound(7), Bound(90)))), 2)
    >>> values, len(rest.intervals)
    ([1, 2], 1)
    """
    few: list[Value] = []
    rest: list[Interval] = []
    for interval in values.intervals:
        low, high = interval
        if low is not None and high is not None and not low.after and not high.after:
            if isinstance(low.value, int) and isinstance(high.value, int):
                if high.value - low.value <= most:
                    few += range(low.value, high.value)
                    continue
        value = point(interval)
        if value is NO_POINT:
            rest.append(interval)
        else:
            few.append(value)
    return few, Values(tuple(rest), values.null)


def coarser(values: Values, most: int) -> Values:
    """A set that holds these values, numbers in intervals, and has at most so many of these: those with
    little between them, in proportion to their size, become one. Sets of strings stay as they are.

    >>> ranges = union([Values(((Bound(n), Bound(n + 3)),)) for n in (0, 10, 12, 90)])
    >>> [(low.value, high.value) for low, high in coarser(ranges, 2).intervals]
    [(0, 15), (90, 93)]
    """
    neighbours = list(pairwise(values.intervals))
    if len(values.intervals) <= most or not all(map(_is_numeric, neighbours)):
        return values
    between = sorted(neighbours, key=_relative_gap)[: len(values.intervals) - most]
    filled = [(low, high) for (_, low), (high, _) in between]
    return Values(united((*values.intervals, *filled)), values.null)


def _is_numeric(pair: tuple[Interval, Interval]) -> bool:
    (_, low), (high, _) = pair
    return all(bound is not None and isinstance(bound.value, int | float) for bound in (low, high))


def _relative_gap(pair: tuple[Interval, Interval]) -> float:
    (_, low), (high, _) = pair
    assert low is not None and high is not None
    first, last = float(low.value or 0), float(high.value or 0)  # NaN, None here, is above the last
    return (last - first) / (abs(first) + abs(last) + 1.0)


def intersection(sets: Sequence[Values]) -> Values:
    """The values that are in all of the sets."""
    return ~union([~values for values in sets])


NO_POINT: Final = object()
"""What `point` gives for an interval of several values; None is a value there: NaN."""


def point(interval: Interval) -> Any:
    """The only value of an interval, if it has just one."""
    low, high = interval
    if low is None or high is None or low.after:
        return NO_POINT
    if high.after:
        return low.value if low.value == high.value else NO_POINT
    if isinstance(low.value, int) and isinstance(high.value, int):
        return low.value if high.value == low.value + 1 else NO_POINT
    return NO_POINT


def is_point(interval: Interval) -> bool:
    """Whether an interval holds one value."""
    return point(interval) is not NO_POINT


def single(value: Value) -> Interval:
    """The interval that holds one value."""
    if isinstance(value, int):
        return Bound(value), Bound(value + 1)
    return Bound(value), Bound(value, after=True)


def clipped(values: Values, limits: tuple[int, int]) -> Values:
    """Without bounds that lie at or beyond the lowest and highest value of a type."""
    low, high = limits
    inside: list[Interval] = []
    for opening, closing in values.intervals:
        first = low if opening is None else max(low, _integer(opening))
        beyond = high + 1 if closing is None else min(high + 1, _integer(closing))
        if first < beyond:
            inside.append(
                (
                    None if first == low else Bound(first),
                    None if beyond == high + 1 else Bound(beyond),
                )
            )
    return replace(values, intervals=united(inside))


def _integer(bound: Bound) -> int:
    assert isinstance(bound.value, int)
    return bound.value
