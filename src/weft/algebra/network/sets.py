"""A query of several filters and joins, whose rows are put together: UNION ALL and UNION.

Its *branches* are join queries with equal column names and types. They have the id of the whole. The inputs
of the whole are those of its branches, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeVar

from weft.algebra.network.query import JoinInput, JoinQuery
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.algebra.query import OutputColumn
from weft.algebra.types import SqlType
from weft.errors import SqlError

_WHY_NOT: Final = (
    "windowed aggregates use what state holds by themselves (see complete_from), and queries that fall back "
    "read their own source"
)


@dataclass(frozen=True)
class SetQuery:
    """The rows of all branches, in any order."""

    id: str
    name: str
    sql: str
    branches: tuple[JoinQuery, ...]
    distinct_in: tuple[int | None, ...]
    """For every branch the number of the set that its rows go to: a set shows equal rows once. None:
    all rows of the branch are shown. The numbers begin with 0."""
    backfill: bool = False
    """Whether it sees the rows that history holds when it is added, too."""

    def __post_init__(self) -> None:
        if any(branch.id != self.id for branch in self.branches):
            named = tuple(replace(branch, id=self.id) for branch in self.branches)
            object.__setattr__(self, "branches", named)

    @property
    def shown_name(self) -> str:
        """What a reader is shown."""
        return self.name

    @property
    def members(self) -> tuple[str, ...]:
        """No windowed aggregates run over a union."""
        return ()

    @property
    def inputs(self) -> tuple[JoinInput, ...]:
        return tuple(entry for branch in self.branches for entry in branch.inputs)

    @property
    def every_input(self) -> tuple[JoinInput, ...]:
        """The inputs of the branches and of their partners."""
        return tuple(entry for branch in self.branches for entry in branch.every_input)

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """The result columns. Their values are those of the first branch."""
        return self.branches[0].columns

    @property
    def output_types(self) -> tuple[SqlType, ...]:
        return self.branches[0].output_types

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The streams and tables that the query reads, each once."""
        return tuple(dict.fromkeys(name for branch in self.branches for name in branch.relations))

    def columns_of(self, relation: str) -> frozenset[str]:
        """The columns of a relation that the query reads."""
        return frozenset().union(*(branch.columns_of(relation) for branch in self.branches))

    @cached_property
    def output_names(self) -> frozenset[str]:
        """The columns that its result columns are made of, as `slot.column` over all inputs."""
        return frozenset(
            column_name(slot_of(name) + first, plain_name(name))
            for first, branch in placed(self)
            for name in branch.output_names
        )


NetworkQuery = JoinQuery | SetQuery
"""A query that the network computes."""


def placed(query: NetworkQuery) -> Iterator[tuple[int, JoinQuery]]:
    """The branches of a query, each with the place of its first input among those of the whole."""
    first = 0
    for branch in query.branches:
        yield first, branch
        first += len(branch.inputs)


_Bound = TypeVar("_Bound")


def backfilled(query: _Bound) -> _Bound:
    """A filter or join that sees the rows of before its registration, too. Other queries are refused."""
    if not isinstance(query, JoinQuery | SetQuery):
        raise SqlError("BAD_BACKFILL", detail=_WHY_NOT)
    return replace(query, backfill=True)
