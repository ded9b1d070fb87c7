"""Statements that are compiled once and executed many times.

SQLAlchemy prepares every execution of a statement anew, which takes longer than a look-up itself. Values
are numbers and texts, which both databases take as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.sql.compiler import SQLCompiler

from weft.algebra.frozen import FrozenMapping


@dataclass(frozen=True)
class Statement:
    """The text for a database, and what its parameters are called."""

    text: str
    names: tuple[str, ...] | None
    """The parameters in their order; None if the database takes them by name."""
    constants: FrozenMapping[str, Any]
    """Parameters that are the same in every execution."""

    def rows(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any]:
        """What the statement selects."""
        return connection.exec_driver_sql(self.text, self._parameters(values)).all()

    def execute_many(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute the statement for every row."""
        connection.exec_driver_sql(self.text, [self._parameters(row) for row in rows])

    def _parameters(self, values: Mapping[str, Any]) -> Any:
        given = {**self.constants, **values}
        return given if self.names is None else tuple([given[name] for name in self.names])


def compiled(
    statement: sa.Select[Any] | sa.CompoundSelect[Any] | sa.Insert, dialect: Dialect
) -> Statement:
    """A statement for a database. What has no value in it must be given with every execution."""
    compiler = statement.compile(dialect=dialect)
    assert isinstance(compiler, SQLCompiler)
    constants = {name: value for name, value in compiler.params.items() if value is not None}
    names = tuple(compiler.positiontup or ()) if compiler.positional else None
    return Statement(compiler.string, names, FrozenMapping(constants))


@lru_cache(maxsize=64)
def insertion(table: sa.Table, dialect: Dialect) -> Statement:
    """Writes rows of a table; those that are there already are equal, and stay."""
    insert = postgresql.insert if dialect.name == "postgresql" else sqlite.insert
    return compiled(insert(table).on_conflict_do_nothing(), dialect)
