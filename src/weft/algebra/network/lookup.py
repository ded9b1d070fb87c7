"""What a relation's rows get from tables: left joins, semi-joins, and joins of one stream with tables.

A *lookup* finds for each row of a relation the rows of a table that match it. `inner` and `left` put their
columns beside the row's own, once for every match; `left` keeps a row without a match, with NULLs. `mark`
adds one truth value: whether there is a match (EXISTS), or whether a value is among others (IN), which is
NULL where SQL cannot know. A row depends on no other row of its relation, so a relation with lookups
is a relation like any other: it is selected, joined and shared under a name of its own.

The columns of lookup number i in table t are called `t@i.column`; `t@i.#found` says whether there was a
match. A table may have lookups, too, which come first: their columns are `t@i.u@j.column`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from weft.algebra import codec
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import plain_name, slot_of

LookupKind = Literal["inner", "left", "mark"]
FOUND: Final = "#found"
MARKER: Final = "@"
"""No column of a relation with lookups has this in its name."""
_PREFIX: Final = re.compile(r".*@\d+\.", re.DOTALL)


@dataclass(frozen=True)
class Lookup:
    """The rows of a table that match a row. In the predicates the row is slot 0, the table's slot 1."""

    kind: LookupKind
    table: str
    predicates: PredicateSet
    unknown: tuple[PredicateSet, ...] = ()
    """Of a mark without a match: it is NULL if a row of the table passes one of these."""
    lookups: tuple[Lookup, ...] = ()
    """The lookups of the table's rows."""

    @property
    def sets(self) -> tuple[PredicateSet, ...]:
        """All its predicate sets."""
        return (self.predicates, *self.unknown)

    def names(self, slot: int) -> set[str]:
        """The columns that it reads of the row (slot 0), or of the table (slot 1)."""
        names = (name for predicates in self.sets for name in predicates.names)
        return {plain_name(name) for name in names if slot_of(name) == slot}


def prefix(table: str, number: int) -> str:
    """What the names of a lookup's columns begin with.

    >>> prefix("accounts", 0) + "owner"
    'accounts@0.owner'
    """
    return f"{table}{MARKER}{number}."


def split_prefix(column: str) -> tuple[str, str]:
    """The part of a column's name that says through which lookups it comes, and its name there.

    >>> split_prefix("accounts@0.banks@1.name"), split_prefix("amount")
    (('accounts@0.banks@1.', 'name'), ('', 'amount'))
    """
    match = _PREFIX.match(column)
    return ("", column) if match is None else (match[0], column[match.end() :])


def relation_name(relation: str, lookups: Sequence[Lookup]) -> str:
    """The name of a relation with lookups in a network."""
    return f"{relation}{MARKER}{codec.digest(lookups)}" if lookups else relation


def tables_of(lookups: Iterable[Lookup]) -> Iterator[str]:
    """The tables that lookups read."""
    for lookup in lookups:
        yield lookup.table
        yield from tables_of(lookup.lookups)


def columns_read(
    relation: str, lookups: Sequence[Lookup], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """The columns of the relation and of the tables, as (relation, column), that somebody reads who
    reads these columns of the relation with its lookups."""
    wanted = set(names)
    for number, lookup in reversed(list(enumerate(lookups))):
        beginning = prefix(lookup.table, number)
        found = {name for name in wanted if name.startswith(beginning)}
        wanted = (wanted - found) | lookup.names(0)
        of_table = {name.removeprefix(beginning) for name in found} - {FOUND}
        yield from columns_read(lookup.table, lookup.lookups, of_table | lookup.names(1))
    yield from ((relation, name) for name in wanted)


def path(relation: str, lookups: Sequence[Lookup], column: str) -> tuple[str, str]:
    """The registered relation that a column of a relation with lookups comes from, and its name there."""
    for number, lookup in enumerate(lookups):
        beginning = prefix(lookup.table, number)
        if column.startswith(beginning):
            return path(lookup.table, lookup.lookups, column.removeprefix(beginning))
    return relation, column
