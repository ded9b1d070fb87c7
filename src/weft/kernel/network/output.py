"""The rows that a query shows, of the rows of its node.

Where the kernel can evaluate all output columns it does so. Otherwise the query's rows are given as
they are, with columns `slot.column` of its own inputs, for Spark to project: also where a value would
overflow or divide by zero, since Spark says what happens then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from weft.algebra.predicates.slots import column_name
from weft.kernel.columns import scalar as scalars
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark
from weft.kernel.network.program import Output
from weft.kernel.network.rows import STEP, Rows

ROW: Final = "#row"
"""The only column of the rows of a query that reads none."""


@dataclass(frozen=True)
class Matches:
    """New matches of a query: its output columns, or (`raw`) the columns that they are made of."""

    table: pa.Table
    raw: bool


class Shown:
    """The columns of some rows as Arrow arrays, each made once for all queries that show it."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._arrays: dict[str, pa.Array] = {}

    def column(self, name: str) -> pa.Array:
        if name not in self._arrays:
            self._arrays[name] = to_arrow(self.rows.column(name))
        return self._arrays[name]


def visible(
    output: Output, rows: Rows, chosen: Array | None, from_steps: Mapping[str, int]
) -> Array | None:
    """The positions, of those chosen, whose rows all came at or after the steps from which the query
    sees their relations."""
    for place, slot in enumerate(output.slots):
        first = from_steps.get(output.query.inputs[place].relation)
        if first is None:
            continue
        steps = rows.column(column_name(slot, STEP)).values
        truth = (steps if chosen is None else steps[chosen]) >= first
        if truth.all():
            continue
        positions = np.flatnonzero(truth)
        chosen = positions if chosen is None else chosen[positions]
    return chosen


def matches_of(output: Output, shown: Shown, chosen: Array | None, *, ansi: bool) -> Matches:
    """What the query shows of the chosen rows."""
    count = shown.rows.count if chosen is None else len(chosen)
    positions = None if chosen is None else pa.array(chosen)

    def column(name: str) -> pa.Array:
        values = shown.column(output.at_node(name))
        return values if positions is None else values.take(positions)

    if output.native:
        try:
            arrays = [
                _typed(scalars.evaluate(entry.value, column, count, ansi=ansi), entry.type)
                for entry in output.query.columns
            ]
            names = [entry.name for entry in output.query.columns]
            return Matches(pa.Table.from_arrays(arrays, names), raw=False)
        except NeedsSpark:
            pass
    columns = {name: column(name) for name in output.names}
    # A table without columns would have no rows.
    return Matches(pa.table(columns or {ROW: pa.nulls(count)}), raw=True)


def _typed(values: pa.Array, type_: str) -> pa.Array:
    wanted = arrow_type(type_)
    return values if values.type == wanted else values.cast(wanted)
