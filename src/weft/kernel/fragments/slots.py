"""Open fragments of a pool in slots of time, so that a step touches only those it needs.

A slot holds the fragments whose ends lie between that of the slot before and its own `until`; the last
one has no end. Inside, fragments are `settled` (one array, sorted by key and end) or `waiting`, as steps
added them. What waits is taken in when the slot is read, or when it is as much as what is settled.

A large slot of which a step needs less than half is cut into slots of about `PIECE` rows. So small
state stays one array, and so does state that every step reads whole.

Values are immutable. Time: adding n rows costs O(n log n) and a constant per slot they fall into, plus
amortized O(1) per row for taking in; reading a span costs its rows and at most two pieces more; expiry
costs one piece. A row is cut out of a large slot once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from weft.kernel.columns.sorting import ordered
from weft.kernel.fragments.coalesce import coalesced
from weft.kernel.fragments.state import EMPTY, NodeState, together

PIECE = 1 << 16
LARGE = 4 * PIECE
_COALESCE_ABOVE = 4096
_FOREVER = (1 << 63) - 1


@dataclass(frozen=True)
class Slot:
    """Fragments that end at `until` or before, and after the end of the slot before."""

    until: int = _FOREVER
    settled: NodeState = EMPTY
    waiting: tuple[NodeState, ...] = ()
    coalesced_rows: int = 0
    """How many fragments were left when equal ones last became one."""

    @cached_property
    def _rows_waiting(self) -> int:
        return sum(map(len, self.waiting))

    def __len__(self) -> int:
        return len(self.settled) + self._rows_waiting

    @property
    def nbytes(self) -> int:
        return self.settled.nbytes + sum(rows.nbytes for rows in self.waiting)

    def added(self, rows: NodeState) -> Slot:
        slot = replace(self, waiting=(*self.waiting, rows))
        crowded = slot._rows_waiting > max(_COALESCE_ABOVE, len(self.settled))
        return slot.read() if crowded else slot

    def read(self) -> Slot:
        """With everything settled."""
        if not self.waiting:
            return self
        settled, kept = together([self.settled, *self.waiting]), self.coalesced_rows
        if len(settled) > max(_COALESCE_ABOVE, 2 * kept):
            settled = coalesced(settled)
            kept = len(settled)
        return Slot(self.until, settled, (), kept)

    def needed(self, low: int, high: int) -> int:
        """How many settled fragments end in (low, high]."""
        ends = self.settled.ends
        return int(np.count_nonzero((ends > low) & (ends <= high)))

    def cut(self) -> tuple[Slot, ...]:
        """The settled fragments in smaller slots, each with about as many of them. Fragments with
        the same end stay together."""
        times, counts = np.unique(self.settled.ends, return_counts=True)
        piece = (np.cumsum(counts) - 1) // PIECE
        last = np.flatnonzero(piece[1:] != piece[:-1])
        untils = [*times[last].tolist(), self.until]
        order, pieces = ordered(np.searchsorted(times[last], self.settled.ends))
        borders = np.searchsorted(pieces, np.arange(len(untils) + 1))
        parts = [self.settled.select(order[low:high]) for low, high in pairwise(borders.tolist())]
        return tuple(
            Slot(until, part, (), len(part)) for until, part in zip(untils, parts, strict=True)
        )

    def expired(self, horizon: int) -> Slot:
        """Without settled fragments that end at or before the horizon."""
        settled = self.settled.expired(horizon)
        if settled is self.settled:
            return self
        kept = min(self.coalesced_rows, max(len(settled), 1))
        return replace(self, settled=settled, coalesced_rows=kept)

    def narrowed(self, partials: Collection[str]) -> Slot:
        settled = self.settled.narrowed(partials)
        waiting = tuple(rows.narrowed(partials) for rows in self.waiting)
        same = settled is self.settled and all(
            now is before for now, before in zip(waiting, self.waiting, strict=True)
        )
        return self if same else replace(self, settled=settled, waiting=waiting)


@dataclass(frozen=True)
class Slots:
    """The open fragments of a pool."""

    slots: tuple[Slot, ...] = (Slot(),)

    def __len__(self) -> int:
        return sum(map(len, self.slots))

    @property
    def nbytes(self) -> int:
        return sum(slot.nbytes for slot in self.slots)

    @property
    def parts(self) -> list[NodeState]:
        """All arrays of fragments, in no order."""
        return [rows for slot in self.slots for rows in (slot.settled, *slot.waiting)]

    def added(self, rows: NodeState) -> Slots:
        """With new fragments, which are sorted by (key, end)."""
        if not len(rows):
            return self
        if len(self.slots) == 1:
            return Slots((self.slots[0].added(rows),))
        untils = np.array([slot.until for slot in self.slots[:-1]])
        order, owners = ordered(np.searchsorted(untils, rows.ends))
        slots = list(self.slots)
        touched, first = np.unique(owners, return_index=True)
        for owner, low, high in zip(touched, first, [*first[1:], len(owners)], strict=True):
            slots[owner] = slots[owner].added(rows.select(order[low:high]))
        return Slots(tuple(slots))

    def read(self, low: int, high: int) -> tuple[Slots, NodeState]:
        """The fragments that end in (low, high], and maybe some others, sorted by (key, end). What
        reading has settled or cut is kept in the slots that come with them."""
        slots: list[Slot] = []
        inside: list[NodeState] = []
        beginning = -_FOREVER
        for slot in self.slots:
            pieces: Sequence[Slot] = (slot,)
            if beginning < high and slot.until > low:
                slot = slot.read()
                large = len(slot) > LARGE and 2 * slot.needed(low, high) < len(slot)
                pieces = slot.cut() if large else (slot,)
                for piece in pieces:
                    if beginning < high and piece.until > low:
                        inside.append(piece.settled)
                    beginning = piece.until
            slots += pieces
            beginning = slot.until
        if len(slots) > 1 and len(inside) == len(slots) and sum(map(len, inside)) <= LARGE // 2:
            state = together(inside)
            return Slots((Slot(_FOREVER, state, (), len(state)),)), state
        return Slots(tuple(slots)), together(inside)

    def expired(self, horizon: int) -> Slots:
        """Without the fragments that end at or before the horizon; those that wait may stay longer."""
        alive = [slot for slot in self.slots[:-1] if slot.until > horizon]
        slots = (*alive, self.slots[-1])
        return Slots((slots[0].expired(horizon), *slots[1:]))

    def narrowed(self, partials: Collection[str]) -> Slots:
        """Without the partials that no live query reads."""
        return Slots(tuple(slot.narrowed(partials) for slot in self.slots))


NO_SLOTS = Slots()
