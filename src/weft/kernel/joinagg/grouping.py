"""Late aggregation: joined entries to groups at instants (the paper's AS update on the query output).

A joined entry stands for the product of its inputs' counts many rows. An aggregate on one input combines that
input's partials, each scaled by the counts of the other inputs (`scaling`). Blocks are aggregated by themselves, then their
groups together, so memory holds groups, not joined entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weft.algebra.partial import Partial
from weft.algebra.scalar import Scalar
from weft.kernel.columns import partial_columns
from weft.kernel.columns import scalar as scalars
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import to_arrow
from weft.kernel.columns.combine import over_runs, ranges_of_runs
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.columns.sorting import ordered
from weft.kernel.joinagg.join import Joined
from weft.kernel.joinagg.scaling import counted, scaled

Slot = int | None


@dataclass(frozen=True)
class Groups:
    """Groups at instants, sorted by group: the instant, the code of the key, and the partials of each."""

    instants: Array
    codes: Array
    partials: Mapping[tuple[Slot, str], Stored]

    def only(self, chosen: Array) -> Groups:
        """Some of the groups."""
        taken = {key: partial_columns.take(of, chosen) for key, of in self.partials.items()}
        return Groups(self.instants[chosen], self.codes[chosen], taken)


@dataclass
class Grouping:
    """Collects the groups of blocks. `partials` are those of each aggregate, with the input they are
    of; None: they count joined rows. `places` says in which order inputs are joined, if not in their own."""

    keys: Sequence[Scalar]
    partials: Sequence[tuple[Slot, Partial]]
    ansi: bool
    places: Mapping[int, int] | None = None
    _blocks: list[Groups] = field(default_factory=list)

    def __post_init__(self) -> None:
        types = [arrow_type(key.type) for key in self.keys]
        self._encoder = KeyEncoder(types) if types else None

    def add(self, joined: Joined) -> None:
        """Take in a block of joined entries."""
        assert joined.instants is not None
        copies = _Copies(joined)
        columns = {
            (slot, partial.name): _of_block(self._place(slot), partial, joined, copies)
            for slot, partial in self.partials
        }
        codes = self._codes(joined)
        self._blocks.append(_grouped(joined.instants, codes, columns, self.partials))

    def _place(self, slot: Slot) -> Slot:
        return slot if slot is None or self.places is None else self.places[slot]

    def add_groups(
        self,
        instants: Array,
        keys: Sequence[pa.Array],
        partials: Mapping[tuple[Slot, str], Stored],
    ) -> None:
        """Take in groups that were made elsewhere."""
        count = len(instants)
        codes = np.zeros(count, np.int64)
        if self._encoder is not None:
            codes = self._encoder.encode(keys)
        self._blocks += [_grouped(instants, codes, partials, self.partials)] if count else []

    def _codes(self, joined: Joined) -> Array:
        if self._encoder is None:
            return np.zeros(joined.count, np.int64)
        arrays: dict[str, pa.Array] = {}

        def column(name: str) -> pa.Array:
            if name not in arrays:
                arrays[name] = to_arrow(joined.column(name))
            return arrays[name]

        return self._encoder.encode(
            [
                _typed(scalars.evaluate(key, column, joined.count, ansi=self.ansi), key)
                for key in self.keys
            ]
        )

    def groups(self) -> Groups:
        """All groups so far."""
        if not self._blocks:
            empty = np.zeros(0, np.int64)
            absent = {
                (slot, partial.name): partial_columns.absent(partial, 0)
                for slot, partial in self.partials
            }
            return Groups(empty, empty, absent)
        if len(self._blocks) > 1:
            columns = {
                key: partial_columns.concatenate([block.partials[key] for block in self._blocks])
                for key in self._blocks[0].partials
            }
            instants = np.concatenate([block.instants for block in self._blocks])
            codes = np.concatenate([block.codes for block in self._blocks])
            self._blocks = [_grouped(instants, codes, columns, self.partials)]
        return self._blocks[0]

    def key(self, index: int, codes: Array) -> pa.Array:
        """A key column of groups."""
        assert self._encoder is not None
        return self._encoder.decode(index, codes)


def _typed(values: pa.Array, key: Scalar) -> pa.Array:
    wanted = arrow_type(key.type)
    values = values if values.type == wanted else values.cast(wanted)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


class _Copies:
    """How many joined rows an entry of each input stands for, apart from its own."""

    def __init__(self, joined: Joined) -> None:
        self._counts = [
            contents.counts[positions]
            for contents, positions in zip(joined.contents, joined.positions, strict=True)
        ]
        self._without: dict[Slot, Array] = {}

    def without(self, slot: Slot) -> Array:
        """The product of the counts of all inputs but one."""
        if slot not in self._without:
            product = np.ones(len(self._counts[0]), np.int64)
            for other, counts in enumerate(self._counts):
                if other != slot:
                    product = counted(product, counts)
            self._without[slot] = product
        return self._without[slot]


def _of_block(slot: Slot, partial: Partial, joined: Joined, copies: _Copies) -> Stored:
    if slot is None:
        return (copies.without(None),)
    stored = joined.contents[slot].partials[partial.name]
    taken = partial_columns.take(stored, joined.positions[slot])
    return scaled(partial, taken, copies.without(slot))


def _grouped(
    instants: Array,
    codes: Array,
    columns: Mapping[tuple[Slot, str], Stored],
    partials: Sequence[tuple[Slot, Partial]],
) -> Groups:
    distinct, places = np.unique(instants, return_inverse=True)
    order, sorted_groups = ordered(codes * len(distinct) + places.reshape(-1))
    low, high = ranges_of_runs(sorted_groups)
    first = order[low]
    combined = {
        (slot, partial.name): over_runs(
            partial,
            {partial.name: partial_columns.take(columns[slot, partial.name], order)},
            low,
            high,
        )
        for slot, partial in partials
    }
    return Groups(instants[first], codes[first], combined)
