"""How the two sides of a physical join find their candidates.

*Equality keys* are literals of a join that say that a value of the left side equals one of the right
side: a sum with a single constant, `compare` that must be 0, `<=>` that must be true. The tuple of
these values becomes one integer on either side: equal tuples give equal integers. The search is for
equal integers, and the candidates' keys are then compared exactly, so a collision is harmless. Sums
may wrap: equal sums wrap to equal integers.

Without an equality key, a sum of one column of either side that must lie in a *range* gives a search
for an interval: a side is sorted by its part of the sum, as a float. The interval is widened by more
than the rounding, and the candidates are compared exactly. With neither, all pairs are candidates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.condition.values import NO_POINT, Values, point
from weft.algebra.predicates import Linear, LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.slots import column_name, names_in, plain_name, slot_of, slots_in
from weft.algebra.predicates.subject import COMPARE
from weft.algebra.scalar import Call, Ref, Scalar
from weft.kernel.columns.column import Column
from weft.kernel.columns.operations import Array
from weft.kernel.network.conditions.subjects import (
    both_valid,
    plain_values,
    ranked,
    readable_scalar,
)
from weft.kernel.network.rows import Rows

_HASH_BITS = 40
"""Few enough to sort a hash together with its position in one integer (`columns.sorting`)."""
_WORD = (1 << 64) - 1
_ROUNDING = 2.0**-48
"""More than the relative error of a few operations on floats."""


@dataclass(frozen=True, slots=True)
class SumPart:
    """A key value: constant + Σ factor · column."""

    constant: int
    terms: tuple[tuple[int, Ref], ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(ref.name for _, ref in self.terms)


@dataclass(frozen=True, slots=True)
class ScalarPart:
    """A key value: an expression. `null_safe`: NULL is a value like any other."""

    value: Scalar
    null_safe: bool

    @property
    def names(self) -> frozenset[str]:
        return names_in(self.value)


Part = SumPart | ScalarPart


@dataclass(frozen=True, slots=True)
class KeySide:
    """One side's part of the keys, over the slots of its own rows."""

    parts: tuple[Part, ...] = ()
    range_part: SumPart | None = None

    @property
    def names(self) -> frozenset[str]:
        sums = [part.names for part in self.parts]
        return frozenset().union(*sums, self.range_part.names if self.range_part else ())


@dataclass(frozen=True, slots=True)
class Key:
    """The keys of a physical join: what every pair must fulfil, and what each side computes."""

    literals: tuple[LiteralPredicate, ...]
    left: KeySide
    right: KeySide
    interval: tuple[int | None, int | None] | None = None
    """Of a range: the least sum, and the first one that is too large."""

    @property
    def predicates(self) -> tuple[OrPredicate, ...]:
        """The equalities, to be tested on candidates."""
        return tuple(OrPredicate((literal,)) for literal in self.literals)


def equalities(predicates: PredicateSet, left_slots: int) -> tuple[LiteralPredicate, ...]:
    """The equality keys among a join's predicates."""
    return tuple(
        predicate.literals[0]
        for predicate in predicates.predicates
        if len(predicate.literals) == 1 and _is_key(predicate.literals[0], left_slots)
    )


def _is_key(literal: LiteralPredicate, left_slots: int) -> bool:
    subject, values = literal.subject, literal.values
    if values.null or len(values.intervals) != 1 or not _is_split(literal.slots, left_slots):
        return False
    constant = point(values.intervals[0])
    if isinstance(subject, Linear):
        return constant is not NO_POINT
    if not isinstance(subject, Call) or subject.operator not in (COMPARE, "<=>"):
        return False
    if constant != (0 if subject.operator == COMPARE else 1):
        return False
    left, right = (slots_in(side) for side in subject.arguments)
    return (
        bool(left and right)
        and not _is_split(left, left_slots)
        and not _is_split(right, left_slots)
    )


def _is_split(slots: Collection[int], left_slots: int) -> bool:
    """Whether slots are on both sides."""
    return any(slot < left_slots for slot in slots) and any(slot >= left_slots for slot in slots)


def equality_key(literals: Sequence[LiteralPredicate], left_slots: int) -> Key:
    """The key of equalities."""
    sides: tuple[list[Part], list[Part]] = ([], [])
    for literal in literals:
        subject = literal.subject
        if isinstance(subject, Linear):
            constant = point(literal.values.intervals[0])
            assert isinstance(constant, int)
            left, right = _halves(subject, left_slots)
            sides[0].append(SumPart(0, left))
            sides[1].append(SumPart(constant, tuple((-factor, ref) for factor, ref in right)))
            continue
        assert isinstance(subject, Call)
        for argument in subject.arguments:
            side = int(min(slots_in(argument)) >= left_slots)
            value = _shifted(readable_scalar(argument), left_slots if side else 0)
            sides[side].append(ScalarPart(value, subject.operator == "<=>"))
    return Key(tuple(literals), KeySide(tuple(sides[0])), KeySide(tuple(sides[1])))


