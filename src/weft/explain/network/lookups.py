"""Lookups in tables as people read them, of a network's relations and of windowed aggregates: `left join accounts on sender = accounts.account`.

A column that comes from a table is called by the table's name, `accounts.owner`; of a table that is looked up
more than once the later ones are numbered, `accounts_2.owner`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from weft.algebra.network.lookup import FOUND, Lookup, prefix
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import QUOTED, column_name, plain_name, renamed_by, slot_of
from weft.algebra.scalar import Scalar, quote
from weft.explain.network.conditions import conditions, conjunction, scalar_text

Lookups = tuple[Lookup, ...]
_WORDS = {"inner": "join", "left": "left join", "mark": "exists in"}


@dataclass(frozen=True)
class Shown:
    """Predicates and expressions over relations that may have lookups, one for each slot."""

    lookups: tuple[Lookups, ...]

    def conditions(self, predicates: PredicateSet, names: Sequence[str]) -> list[str]:
        """Each OR predicate as a condition; `names` are those of the slots."""
        return conditions(predicates.renamed(self._column), names)

    def scalar(self, scalar: Scalar, names: Sequence[str]) -> str:
        return scalar_text(renamed_by(scalar, self._column), names)

    def column(self, name: str) -> str:
        """A column's name within its relation."""
        return plain_name(self._column(name))

    def _column(self, name: str) -> str:
        slot = slot_of(name)
        return column_name(slot, _column(self.lookups[slot], plain_name(name)))


def of_relations(plan: NetworkPlan, relations: Sequence[str]) -> Shown:
    """How the columns of a node's slots are shown."""
    inputs = plan.looked_up
    return Shown(tuple(inputs[name].lookups if name in inputs else () for name in relations))


def of_query(query: JoinQuery) -> Shown:
    """How the columns of a query's inputs are shown, and of its partner's behind them."""
    return Shown(tuple(entry.lookups for entry in query.every_input))


def with_table_names(sql: str, lookups: Lookups) -> str:
    """Spark SQL over rows with lookups, in which a table's column is called by the table's name.

    >>> accounts = Lookup("left", "accounts", PredicateSet())
    >>> with_table_names("(`accounts@0.owner` = '`accounts@0.owner`')", (accounts,))
    "(`accounts`.`owner` = '`accounts@0.owner`')"
    """
    if not lookups:
        return sql

    def named(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        return ".".join(map(quote, _path(lookups, match["name"].replace("``", "`"))))

    return QUOTED.sub(named, sql)


def _column(lookups: Lookups, name: str) -> str:
    return ".".join(_path(lookups, name))


def _path(lookups: Lookups, name: str) -> tuple[str, ...]:
    """The tables through which a column comes, and its name."""
    for number, lookup in enumerate(lookups):
        beginning = prefix(lookup.table, number)
        if name.startswith(beginning):
            rest = name.removeprefix(beginning)
            inner = ("found",) if rest == FOUND else _path(lookup.lookups, rest)
            return table_name(lookups, number), *inner
    return (name,)


def table_name(lookups: Lookups, number: int) -> str:
    """What the table of a lookup is called."""
    table = lookups[number].table
    again = sum(lookup.table == table for lookup in lookups[:number])
    return f"{table}_{again + 1}" if again else table


def lookup_lines(lookups: Lookups) -> list[tuple[str, str]]:
    """Each lookup: what it does, and in which table by which conditions."""
    lines: list[tuple[str, str]] = []
    for number, lookup in enumerate(lookups):
        table = table_name(lookups, number)
        texts = Shown((lookups[:number], lookup.lookups)).conditions(lookup.predicates, ("", table))
        text = f"{table} on {conjunction(texts)}" if texts else table
        inner = [f"{words} {rest}" for words, rest in lookup_lines(lookup.lookups)]
        lines.append((_WORDS[lookup.kind], text + (f", with {', '.join(inner)}" if inner else "")))
    return lines
