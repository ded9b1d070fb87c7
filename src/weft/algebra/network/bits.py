"""What only Spark can compute of a row, as columns that it adds to the rows it publishes.

An `Opaque` part of a condition on one relation becomes a column of its own: a truth value, or whatever
type the expression has. The kernel reads the column in place of the expression.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.algebra import codec
from weft.algebra.predicates import Linear, PredicateSet
from weft.algebra.predicates.slots import moved, plain_name, slots_in
from weft.algebra.query import quote
from weft.algebra.scalar import Opaque, walk
from weft.algebra.types import SqlType


@dataclass(frozen=True, slots=True)
class Bit:
    """A column that Spark computes: its name, and Spark SQL over the relation's columns."""

    name: str
    sql: str
    type: SqlType


def bit_of(opaque: Opaque) -> Bit:
    """The column of an expression over one slot; the same for every slot of a relation.

    >>> bit_of(Opaque("upper(`1.a`)", ("1.a",), "string")).sql
    'upper(`a`)'
    """
    (slot,) = slots_in(opaque) or {0}
    at_zero = moved(opaque, {slot: 0})
    assert isinstance(at_zero, Opaque)
    sql = at_zero.sql
    for name in at_zero.names:
        sql = sql.replace(quote(name), quote(plain_name(name)))
    return Bit(f"#{codec.digest((sql, opaque.type))}", sql, opaque.type)


def bits_of(predicates: PredicateSet, slot: int = 0) -> list[Bit]:
    """The columns that the conditions need of one slot, also where they read others, too.

    >>> from weft.algebra.predicates.predicate_set import TRUE
    >>> bits_of(TRUE, 1)
    []
    """
    bits: dict[str, Bit] = {}
    for predicate in predicates.predicates:
        for literal in predicate.literals:
            if isinstance(literal.subject, Linear):
                continue
            for part in walk(literal.subject):
                if isinstance(part, Opaque) and slots_in(part) <= {slot}:
                    bit = bit_of(part)
                    bits[bit.name] = bit
    return list(bits.values())
