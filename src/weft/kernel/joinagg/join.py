"""The AS join (AggJoin, definition 6): contents of inputs joined at every instant, in blocks of bounded size.

Inputs are joined one after the other, in the order given; columns are `slot.name` by this order. Two entries are joined if they
are of the same instant and their keys are equal, and if they pass all other conditions on the inputs joined so far. The joined entries are
positions in the contents, so nothing is copied before somebody reads a column.

Each block of candidates is carried through all further joins before the next one is made: memory is bounded by the block, not by the
result. The first inputs may be matched already (`matched`): then their entries are not searched for.

Time: O(n log n) for the entries of each input, plus the candidates of each join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.kernel.columns.column import Column
from weft.kernel.columns.operations import Array
from weft.kernel.columns.sorting import ordered
from weft.kernel.joinagg.contents.entry_keys import EntryKeys, keys_of
from weft.kernel.joinagg.contents.held import Contents, Memory
from weft.kernel.network.conditions import Compiler, Conditions, Evaluation
from weft.kernel.network.joins.keys import Key, KeySide, equalities, equality_key, key_values

BLOCK = 1 << 20
"""Candidates that are joined at once."""
_SPARSE = 4
"""How many codes of keys and instants there may be for each entry, if each code has a place in a table."""


@dataclass(frozen=True)
class JoinStep:
    """How the next input is joined to those before it. `of_key` are the tests that say what equal keys are, `tests` all others."""

    key: Key
    conditions: Conditions
    of_key: tuple[int, ...]
    tests: tuple[int, ...]

    @property
    def left_slot(self) -> int | None:
        """The input that the left side of the key reads; None if it is not one alone."""
        slots = {slot_of(name) for name in self.key.left.names}
        return slots.pop() if len(slots) == 1 else None


def join_steps(predicates: PredicateSet, inputs: int) -> tuple[JoinStep, ...]:
    """The steps that join inputs in their order; conditions on one input are not part of them."""
    return tuple(_join_step(predicates, slot) for slot in range(1, inputs))


def _join_step(predicates: PredicateSet, slot: int) -> JoinStep:
    tested = tuple(
        predicate
        for predicate in predicates.predicates
        if slot in predicate.slots and len(predicate.slots) > 1 and max(predicate.slots) == slot
    )
    key = equality_key(equalities(PredicateSet(tested), slot), slot)
    compiler = Compiler()
    of_key = compiler.numbers(key.predicates)
    others = compiler.numbers(p for p in tested if p not in key.predicates)
    return JoinStep(key, compiler.compiled(), of_key, others)


class Joined:
    """Joined entries as rows: for each input the positions of its entries."""

    def __init__(
        self, contents: Sequence[Contents], positions: Sequence[Array], instants: Array | None
    ) -> None:
        self.contents, self.positions, self.instants = contents, tuple(positions), instants
        self._columns: dict[str, Column] = {}

    @property
    def count(self) -> int:
        return len(self.positions[0])

    def column(self, name: str) -> Column:
        if name not in self._columns:
            slot = slot_of(name)
            values = self.contents[slot].rows.column(column_name(0, plain_name(name)))
            self._columns[name] = values.take(self.positions[slot])
        return self._columns[name]

    def only(self, chosen: Array | None) -> Joined:
        """Some of the joined entries."""
        if chosen is None:
            return self
        return Joined(
            self.contents,
            [positions[chosen] for positions in self.positions],
            None if self.instants is None else self.instants[chosen],
        )


@dataclass(frozen=True)
class Matching:
    """Two aggregation sets whose entries are joined where their instants and join values are equal: the number of each entry's join value; -1:
    it is joined with nothing."""

    contents: tuple[Contents, Contents]
    values: tuple[Array, Array]
    found: Memory = field(default_factory=Memory, init=False, compare=False, repr=False)


@dataclass(frozen=True)
class _Sorted:
    """Entries by the codes of their keys and instants."""

    entries: Array
    codes: Array
    keys: int
    instants: Array | None
    """Those that there are; None: the entries are there at all of them."""

    @property
    def width(self) -> int:
        """How many codes a key has."""
        return 1 if self.instants is None else max(len(self.instants), 1)

    @cached_property
    def _starts(self) -> Array | None:
        """Where the entries of each code begin; None if most codes have none: then looking for them takes less room."""
        codes = self.keys * self.width
        if codes > _SPARSE * len(self.codes):
            return None
        return np.searchsorted(self.codes, np.arange(codes + 1), side="left")

    def between(self, first: Array, beyond: Array) -> tuple[Array, Array]:
        """The ranges of entries that have a code from one on, and before another."""
        starts = self._starts
        if starts is None:
            return np.searchsorted(self.codes, first), np.searchsorted(self.codes, beyond)
        return starts[first], starts[beyond]


class _Side:
    """An input to be searched by key and instant. It is sorted when its entries are asked for."""

    def __init__(self, contents: Contents, key: KeySide, *, ansi: bool) -> None:
        self.keys = keys_of(contents, key, ansi=ansi)
        self._instants = contents.instants

    @cached_property
    def _sorted(self) -> _Sorted:
        entries = self.keys.entries
        codes = self.keys.codes[entries]
        instants = None
        if self._instants is not None:
            instants = np.unique(self._instants[entries])
            codes = codes * max(len(instants), 1) + np.searchsorted(
                instants, self._instants[entries]
            )
        order, sorted_codes = ordered(codes)
        return _Sorted(entries[order], sorted_codes, len(self.keys.values), instants)

    @property
    def entries(self) -> Array:
        return self._sorted.entries

    def places(self, values: Array, valid: Array | None) -> Array:
        """The number of each value among those of this side; -1 where it is none of them."""
        known = self.keys.values
        places = np.searchsorted(known, values)
        if not len(known):
            return np.full(len(values), -1, np.int64)
        matching = known[np.minimum(places, len(known) - 1)] == values
        if valid is not None:
            matching &= valid
        return np.where(matching, places, -1)

    def ranges(self, places: Array, instants: Array | None) -> tuple[Array, Array, Array]:
        """The probing entries that may have partners, and the range of each one's partners."""
        side, matching = self._sorted, places >= 0
        width = side.width
        if side.instants is None or instants is None:
            probes = np.flatnonzero(matching)
            first = places[probes] * width
            return probes, *side.between(first, first + width)
        near = np.searchsorted(side.instants, instants)
        if len(side.instants):
            near = np.minimum(near, width - 1)
            matching &= side.instants[near] == instants
        probes = np.flatnonzero(matching)
        first = places[probes] * width + near[probes]
        return probes, *side.between(first, first + 1)


