"""A query's blocks with their conditions as predicate sets, over the slots of all inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from weft.algebra.network.lookup import LookupKind
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.transitivity import inferred
from weft.algebra.scalar import Call
from weft.algebra.types import BOOLEAN
from weft.sql.fallback import Unshared
from weft.sql.joins.conditions import canonical, conjuncts, equal, with_all_names
from weft.sql.scopes.block import Block, OptionalTables, Pair
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.sources import Sources


@dataclass(frozen=True)
class BoundBlock:
    """Inputs that are joined with each other, what must hold of them, and the optional tables that are
    looked up for their rows."""

    members: tuple[int, ...]
    predicates: PredicateSet
    optional: tuple[BoundOptional, ...]

    @cached_property
    def slots(self) -> frozenset[int]:
        """Its inputs, and those of the tables that are looked up for them."""
        return frozenset(self.members).union(*(tables.block.slots for tables in self.optional))

    @cached_property
    def read(self) -> frozenset[int]:
        """The inputs that its conditions read, also outside of it."""
        of_optional = (tables.read for tables in self.optional)
        return self.predicates.slots.union(*of_optional)


@dataclass(frozen=True)
class BoundOptional:
    """Tables whose rows may match a row or not."""

    kind: LookupKind
    block: BoundBlock
    unknown: tuple[PredicateSet, ...]
    """Of IN: when a row of the tables leaves it open whether there is a match."""
    words: str
    at: int
    not_false: PredicateSet | None = None
    """Of IN over streams: when a row of them matches, or leaves it open."""

    @cached_property
    def read(self) -> frozenset[int]:
        """The inputs outside of it that its conditions read."""
        unknown = (predicates.slots for predicates in self.unknown)
        return self.block.read.union(*unknown) - self.block.slots


def bound_block(sources: Sources, rows: Rows) -> BoundBlock:
    """The outermost block of a query, with what follows from its conditions."""
    inputs = range(len(sources.read))
    bound = _block(sources, sources.block, inputs, rows)
    predicates = inferred(bound.predicates, len(inputs))
    return BoundBlock(bound.members, predicates, bound.optional)


def _block(sources: Sources, block: Block, slots: Iterable[int], rows: Rows) -> BoundBlock:
    predicates = canonical(conjuncts(sources, block, rows))
    optional = tuple(_optional(sources, tables, rows) for tables in block.tables)
    inside = frozenset[int]().union(*(tables.block.slots for tables in optional))
    return BoundBlock(tuple(slot for slot in slots if slot not in inside), predicates, optional)


def _optional(sources: Sources, tables: OptionalTables, rows: Rows) -> BoundOptional:
    if tables.compared is None:
        block = _block(sources, tables.block, tables.slots, rows)
        return BoundOptional(_kind(tables), block, (), tables.words, tables.at)
    parts = conjuncts(sources, tables.block, rows)
    value, item = tables.compared
    match = equal(sources, rows, Pair(value, item, tables.at, f"in {tables.words}"))
    unknown: list[PredicateSet] = []
    not_false = [match]
    for side in (value, item):
        if side.scalar is None:
            raise Unshared(f"{tables.words} of a value that may raise an error", tables.at)
        is_null = with_all_names(sources, Call("is_null", (side.scalar,), BOOLEAN), tables.at)
        predicates = canonical([*parts, is_null])
        if not predicates.never:
            unknown.append(predicates)
            not_false.append(is_null)
    inner = _block(sources, Block("mark", tables=tables.block.tables), tables.slots, rows)
    block = BoundBlock(inner.members, canonical([*parts, match]), inner.optional)
    kind, words, at = _kind(tables), tables.words, tables.at
    if not sources.reads_stream(tables.slots):
        return BoundOptional(kind, block, tuple(unknown), words, at)
    either = not_false[0] if len(not_false) == 1 else Call("or", tuple(not_false), BOOLEAN)
    return BoundOptional(kind, block, tuple(unknown), words, at, canonical([*parts, either]))


def _kind(tables: OptionalTables) -> LookupKind:
    return "left" if tables.block.kind == "left" else "mark"
