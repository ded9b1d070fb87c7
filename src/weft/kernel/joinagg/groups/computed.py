"""Aggregates that read several inputs, such as SUM(a.x * b.y), or distinct values: computed of joined entries.

The columns that they read are attributes of their inputs, so an early aggregation groups by them and keeps their values (`optimizer/joinagg/rule`).
A joined entry then has one value of the argument, for as many joined rows as the product of its inputs' counts.
Here this value is lifted to the partials of one row, as Spark lifts rows of late inputs (`algebra/joinagg/row_lifts`); `scaling` makes it stand for
many. Rows that FILTER leaves out are not evaluated: their values might raise an error.

Time: O(n) for n joined entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.aggregate import MOMENTS, Aggregate
from weft.algebra.joinagg.query import JoinedAggregate
from weft.algebra.partial import Partial
from weft.algebra.predicates.slots import moved
from weft.algebra.scalar import Scalar
from weft.algebra.types import BIGINT, INTEGRAL, decimal, decimal_parameters
from weft.kernel.columns import partial_columns
from weft.kernel.columns import scalar as scalars
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.failure import NeedsSpark, would_raise
from weft.kernel.joinagg.join import Joined


@dataclass(frozen=True)
class Computed:
    """An aggregate over attributes of inputs, with its partials in the order in which it is lowered."""

    joined: JoinedAggregate
    partials: tuple[Partial, ...]

    def in_order(self, places: Mapping[int, int]) -> Computed:
        """The same for inputs that are joined in another order."""
        where = None if self.joined.where is None else moved(self.joined.where, places)
        values = tuple(moved(value, places) for value in self.joined.values)
        return replace(self, joined=replace(self.joined, values=values, where=where))

    @property
    def is_distinct(self) -> bool:
        return self.joined.aggregate.distinct

    @property
    def types(self) -> list[pa.DataType]:
        """Those of the arguments."""
        return [arrow_type(value.type) for value in self.joined.values]

    def lifted(self, rows: Joined, *, ansi: bool) -> dict[str, Stored]:
        """The partials of each joined entry as of one row."""
        chosen, values = self._values(rows, ansi)
        if chosen is not None:
            places = pa.array(np.cumsum(chosen) - 1, mask=~chosen)
            values = [value.take(places) for value in values]
        stored = _lifted(self.joined.aggregate, values, chosen, rows.count, self.partials)
        return {partial.name: one for partial, one in zip(self.partials, stored, strict=True)}

    def distinct(self, rows: Joined, *, ansi: bool) -> tuple[Array, list[pa.Array]]:
        """The joined entries that FILTER chooses and whose arguments are all there, and these arguments."""
        chosen, values = self._values(rows, ansi)
        positions = np.arange(rows.count) if chosen is None else np.flatnonzero(chosen)
        present = np.ones(len(positions), bool)
        for value in values:
            present &= value.is_valid().to_numpy(zero_copy_only=False)
        if not present.all():
            there = pa.array(np.flatnonzero(present))
            positions, values = positions[present], [value.take(there) for value in values]
        return positions, values

    def _values(self, rows: Joined, ansi: bool) -> tuple[Array | None, list[pa.Array]]:
        """Which entries FILTER chooses, None: all, and the arguments of those."""
        part = "FILTER"
        try:
            chosen = self._chosen(rows, ansi)
            inside = rows if chosen is None else rows.only(np.flatnonzero(chosen))
            part = "argument"
            return chosen, [_evaluated(value, inside, ansi) for value in self.joined.values]
        except NeedsSpark as problem:
            raise would_raise(
                f"the {part} of {self.joined.aggregate.function}", problem
            ) from problem

    def _chosen(self, rows: Joined, ansi: bool) -> Array | None:
        """Which entries FILTER chooses; None: all."""
        if self.joined.where is None:
            return None
        true = pc.fill_null(_evaluated(self.joined.where, rows, ansi), False)
        chosen: Array = true.to_numpy(zero_copy_only=False)
        return chosen


def _evaluated(scalar: Scalar, rows: Joined, ansi: bool) -> pa.Array:
    def column(name: str) -> pa.Array:
        return to_arrow(rows.column(name))

    values = scalars.evaluate(scalar, column, rows.count, ansi=ansi)
    wanted = arrow_type(scalar.type)
    values = values if values.type == wanted else values.cast(wanted)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _lifted(
    aggregate: Aggregate,
    values: Sequence[pa.Array],
    chosen: Array | None,
    count: int,
    partials: Sequence[Partial],
) -> list[Stored]:
    counted = np.ones(count, bool) if chosen is None else chosen
    for of_argument in values:
        counted = counted & of_argument.is_valid().to_numpy(zero_copy_only=False)
    if aggregate.function == "count":
        return [(counted.astype(np.int64),)]
    (argument,) = values
    if aggregate.function in ("sum", "avg"):
        return [_summand(argument, aggregate, partials[0]), (counted.astype(np.int64),)]
    if aggregate.function in MOMENTS:
        numbers = _filled(argument.cast(pa.float64(), safe=False), 0.0)
        with np.errstate(invalid="ignore"):
            squares = numbers - numbers  # 0, but for infinities and NaN
        return [(counted.astype(np.float64), numbers, squares)]
    return [partial_columns.load(partials[0], argument)]


def _summand(argument: pa.Array, aggregate: Aggregate, partial: Partial) -> Stored:
    type_ = aggregate.arguments[0].type
    parameters = decimal_parameters(type_)
    if parameters:
        summed = arrow_type(decimal(parameters[0] + 10, parameters[1]))
        sums = pc.fill_null(argument.cast(summed), pa.scalar(0, summed))
        none = pa.array(np.zeros(len(argument), np.int64))
        return partial_columns.load(
            partial, pa.StructArray.from_arrays([sums, none], ["sum", "overflow"])
        )
    if type_ == BIGINT:
        wide = _filled(argument, 0)
        return (wide >> 32, wide & 0xFFFFFFFF)
    if type_ in INTEGRAL:
        return (_filled(argument.cast(pa.int64()), 0),)
    return (_filled(argument.cast(pa.float64()), 0.0),)


def _filled(values: pa.Array, absent: float) -> Array:
    filled: Array = pc.fill_null(values, absent).to_numpy(zero_copy_only=False)
    return filled
