"""A lookup as the kernel runs it: what is tested of the row, of the table, and of both.

Conditions on the table alone choose the table's rows once, those on the row alone choose the rows that
search. Keys are those of joins (`keys`): equalities, else a sum in a range, else every pair is a candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.algebra import codec
from weft.algebra.network.lookup import Lookup, LookupKind, prefix
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import plain_name, slot_of
from weft.algebra.predicates.subject import subject_names
from weft.kernel.network.conditions import Compiler, Conditions
from weft.kernel.network.conditions.subjects import readable
from weft.kernel.network.joins.keys import Key, join_key

_ROW, _TABLE = 0, 1


@dataclass(frozen=True, eq=False)
class Tests:
    """Conditions of which all must pass."""

    conditions: Conditions
    numbers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Matching:
    """Which rows of a table match a row."""

    of_row: Tests
    of_table: Tests
    of_pair: Tests
    key: Key
    columns: tuple[str, ...]
    """The columns of the table that are compared with the row's."""


@dataclass(frozen=True, eq=False)
class CompiledLookup:
    """A lookup of rows in a table. `id` is equal for equal lookups."""

    id: str
    kind: LookupKind
    table: str
    beginning: str
    """What the names of its columns begin with."""
    matching: Matching
    unknown: tuple[Matching, ...]
    lookups: tuple[CompiledLookup, ...]


def compiled(lookups: Sequence[Lookup]) -> tuple[CompiledLookup, ...]:
    """The lookups of a relation, in their order. Raises `NeedsSpark` if a condition on the row and the
    table is one that only Spark can evaluate."""
    return tuple(
        CompiledLookup(
            codec.digest(lookup, 16),
            lookup.kind,
            lookup.table,
            prefix(lookup.table, number),
            _matching(lookup.predicates),
            tuple(_matching(predicates) for predicates in lookup.unknown),
            compiled(lookup.lookups),
        )
        for number, lookup in enumerate(lookups)
    )


def _matching(predicates: PredicateSet) -> Matching:
    of_row, of_table = predicates.within({_ROW}), predicates.within({_TABLE})
    alone = {*of_row.predicates, *of_table.predicates}
    of_pair = PredicateSet(tuple(p for p in predicates.predicates if p not in alone))
    names = {
        name
        for predicate in of_pair.predicates
        for literal in predicate.literals
        for name in subject_names(readable(literal.subject))
    }
    return Matching(
        _tests(of_row),
        _tests(of_table.moved({_TABLE: 0})),
        _tests(of_pair),
        join_key(of_pair, 1),
        tuple(sorted(plain_name(name) for name in names if slot_of(name) == _TABLE)),
    )


def _tests(predicates: PredicateSet) -> Tests:
    compiler = Compiler()
    numbers = compiler.numbers(predicates.predicates)
    return Tests(compiler.compiled(), numbers)
