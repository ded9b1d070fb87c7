"""What only Spark can compute of a row, as columns that it adds to the rows it publishes.

An `Opaque` part of a condition on one relation becomes a column of its own: a truth value, or whatever
type the expression has. The kernel reads the column in place of the expression. Tables get such columns
when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.algebra import codec
from weft.algebra.network.lookup import Lookup, path, split_prefix
from weft.algebra.network.query import JoinInput, JoinQuery
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.predicates import Linear, PredicateSet
from weft.algebra.predicates.slots import plain_name, renamed, slot_of, slots_in
from weft.algebra.scalar import Opaque, walk
from weft.algebra.types import SqlType


@dataclass(frozen=True, slots=True)
class Bit:
    """A column that Spark computes: its name, and Spark SQL over the relation's columns."""

    name: str
    sql: str
    type: SqlType


def bit_of(opaque: Opaque) -> Bit:
    """The column of an expression over one relation; the same for every slot of it, and for every
    lookup that reads it.

    >>> bit_of(Opaque("upper(`1.a`)", ("1.a",), "string")).sql
    'upper(`a`)'
    """
    names = {name: split_prefix(plain_name(name))[1] for name in opaque.names}
    alone = renamed(opaque, names)
    assert isinstance(alone, Opaque)
    return Bit(f"#{codec.digest((alone.sql, opaque.type))}", alone.sql, opaque.type)


def bit_column(opaque: Opaque) -> str:
    """The name under which a relation with lookups has the column of an expression.

    >>> bit_column(Opaque("upper(`1.people@0.a`)", ("1.people@0.a",), "string"))[:10]
    'people@0.#'
    """
    prefixes = {split_prefix(plain_name(name))[0] for name in opaque.names}
    return f"{min(prefixes, default='')}{bit_of(opaque).name}"


def opaque_parts(predicates: PredicateSet) -> Iterator[Opaque]:
    """The parts of conditions that only Spark can evaluate."""
    for predicate in predicates.predicates:
        for literal in predicate.literals:
            if not isinstance(literal.subject, Linear):
                yield from (part for part in walk(literal.subject) if isinstance(part, Opaque))


def bits_of(query: NetworkQuery, relation: str) -> list[Bit]:
    """The columns that a query needs of a stream or table."""
    bits: dict[str, Bit] = {}
    for owner, opaque in (part for branch in query.branches for part in _parts(branch)):
        if owner == relation:
            bit = bit_of(opaque)
            bits[bit.name] = bit
    return list(bits.values())


def _parts(query: JoinQuery) -> Iterator[tuple[str, Opaque]]:
    """The parts of all conditions of a query, each with the relation that it reads."""
    yield from _owned(query.inputs, query.predicates)
    yield from ((query.inputs[slot_of(name)].relation, value) for name, value in query.computed)
    if query.partner is not None:
        yield from _owned(query.partner.inputs, query.partner.predicates)
        yield from _owned(query.every_input, query.partner.matching)
    for entry in query.every_input:
        yield from _parts_of_lookups(entry.relation, entry.lookups)


def _parts_of_lookups(relation: str, lookups: Sequence[Lookup]) -> Iterator[tuple[str, Opaque]]:
    row = JoinInput(relation, "", tuple(lookups))
    for lookup in lookups:
        table = JoinInput(lookup.table, "", lookup.lookups)
        for predicates in lookup.sets:
            yield from _owned((row, table), predicates)
        yield from _parts_of_lookups(lookup.table, lookup.lookups)


def _owned(inputs: Sequence[JoinInput], predicates: PredicateSet) -> Iterator[tuple[str, Opaque]]:
    for opaque in opaque_parts(predicates):
        if len(slots_in(opaque)) > 1:
            continue
        name = min(opaque.names, default="0.")
        entry = inputs[slot_of(name)]
        yield path(entry.relation, entry.lookups, plain_name(name))[0], opaque
