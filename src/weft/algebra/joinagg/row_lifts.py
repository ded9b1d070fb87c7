"""What a late input's row carries: partials of one row, as Spark computes them without any grouping.

A partial of one row has the form that a state file gives it (`weft.algebra.aggregate.lift`), so rows and panes are combined by
the same operations. Sketches of one row have no such form: an input with one is early.

A column that may raise an error is evaluated only for rows that the source selects.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.algebra import codec
from weft.algebra.aggregate import MOMENTS, Aggregate, lift
from weft.algebra.joinagg.sources import Source, time_of
from weft.algebra.query import StreamSchema
from weft.algebra.scalar import Expression
from weft.algebra.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGRAL,
    SqlType,
    decimal,
    decimal_parameters,
)


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of published rows: its name, and Spark SQL over the relation's columns. Equal columns
    of several sources have one name."""

    name: str
    sql: str
    type: SqlType


@dataclass(frozen=True)
class RowColumns:
    """The columns of a source's rows."""

    selected: RowColumn | None
    """Whether the source selects a row; None: it selects all."""
    attributes: tuple[RowColumn, ...]
    partials: tuple[RowColumn, ...]
    """In the order of `Source.partials`."""

    @property
    def all(self) -> tuple[RowColumn, ...]:
        return (*([self.selected] if self.selected else ()), *self.attributes, *self.partials)


def row_columns(source: Source, stream: StreamSchema | None) -> RowColumns:
    """The columns that a late input needs of its rows."""
    guard = source.predicate
    partials: dict[str, RowColumn] = {}
    for aggregate, lifted in zip(source.aggregates, source.lifted(stream), strict=True):
        raises = any(value.can_raise for value in aggregate.arguments)
        raises = raises or (aggregate.filter is not None and aggregate.filter.can_raise)
        of_row = row_lift(aggregate, stream)
        for partial, sql in zip(lifted, of_row, strict=True):
            partials[partial.name] = _column(sql, partial.type, guard if raises else None)
    return RowColumns(
        None if guard is None else _column(guard.sql, BOOLEAN, None),
        tuple(
            _column(a.value.sql, a.value.type, guard if a.value.can_raise else None)
            for a in source.attributes
        ),
        tuple(partials.values()),
    )


def _column(sql: str, type_: SqlType, guard: Expression | None) -> RowColumn:
    guarded = sql if guard is None else f"CASE WHEN {guard.sql} THEN {sql} END"
    return RowColumn(f"c_{codec.digest((guarded, type_), 16)}", guarded, type_)


def row_lift(aggregate: Aggregate, stream: StreamSchema | None) -> tuple[str, ...]:
    """The partials of one row, in the order of `lift`, as Spark SQL.

    >>> from weft.algebra.scalar import Expression
    >>> row_lift(Aggregate("sum", (Expression("x", "int", ("x",)),), "bigint"), None)
    ('coalesce(cast(x AS bigint), 0L)', 'CASE WHEN (x) IS NOT NULL THEN 1L ELSE 0L END')
    >>> row_lift(Aggregate("sum", (Expression("x", "decimal(30,29)"),), "decimal(38,29)"), None)[0]
    "named_struct('sum', coalesce(cast(x AS decimal(38,29)), cast(0 AS decimal(38,29))), 'overflow', 0L)"
    """
    condition = None if aggregate.filter is None else aggregate.filter.sql
    if aggregate.function == "count":
        tests = [] if condition is None else [f"({condition})"]
        tests += [f"({argument.sql}) IS NOT NULL" for argument in aggregate.arguments]
        return (_counted(" AND ".join(tests)),)
    argument = aggregate.arguments[0]
    value = argument.sql if condition is None else f"CASE WHEN {condition} THEN {argument.sql} END"
    if aggregate.function in ("sum", "avg"):
        return (_summand(value, argument.type), _counted(f"({value}) IS NOT NULL"))
    if aggregate.function in MOMENTS:
        number = value if argument.type == DOUBLE else f"cast({value} AS double)"
        counted = _counted(f"({number}) IS NOT NULL")
        square = f"({number}) - ({number})"  # 0, but for infinities and NaN
        return (f"named_struct('n', {counted}, 'mean', {number}, 'm2', {square})",)
    partials = lift(aggregate, time_of(stream), None)
    if [partial.combine.name in ("min", "max") for partial in partials] != [True]:
        raise ValueError(f"{aggregate.function} of one row has no form")
    return (partials[0].lift[len("min(") : -len(")")],)


def _counted(test: str) -> str:
    return f"CASE WHEN {test} THEN 1L ELSE 0L END" if test else "1L"


def _summand(value: str, type_: SqlType) -> str:
    parameters = decimal_parameters(type_)
    if parameters:
        summed = decimal(parameters[0] + 10, parameters[1])
        zero = f"cast(0 AS {summed})"  # a plain 0 has ten digits before the point, at the cost of those behind it
        return f"named_struct('sum', coalesce(cast({value} AS {summed}), {zero}), 'overflow', 0L)"
    if type_ == BIGINT:
        high, low = (
            f"coalesce(shiftright({value}, 32), 0L)",
            f"coalesce(({value}) & 4294967295L, 0L)",
        )
        return f"named_struct('high', {high}, 'low', {low})"
    if type_ in INTEGRAL:
        return f"coalesce(cast({value} AS bigint), 0L)"
    return f"cast({value} AS double)"
