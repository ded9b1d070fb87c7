"""Many selections of the same rows, without testing each of them on every row.

A *family* is the selections above one logical node. For every subject the family's rows are counted by
region; the counts say how many rows each test lets through, for all tests at once. A selection starts
with the rows of its rarest test, which lie together once the rows are sorted by region, and tests the
rest on these only. So thousands of filters with different constants cost about as much as the
rows that they pass, and those that pass none are never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from weft.kernel.columns.operations import Array
from weft.kernel.network.conditions.evaluation import Conditions, Evaluation, Test

_FEW: Final = 6
"""Fewer selections than this are tested one by one."""


@dataclass(frozen=True, eq=False)
class Runs:
    """For the early tests of a family's selections, one after the other: the runs of regions that they
    let through."""

    tests: Array
    """The number of each test."""
    selections: Array
    """Where the tests of each selection begin; all selections have one."""
    beginnings: Array
    """Where the runs of each test begin; all tests have one, which may be empty."""
    subjects: Array
    first: Array
    beyond: Array


Start = tuple[int, Array | None, Sequence[int]]
"""A selection's number in its family, the rows to start with (None: all), and the tests that are left."""


@dataclass(frozen=True, eq=False)
class Family:
    """The selections above one logical node, and for each the numbers of its tests."""

    parent: str
    nodes: tuple[str, ...]
    conditions: Conditions
    tests: tuple[tuple[int, ...], ...]

    @cached_property
    def _early(self) -> tuple[int, ...]:
        """The selections that have an early test."""
        tests = self.conditions.tests
        return tuple(
            place
            for place, numbers in enumerate(self.tests)
            if any(not tests[number].late for number in numbers)
        )

    @cached_property
    def _runs(self) -> Runs:
        tests: list[int] = []
        selections: list[int] = []
        beginnings: list[int] = []
        runs: list[tuple[int, int, int]] = []
        for place in self._early:
            selections.append(len(tests))
            for number in self.tests[place]:
                test = self.conditions.tests[number]
                if not test.late:
                    tests.append(number)
                    beginnings.append(len(runs))
                    runs += _runs_of(test) or [(0, 0, 0)]
        columns = np.array(runs, np.int64).reshape(-1, 3).T
        return Runs(np.array(tests), np.array(selections), np.array(beginnings), *columns)

    def starts(self, evaluation: Evaluation) -> Iterator[Start]:
        """Where each selection starts that some rows may pass. No test that can fail is made here."""
        if len(self.nodes) < _FEW:
            yield from ((place, None, tests) for place, tests in enumerate(self.tests))
            return
        early = set(self._early)
        yield from (
            (place, None, tests) for place, tests in enumerate(self.tests) if place not in early
        )
        if early:
            yield from self._rarest_first(evaluation)

    def _rarest_first(self, evaluation: Evaluation) -> Iterator[Start]:
        runs = self._runs
        offsets = np.zeros(len(self.conditions.regions), np.int64)
        starts: list[Array] = []
        total = 0
        for subject in np.unique(runs.subjects).tolist():
            offsets[subject] = total
            starts.append(evaluation.starts(subject))
            total += len(starts[-1])
        places = np.concatenate(starts)
        first = places[offsets[runs.subjects] + runs.first]
        beyond = places[offsets[runs.subjects] + runs.beyond]
        counts = np.add.reduceat(beyond - first, runs.beginnings)
        least = np.minimum.reduceat(counts, runs.selections)
        test_ends = np.append(runs.selections[1:], len(runs.tests))
        run_ends = np.append(runs.beginnings[1:], len(runs.first))
        for at in np.flatnonzero(least).tolist():
            place, begin = self._early[at], int(runs.selections[at])
            rarest = begin + int(counts[begin : test_ends[at]].argmin())
            span = slice(runs.beginnings[rarest], run_ends[rarest])
            chosen = _rows_of(evaluation, runs.subjects[span], first[span], beyond[span])
            number = int(runs.tests[rarest])
            yield place, chosen, [other for other in self.tests[place] if other != number]


def _runs_of(test: Test) -> list[tuple[int, int, int]]:
    """For each literal the runs of regions that it lets through: subject, first, beyond."""
    runs: list[tuple[int, int, int]] = []
    for subject, table in zip(test.subjects, test.tables, strict=True):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], table, [False]])))
        runs += [(subject, int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return runs


def _rows_of(evaluation: Evaluation, subjects: Array, first: Array, beyond: Array) -> Array:
    """The rows of some runs, in their order."""
    parts = [
        evaluation.by_region(subject)[low:high]
        for subject, low, high in zip(
            subjects.tolist(), first.tolist(), beyond.tolist(), strict=True
        )
        if low < high
    ]
    if len(parts) == 1:
        return np.sort(parts[0])
    together = np.concatenate(parts)
    return np.sort(together) if len(set(subjects.tolist())) == 1 else np.unique(together)
