"""The open fragments of a node, and the shards that level 1 wrote.

`Shards` are rows of a state file as they are. A `NodeState` holds the fragments that weave groups
read: sorted by (member, key, fragment end), where a member is one of the predicates of the pool that
it belongs to. It is an immutable value: `merged` and `expired` give new ones. `slots` keeps many of them, by time. Rows of several plan
versions stand side by side; each carries the partials its version had, and `weave` reads only what
a query may use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.aggregate import stored_type
from weft.algebra.nodes.implied import carried, implied
from weft.algebra.partial import Partial
from weft.algebra.plan import Node
from weft.kernel.columns import partial_columns
from weft.kernel.columns.arrow import arrow_type, factorized, single
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.columns.sketches.sketch_column import of_single_values
from weft.kernel.columns.sorting import ordered

FRAGMENT_END: Final = "fragment_end"
ROW_COUNT: Final = "n"
BUCKET: Final = "bucket"
_BYTES_PER_ROW: Final = 32
MEMBER_SHIFT: Final = 40
"""A key code has the member of its row above these bits."""
_PACKED_LIMIT: Final = 1 << 62
KEY_MASK: Final = (1 << MEMBER_SHIFT) - 1


def key_column(index: int) -> str:
    return f"k{index}"


def signature_column(index: int) -> str:
    return f"s{index}"


@dataclass(frozen=True)
class NodeState:
    """Open fragments as arrays of equal length, sorted by (key, end).

    `keys` are codes of the full key, `groups` codes of its leading group keys (the same
    array unless the node counts distinct values), both with the row's member above them.
    """

    keys: Array
    groups: Array
    ends: Array
    counts: Array
    columns: Mapping[str, Stored]
    partials: Mapping[str, Partial]

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def nbytes(self) -> int:
        stored = sum(partial_columns.size(column) for column in self.columns.values())
        return len(self) * _BYTES_PER_ROW + stored

    @cached_property
    def span(self) -> tuple[int, int]:
        """The earliest and the latest fragment end (of a state that is not empty)."""
        return int(self.ends.min()), int(self.ends.max())

    def select(self, positions: Array) -> NodeState:
        """The rows at the given positions, which must keep the order."""
        groups = self.groups[positions]
        keys = groups if self.groups is self.keys else self.keys[positions]
        return replace(
            self,
            keys=keys,
            groups=groups,
            ends=self.ends[positions],
            counts=self.counts[positions],
            columns={
                name: partial_columns.take(column, positions)
                for name, column in self.columns.items()
            },
        )

    def expired(self, horizon: int) -> NodeState:
        """Without the fragments that end at or before the horizon."""
        if not len(self) or self.span[0] > horizon:
            return self
        return self.select(np.flatnonzero(self.ends > horizon))

    def merged(self, other: NodeState) -> NodeState:
        """The rows of both, sorted."""
        return together([self, other])

    def narrowed(self, partials: Collection[str]) -> NodeState:
        """Without the partials that no live query reads."""
        if self.columns.keys() <= set(partials):
            return self
        return replace(
            self,
            columns={name: c for name, c in self.columns.items() if name in partials},
            partials={name: p for name, p in self.partials.items() if name in partials},
        )


def together(parts: Sequence[NodeState]) -> NodeState:
    """The rows of several states as one, sorted."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    partials = {name: partial for part in parts for name, partial in part.partials.items()}
    columns = {
        name: partial_columns.concatenate([_column(part, partial) for part in parts])
        for name, partial in partials.items()
    }
    keys = np.concatenate([part.keys for part in parts])
    same = all(part.groups is part.keys for part in parts)
    ends = np.concatenate([part.ends for part in parts])
    unsorted = NodeState(
        keys=keys,
        groups=keys if same else np.concatenate([part.groups for part in parts]),
        ends=ends,
        counts=np.concatenate([part.counts for part in parts]),
        columns=columns,
        partials=partials,
    )
    two = len(parts) == 2
    order = _merge_order(keys, ends, len(parts[0])) if two else order_of(keys, ends)
    return unsorted.select(order)


def order_of(keys: Array, ends: Array) -> Array:
    """Positions in the order of (key, end)."""
    packed = _packed(keys, ends)
    return np.lexsort((ends, keys)) if packed is None else ordered(packed)[0]


