"""The values of a literal's subject over rows, as integers of the same order, or as strings.

Sums (`Linear`) are exact: in int64 where the sizes of the values at hand prove that no sum leaves it,
else in Python's integers. Floats become the integers of `codes.float_codes`, so NaN is equal to itself
and above all, and -0.0 is 0.0. `compare` of two strings follows their UTF-8 bytes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.network.bits import bit_column
from weft.algebra.predicates import Linear, Subject
from weft.algebra.predicates.slots import column_name, slots_in
from weft.algebra.predicates.subject import COMPARE
from weft.algebra.scalar import Call, Opaque, Ref, Scalar
from weft.kernel.columns import codes
from weft.kernel.columns import scalar as scalars
from weft.kernel.columns.column import Column, column, to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark
from weft.kernel.network.rows import Rows

_LIMIT = 1 << 63


def readable(subject: Subject) -> Subject:
    """The subject with columns in place of what Spark has computed (`bits`). An expression over
    several slots that only Spark can evaluate raises `NeedsSpark`."""
    return subject if isinstance(subject, Linear) else readable_scalar(subject)


def readable_scalar(scalar: Scalar) -> Scalar:
    """The scalar with columns in place of what Spark has computed."""
    if isinstance(scalar, Opaque):
        slots = slots_in(scalar)
        if len(slots) > 1:
            raise NeedsSpark(scalar.sql)
        return Ref(column_name(min(slots, default=0), bit_column(scalar)), scalar.type)
    if isinstance(scalar, Call):
        arguments = tuple(readable_scalar(argument) for argument in scalar.arguments)
        return Call(scalar.operator, arguments, scalar.type)
    return scalar


def can_raise(subject: Subject) -> bool:
    """Whether a subject may only be evaluated on rows that pass all other conditions: because it can
    fail on others, or because it costs more than they do."""
    if isinstance(subject, Linear | Ref):
        return False
    if isinstance(subject, Call) and subject.operator in (COMPARE, "<=>"):
        return any(can_raise(side) for side in subject.arguments)
    return True


def values_of(subject: Subject, rows: Rows, *, ansi: bool) -> Column:
    """The subject's values: integers of their order, or Arrow strings."""
    if isinstance(subject, Linear):
        return _sum(subject, rows)
    if isinstance(subject, Ref):
        return ranked(rows.column(subject.name))
    if isinstance(subject, Call) and subject.operator == COMPARE:
        left, right = (plain_values(argument, rows, ansi=ansi) for argument in subject.arguments)
        return _compared(left, right)
    return ranked(plain_values(subject, rows, ansi=ansi))


def plain_values(scalar: Scalar, rows: Rows, *, ansi: bool) -> Column:
    """The values of a scalar as they are."""
    if isinstance(scalar, Ref):
        return rows.column(scalar.name)
    values = scalars.evaluate(
        scalar, lambda name: to_arrow(rows.column(name)), rows.count, ansi=ansi
    )
    return column(values)


def ranked(values: Column) -> Column:
    """Floats as integers of the same order; all others are what they are."""
    if pa.types.is_floating(values.type):
        return Column(codes.float_codes(pa.array(values.values)), values.valid, pa.int64())
    return values


def _sum(subject: Linear, rows: Rows) -> Column:
    terms = [(factor, rows.column(ref.name)) for factor, ref in subject.terms]
    if any(pa.types.is_null(term.type) for _, term in terms):
        return _nulls(rows.count)
    largest = sum(abs(factor) * _size(term.values) for factor, term in terms)
    wide = max(largest, *(abs(factor) for factor, _ in terms)) >= _LIMIT
    total: Array | None = None
    valid: Array | None = None
    for factor, term in terms:
        part = term.values.astype(object if wide else np.int64, copy=False)
        if factor != 1:
            part = part * factor
        total = part if total is None else total + part
        valid = both_valid(valid, term.valid)
    assert total is not None
    return Column(total, valid, pa.int64())


def _nulls(count: int) -> Column:
    return Column(np.zeros(count, np.int64), np.zeros(count, bool), pa.int64())


def _size(values: Array) -> int:
    """The largest absolute value."""
    if not len(values):
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def _compared(left: Column, right: Column) -> Column:
    """-1, 0 or 1."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return _nulls(len(left))
    left, right = ranked(left), ranked(right)
    if isinstance(left.values, np.ndarray) and isinstance(right.values, np.ndarray):
        order = (left.values > right.values).astype(np.int8) - (left.values < right.values)
        return Column(order.astype(np.int64), both_valid(left.valid, right.valid), pa.int64())
    less = pc.less(left.values, right.values)
    greater = pc.greater(left.values, right.values)
    return column(pc.subtract(greater.cast(pa.int8()), less.cast(pa.int8())))


def both_valid(left: Array | None, right: Array | None) -> Array | None:
    if left is None or right is None:
        return right if left is None else left
    valid: Array = left & right
    return valid
