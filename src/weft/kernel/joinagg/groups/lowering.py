"""Groups of one query at instants: lowered to its aggregates, or handed from task to task as they are.

Parts of a physical join may be computed apart (`split`). Each part gives partial groups as a table: `at`, keys `k0…`, and the partials of each aggregate.
Tables of all parts are grouped again, and lowered together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.partial import Partial
from weft.kernel.columns import partial_columns
from weft.kernel.columns.arrow import arrow_type, single
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.joinagg.groups.computed import Computed
from weft.kernel.joinagg.groups.grouping import Grouping
from weft.kernel.joinagg.groups.partial_groups import Groups, Slot
from weft.kernel.windows.lower import from_stored, lower

AT = "at"
_DISTINCT = "distinct/"
"""What the names of columns with lists of distinct values begin with."""
Lifted = Sequence[tuple[Partial, ...]]
"""The partials of each aggregate, in the order in which it is lowered."""


def needed(query: AggregationJoin, lifted: Lifted) -> list[tuple[Slot, Partial]]:
    """The partials that a query's groups carry, with the inputs they are of."""
    return [
        (entry.slot, partial)
        for entry, of_entry in zip(query.aggregates, lifted, strict=True)
        for partial in of_entry
    ]


def computed(query: AggregationJoin, lifted: Lifted) -> list[Computed]:
    """The aggregates that are computed of joined entries."""
    return [
        Computed(aggregate, partials)
        for aggregate, partials in zip(query.aggregates, lifted, strict=True)
        if aggregate.is_computed
    ]


def lowered(
    query: AggregationJoin, lifted: Lifted, grouping: Grouping, instants: Array, *, ansi: bool
) -> pa.Table:
    """The groups at these instants: `at`, keys `k0…`, aggregates `a0…`."""
    groups = grouping.groups()
    inside = np.isin(groups.instants, instants)
    if not inside.all():
        groups = groups.only(np.flatnonzero(inside))
    if not query.keys:
        groups = _everywhere(groups, instants, needed(query, lifted))
    columns: dict[str, pa.Array] = {AT: pa.array(groups.instants).cast(arrow_type("timestamp"))}
    for index, key in enumerate(query.keys):
        columns[f"k{index}"] = from_stored(grouping.key(index, groups.codes), key.type)
    for index, (entry, of_entry) in enumerate(zip(query.aggregates, lifted, strict=True)):
        stored = [groups.partials[entry.slot, partial.name] for partial in of_entry]
        columns[f"a{index}"] = lower(entry.aggregate, stored, ansi=ansi)
    return pa.table(columns)


def _everywhere(
    groups: Groups, instants: Array, partials: Sequence[tuple[Slot, Partial]]
) -> Groups:
    """A group at every instant: without any joined row, its partials are those of nothing."""
    missing = np.setdiff1d(instants, groups.instants)
    order = np.argsort(np.concatenate([groups.instants, missing]), kind="stable")
    columns: dict[tuple[Slot, str], Stored] = {}
    for slot, partial in partials:
        parts = [groups.partials[slot, partial.name], partial_columns.absent(partial, len(missing))]
        columns[slot, partial.name] = partial_columns.take(
            partial_columns.concatenate(parts), order
        )
    return Groups(
        np.concatenate([groups.instants, missing])[order],
        np.zeros(len(order), np.int64),
        columns,
    )


def to_table(query: AggregationJoin, lifted: Lifted, grouping: Grouping) -> pa.Table:
    """Partial groups, to be grouped with those of other parts."""
    groups = grouping.groups()
    columns: dict[str, pa.Array] = {AT: pa.array(groups.instants)}
    for index in range(len(query.keys)):
        columns[f"k{index}"] = grouping.key(index, groups.codes)
    for slot, partial in needed(query, lifted):
        stored = groups.partials[slot, partial.name]
        columns[_column(slot, partial)] = partial_columns.packed(partial, stored)
    for name, lists in grouping.distinct(groups).items():
        columns[f"{_DISTINCT}{name}"] = lists
    return pa.table(columns)


def of_tables(
    query: AggregationJoin, lifted: Lifted, tables: Sequence[pa.Table], *, ansi: bool
) -> Grouping:
    """The groups of all parts."""
    partials = needed(query, lifted)
    at = [single(table.column(AT)).to_numpy() for table in tables]
    instants = np.unique(np.concatenate([np.zeros(0, np.int64), *at]))
    grouping = Grouping(
        query.keys, partials, (), instants, ansi=ansi, computed=computed(query, lifted)
    )
    for table, of_table in zip(tables, at, strict=True):
        keys = [single(table.column(f"k{index}")) for index in range(len(query.keys))]
        stored = {
            (slot, partial.name): partial_columns.unpacked(
                partial, single(table.column(_column(slot, partial)))
            )
            for slot, partial in partials
        }
        distinct = {
            name.removeprefix(_DISTINCT): single(table.column(name))
            for name in table.column_names
            if name.startswith(_DISTINCT)
        }
        grouping.add_groups(of_table, keys, stored, distinct)
    return grouping


def _column(slot: Slot, partial: Partial) -> str:
    return f"{'*' if slot is None else slot}/{partial.name}"
