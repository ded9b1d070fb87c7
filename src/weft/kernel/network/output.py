"""What a query shows of the rows of its nodes: an output for each of its branches.

A union node has no rows of its own here: every branch takes its rows where the union would take them.

Where the kernel can evaluate all output columns it does so. Otherwise the query's rows are given as
they are, with columns `slot.column` of its own inputs, for Spark to project: also where a value would
overflow or divide by zero, since Spark says what happens then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from weft.algebra.network.plan import Feed, NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import placed
from weft.algebra.predicates.slots import column_name, moved, moved_name, names_in
from weft.algebra.query import OutputColumn
from weft.algebra.scalar import is_native
from weft.kernel.columns import scalar as scalars
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark
from weft.kernel.network.rows import STEP, Rows, Seen, in_steps

ROW: Final = "#row"
"""The only column of the rows of a query that reads none."""


@dataclass(frozen=True)
class Projection:
    """Output columns over the columns of a node. Queries of one projection are projected together."""

    columns: tuple[OutputColumn, ...]
    reads: tuple[tuple[str, str], ...]
    """The columns that they are made of: the query's name, and the node's."""
    native: bool
    """Whether the kernel can evaluate all of them."""


@dataclass(frozen=True)
class Output:
    """Where a branch of a query takes its rows, and what it makes of them."""

    name: str
    """The id of the query; behind its first branch also the branch's number."""
    query: JoinQuery
    """The branch, under the id of the query."""
    node: str
    slots: tuple[int, ...]
    """The node's slot of every input of the branch."""
    memory: str | None
    """The name under which DISTINCT remembers the rows that were shown: that of the first output whose
    rows it is about. None: all rows are shown."""

    @cached_property
    def projection(self) -> Projection:
        places = dict(enumerate(self.slots))
        values = [column.value for column in self.query.columns]
        names = sorted(set().union(*(names_in(value) for value in values)))
        return Projection(
            tuple(
                OutputColumn(column.name, column.type, moved(column.value, places))
                for column in self.query.columns
            ),
            tuple((name, moved_name(name, places)) for name in names),
            all(is_native(value) for value in values),
        )


def feed_outputs(plan: NetworkPlan, feed: Feed) -> Iterator[Output]:
    """The outputs of a query: one for every branch, on the rows of the branch's own node."""
    query = plan.query_by_id[feed.query]
    names = [
        query.id if not number else f"{query.id}+{number}" for number in range(len(query.branches))
    ]
    arms = list(_arms(plan, feed.node, 0))
    for number, (first, branch) in enumerate(placed(query)):
        slots = feed.slots[first : first + len(branch.inputs)]
        start, node = next((start, node) for start, node in reversed(arms) if start <= min(slots))
        within = query.distinct_in[number]
        memory = None if within is None else names[query.distinct_in.index(within)]
        yield Output(names[number], branch, node, tuple(slot - start for slot in slots), memory)


def _arms(plan: NetworkPlan, node_id: str, first: int) -> Iterator[tuple[int, str]]:
    """The nodes whose rows a node has, unions apart, each with the place of its first slot."""
    node = plan.node_by_id[node_id]
    if node.kind != "union":
        yield first, node_id
        return
    for parent in node.parents:
        yield from _arms(plan, parent, first)
        first += len(plan.node_by_id[parent].relations)


@dataclass(frozen=True)
class Matches:
    """New matches of a query: its output columns, or (`raw`) the columns that they are made of."""

    table: pa.Table
    raw: bool


def visible(
    output: Output, rows: Rows, chosen: Array | None, from_steps: Mapping[str, Seen]
) -> Array | None:
    """The positions, of those chosen, whose rows all came with steps that the query sees of their
    relations."""
    for place, slot in enumerate(output.slots):
        seen = from_steps.get(output.query.inputs[place].relation)
        if seen is None:
            continue
        steps = rows.column(column_name(slot, STEP)).values
        truth = in_steps(steps if chosen is None else steps[chosen], seen)
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
