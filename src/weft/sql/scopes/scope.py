"""The relations of one FROM, and what a name in the query means there.

A column of a subquery is the expression that the subquery selects, over the columns of the streams and
tables themselves. So a query over subqueries that select, project or rename is bound as if it had been
written flat, and is shared with the flat form.

In a join the columns of streams and tables are named by slot (`weft.algebra.predicates.slots`), else by
their own names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from weft.algebra.predicates.slots import column_name
from weft.algebra.query import Field, quote
from weft.algebra.scalar import Ref
from weft.algebra.types import SqlType
from weft.sql.typing.coercion import Typed

_NESTED = ("struct", "map", "array", "variant")


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a query can name: its value over the columns `reads` of streams and tables."""

    name: str
    type: SqlType
    value: Typed
    reads: tuple[str, ...]
    is_stored: bool = True
    """Whether the contents of a table are kept with this column."""


class Meaning(NamedTuple):
    """A column, and the fields inside it that the name goes on with."""

    column: Column
    path: tuple[str, ...]


@dataclass(frozen=True)
class Relation:
    """A stream, table or subquery of FROM. `qualifier`, in lower case, may stand before its columns;
    it is empty for a subquery without an alias."""

    qualifier: str
    columns: tuple[Column, ...]
    by_name: Mapping[str, tuple[Column, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", _by_name(self.columns))


@dataclass(frozen=True)
class Scope:
    """The relations that names of a query can mean.

    `visible` holds the columns that a name without qualifier can mean, and that `*` stands for, in
    order: USING and NATURAL show a pair of joined columns once. `base` holds the columns of streams
    and tables under the names that bound expressions use.
    """

    relations: tuple[Relation, ...]
    visible: tuple[Column, ...]
    base: tuple[Field, ...]
    _visible_by_name: Mapping[str, tuple[Column, ...]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_visible_by_name", _by_name(self.visible))

    def meanings(self, parts: tuple[str, ...]) -> list[Meaning]:
        """All columns that a name can mean; a qualifier goes before a column with fields."""
        qualifier, *rest = (part.lower() for part in parts)
        if rest:
            qualified = [
                Meaning(column, parts[2:])
                for relation in self.relations
                if relation.qualifier == qualifier
                for column in relation.by_name.get(rest[0], ())
            ]
            if qualified:
                return qualified
        return [
            Meaning(column, parts[1:])
            for column in self._visible_by_name.get(qualifier, ())
            if not rest or column.type.startswith(_NESTED)
        ]

    def starred(self, qualifier: tuple[str, ...]) -> tuple[Column, ...] | None:
        """The columns that `*` or `t.*` stands for; None if there is no relation t."""
        if not qualifier:
            return self.visible
        for relation in self.relations:
            if len(qualifier) == 1 and relation.qualifier == qualifier[0].lower():
                return relation.columns
        return None

    @property
    def listed(self) -> str:
        """The columns by their names, for people; with qualifiers where there are several relations."""
        if len(self.relations) == 1:
            return ", ".join(column.name for column in self.visible)
        return ", ".join(
            f"{relation.qualifier}.{column.name}" if relation.qualifier else column.name
            for relation in self.relations
            for column in relation.columns
        )

    @property
    def described(self) -> str:
        """The relations by their names, for people."""
        names = [relation.qualifier or "the subquery" for relation in self.relations]
        return "' or '".join(dict.fromkeys(names))


def scope_of(relation: Relation, base: tuple[Field, ...]) -> Scope:
    """The scope of one relation."""
    return Scope((relation,), relation.columns, base)


@lru_cache(maxsize=4096)
def base_columns(fields: tuple[Field, ...], slot: int | None) -> tuple[Column, ...]:
    """The columns of a stream or table: under their own names, or by the slot of a join's input."""
    columns: list[Column] = []
    for base in fields:
        name = base.name if slot is None else column_name(slot, base.name)
        value = Typed(quote(name), base.type, False, Ref(name, base.type))
        columns.append(Column(base.name, base.type, value, (name,)))
    return tuple(columns)


def _by_name(columns: tuple[Column, ...]) -> dict[str, tuple[Column, ...]]:
    by_name: dict[str, tuple[Column, ...]] = {}
    for column in columns:
        name = column.name.lower()
        by_name[name] = (*by_name.get(name, ()), column)
    return by_name
