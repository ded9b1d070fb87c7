"""The AS join (AggJoin, definition 6): contents of inputs joined at every instant, in blocks of bounded size.

Inputs are joined one after the other, in the order given; columns are `slot.name` by this order. Two entries are joined if they
are of the same instant and their keys are equal, and if they pass all other conditions on the inputs joined so far. The joined entries are
positions in the contents, so nothing is copied before somebody reads a column.

Each block of candidates is carried through all further joins before the next one is made: memory is bounded by the block, not by the
result. Time: O(n log n) for the entries of each input, plus the candidates of each join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.kernel.columns.column import Column
from weft.kernel.columns.operations import Array
from weft.kernel.columns.sorting import ordered
from weft.kernel.joinagg.entries import Contents
from weft.kernel.network.conditions import Compiler, Conditions, Evaluation
from weft.kernel.network.joins.keys import Key, KeySide, equalities, equality_key, key_values

BLOCK = 1 << 20
"""Candidates that are joined at once."""


@dataclass(frozen=True)
class JoinStep:
    """How the next input is joined to those before it."""

    key: Key
    conditions: Conditions
    tests: tuple[int, ...]


def join_steps(predicates: PredicateSet, inputs: int) -> tuple[JoinStep, ...]:
    """The steps that join inputs in their order; conditions on one input are not part of them."""
    return tuple(_join_step(predicates, slot) for slot in range(1, inputs))


def _join_step(predicates: PredicateSet, slot: int) -> JoinStep:
    tested = tuple(
        predicate
        for predicate in predicates.predicates
        if slot in predicate.slots and len(predicate.slots) > 1 and max(predicate.slots) == slot
    )
    compiler = Compiler()
    numbers = compiler.numbers(tested)
    key = equality_key(equalities(PredicateSet(tested), slot), slot)
    return JoinStep(key, compiler.compiled(), numbers)


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


class _Side:
    """An input, sorted by key and instant, to be searched."""

    def __init__(self, contents: Contents, key: KeySide, *, ansi: bool) -> None:
        values, valid = key_values(key, contents.rows, ansi=ansi)
        entries = np.arange(len(contents)) if valid is None else np.flatnonzero(valid)
        self.instants = None if contents.instants is None else np.unique(contents.instants[entries])
        self.values, codes = np.unique(values[entries], return_inverse=True)
        codes = codes.reshape(-1)
        if contents.instants is not None and self.instants is not None:
            places = np.searchsorted(self.instants, contents.instants[entries])
            codes = codes * len(self.instants) + places
        order, self.codes = ordered(codes)
        self.entries = entries[order]

    def ranges(self, values: Array, instants: Array | None) -> tuple[Array, Array, Array]:
        """The probing entries that may have partners, and the range of each one's partners."""
        places = np.searchsorted(self.values, values)
        inside = np.minimum(places, max(len(self.values) - 1, 0))
        matching = np.zeros(len(values), bool)
        if len(self.values):
            matching = self.values[inside] == values
        codes = inside
        if self.instants is not None and instants is not None:
            at = np.searchsorted(self.instants, instants)
            near = np.minimum(at, max(len(self.instants) - 1, 0))
            if len(self.instants):
                matching &= self.instants[near] == instants
            codes = codes * max(len(self.instants), 1) + near
        probes = np.flatnonzero(matching)
        if self.instants is not None and instants is None:
            first = np.searchsorted(self.codes, codes[probes] * len(self.instants), side="left")
            beyond = np.searchsorted(
                self.codes, (codes[probes] + 1) * len(self.instants), side="left"
            )
        else:
            first = np.searchsorted(self.codes, codes[probes], side="left")
            beyond = np.searchsorted(self.codes, codes[probes], side="right")
        return probes, first, beyond


def joined(
    contents: Sequence[Contents], steps: Sequence[JoinStep], *, ansi: bool, block: int = BLOCK
) -> Iterator[Joined]:
    """The joined entries of all inputs, block by block."""
    sides = [
        _Side(right, step.key.right, ansi=ansi)
        for right, step in zip(contents[1:], steps, strict=True)
    ]
    every = np.arange(len(contents[0]))
    start = Joined(contents, [every], contents[0].instants)
    yield from _carried(start, sides, steps, ansi, block)


def _carried(
    left: Joined, sides: Sequence[_Side], steps: Sequence[JoinStep], ansi: bool, block: int
) -> Iterator[Joined]:
    """A block through the joins that remain."""
    if not left.count:
        return
    done = len(left.positions) - 1
    if done == len(steps):
        yield left
        return
    step, side = steps[done], sides[done]
    values, valid = key_values(step.key.left, left, ansi=ansi)
    keyed = left if valid is None else left.only(np.flatnonzero(valid))
    values = values if valid is None else values[valid]
    probes, first, beyond = side.ranges(values, keyed.instants)
    for chosen, entries in _blocks(probes, first, beyond, block):
        positions = [known[chosen] for known in keyed.positions]
        right = side.entries[entries]
        instants = None if keyed.instants is None else keyed.instants[chosen]
        if instants is None and (own_instants := left.contents[done + 1].instants) is not None:
            instants = own_instants[right]
        candidates = Joined(left.contents, [*positions, right], instants)
        passing = Evaluation(step.conditions, candidates, ansi=ansi).filtered(step.tests)
        yield from _carried(candidates.only(passing), sides, steps, ansi, block)


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