def join_key(predicates: PredicateSet, left_slots: int) -> Key:
    """The key of a join by itself: its equalities, else the best range, else none."""
    literals = equalities(predicates, left_slots)
    ranges = {} if literals else range_subjects(predicates, left_slots)
    best = best_range(ranges)
    if best is not None:
        return range_key(best, [ranges[best]], left_slots)
    return equality_key(literals, left_slots)


def best_range(ranges: Mapping[Linear, Values]) -> Linear | None:
    """The range to search in: one that is bounded on both sides, if there is one."""
    return min(
        ranges, key=lambda subject: (None in hull(ranges[subject]), subject.sql), default=None
    )


def _halves(subject: Linear, left_slots: int) -> tuple[tuple[tuple[int, Ref], ...], ...]:
    """The terms of either side, over its own slots."""
    left = tuple(term for term in subject.terms if slot_of(term[1].name) < left_slots)
    right = tuple(
        (factor, _shifted_ref(ref, left_slots))
        for factor, ref in subject.terms
        if slot_of(ref.name) >= left_slots
    )
    return left, right


def _shifted_ref(ref: Ref, by: int) -> Ref:
    return Ref(column_name(slot_of(ref.name) - by, plain_name(ref.name)), ref.type)


def _shifted(scalar: Scalar, by: int) -> Scalar:
    if isinstance(scalar, Ref):
        return _shifted_ref(scalar, by)
    if isinstance(scalar, Call):
        arguments = tuple(_shifted(argument, by) for argument in scalar.arguments)
        return Call(scalar.operator, arguments, scalar.type)
    return scalar


def range_subjects(predicates: PredicateSet, left_slots: int) -> dict[Linear, Values]:
    """The sums of two columns, one of either side, that a join bounds."""
    bounded: dict[Linear, Values] = {}
    for predicate in predicates.predicates:
        literal = predicate.literals[0] if len(predicate.literals) == 1 else None
        if literal is None or not isinstance(literal.subject, Linear):
            continue
        if literal.values.null or not _is_split(literal.slots, left_slots):
            continue
        if len(literal.subject.terms) != 2:
            continue
        low, high = hull(literal.values)
        if low is not None or high is not None:
            bounded[literal.subject] = literal.values
    return bounded


def hull(values: Values) -> tuple[int | None, int | None]:
    """The least integer of a set, and the first one above all of its integers."""
    low, high = values.intervals[0][0], values.intervals[-1][1]
    first = None if low is None else low.value
    beyond = None if high is None else high.value
    assert first is None or isinstance(first, int)
    assert beyond is None or isinstance(beyond, int)
    return first, beyond


def range_key(subject: Linear, sets: Sequence[Values], left_slots: int) -> Key:
    """The key of a sum that must be in one of the sets."""
    left, right = _halves(subject, left_slots)
    hulls = [hull(values) for values in sets]
    lows = [low for low, _ in hulls if low is not None]
    highs = [high for _, high in hulls if high is not None]
    interval = (
        min(lows) if len(lows) == len(hulls) else None,
        max(highs) if len(highs) == len(hulls) else None,
    )
    # Both sides are sorted so that values may differ only little: one has its part with a minus.
    turned = tuple((-factor, ref) for factor, ref in left)
    sides = KeySide(range_part=SumPart(0, turned)), KeySide(range_part=SumPart(0, right))
    return Key((), *sides, interval)


def key_values(side: KeySide, rows: Rows, *, ansi: bool) -> tuple[Array, Array | None]:
    """One number for each row's key, and which rows have a key."""
    if side.range_part is not None:
        return _range_values(side.range_part, rows)
    if len(side.parts) == 1 and isinstance(side.parts[0], SumPart):
        return _wrapped(side.parts[0], rows)
    words = np.zeros(rows.count, np.uint64)
    valid: Array | None = None
    for part in side.parts:
        if isinstance(part, SumPart):
            values, there = _wrapped(part, rows)
        else:
            values, there = _hashed(ranked(plain_values(part.value, rows, ansi=ansi)))
            if part.null_safe and there is not None:
                values, there = np.where(there, values, 0x9E37), None
        valid = both_valid(valid, there)
        words = mixed(words + np.uint64(0x9E3779B97F4A7C15) ^ mixed(values.view(np.uint64)))
    return (words >> np.uint64(64 - _HASH_BITS)).astype(np.int64), valid


