"""The predicate index of a node: which conditions become cuts, which become bits.

An attribute with several different selections becomes a cut: a row finds its class by one binary
search over the sorted bounds of all of them. Few selections on an attribute, and clauses that
compare no attribute with constants, are bits; equal ones are one bit. Selections on a key of the
node need nothing: level 2 reads them off the key.

Codes of a cut that satisfy the same selections are one class, so that a thousand equality
conditions make a thousand and one classes, not two thousand. Found by a fingerprint: every
selection has a random number (its digest), a code's fingerprint is the exclusive or of the numbers
of the selections it satisfies, and one pass over the bounds gives them all. Sets differ but
fingerprints agree with probability 2^-128 per pair.

Time: O(b log b) for b bounds. Sound because a cut's classes refine every selection on it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import xor

from weft.algebra.condition import Condition, Selection, selections_on, sorted_bounds
from weft.algebra.scalar import Expression
from weft.algebra.signature import Cut, Signature

FEWEST_FOR_A_CUT = 3
"""Different selections on an attribute from which on a search is cheaper than bits."""


def index(predicates: Iterable[Expression], keys: Sequence[Expression]) -> Signature:
    """The signature with which rows of these predicates are told apart."""
    own = {key.sql for key in keys}
    predicates = list(predicates)
    conditions = [each.condition for each in predicates if each.condition is not None]
    cuts: dict[str, Cut] = {}
    for attribute, selections in sorted(selections_on(conditions).items()):
        different = sorted(set(selections), key=lambda each: each.sql)
        one_type = len({each.type for each in different}) == 1
        if attribute not in own and one_type and len(different) >= FEWEST_FOR_A_CUT:
            cuts[attribute] = cut(different)
    bits: dict[str, None] = {}
    for predicate in predicates:
        rest = _rest(predicate, cuts.keys() | own)
        if rest is not None:
            bits[rest] = None
    return Signature(tuple(cuts.values()), tuple(bits))


def cut(selections: Sequence[Selection]) -> Cut:
    """The cut of an attribute by all its selections; equal ones count once."""
    bounds = sorted_bounds(selections)
    changes = [0] * (len(bounds) + 2)
    null = 0
    for selection in {each.sql: each for each in selections}.values():
        number = _number(selection)
        null ^= number if selection.values.null else 0
        for low, high in selection.values.intervals:
            first = 0 if low is None else bisect_left(bounds, low) + 1
            beyond = len(bounds) + 1 if high is None else bisect_left(bounds, high) + 1
            changes[first] ^= number
            changes[beyond] ^= number
    classes: dict[int, int] = {0: 0}
    fingerprints = [null, *list(accumulate(changes, xor))[:-1]]
    numbered = tuple(classes.setdefault(each, len(classes)) for each in fingerprints)
    return Cut(selections[0].attribute, selections[0].type, bounds, numbered)


def _number(selection: Selection) -> int:
    return int.from_bytes(hashlib.blake2b(selection.sql.encode(), digest_size=16).digest())


def _rest(predicate: Expression, indexed: Iterable[str]) -> str | None:
    """What a predicate leaves to a bit."""
    condition = predicate.condition
    if condition is None:
        return predicate.sql
    known = set(indexed)
    selections = tuple(each for each in condition.selections if each.attribute not in known)
    left = Condition(selections, condition.clauses)
    return None if left == Condition() else left.sql