def _side(contents: Contents, key: KeySide, *, ansi: bool) -> _Side:
    return contents.found.of(("side", key, ansi), lambda: _Side(contents, key, ansi=ansi))


class _Probes:
    """How the inputs joined so far search the next one.

    Where the key reads one input, its entries look up their places once, and not every joined row again. Where moreover all entries
    with one hash have the same key, on either side, one pair of each hash is tested in place of all candidates."""

    def __init__(
        self, contents: Sequence[Contents], step: JoinStep, side: _Side, number: int, *, ansi: bool
    ) -> None:
        self._step, self._side, self._ansi = step, side, ansi
        self._slot = step.left_slot
        self.by_entry: Array | None = None
        """Of each entry of the one input, the place of its key on the other side."""
        self.tests = (*step.of_key, *step.tests)
        if self._slot is None:
            return
        keys = keys_of(contents[self._slot], step.key.left, ansi=ansi)
        by_value = side.places(keys.values, None)
        if keys.pure and side.keys.pure:
            by_value = self._tested(contents, keys, by_value, number)
            self.tests = step.tests
        by_code = np.append(by_value, -1)
        self.by_entry = by_code[keys.codes]

    def _tested(
        self, contents: Sequence[Contents], keys: EntryKeys, places: Array, number: int
    ) -> Array:
        """The places of values whose keys are really equal, by one pair of each."""
        assert self._slot is not None
        meeting = np.flatnonzero(places >= 0)
        unread = np.zeros(len(meeting), np.int64)
        positions = [unread] * (number + 1)
        positions[self._slot] = keys.examples[meeting]
        positions[number] = self._side.keys.examples[places[meeting]]
        pairs = Joined(contents, positions, None)
        evaluation = Evaluation(self._step.conditions, pairs, ansi=self._ansi)
        passing = evaluation.filtered(self._step.of_key)
        tested = np.full(len(places), -1, np.int64)
        equal = meeting if passing is None else meeting[passing]
        tested[equal] = places[equal]
        return tested

    def places(self, left: Joined) -> Array:
        if self.by_entry is not None:
            assert self._slot is not None
            return self.by_entry[left.positions[self._slot]]
        values, valid = key_values(self._step.key.left, left, ansi=self._ansi)
        return self._side.places(values, valid)


