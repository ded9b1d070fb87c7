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
from weft.kernel.network.program import Output, Projection
from weft.kernel.network.rows import STEP, Rows

ROW: Final = "#row"
"""The only column of the rows of a query that reads none."""


@dataclass(frozen=True)
class Matches:
    """New matches of a query: its output columns, or (`raw`) the columns that they are made of."""

    table: pa.Table
    raw: bool


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


def projected(projection: Projection, rows: Rows, chosen: Array | None, *, ansi: bool) -> Matches:
    """What queries show of the chosen rows."""
    count = rows.count if chosen is None else len(chosen)
    arrays: dict[str, pa.Array] = {}

    def column(name: str) -> pa.Array:
        if name not in arrays:
            values = rows.column(name)
            arrays[name] = to_arrow(values if chosen is None else values.take(chosen))
        return arrays[name]

    if projection.native:
        try:
            values = [
                _typed(scalars.evaluate(entry.value, column, count, ansi=ansi), entry.type)
                for entry in projection.columns
            ]
            names = [entry.name for entry in projection.columns]
            return Matches(pa.Table.from_arrays(values, names), raw=False)
        except NeedsSpark:
            pass
    columns = {name: column(at_node) for name, at_node in projection.reads}
    # A table without columns would have no rows.
    return Matches(pa.table(columns or {ROW: pa.nulls(count)}), raw=True)


def _typed(values: pa.Array, type_: str) -> pa.Array:
    wanted = arrow_type(type_)
    return values if values.type == wanted else values.cast(wanted)
