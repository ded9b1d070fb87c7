"""Signatures: what a shard says about its rows.

Two rows of a node are in the same shard of a fragment if they have the same signature. It has a
column for every *cut*, an attribute whose values are divided into classes by the bounds of many
conditions, and bits for all other conditions. Rows of one class satisfy the same conditions on
the attribute, so that a predicate is a set of classes for some cuts, and a bit for the rest of it.

From: the predicate signatures of the TriOps paper, section IV, where every condition is a bit and
so is evaluated for every row. Here a row pays one binary search per cut, for any number of
conditions on it. Conditions on an attribute that is a key of the node need no signature at all.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import xor

from weft.algebra.condition import Bound, Condition, Selection, sorted_bounds
from weft.algebra.scalar import Expression
from weft.algebra.types import SqlType

WORD_BITS = 62
"""Bits per signature column: those of a bigint that are safe in every arithmetic."""

NULL_CLASS = 0
"""The position of the class of NULL among a cut's classes; that of code c is c + 1."""


@lru_cache(maxsize=64)
def _sizes(classes: tuple[int, ...]) -> Counter[int]:
    """How many codes each class has."""
    return Counter(classes)


@dataclass(frozen=True, slots=True)
class Cut:
    """An attribute's values in classes.

    A value's code is how many of the sorted `bounds` lie below it; `classes[code + 1]` is its
    class, and `classes[0]` that of NULL.
    """

    attribute: str
    type: SqlType
    bounds: tuple[Bound, ...]
    classes: tuple[int, ...]

    def chosen(self, selection: Selection) -> frozenset[int] | None:
        """The classes that a selection takes, None if it does not take them whole."""
        taken: Counter[int] = Counter()
        if selection.values.null:
            taken[self.classes[NULL_CLASS]] += 1
        for low, high in selection.values.intervals:
            first, last = self._code(low, 0), self._code(high, len(self.bounds))
            if first is None or last is None:
                return None
            first = first if low is None else first + 1
            taken.update(self.classes[first + 1 : last + 2])
        sizes = _sizes(self.classes)
        whole = all(sizes[class_] == count for class_, count in taken.items())
        return frozenset(taken) if whole else None

    def _code(self, bound: Bound | None, otherwise: int) -> int | None:
        if bound is None:
            return otherwise
        code = bisect_left(self.bounds, bound)
        is_bound = code < len(self.bounds) and self.bounds[code] == bound
        return code if is_bound else None


def cut_by(selections: Sequence[Selection]) -> Cut:
    """The cut of an attribute by all selections on it; equal ones count once.

    Codes that satisfy the same selections are one class, so that a thousand equality conditions make
    a thousand and one classes, not two thousand. They are told apart by a fingerprint: every
    selection has a number (its digest), a code's fingerprint is the exclusive or of the numbers of
    the selections that it satisfies, and one pass over the bounds gives them all. Two different sets
    have the same fingerprint with probability 2^-128.

    Time: O(b log b) for b bounds. Sound because the classes refine every selection.
    """
    bounds = sorted_bounds(selections)
    changes = [0] * (len(bounds) + 2)
    null = 0
    for selection in {selection.sql: selection for selection in selections}.values():
        number = _number(selection)
        null ^= number if selection.values.null else 0
        for low, high in selection.values.intervals:
            first = 0 if low is None else bisect_left(bounds, low) + 1
            beyond = len(bounds) + 1 if high is None else bisect_left(bounds, high) + 1
            changes[first] ^= number
            changes[beyond] ^= number
    classes: dict[int, int] = {0: 0}
    fingerprints = [null, *list(accumulate(changes, xor))[:-1]]
    numbered = tuple(classes.setdefault(print_, len(classes)) for print_ in fingerprints)
    return Cut(selections[0].attribute, selections[0].type, bounds, numbered)


def _number(selection: Selection) -> int:
    return int.from_bytes(hashlib.blake2b(selection.sql.encode(), digest_size=16).digest())


@lru_cache(maxsize=64)
def _bit_numbers(bits: tuple[str, ...]) -> dict[str, int]:
    return {sql: number for number, sql in enumerate(bits)}


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a node's rows: cuts, and bits for conditions in Spark SQL."""

    cuts: tuple[Cut, ...] = ()
    bits: tuple[str, ...] = ()

    def bit_of(self, sql: str) -> int | None:
        """The bit of a condition."""
        return _bit_numbers(self.bits).get(sql)

    @property
    def words(self) -> int:
        """How many columns the bits need."""
        return -(-len(self.bits) // WORD_BITS)

    @property
    def columns(self) -> int:
        """How many columns a shard's signature has."""
        return len(self.cuts) + self.words


NO_SIGNATURE = Signature()


@dataclass(frozen=True, slots=True)
class Membership:
    """What a predicate asks of a node's shards: classes of cuts (by their position), a bit, and
    selections on the node's keys."""

    classes: tuple[tuple[int, frozenset[int]], ...] = ()
    bit: int | None = None
    keys: tuple[tuple[int, Selection], ...] = ()


def membership(
    predicate: Expression, signature: Signature, keys: Sequence[Expression]
) -> Membership | None:
    """A predicate in terms of a signature, None if the signature does not decide it."""
    whole = signature.bit_of(predicate.sql)
    if whole is not None:
        return Membership(bit=whole)
    condition = predicate.condition
    if condition is None:
        return None
    cut_positions = {cut.attribute: position for position, cut in enumerate(signature.cuts)}
    key_positions = {key.sql: position for position, key in enumerate(keys)}
    classes: list[tuple[int, frozenset[int]]] = []
    on_keys: list[tuple[int, Selection]] = []
    undecided: list[Selection] = []
    for selection in condition.selections:
        cut = cut_positions.get(selection.attribute)
        chosen = None if cut is None else signature.cuts[cut].chosen(selection)
        if selection.attribute in key_positions:
            on_keys.append((key_positions[selection.attribute], selection))
        elif cut is not None and chosen is not None:
            classes.append((cut, chosen))
        else:
            undecided.append(selection)
    rest = Condition(tuple(undecided), condition.clauses)
    if rest == Condition():
        return Membership(tuple(classes), None, tuple(on_keys))
    bit = signature.bit_of(rest.sql)
    return None if bit is None else Membership(tuple(classes), bit, tuple(on_keys))
