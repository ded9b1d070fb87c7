"""The result of an aggregation join at instants.

For all instants of a step together: the contents of every input (merged by key if it is aggregated early), their join, groups,
lowered aggregates. A query without groups has a row at every instant, also where nothing is joined.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.partial import Partial
from weft.algebra.predicates.slots import moved
from weft.kernel.columns import partial_columns
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.failure import NeedsSpark, QueryFailure
from weft.kernel.joinagg.contents import Contents
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.grouping import Grouping, Groups
from weft.kernel.joinagg.join import BLOCK, join_steps, joined
from weft.kernel.windows.lower import from_stored, lower

AT = "at"


@dataclass(frozen=True)
class Side:
    """An input as a plan gives it: its entries, whether they are merged by key before the join (early), and
    whether they are the same at every instant."""

    entries: Entries
    early: bool
    partials: tuple[Partial, ...]
    """Those of the aggregates on this input."""
    always: bool = False

    def contents(self, instants: Array) -> Contents:
        merged = self.partials if self.early else None
        return self.entries.always(merged) if self.always else self.entries.at(instants, merged)


def evaluated(
    query: AggregationJoin,
    sides: Sequence[Side],
    partials: Sequence[tuple[Partial, ...]],
    instants: Array,
    *,
    ansi: bool,
    block: int = BLOCK,
) -> pa.Table:
    """Groups at instants, before HAVING and projection: `at`, keys `k0…`, aggregates `a0…`. `partials` are those of
    each aggregate, in the order in which it is lowered."""
    contents = [side.contents(instants) for side in sides]
    order = _order(query, contents)
    places = {slot: place for place, slot in enumerate(order)}
    steps = join_steps(query.predicates.moved(places), len(order))
    needed = [
        (None if entry.slot is None else places[entry.slot], partial)
        for entry, of_entry in zip(query.aggregates, partials, strict=True)
        for partial in of_entry
    ]
    in_order = [contents[slot] for slot in order]
    keys = [moved(key, places) for key in query.keys]
    try:
        grouping = Grouping(keys, needed, in_order, instants, ansi=ansi)
        for part in joined(in_order, steps, ansi=ansi, block=block):
            grouping.add(part)
        groups = grouping.groups()
        if not query.keys:
            groups = _everywhere(groups, instants, needed)
        return _lowered(query, groups, grouping, partials, places, ansi)
    except QueryFailure as failure:
        raise QueryFailure(failure.error_class, failure.message, (query.id,)) from failure
    except NeedsSpark as problem:
        # Keys hold only what the kernel can evaluate, so under ANSI Spark would raise here, too.
        raise QueryFailure("ARITHMETIC_OVERFLOW", f"a key: {problem}", (query.id,)) from problem


def _order(query: AggregationJoin, contents: Sequence[Contents]) -> list[int]:
    """The inputs, small ones first, each connected by a condition to those before it if there is one. The first
    one has instants: tables do not."""
    rest = set(range(len(contents)))
    first = min(rest, key=lambda slot: (contents[slot].instants is None, len(contents[slot]), slot))
    order = [first]
    rest.remove(first)
    while rest:
        joined_slots = set(order)
        following = min(
            rest,
            key=lambda slot: (
                not _connected(query, slot, joined_slots),
                len(contents[slot]),
                slot,
            ),
        )
        order.append(following)
        rest.remove(following)
    return order


def _connected(query: AggregationJoin, slot: int, joined_slots: Collection[int]) -> bool:
    return any(
        slot in predicate.slots and predicate.slots <= {slot, *joined_slots}
        for predicate in query.predicates.predicates
        if len(predicate.slots) > 1
    )


def _everywhere(
    groups: Groups, instants: Array, partials: Sequence[tuple[int | None, Partial]]
) -> Groups:
    """A group at every instant: without any joined row, its partials are those of nothing."""
    missing = np.setdiff1d(instants, groups.instants)
    order = np.argsort(np.concatenate([groups.instants, missing]), kind="stable")
    columns: dict[tuple[int | None, str], Stored] = {}
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


def _lowered(
    query: AggregationJoin,
    groups: Groups,
    grouping: Grouping,
    partials: Sequence[tuple[Partial, ...]],
    places: Mapping[int, int],
    ansi: bool,
) -> pa.Table:
    columns: dict[str, pa.Array] = {AT: pa.array(groups.instants).cast(arrow_type("timestamp"))}
    for index, key in enumerate(query.keys):
        columns[f"k{index}"] = from_stored(grouping.key(index, groups.codes), key.type)
    for index, (entry, of_entry) in enumerate(zip(query.aggregates, partials, strict=True)):
        slot = None if entry.slot is None else places[entry.slot]
        stored = [groups.partials[slot, partial.name] for partial in of_entry]
        columns[f"a{index}"] = lower(entry.aggregate, stored, ansi=ansi)
    return pa.table(columns)