@dataclass(frozen=True)
class Search:
    """Inputs that are ready to be joined."""

    contents: Sequence[Contents]
    steps: Sequence[JoinStep]
    """Those that join the inputs after the matched ones."""
    sides: Sequence[_Side]
    probes: Sequence[_Probes]
    ansi: bool
    matched: int = 1
    """How many of the first inputs are matched already: the entries of one place belong together."""

    @staticmethod
    def of(
        contents: Sequence[Contents], steps: Sequence[JoinStep], *, ansi: bool, matched: int = 1
    ) -> Search | None:
        """None: an input is empty."""
        if not all(len(one) for one in contents):
            return None
        steps = steps[matched - 1 :]
        sides = [
            _side(right, step.key.right, ansi=ansi)
            for right, step in zip(contents[matched:], steps, strict=True)
        ]
        probes = [
            _Probes(contents, step, side, number, ansi=ansi)
            for number, (step, side) in enumerate(zip(steps, sides, strict=True), start=matched)
        ]
        return Search(contents, steps, sides, probes, ansi, matched)

    def matching(self) -> Matching | None:
        """Two aggregation sets that are joined on equal keys and nothing else; None if these inputs are not."""
        sets = all(one.merged for one in self.contents)
        if len(self.contents) != 2 or self.matched > 1 or not sets:
            return None
        (probes,), (side,) = self.probes, self.sides
        if probes.tests or probes.by_entry is None:
            return None
        left, right = self.contents
        return Matching((left, right), (probes.by_entry, side.keys.codes))

    def joined(self, block: int = BLOCK) -> Iterator[Joined]:
        """The joined entries of all inputs, block by block."""
        first = self.contents[0]
        everything = np.arange(len(first))
        start = Joined(self.contents, [everything] * self.matched, first.instants)
        yield from _carried(start, self, block)


def _carried(left: Joined, search: Search, block: int) -> Iterator[Joined]:
    """A block through the joins that remain."""
    if not left.count:
        return
    slot = len(left.positions)
    if slot == len(left.contents):
        yield left
        return
    done = slot - search.matched
    step, side, finding = search.steps[done], search.sides[done], search.probes[done]
    probes, first, beyond = side.ranges(finding.places(left), left.instants)
    for chosen, entries in _blocks(probes, first, beyond, block):
        positions = [known[chosen] for known in left.positions]
        right = side.entries[entries]
        instants = None if left.instants is None else left.instants[chosen]
        if instants is None and (own_instants := left.contents[slot].instants) is not None:
            instants = own_instants[right]
        candidates = Joined(left.contents, [*positions, right], instants)
        if finding.tests:
            evaluation = Evaluation(step.conditions, candidates, ansi=search.ansi)
            candidates = candidates.only(evaluation.filtered(finding.tests))
        yield from _carried(candidates, search, block)


def _blocks(
    probes: Array, first: Array, beyond: Array, block: int
) -> Iterator[tuple[Array, Array]]:
    """All candidates in blocks: who searches, and whom it finds. One that finds more than a block is a block by itself."""
    lengths = beyond - first
    ends = np.cumsum(lengths)
    start = 0
    while start < len(probes):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + block, side="right")), start + 1)
        chosen = slice(start, stop)
        counts = lengths[chosen]
        owners = np.repeat(probes[chosen], counts)
        offsets = np.cumsum(counts) - counts
        yield owners, np.arange(len(owners)) + np.repeat(first[chosen] - offsets, counts)
        start = stop
