"""The aggregate functions over the whole contents of a window, by definition.

`bind` gives an aggregate's result type and a function from the list of its inputs (rows
that passed its FILTER, each with its event time and argument values) to its result. Where
more than one result is right, the result is `OneOf` or `Between`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from .expressions import Aggregate
from .sparktypes import BIGINT, BOOLEAN, DOUBLE, EXACT, Type, bounded, fit
from .values import NAN, Value, canonical, checked, compare, convert, sort_key, wrap

#: `approx_count_distinct` has a relative standard deviation of 5 %; four of them are allowed.
DISTINCT_TOLERANCE = 0.2
#: `approx_percentile` may be off by this share of the ranks, and by one rank.
RANK_TOLERANCE = 0.02
#: Up to these precisions Spark computes decimal averages in doubles.
DOUBLE_DIGITS = 15


@dataclass(frozen=True)
class Input:
    """One row as an aggregate sees it."""

    time: int
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class OneOf:
    """Any of these values is right."""

    values: tuple[Value, ...]


@dataclass(frozen=True)
class Between:
    """Any integer from `low` to `high` is right."""

    low: int
    high: int


Finish = Callable[[Sequence[Input]], Value]


def bind(
    aggregate: Aggregate, types: Sequence[Type], *, ansi: bool, notes: set[str]
) -> tuple[Type, Finish]:
    """The result type and the function; `notes` collects what depends on the order of rows."""
    function = aggregate.function
    kind = types[0] if types else BIGINT
    if function == "count":
        return BIGINT, _count_distinct if aggregate.distinct else _count
    if function == "sum":
        return _sum_type(kind), lambda rows: _sum(_known(rows), kind, ansi, notes)
    if function == "avg":
        return _average_type(kind), lambda rows: _average(_known(rows), kind, ansi, notes)
    if function in ("min", "max"):
        choose = min if function == "min" else max
        return kind, lambda rows: choose(_known(rows), key=sort_key, default=None)
    if function in VARIANCES:
        sample, root = VARIANCES[function]
        return DOUBLE, lambda rows: _variance(_doubles(rows, kind), sample=sample, root=root)
    if function in ("bool_and", "bool_or"):
        fold = all if function == "bool_and" else any
        return BOOLEAN, lambda rows: fold(_known(rows)) if _known(rows) else None
    if function in ("min_by", "max_by"):
        return kind, lambda rows: _extreme_by(rows, largest=function == "max_by")
    if function in ("first", "last"):
        last, ignore = function == "last", aggregate.ignore_nulls
        return kind, lambda rows: _first(rows, last=last, ignore_nulls=ignore)
    if function == "approx_count_distinct":
        return BIGINT, lambda rows: _around(_count_distinct(rows))
    if function == "approx_percentile":
        assert aggregate.parameter is not None
        share = aggregate.parameter
        return kind, lambda rows: _percentile(_known(rows), share)
    raise TypeError(f"no aggregate {function!r}")


VARIANCES = {
    "var_pop": (False, False),
    "var_samp": (True, False),
    "stddev_pop": (False, True),
    "stddev_samp": (True, True),
}


def _known(rows: Iterable[Input]) -> list[Value]:
    return [row.arguments[0] for row in rows if row.arguments[0] is not None]


def _doubles(rows: Iterable[Input], kind: Type) -> list[float]:
    return [convert(value, kind, DOUBLE) for value in _known(rows)]


def _count(rows: Sequence[Input]) -> int:
    return sum(None not in row.arguments for row in rows)


def _count_distinct(rows: Sequence[Input]) -> int:
    keys = (tuple(canonical(value) for value in row.arguments) for row in rows)
    return len({key for key in keys if None not in key})


def _sum_type(kind: Type) -> Type:
    if kind.is_decimal:
        return bounded(kind.precision + 10, kind.scale)
    return BIGINT if kind.is_integral else DOUBLE


def _sum(values: list[Value], kind: Type, ansi: bool, notes: set[str]) -> Value:
    if not values:
        return None
    if kind.is_floating:
        return sum_of_doubles(values)
    total_type = _sum_type(kind)
    if kind.is_integral:
        total = sum(values)
        if sum(map(abs, values)) >= 1 << 63:
            notes.add("overflow may depend on the order of rows")
        return wrap(total, total_type, ansi=ansi)
    if fit(_total(map(abs, values)), total_type) is None:
        notes.add("overflow may depend on the order of rows")
    return checked(_total(values), total_type, ansi=ansi)


def _total(values: Iterable[Decimal]) -> Decimal:
    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    return total


def sum_of_doubles(values: Sequence[float]) -> float:
    """The exact sum, rounded once; NaN and infinities as in any order of additions."""
    if any(math.isnan(value) for value in values):
        return NAN
    infinities = {value for value in values if math.isinf(value)}
    if infinities:
        return infinities.pop() if len(infinities) == 1 else NAN
    try:
        return math.fsum(values)
    except OverflowError:
        return math.copysign(math.inf, sum(map(Fraction, values)))


def _average_type(kind: Type) -> Type:
    return bounded(kind.precision + 4, kind.scale + 4) if kind.is_decimal else DOUBLE


def _average(values: list[Value], kind: Type, ansi: bool, notes: set[str]) -> Value:
    if not values:
        return None
    if not kind.is_decimal:
        return sum_of_doubles([float(value) for value in values]) / len(values)
    result_type = _average_type(kind)
    if kind.precision + 4 <= DOUBLE_DIGITS:
        unscaled = sum(int(value.scaleb(kind.scale)) for value in values)
        quotient = float(unscaled) / len(values) / 10.0**kind.scale
        return checked(Decimal(repr(quotient)), result_type, ansi=ansi)
    total = _sum(values, kind, ansi, notes)
    if total is None:
        return None
    return checked(EXACT.divide(total, Decimal(len(values))), result_type, ansi=ansi)


def _variance(values: list[float], *, sample: bool, root: bool) -> float | None:
    count = len(values)
    if count == 0 or (sample and count == 1):
        return None
    if not all(map(math.isfinite, values)):
        return NAN
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / count
    squares = sum((value - mean) ** 2 for value in exact)
    try:
        variance = float(squares / (count - 1 if sample else count))
    except OverflowError:
        return math.inf
    return math.sqrt(variance) if root else variance


def one_of(values: Iterable[Value]) -> Value:
    """`OneOf` of the distinct values, or the value itself if there is only one."""
    distinct: list[Value] = []
    for value in values:
        if not any(_same(value, other) for other in distinct):
            distinct.append(value)
    return distinct[0] if len(distinct) == 1 else OneOf(tuple(distinct))


def _same(left: Value, right: Value) -> bool:
    if left is None or right is None:
        return left is right
    return compare(left, right) == 0


def _extreme_by(rows: Sequence[Input], *, largest: bool) -> Value:
    ranked = [row for row in rows if row.arguments[1] is not None]
    if not ranked:
        return None
    keys = [sort_key(row.arguments[1]) for row in ranked]
    best = max(keys) if largest else min(keys)
    return one_of(row.arguments[0] for row, key in zip(ranked, keys, strict=True) if key == best)


def _first(rows: Sequence[Input], *, last: bool, ignore_nulls: bool) -> Value:
    kept = [row for row in rows if not (ignore_nulls and row.arguments[0] is None)]
    if not kept:
        return None
    time = (max if last else min)(row.time for row in kept)
    return one_of(row.arguments[0] for row in kept if row.time == time)


def _around(count: int) -> Value:
    slack = max(1, math.ceil(DISTINCT_TOLERANCE * count))
    return Between(max(0, count - slack), count + slack) if count else 0


def _percentile(values: list[Value], share: float) -> Value:
    if not values:
        return None
    ordered = sorted(values, key=sort_key)
    slack = RANK_TOLERANCE * len(ordered) + 1
    low = max(0, math.floor(share * len(ordered) - slack))
    high = min(len(ordered), math.ceil(share * len(ordered) + slack))
    return one_of(ordered[low:high])
