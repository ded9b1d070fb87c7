"""Whether conditions connect all inputs of a query: if not, every row would be joined with every other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.sql.joins.bound import BoundBlock, BoundOptional
from weft.sql.scopes.sources import Sources


def check_connected(
    sources: Sources, block: BoundBlock, elsewhere: Iterable[frozenset[int]] = ()
) -> None:
    """Raises if the inputs fall into parts that no condition connects. What a subquery in a condition
    reads belongs to the rows that it is asked of. `elsewhere` are inputs that conditions outside of the block
    connect."""
    if block.predicates.never:
        return
    edges = [predicate.slots for predicate in block.predicates.predicates if predicate.slots]
    edges += [*(frozenset(pair) for pair in sources.crossed), *elsewhere]
    for tables in _all_optional(block):
        if tables.kind == "mark" or tables.block.predicates.never:
            edges.append(tables.block.slots | {block.members[0]})
        edges += [predicate.slots for predicate in tables.block.predicates.predicates]
    part_of = list(range(len(sources.read)))
    for first, *others in (sorted(edge) for edge in edges if edge):
        for other in others:
            kept, gone = part_of[first], part_of[other]
            part_of = [kept if part == gone else part for part in part_of]
    for slot, entry in enumerate(sources.read):
        if part_of[slot] != part_of[0]:
            left = [entry.alias for entry, part in zip(sources.read, part_of) if part == part_of[0]]
            raise sources.source.error(
                "CARTESIAN", entry.at, left=", ".join(left), right=entry.alias
            )


def _all_optional(block: BoundBlock) -> Iterator[BoundOptional]:
    for tables in block.optional:
        yield tables
        yield from _all_optional(tables.block)
