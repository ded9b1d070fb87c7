"""Late aggregation: joined entries to groups at instants (the paper's AS update on the query output).

A joined entry stands for the product of its inputs' counts many rows. An aggregate on one input combines that
input's partials, each scaled by the counts of the other inputs (`scaling`). Blocks are aggregated by themselves, then their
groups together, so memory holds groups, not joined entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weft.algebra.partial import Partial
from weft.algebra.scalar import Scalar
from weft.kernel.columns import partial_columns
from weft.kernel.columns.combine import over_runs, ranges_of_runs
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.columns.sorting import ordered
from weft.kernel.joinagg.contents.group_keys import GroupKeys
from weft.kernel.joinagg.contents.held import Contents
from weft.kernel.joinagg.join import Joined
from weft.kernel.joinagg.scaling import check_sums, counted, scaled

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


class Grouping:
    """Collects the groups of blocks. `partials` are those of each aggregate, with the input they are
    of; None: they count joined rows. `instants` are all that are evaluated, in ascending order. `places` says in which
    order inputs are joined, if not in their own; keys are named by it. Groups that were made elsewhere have no contents here."""

    def __init__(
        self,
        keys: Sequence[Scalar],
        partials: Sequence[tuple[Slot, Partial]],
        contents: Sequence[Contents],
        instants: Array,
        *,
        ansi: bool,
        places: Mapping[int, int] | None = None,
    ) -> None:
        self._partials, self._instants, self._places = partials, instants, places
        self._keys = GroupKeys(keys, contents, ansi=ansi)
        self._blocks: list[Groups] = []

    def add(self, joined: Joined) -> None:
        """Take in a block of joined entries."""
        if not joined.count:
            return
        assert joined.instants is not None
        runs = self._runs(self._keys.codes(joined), joined.instants)
        in_order = joined.only(runs.order)
        copies = _Copies(in_order)
        columns = {
            (slot, partial.name): runs.combined(
                partial, _of_block(self._place(slot), partial, in_order, copies)
            )
            for slot, partial in self._partials
        }
        self._blocks.append(Groups(joined.instants[runs.first], runs.codes, columns))

    def _place(self, slot: Slot) -> Slot:
        return slot if slot is None or self._places is None else self._places[slot]

    def add_groups(
        self,
        instants: Array,
        keys: Sequence[pa.Array],
        partials: Mapping[tuple[Slot, str], Stored],
    ) -> None:
        """Take in groups that were made elsewhere."""
        if len(instants):
            codes = self._keys.codes_of(keys, len(instants))
            self._blocks.append(self._grouped(instants, codes, partials))

    def _runs(self, codes: Array, instants: Array) -> _Runs:
        return _Runs(codes, np.searchsorted(self._instants, instants), len(self._instants))

    def _grouped(
        self, instants: Array, codes: Array, columns: Mapping[tuple[Slot, str], Stored]
    ) -> Groups:
        runs = self._runs(codes, instants)
        combined = {
            (slot, partial.name): runs.combined(
                partial, partial_columns.take(columns[slot, partial.name], runs.order)
            )
            for slot, partial in self._partials
        }
        return Groups(instants[runs.first], runs.codes, combined)

    def groups(self) -> Groups:
        """All groups so far."""
        if not self._blocks:
            empty = np.zeros(0, np.int64)
            absent = {
                (slot, partial.name): partial_columns.absent(partial, 0)
                for slot, partial in self._partials
            }
            return Groups(empty, empty, absent)
        if len(self._blocks) > 1:
            columns = {
                key: partial_columns.concatenate([block.partials[key] for block in self._blocks])
                for key in self._blocks[0].partials
            }
            instants = np.concatenate([block.instants for block in self._blocks])
            codes = np.concatenate([block.codes for block in self._blocks])
            self._blocks = [self._grouped(instants, codes, columns)]
        return self._blocks[0]

    def key(self, index: int, codes: Array) -> pa.Array:
        """A key column of groups."""
        return self._keys.decode(index, codes)


class _Copies:
    """How many joined rows an entry of each input stands for, apart from its own."""

    def __init__(self, joined: Joined) -> None:
        self._joined = joined
        self._without: dict[Slot, Array | None] = {}

    def without(self, slot: Slot) -> Array | None:
        """The product of the counts of all inputs but one; None: 1 everywhere."""
        if slot not in self._without:
            product: Array | None = None
            for other, contents in enumerate(self._joined.contents):
                if other == slot or contents.single:
                    continue
                counts = contents.counts[self._joined.positions[other]]
                product = counts if product is None else counted(product, counts)
            self._without[slot] = product
        return self._without[slot]


def _of_block(slot: Slot, partial: Partial, joined: Joined, copies: _Copies) -> Stored:
    factors = copies.without(slot)
    if slot is None:
        return (np.ones(joined.count, np.int64) if factors is None else factors,)
    stored = joined.contents[slot].partials[partial.name]
    taken = partial_columns.take(stored, joined.positions[slot])
    return taken if factors is None else scaled(partial, taken, factors)


class _Runs:
    """Joined entries in the order of their groups and instants."""

    def __init__(self, codes: Array, places: Array, instants: int) -> None:
        self.order, groups = ordered(codes * instants + places)
        self._low, self._high = ranges_of_runs(groups)
        self.first = self.order[self._low]
        """An entry of each group."""
        self.codes: Array = groups[self._low] // instants

    def combined(self, partial: Partial, in_order: Stored) -> Stored:
        """The partial of every group, of what entries have in this order."""
        check_sums(partial, in_order, self._low)
        return over_runs(partial, {partial.name: in_order}, self._low, self._high)
