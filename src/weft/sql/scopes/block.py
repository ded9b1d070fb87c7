"""What must hold of the rows that a query reads, as a tree of blocks.

The outermost block holds WHERE, and ON and USING of inner joins. The optional side of a LEFT JOIN, and a
subquery in a condition, are blocks of their own: what holds there decides which rows of their tables match,
not which rows of the query remain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from weft.algebra.network.lookup import FOUND
from weft.algebra.predicates.slots import column_name
from weft.algebra.query import quote
from weft.algebra.scalar import Call, Ref, Scalar
from weft.algebra.scalar import Literal as Constant
from weft.algebra.types import BOOLEAN
from weft.sql.reading.syntax import SyntaxNode
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.scope import Column
from weft.sql.typing.coercion import Typed


class Condition(NamedTuple):
    """A condition that rows must meet: an expression over its own scope."""

    rows: Rows
    node: SyntaxNode
    clause: str


class Pair(NamedTuple):
    """Two columns that must be equal, and the token that says so: of USING or NATURAL, or of a set
    operation. Of the latter NULL equals NULL."""

    left: Typed
    right: Typed
    at: int
    words: str = "joined by USING"
    null_safe: bool = False


BlockKind = Literal["all", "left", "mark"]


@dataclass(slots=True)
class Block:
    """Conditions on the inputs of one block, and the tables that are looked up for their rows. Of the
    outermost block (`all`) all rows count, of a `mark` only whether there are any."""

    kind: BlockKind = "all"
    conditions: list[Condition] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    tables: list[OptionalTables] = field(default_factory=list)
    tests: list[Scalar] = field(default_factory=list)
    """Conditions that are bound already: those of LEFT SEMI JOIN and LEFT ANTI JOIN."""


@dataclass(frozen=True, slots=True)
class OptionalTables:
    """Tables whose rows may match a row or not: the optional side of a LEFT JOIN (`left`), or what a
    subquery in a condition reads (`mark`), which may be streams, too."""

    slots: range
    """The inputs that are its tables."""
    block: Block
    words: str
    """What the query calls it, for people: `LEFT JOIN`, `IN (SELECT …)`."""
    at: int
    compared: tuple[Typed, Typed] | None = None
    """Of IN: the value, and what it must be equal to."""

    @property
    def found(self) -> Typed:
        """Whether there is a match."""
        return found(self.slots[0])


def found(slot: int) -> Typed:
    """Whether a row has a match in the tables that begin with a slot."""
    name = column_name(slot, FOUND)
    return Typed(quote(name), BOOLEAN, False, Ref(name, BOOLEAN))


def if_found(column: Column, slot: int) -> Column:
    """A column of optional tables: NULL where there is no match. A plain column is NULL by itself."""
    value = column.value
    if isinstance(value.scalar, Ref):
        return column
    match = found(slot)
    assert match.scalar is not None
    scalar = None
    if value.scalar is not None:
        null = Constant(None, column.type)
        scalar = Call("case", (match.scalar, value.scalar, null), column.type)
    sql = f"(CASE WHEN {match.sql} THEN {value.sql} END)"
    optional = Typed(sql, column.type, value.can_raise, scalar)
    name = column_name(slot, FOUND)
    return Column(column.name, column.type, optional, (*column.reads, name))
