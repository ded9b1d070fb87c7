"""Predicate sets over many rows at once.

All literals of one subject share one search: their bounds cut the subject's values into regions, a row
has one region, and a literal is a table of truth values over regions (NULL is a region of its own). So
a literal costs one look-up per row, however many constants it has. A row passes where the table says
true: in SQL, false and NULL are alike there, and no literal is ever negated.

`filtered` tests cheap subjects first and those that can fail, such as a division, only on rows that
have passed all others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.condition.values import NO_POINT, Bound, Values, point
from weft.algebra.predicates import Linear, LiteralPredicate, OrPredicate, Subject
from weft.algebra.types import FRACTIONAL, STRING
from weft.kernel.columns import codes
from weft.kernel.columns.column import Column
from weft.kernel.columns.operations import Array
from weft.kernel.network.rows import Rows, View
from weft.kernel.network.subjects import can_raise, readable, values_of

_EPOCH = date(1970, 1, 1).toordinal()
_LOW, _HIGH = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Regions:
    """The regions of one subject: `bounds` in order, and how rows find theirs."""

    subject: Subject
    bounds: tuple[Any, ...]
    points: tuple[str, ...] | None
    """Of strings that are only compared for equality: the strings. Region k + 1 holds string k, region
    0 all others."""

    @property
    def null(self) -> int:
        """The region of NULL, and so the number of the others."""
        return len(self.bounds if self.points is None else self.points) + 1

    @property
    def late(self) -> bool:
        """Whether only rows that pass everything else may be tested."""
        return can_raise(self.subject)

    def of(self, rows: Rows, ansi: bool) -> Array:
        """The region of every row."""
        values = values_of(self.subject, rows, ansi=ansi)
        dtype = np.uint16 if self.null < 1 << 16 else np.int32
        if pa.types.is_null(values.type):
            return np.full(rows.count, self.null, dtype)
        regions = self._searched(values).astype(dtype)
        if values.valid is not None:
            regions[~values.valid] = self.null
        return regions

    def _searched(self, values: Column) -> Array:
        regions: Array
        if not isinstance(values.values, np.ndarray):
            return self._strings(values.values)
        if values.values.dtype == object:
            bounds = np.array([*self.bounds, None], object)[:-1]
            regions = np.searchsorted(bounds, values.values, side="right")
            return regions
        below = sum(bound < _LOW for bound in self.bounds)
        inside = np.array([bound for bound in self.bounds if _LOW <= bound <= _HIGH], np.int64)
        numbers = values.values.astype(np.int64, copy=False)
        if len(inside) == 1:
            regions = numbers >= inside[0]
        else:
            regions = np.searchsorted(inside, numbers, side="right")
        return regions + below if below else regions

    def _strings(self, values: pa.Array) -> Array:
        regions: Array
        if self.points is not None:
            places = pc.index_in(values, value_set=pa.array(self.points, values.type))
            regions = pc.add(pc.fill_null(places, -1), 1).to_numpy(zero_copy_only=False)
        else:
            encoded = values.dictionary_encode()
            ranks = [
                bisect_right(self.bounds, _bytes(text)) for text in encoded.dictionary.to_pylist()
            ]
            table = np.array([*ranks, self.null], np.int64)
            regions = table[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
        if values.null_count:
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            regions = np.where(valid, regions, self.null)
        return regions

    def table(self, values: Values) -> Array:
        """Which regions a set of values holds. Its bounds are among those of the regions."""
        table = np.zeros(self.null + 1, bool)
        table[self.null] = values.null
        if self.points is not None:
            listed = _listed(values)
            outside = listed is None
            if listed is None:
                listed = _listed(~values)
                assert listed is not None
            table[: self.null] = outside
            for text in listed:
                table[self.points.index(text) + 1] = not outside
            return table
        encode = _encoder(self.subject)
        for low, high in values.intervals:
            first = 0 if low is None else bisect_right(self.bounds, encode(low))
            beyond = self.null if high is None else bisect_right(self.bounds, encode(high))
            table[first:beyond] = True
        return table


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _encoder(subject: Subject) -> Callable[[Bound], Any]:
    """Bounds as what `values_of` gives: a value is at or above the bound if its code is."""
    type_ = subject.type
    if not isinstance(subject, Linear) and type_ == STRING:
        return lambda bound: _bytes(str(bound.value)) + (b"\0" if bound.after else b"")
    if not isinstance(subject, Linear) and type_ in FRACTIONAL:

        def float_code(bound: Bound) -> int:
            number = np.nan if bound.value is None else float(bound.value)
            return int(codes.float_codes(pa.array([number]))[0]) + bound.after

        return float_code

    def integer(bound: Bound) -> int:
        value = bound.value
        if isinstance(value, str):
            value = date.fromisoformat(value).toordinal() - _EPOCH
        assert isinstance(value, int)
        return value + bound.after

    return integer


def _listed(values: Values) -> list[str] | None:
    """The strings of a set that is a list of strings."""
    points = [point(interval) for interval in values.intervals]
    return None if NO_POINT in points else points


def regions_of(subject: Subject, sets: Sequence[Values]) -> Regions:
    """The regions that tell sets of a subject's values apart."""
    if not isinstance(subject, Linear) and subject.type == STRING:
        lists = [_listed(values) for values in sets]
        rests = [_listed(~values) for values in sets]
        if all(some is not None or rest is not None for some, rest in zip(lists, rests)):
            pairs = zip(lists, rests)
            texts = {
                text for some, rest in pairs for text in (some if some is not None else rest) or []
            }
            return Regions(subject, (), tuple(sorted(texts)))
    encode = _encoder(subject)
    bounds = {
        encode(bound)
        for values in sets
        for interval in values.intervals
        for bound in interval
        if bound is not None
    }
    return Regions(subject, tuple(sorted(bounds)), None)


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
    positions = np.flatnonzero(passes)
    return positions if chosen is None else chosen[positions]
