"""The predicate index of a node: which conditions become cuts, which become bits.

An attribute with several different selections becomes a cut: a row finds its class by one binary
search over the sorted bounds of all of them. Few selections on an attribute, and clauses that
compare no attribute with constants, are bits; equal ones are one bit. Selections on a key of the
node need nothing: level 2 reads them off the key.

From: the predicate signatures of the TriOps paper, section IV, where every condition is a bit.
Time: O(b log b) for b bounds. Sound because a cut's classes refine every selection on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from weft.algebra.condition import Condition, selections_on
from weft.algebra.scalar import Expression
from weft.algebra.signature import Cut, Signature, cut_by

FEWEST_FOR_A_CUT = 3
"""Different selections on an attribute from which on a search is cheaper than bits."""


def index(predicates: Iterable[Expression], keys: Sequence[Expression]) -> Signature:
    """The signature with which rows of these predicates are told apart."""
    key_names = {key.sql for key in keys}
    predicates = list(predicates)
    conditions = [p.condition for p in predicates if p.condition is not None]
    cuts: dict[str, Cut] = {}
    for attribute, selections in sorted(selections_on(conditions).items()):
        different = sorted(set(selections), key=lambda selection: selection.sql)
        one_type = len({selection.type for selection in different}) == 1
        if attribute not in key_names and one_type and len(different) >= FEWEST_FOR_A_CUT:
            cuts[attribute] = cut_by(different)
    bits: dict[str, None] = {}
    for predicate in predicates:
        rest = _rest(predicate, cuts.keys() | key_names)
        if rest is not None:
            bits[rest] = None
    return Signature(tuple(cuts.values()), tuple(bits))


def bits_only(predicates: Iterable[Expression]) -> Signature:
    """The signature without an index: a bit for every predicate."""
    return Signature(bits=tuple(predicate.sql for predicate in predicates))


def _rest(predicate: Expression, indexed: Collection[str]) -> str | None:
    """What a predicate leaves to a bit."""
    condition = predicate.condition
    if condition is None:
        return predicate.sql
    selections = tuple(s for s in condition.selections if s.attribute not in indexed)
    rest = Condition(selections, condition.clauses)
    return None if rest == Condition() else rest.sql