def _wrapped(part: SumPart, rows: Rows) -> tuple[Array, Array | None]:
    """The sum modulo 2^64."""
    total = np.full(rows.count, _signed(part.constant), np.int64)
    valid: Array | None = None
    for factor, ref in part.terms:
        term = rows.column(ref.name)
        if pa.types.is_null(term.type):
            return total, np.zeros(rows.count, bool)
        total += _low_word(term.values) * np.int64(_signed(factor))
        valid = both_valid(valid, term.valid)
    return total, valid


def _signed(value: int) -> int:
    word = value & _WORD
    return word - (1 << 64) if word >> 63 else word


def _low_word(values: Array) -> Array:
    if values.dtype == object:
        return np.array([_signed(int(value)) for value in values], np.int64)
    return values.astype(np.int64, copy=False)


def _hashed(values: Column) -> tuple[Array, Array | None]:
    """Integers that are equal for equal values."""
    if isinstance(values.values, np.ndarray):
        return _low_word(values.values), values.valid
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    encoded = values.values.dictionary_encode()
    texts = encoded.dictionary.to_numpy(zero_copy_only=False)
    hashes = pd.util.hash_array(texts.astype(object), categorize=False) if len(texts) else texts
    table = np.append(hashes.astype(np.uint64), np.uint64(0)).view(np.int64)
    there = None
    if values.values.null_count:
        there = values.values.is_valid().to_numpy(zero_copy_only=False)
    return table[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)], there


def mixed(words: Array) -> Array:
    """A bijection of 64-bit words that spreads every bit (the finalizer of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    spread: Array = words ^ (words >> np.uint64(31))
    return spread


def _range_values(part: SumPart, rows: Rows) -> tuple[Array, Array | None]:
    total = np.zeros(rows.count)
    valid: Array | None = None
    for factor, ref in part.terms:
        term = rows.column(ref.name)
        if pa.types.is_null(term.type):
            return total, np.zeros(rows.count, bool)
        total += term.values.astype(np.float64) * float(factor)
        valid = both_valid(valid, term.valid)
    return total, valid


def candidate_pairs(
    key: Key, probing: Array, sorted_values: Array, probes_left: bool, size: int
) -> Iterator[tuple[Array, Array]]:
    """The candidates of probing values among the other side's sorted values, as positions in either, at
    most `size` at once. `probes_left` says that the probing values are the left side's."""
    if not len(probing) or not len(sorted_values):
        return
    first, beyond = _candidate_ranges(key, probing, sorted_values, probes_left)
    ends = np.cumsum(beyond - first)
    total = int(ends[-1])
    for start in range(0, total, size):
        yield _expanded(first, beyond, ends, start, min(start + size, total))


def _expanded(
    first: Array, beyond: Array, ends: Array, start: int, stop: int
) -> tuple[Array, Array]:
    """The candidates with the numbers from start to stop: who searches, and whom it finds."""
    low = int(np.searchsorted(ends, start, side="right"))
    high = int(np.searchsorted(ends, stop, side="left")) + 1
    lengths = (beyond - first)[low:high].copy()
    begins = first[low:high].copy()
    skipped = start - (int(ends[low - 1]) if low else 0)
    begins[0] += skipped
    lengths[0] -= skipped
    lengths[-1] -= int(ends[high - 1]) - stop
    probes = np.repeat(np.arange(low, high), lengths)
    offsets = np.cumsum(lengths) - lengths
    others = np.arange(stop - start) + np.repeat(begins - offsets, lengths)
    return probes, others


def _candidate_ranges(
    key: Key, probing: Array, sorted_values: Array, probes_left: bool
) -> tuple[Array, Array]:
    """For each probing value, which of the other side's sorted values are candidates: from, to."""
    if key.interval is None:
        first = np.searchsorted(sorted_values, probing, side="left")
        return first, np.searchsorted(sorted_values, probing, side="right")
    low, high = key.interval
    # right - left is the sum, where left stands for the left part with a minus.
    if not probes_left:
        low, high = (None if high is None else -high), (None if low is None else -low)
    size = max(
        float(np.abs(probing).max(initial=0)),
        float(np.abs(sorted_values).max(initial=0)),
        abs(float(low or 0)),
        abs(float(high or 0)),
    )
    slack = size * _ROUNDING + 1
    first = np.zeros(len(probing), np.int64)
    beyond = np.full(len(probing), len(sorted_values), np.int64)
    if low is not None:
        first = np.searchsorted(sorted_values, probing + (float(low) - slack), side="left")
    if high is not None:
        beyond = np.searchsorted(sorted_values, probing + (float(high) + slack), side="right")
    return first, np.maximum(first, beyond)
