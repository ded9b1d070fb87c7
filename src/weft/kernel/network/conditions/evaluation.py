"""Predicate sets over many rows at once, from the regions of their subjects.

A row passes a literal where its table says true: in SQL, false and NULL are alike there, and no literal
is ever negated. `filtered` tests cheap subjects first and those that can fail, such as a division, only
on rows that have passed all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from weft.algebra.predicates import LiteralPredicate, OrPredicate, Subject
from weft.kernel.columns.operations import Array
from weft.kernel.network.conditions.regions import Regions, regions_of
from weft.kernel.network.conditions.subjects import readable
from weft.kernel.network.rows import Rows, View


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """An OR predicate: the numbers of its literals' subjects, and their tables."""

    subjects: tuple[int, ...]
    tables: tuple[Array, ...]
    late: bool


@dataclass(frozen=True)
class Conditions:
    """The compiled conditions of the rows of one physical node."""

    regions: tuple[Regions, ...]
    tests: tuple[Test, ...]


class Compiler:
    """Gathers the OR predicates of a physical node, and gives each its number."""

    def __init__(self) -> None:
        self._numbers: dict[OrPredicate, int] = {}

    def numbers(self, predicates: Iterable[OrPredicate]) -> tuple[int, ...]:
        return tuple(self._numbers.setdefault(p, len(self._numbers)) for p in predicates)

    def compiled(self) -> Conditions:
        literals: dict[Subject, list[LiteralPredicate]] = {}
        for predicate in self._numbers:
            for literal in predicate.literals:
                literals.setdefault(literal.subject, []).append(literal)
        regions = {
            subject: regions_of(readable(subject), [literal.values for literal in same])
            for subject, same in literals.items()
        }
        places = {subject: place for place, subject in enumerate(regions)}
        tests = tuple(
            Test(
                tuple(places[literal.subject] for literal in predicate.literals),
                tuple(
                    regions[literal.subject].table(literal.values) for literal in predicate.literals
                ),
                any(regions[literal.subject].late for literal in predicate.literals),
            )
            for predicate in self._numbers
        )
        return Conditions(tuple(regions.values()), tests)


class Evaluation:
    """The conditions of a physical node over some rows. Regions are computed once."""

    def __init__(self, conditions: Conditions, rows: Rows, *, ansi: bool) -> None:
        self.rows = rows
        self._conditions, self._ansi = conditions, ansi
        self._regions: dict[int, Array] = {}
        self._by_region: dict[int, Array] = {}
        self._whole: tuple[Evaluation, Array] | None = None

    def within(self, chosen: Array | None) -> Evaluation:
        """The same conditions over some of the rows."""
        if chosen is None:
            return self
        part = Evaluation(self._conditions, View(self.rows, chosen), ansi=self._ansi)
        part._whole = (self, chosen)
        return part

    def regions(self, subject: int) -> Array:
        """The region of every row."""
        if subject not in self._regions:
            if self._whole is not None:
                whole, chosen = self._whole
                regions = whole.regions(subject)[chosen]
            else:
                regions = self._conditions.regions[subject].of(self.rows, self._ansi)
            self._regions[subject] = regions
        return self._regions[subject]

    def by_region(self, subject: int) -> Array:
        """The positions of all rows in the order of their regions."""
        if subject not in self._by_region:
            self._by_region[subject] = np.argsort(self.regions(subject), kind="stable")
        return self._by_region[subject]

    def starts(self, subject: int) -> Array:
        """In this order, where each region begins, and where the last one ends."""
        regions = self._conditions.regions[subject].null + 1
        counts = np.bincount(self.regions(subject), minlength=regions)
        return np.concatenate([[0], np.cumsum(counts)])

    def filtered(self, tests: Iterable[int], chosen: Array | None = None) -> Array | None:
        """The positions, of those chosen, whose rows pass all tests. None is all rows."""
        late: list[Test] = []
        for number in tests:
            test = self._conditions.tests[number]
            if test.late:
                late.append(test)
                continue
            if chosen is not None and not len(chosen):
                return chosen
            chosen = self._passing(test, chosen)
        for test in late:
            if chosen is not None and not len(chosen):
                return chosen
            chosen = self._passing_late(test, chosen)
        return chosen

    def _passing(self, test: Test, chosen: Array | None) -> Array:
        passes: Array | None = None
        for subject, table in zip(test.subjects, test.tables, strict=True):
            regions = self.regions(subject)
            truth = table[regions if chosen is None else regions[chosen]]
            passes = truth if passes is None else passes | truth
        return _narrowed(chosen, passes)

    def _passing_late(self, test: Test, chosen: Array | None) -> Array:
        """Literal after literal, on the rows that have passed none of those before."""
        count = self.rows.count if chosen is None else len(chosen)
        passes = np.zeros(count, bool)
        order = sorted(
            range(len(test.subjects)),
            key=lambda at: self._conditions.regions[test.subjects[at]].late,
        )
        for at in order:
            open_ = np.flatnonzero(~passes)
            if not len(open_):
                break
            rows = View(self.rows, open_ if chosen is None else chosen[open_])
            regions = self._conditions.regions[test.subjects[at]].of(rows, self._ansi)
            passes[open_] = test.tables[at][regions]
        return _narrowed(chosen, passes)


def _narrowed(chosen: Array | None, passes: Array | None) -> Array:
    if passes is None:
        return np.zeros(0, np.int64)
    positions: Array = passes.nonzero()[0]
    return positions if chosen is None else chosen[positions]
