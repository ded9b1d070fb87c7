"""AS update (AggJoin, definition 4): an aggregation set at instants, by what has come and gone since an earlier one.

Merging all panes of a window at every step costs as much as the window is long. Here the set of an earlier time is kept, one entry for each
key; panes that have begun to count since are added to it (window increments), and those that have ceased are subtracted (window decrements).

Preconditions: 1. All partials have an exact inverse (`Invertible`): counts, sums of integers and decimals. Extremes and sums of floats are
merged from panes, as before. 2. The entries hold every pane that the kept set stands for, in the form in which it was added. That is
tested: the rows that these panes have now must be as many as the set has. They are not where panes were folded or cut off, and then all panes are merged.

Why it is sound: an entry counts from its first instant to its last. The set of time t has the entries with first ≤ t < last. At an instant
after t those with t < first ≤ instant have come, and those with t < last < instant are gone. Sums of integers are exact, so nothing drifts.

Time: O(n) comparisons for n entries of the window, and O(m log m) for m keys and changes, where merging takes O(n log n).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.algebra.joinagg.windows import FOR_EVER
from weft.algebra.partial import Invertible, Partial
from weft.kernel.columns import partial_columns
from weft.kernel.columns.operations import Array
from weft.kernel.joinagg.contents.held import Contents
from weft.kernel.joinagg.entries import Entries

_WORTH = 2
"""Panes are merged if they are less than so many times as many as keys and changes."""
_PATIENCE = 16
"""After how many evaluations it is tried again where that was so."""


@dataclass(frozen=True)
class SetAt:
    """An aggregation set: one entry for each key, of all that counts both before and after a time."""

    time: int
    entries: Entries

    @property
    def rows(self) -> int:
        return int(self.entries.counts.sum())


class SetMemory:
    """The aggregation sets that steps leave for the next one, by the inputs they are of. What a step has made counts when it is committed; until
    then it serves the step's own later instants."""

    def __init__(self) -> None:
        self._committed: dict[Hashable, SetAt] = {}
        self._made: dict[Hashable, SetAt] = {}
        self._resting: dict[Hashable, int] = {}
        """By input that was evaluated since the last commit: how often no set is to be made, since it did not pay."""
        self._asked: set[Hashable] = set()

    def rests(self, name: Hashable) -> bool:
        """Whether no set is to be made of an input this time."""
        self._asked.add(name)
        left = self._resting.get(name, 0)
        self._resting[name] = max(left - 1, 0)
        return left > 0

    def rest(self, name: Hashable) -> None:
        """Sets of an input do not pay."""
        self._resting[name] = _PATIENCE

    def before(self, name: Hashable, instant: int) -> Iterator[SetAt]:
        """The sets of an input at times before an instant, the newest first."""
        for sets in (self._made, self._committed):
            if name in sets and sets[name].time < instant:
                yield sets[name]

    def put(self, name: Hashable, made: SetAt) -> None:
        if name not in self._made or self._made[name].time < made.time:
            self._made[name] = made

    def commit(self) -> None:
        """The step is committed: its sets are the last ones. Inputs that it did not have are forgotten."""
        self._committed, self._made = self._made, {}
        self._resting = {name: left for name, left in self._resting.items() if name in self._asked}
        self._asked.clear()

    def drop(self) -> None:
        """The step is begun anew."""
        self._made = {}


def can_update(partials: Sequence[Partial]) -> bool:
    """Whether a set with these partials can be updated by what comes and goes."""
    return all(isinstance(partial.combine, Invertible) for partial in partials)


class UpdatedSet:
    """An early input whose aggregation set is updated from step to step."""

    def __init__(
        self, entries: Entries, partials: Sequence[Partial], memory: SetMemory, name: Hashable
    ) -> None:
        self._entries, self._partials = entries, partials
        self._memory, self._name = memory, name

    def contents(self, instants: Array) -> Contents:
        """One entry for each instant and key; the set after the last instant is kept."""
        if not len(instants) or self._memory.rests(self._name):
            return self._entries.at(instants, self._partials)
        end = int(instants[-1])
        # No entry begins or ceases to count right after an instant, so this is the set that the next step begins with.
        places = np.append(instants, end + 1)
        contents = self._updated(places)
        if contents is None:
            contents = self._entries.at(places, self._partials)
        assert contents.instants is not None
        after = np.flatnonzero(contents.instants > end)
        counting = int(((self._entries.first <= end) & (end < self._entries.last)).sum())
        if len(after) * _WORTH > counting:
            self._memory.rest(self._name)
        else:
            self._memory.put(self._name, SetAt(end, _entries(contents, after)))
        return _only(contents, np.flatnonzero(contents.instants <= end))

    def _updated(self, places: Array) -> Contents | None:
        """The contents from a kept set; None if there is none, or if merging all panes costs as little."""
        first, last, counts = self._entries.first, self._entries.last, self._entries.counts
        final = int(places[-1])
        for known in self._memory.before(self._name, int(places[0])):
            counting = (first <= known.time) & (known.time < last)
            if int(counts[counting].sum()) != known.rows:
                continue
            come = np.flatnonzero((first > known.time) & (first <= final) & (first <= last))
            gone = np.flatnonzero((last > known.time) & (last < final) & (first <= last))
            changes = len(known.entries) + len(come) + len(gone)
            if changes * _WORTH > int(counting.sum()) + len(come):
                return None
            added, taken = self._entries.take(come), _negated(self._entries.take(gone))
            parts = [
                _counting_from(known.entries, np.full(len(known.entries), places[0])),
                _counting_from(added, added.first),
                _counting_from(taken, taken.last + 1),
            ]
            contents = Entries.together(parts).at(places, self._partials)
            return _only(contents, np.flatnonzero(contents.counts))
        return None


def _counting_from(entries: Entries, first: Array) -> Entries:
    return replace(entries, first=first, last=np.full(len(entries), FOR_EVER, np.int64))


def _negated(entries: Entries) -> Entries:
    """The same entries, to be subtracted. Their first and last instants stay."""
    partials = {
        name: tuple(-values for values in stored) for name, stored in entries.partials.items()
    }
    return replace(entries, counts=-entries.counts, partials=partials)


def _only(contents: Contents, chosen: Array) -> Contents:
    """Some entries of the contents."""
    assert contents.instants is not None
    return Contents(
        contents.instants[chosen],
        contents.rows.only(chosen),
        contents.counts[chosen],
        {name: partial_columns.take(of, chosen) for name, of in contents.partials.items()},
        merged=True,
    )


def _entries(contents: Contents, chosen: Array) -> Entries:
    """Some contents as entries by themselves, without instants."""
    nothing = np.zeros(len(chosen), np.int64)
    return Entries(
        nothing,
        nothing,
        contents.rows.only(chosen).columns,
        contents.counts[chosen],
        {name: partial_columns.take(of, chosen) for name, of in contents.partials.items()},
    )
