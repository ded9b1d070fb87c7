"""Late aggregation: joined entries to groups at instants (the paper's AS update on the query output).

A joined entry stands for the product of its inputs' counts many rows. An aggregate on one input combines that
input's partials, each scaled by the counts of the other inputs (`scaling`); one on several inputs is `computed` of joined entries, and `distinct` values are collected. Blocks are aggregated by themselves, then their
groups together, so memory holds groups, not joined entries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
from weft.kernel.joinagg.groups.computed import Computed
from weft.kernel.joinagg.groups.distinct import DistinctValues
from weft.kernel.joinagg.groups.partial_groups import Groups, Slot
from weft.kernel.joinagg.groups.products import product
from weft.kernel.joinagg.groups.scaling import check_sums, counted, scaled
from weft.kernel.joinagg.join import Joined, Matching

_LOW = (1 << 32) - 1
_MOST_HIGH = 1 << 20
_MOST_SUM = 1 << 62
"""What sums of a block are below if they are added up as one integer each."""


class Grouping:
    """Collects the groups of blocks. `partials` are those of each aggregate, with the input they are
    of; None: they count joined rows. `instants` are all that are evaluated, in ascending order. `places` says in which
    order inputs are joined, if not in their own; keys are named by it, and so are the aggregates `computed` of several inputs. Groups that
    were made elsewhere have no contents here."""

    def __init__(
        self,
        keys: Sequence[Scalar],
        partials: Sequence[tuple[Slot, Partial]],
        contents: Sequence[Contents],
        instants: Array,
        *,
        ansi: bool,
        places: Mapping[int, int] | None = None,
        computed: Sequence[Computed] = (),
    ) -> None:
        self._partials, self._instants, self._places = partials, instants, places
        self._computed = [one for one in computed if not one.is_distinct]
        self._of_distinct = [one for one in computed if one.is_distinct]
        self._distinct = {
            one.partials[0].name: DistinctValues(one.types) for one in self._of_distinct
        }
        """By the partial that counts them, the values of groups."""
        self._ansi = ansi
        self._keys = GroupKeys(keys, contents, ansi=ansi)
        self._blocks: list[Groups] = []

    def add(self, joined: Joined) -> None:
        """Take in a block of joined entries."""
        if not joined.count:
            return
        assert joined.instants is not None
        codes = self._keys.codes(joined)
        for of_values in self._of_distinct:
            chosen, values = of_values.distinct(joined, ansi=self._ansi)
            places = self._places_of(codes[chosen], joined.instants[chosen])
            self._distinct[of_values.partials[0].name].add(places, values)
        runs = self._runs(codes, joined.instants)
        in_order = joined.only(runs.order)
        copies = _Copies(in_order)
        computed: dict[str, Stored] = {}
        for aggregate in self._computed:
            computed |= aggregate.lifted(in_order, ansi=self._ansi)
        columns: dict[tuple[Slot, str], Stored] = {}
        for slot, partial in self._partials:
            place = self._place(slot)
            small = _small_sums(place, partial, in_order, copies)
            if small is not None:
                columns[slot, partial.name] = runs.halves(small)
                continue
            of_block = _of_block(place, partial, in_order, copies, computed, self._distinct)
            columns[slot, partial.name] = runs.combined(partial, of_block)
        self._blocks.append(Groups(joined.instants[runs.first], runs.codes, columns))

    def multiply(self, sets: Matching) -> bool:
        """Take in all groups of two joined aggregation sets, if that can and should be done without joining them (`products`)."""
        digits = self._keys.digits(len(sets.contents))
        if digits is None or self._computed or self._of_distinct:
            return False
        partials = [(slot, self._place(slot), partial) for slot, partial in self._partials]
        groups = product(sets, digits, partials, self._instants)
        if groups is not None:
            self._blocks.append(groups)
        return groups is not None

    def _place(self, slot: Slot) -> Slot:
        return slot if slot is None or self._places is None else self._places[slot]

    def _places_of(self, codes: Array, instants: Array) -> Array:
        """A number for each group at an instant, in the order of both."""
        return codes * len(self._instants) + np.searchsorted(self._instants, instants)

    def add_groups(
        self,
        instants: Array,
        keys: Sequence[pa.Array],
        partials: Mapping[tuple[Slot, str], Stored],
        distinct: Mapping[str, pa.Array],
    ) -> None:
        """Take in groups that were made elsewhere. `distinct` are lists of values, by the partial that counts them."""
        if len(instants):
            codes = self._keys.codes_of(keys, len(instants))
            self._blocks.append(self._grouped(instants, codes, partials))
            places = self._places_of(codes, instants)
            for name, lists in distinct.items():
                self._distinct[name].add_lists(places, lists)

    def distinct(self, groups: Groups) -> dict[str, pa.Array]:
        """The values of groups as lists, by the partial that counts them."""
        places = self._places_of(groups.codes, groups.instants)
        return {name: values.lists(places) for name, values in self._distinct.items()}

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
        groups = self._combined()
        if not self._distinct:
            return groups
        places = self._places_of(groups.codes, groups.instants)
        counts: dict[tuple[Slot, str], Stored] = {
            (None, name): (values.counts(places),) for name, values in self._distinct.items()
        }
        return Groups(groups.instants, groups.codes, {**groups.partials, **counts})

    def _combined(self) -> Groups:
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


def _small_sums(slot: Slot, partial: Partial, joined: Joined, copies: _Copies) -> Array | None:
    """Wide sums, of copies, as one integer each; None if these, added up, might not fit into 64 bits, or if the partial is none."""
    if slot is None or partial.combine.name != "add_wide":
        return None
    contents = joined.contents[slot]
    values, largest = contents.found.of(
        ("small", partial.name), lambda: _as_one(contents.partials[partial.name])
    )
    factors = copies.without(slot)
    most = 1 if factors is None else int(factors.max())
    if values is None or largest * most * joined.count >= _MOST_SUM:
        return None
    taken: Array = values[joined.positions[slot]]
    return taken if factors is None else taken * factors


def _as_one(stored: Stored) -> tuple[Array | None, int]:
    """High and low halves as one integer, and the largest of them; None where one is too large."""
    high, low = stored[0] + (stored[1] >> 32), stored[1] & _LOW
    if len(high) and max(int(high.max()), -int(high.min())) >= _MOST_HIGH:
        return None, 0
    values: Array = (high << 32) | low
    return values, int(np.abs(values).max(initial=0))


def _of_block(
    slot: Slot,
    partial: Partial,
    joined: Joined,
    copies: _Copies,
    computed: Mapping[str, Stored],
    distinct: Collection[str],
) -> Stored:
    if slot is None and partial.name in distinct:
        return (np.zeros(joined.count, np.int64),)  # counted when all blocks are there
    factors = copies.without(slot)
    if slot is None and partial.name in computed:
        of_row = computed[partial.name]
        return of_row if factors is None else scaled(partial, of_row, factors)
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

    def halves(self, in_order: Array) -> Stored:
        """The sums of groups as high and low halves."""
        sums = np.add.reduceat(in_order, self._low)
        return (sums >> 32, sums & _LOW)

    def combined(self, partial: Partial, in_order: Stored) -> Stored:
        """The partial of every group, of what entries have in this order."""
        check_sums(partial, in_order, self._low)
        return over_runs(partial, {partial.name: in_order}, self._low, self._high)