def _merge_order(keys: Array, ends: Array, first: int) -> Array:
    """The same for two sorted parts, given the number of rows of the first."""
    packed = _packed(keys, ends)
    if packed is None:
        return np.lexsort((ends, keys))
    slots = np.searchsorted(packed[:first], packed[first:], side="right")
    slots += np.arange(len(slots))
    order = np.empty(len(packed), np.int64)
    kept = np.ones(len(packed), bool)
    kept[slots] = False
    order[slots] = np.arange(first, len(packed))
    order[kept] = np.arange(first)
    return order


def _packed(keys: Array, ends: Array) -> Array | None:
    """The pairs as integers of the same order; ends are few. None if the integers are too large."""
    times, places = factorized(ends)
    if not len(times) or int(keys.max()) >= _PACKED_LIMIT // len(times):
        return None
    ranks = np.empty(len(times), np.int64)
    ranks[np.argsort(times)] = np.arange(len(times))
    return keys * len(times) + ranks[places]


EMPTY: Final = NodeState(
    keys=(_none := np.zeros(0, np.int64)),
    groups=_none,
    ends=_none,
    counts=_none,
    columns={},
    partials={},
)


class Encoders:
    """The key encoders of a node: of its group keys and, if longer, of its full key."""

    def __init__(self, node: Node, group: str, groups: KeyEncoder | None = None) -> None:
        self.group = group
        types = [arrow_type(stored_type(type_)) for type_ in node.key_types]
        self.groups = KeyEncoder(types[: node.group_keys]) if groups is None else groups
        distinct = len(node.keys) > node.group_keys
        self.keys = KeyEncoder(types) if distinct else self.groups


@dataclass(frozen=True)
class Shards:
    """Rows of a state file, sorted by (key, end): fragments without members, and their
    signatures."""

    node: Node
    rows: NodeState
    signature: tuple[Array, ...]

    def select(self, positions: Array) -> Shards:
        signature = tuple(column[positions] for column in self.signature)
        return Shards(self.node, self.rows.select(positions), signature)


def columns_of(node: Node) -> list[str]:
    """The columns of a node's state files that hold its fragments."""
    names = [FRAGMENT_END, ROW_COUNT, *(key_column(i) for i in range(len(node.keys)))]
    names += [signature_column(i) for i in range(node.signature.columns)]
    return names + [partial.name for partial in carried(node)]


def load(tables: Sequence[pa.Table], node: Node, encoders: Encoders) -> Shards:
    """The rows of state files that `node` wrote."""
    names = columns_of(node)
    table = pa.concat_tables(
        [table.select(names) for table in tables], promote_options="permissive"
    )
    if table.column(FRAGMENT_END).null_count:
        table = table.filter(table.column(FRAGMENT_END).is_valid())
    if not table.num_rows:
        return Shards(node, EMPTY, (_none,) * node.signature.columns)
    table = table.combine_chunks()
    arrays = {name: single(table.column(name)) for name in table.column_names}
    group_columns = [arrays[key_column(i)] for i in range(node.group_keys)]
    groups = (
        encoders.groups.encode(group_columns)
        if group_columns
        else np.zeros(table.num_rows, np.int64)
    )
    if len(node.keys) > node.group_keys:
        keys = encoders.keys.encode([arrays[key_column(i)] for i in range(len(node.keys))])
    else:
        keys = groups
    rows = NodeState(
        keys=keys,
        groups=groups,
        ends=arrays[FRAGMENT_END].to_numpy(),
        counts=arrays[ROW_COUNT].to_numpy(),
        columns={p.name: partial_column(p, node, arrays) for p in node.partials},
        partials={p.name: p for p in node.partials},
    )
    signature = [arrays[signature_column(i)].to_numpy() for i in range(node.signature.columns)]
    return Shards(node, rows, tuple(signature)).select(order_of(rows.keys, rows.ends))


def partial_column(partial: Partial, node: Node, arrays: Mapping[str, pa.Array]) -> Stored:
    """A partial of a node's fragments, as their file has it or as their keys imply it."""
    if partial.name in arrays:
        return partial_columns.load(partial, arrays[partial.name])
    implied_by = implied(partial, node.keys)
    assert implied_by is not None, "what is not implied is carried"
    values = arrays[key_column(implied_by.key)]
    if pa.types.is_string(values.type):
        values = pc.binary_join_element_wise("_", values, "")
    return (of_single_values(values, implied_by.log_k),)


def _column(state: NodeState, partial: Partial) -> Stored:
    column = state.columns.get(partial.name)
    return partial_columns.absent(partial, len(state)) if column is None else column
