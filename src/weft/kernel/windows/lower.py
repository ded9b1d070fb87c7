"""Lowering: from combined partials to a result in the type Spark gives the aggregate.

Overflow is judged on the window's value: a bigint sum outside its type raises under ANSI and
wraps without, a decimal sum outside its precision raises or is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from weft.algebra.aggregate import MOMENTS, Aggregate
from weft.algebra.types import BIGINT, DOUBLE, INTEGRAL, decimal_parameters
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.codes import to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import LIMBS, Stored
from weft.kernel.columns.sketches.sketch_column import SketchColumn, quantiles
from weft.kernel.failure import QueryFailure

_TWO_32 = 1 << 32


def lower(aggregate: Aggregate, combined: Sequence[Stored], *, ansi: bool) -> pa.Array:
    """The results of an aggregate from its partials, in the order `lift` gave them."""
    function = aggregate.function
    if function == "count":
        return pa.array(combined[0][0])
    if function == "sum":
        return _sum(aggregate, combined[0], combined[1][0], ansi)
    if function == "avg":
        return _avg(aggregate, combined[0], combined[1][0], ansi)
    if function in MOMENTS:
        return _moments(function, combined[0])
    if function == "approx_count_distinct":
        return pa.array(combined[0][0].estimates())
    if function == "approx_percentile":
        nans = combined[2][0] if len(combined) > 2 else np.zeros(len(combined[1][0]), np.int64)
        return _percentiles(aggregate, combined[0][0], combined[1][0], nans)
    values = to_arrow(combined[0][0])
    if pa.types.is_struct(values.type):
        values = _last_field(values)
    return from_stored(values, aggregate.type)


def from_stored(values: pa.Array, type_: str) -> pa.Array:
    """A value of a state file in its SQL type: times travel as microseconds."""
    return values.cast(arrow_type(type_)) if values.type != arrow_type(type_) else values


def _last_field(values: pa.Array) -> pa.Array:
    inner: pa.Array = values.field(values.type.num_fields - 1)
    if values.null_count:
        positions = pa.array(
            np.arange(len(values)), mask=~values.is_valid().to_numpy(zero_copy_only=False)
        )
        inner = inner.take(positions)
    return inner


def _wide(stored: Stored) -> tuple[Array, Array]:
    """High part with the low part's carry, and the low 32 bits."""
    high, low = stored
    return high + (low >> 32), low & (_TWO_32 - 1)


def _sum(aggregate: Aggregate, total: Stored, count: Array, ansi: bool) -> pa.Array:
    empty = count == 0
    type_ = aggregate.arguments[0].type
    if decimal_parameters(type_):
        parameters = decimal_parameters(aggregate.type)
        assert parameters is not None
        return _decimals(_unscaled(total), total[LIMBS], empty, parameters, ansi, aggregate)
    if type_ == BIGINT:
        high, low = _wide(total)
        if ansi and ((high >= 1 << 31) | (high < -(1 << 31))).any():
            raise QueryFailure("ARITHMETIC_OVERFLOW", f"{aggregate.function}: long overflow")
        return pa.array((high << 32) | low, mask=empty)
    return pa.array(total[0], mask=empty)


def _avg(aggregate: Aggregate, total: Stored, count: Array, ansi: bool) -> pa.Array:
    empty = count == 0
    safe = np.where(empty, 1, count)
    type_ = aggregate.arguments[0].type
    if decimal_parameters(type_):
        return _decimal_avg(aggregate, total, count, ansi)
    if type_ == BIGINT:
        high, low = _wide(total)
        fits = (high < 1 << 31) & (high >= -(1 << 31))
        sums = np.where(
            fits,
            ((high << 32) | low).astype(np.float64),
            high.astype(np.float64) * _TWO_32 + low,
        )
    elif type_ in INTEGRAL:
        sums = total[0].astype(np.float64)
    else:
        sums = total[0]
    with np.errstate(invalid="ignore"):
        return pa.array(sums / safe, pa.float64(), mask=empty)


def _moments(function: str, stored: Stored) -> pa.Array:
    n, _, m2 = stored
    sample = function.endswith("_samp")
    missing = n < (2 if sample else 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = m2 / np.where(missing, 1, n - 1 if sample else n)
        value = np.sqrt(variance) if function.startswith("stddev") else variance
    return pa.array(value, pa.float64(), mask=missing)


def _unscaled(stored: Stored) -> list[int]:
    parts = [stored[index].tolist() for index in range(LIMBS)]
    return [a + (b << 32) + (c << 64) + (d << 96) for a, b, c, d in zip(*parts, strict=True)]


def _decimals(
    unscaled: list[int],
    overflowed: Array,
    empty: Array,
    parameters: tuple[int, int],
    ansi: bool,
    aggregate: Aggregate,
) -> pa.Array:
    precision, scale = parameters
    limit = 10**precision
    values: list[Decimal | None] = []
    exact = Context(prec=60)
    for number, over, none in zip(unscaled, overflowed.tolist(), empty.tolist(), strict=True):
        if none:
            values.append(None)
        elif over or abs(number) >= limit:
            if ansi:
                raise QueryFailure("ARITHMETIC_OVERFLOW", f"{aggregate.function}: decimal overflow")
            values.append(None)
        else:
            values.append(Decimal(number).scaleb(-scale, exact))
    return pa.array(values, pa.decimal128(precision, scale))


def _decimal_avg(aggregate: Aggregate, total: Stored, count: Array, ansi: bool) -> pa.Array:
    """Spark divides at 38 digits after the point, rounding half up, then rounds to the type."""
    parameters = decimal_parameters(aggregate.type)
    argument = decimal_parameters(aggregate.arguments[0].type)
    assert parameters is not None and argument is not None
    limit = 10 ** min(argument[0] + 10, 38)
    over = total[LIMBS].copy()
    rounded: list[int] = []
    for index, (number, rows) in enumerate(zip(_unscaled(total), count.tolist(), strict=True)):
        over[index] |= abs(number) >= limit
        rounded.append(_divide(number, rows or 1, argument[1], parameters[1]))
    return _decimals(rounded, over, count == 0, parameters, ansi, aggregate)


def _divide(unscaled: int, rows: int, from_scale: int, to_scale: int) -> int:
    context = Context(prec=100, rounding=ROUND_HALF_UP)
    number = context.divide(Decimal(unscaled).scaleb(-from_scale, context), Decimal(rows))
    at_38 = number.quantize(Decimal(1).scaleb(-38), context=context)
    result = at_38.quantize(Decimal(1).scaleb(-to_scale), context=context)
    return int(result.scaleb(to_scale, context))


def _percentiles(aggregate: Aggregate, merged: SketchColumn, count: Array, nans: Array) -> pa.Array:
    """Quantiles from sketches. They hold no NaN, which Spark ranks above all numbers: a rank
    beyond the numbers is a NaN, and ranks among them are stretched accordingly."""
    is_array, _, *percentages = aggregate.parameters
    argument = aggregate.arguments[0].type
    ranks = [float(p) for p in percentages if isinstance(p, (int, float))]
    convert = _percentile_value(argument)
    rows: list[Any] = []
    distinct, places = merged.distinct()
    for number, seen, nan in zip(places.tolist(), count.tolist(), nans.tolist(), strict=True):
        if not seen:
            rows.append(None)
            continue
        numbers = seen - nan
        wanted = [rank for rank in ranks if max(math.ceil(rank * seen), 1) <= numbers]
        stretched = [min(rank * seen / numbers, 1.0) for rank in wanted]
        estimates = quantiles(distinct[number], stretched)
        values = dict(zip(wanted, estimates, strict=True))
        answers = [convert(values[r]) if r in values else math.nan for r in ranks]
        rows.append(answers if is_array else answers[0])
    return pa.array(rows, arrow_type(aggregate.type))


def _percentile_value(type_: str) -> Callable[[Any], Any]:
    parameters = decimal_parameters(type_)
    if parameters:
        return lambda value: Decimal(int(value)).scaleb(-parameters[1], Context(prec=60))
    if type_ in (DOUBLE, "float"):
        return float
    return int
