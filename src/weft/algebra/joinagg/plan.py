"""The plan of all aggregation joins: for each of them which inputs are aggregated before the join."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from weft.algebra.frozen import FrozenMapping
from weft.algebra.joinagg.matches import matches_id
from weft.algebra.joinagg.query import AggregationJoin


@dataclass(frozen=True)
class AggregationPlan:
    """`early` says by query of every input whether it is aggregated before the join. `complete_from` is by query the
    first instant whose windows are complete, once it is known."""

    version: int
    queries: tuple[AggregationJoin, ...] = ()
    early: Mapping[str, tuple[bool, ...]] = field(default_factory=FrozenMapping)
    following: Mapping[str, tuple[bool, ...]] = field(default_factory=FrozenMapping)
    """The same of queries that are switching to another plan."""
    complete_from: Mapping[str, int] = field(default_factory=FrozenMapping)
    matched: Mapping[str, tuple[int, ...]] = field(default_factory=FrozenMapping)
    """By query the late inputs that the network joins, if it does (`matches`)."""

    def __post_init__(self) -> None:
        for name in ("early", "following", "complete_from", "matched"):
            if not isinstance(getattr(self, name), FrozenMapping):
                object.__setattr__(self, name, FrozenMapping(getattr(self, name)))

    @cached_property
    def query_by_id(self) -> dict[str, AggregationJoin]:
        return {query.id: query for query in self.queries}

    @cached_property
    def query_by_matches(self) -> dict[str, AggregationJoin]:
        """By id of the network's query for matches, the query that they are for."""
        return {matches_id(name, s): self.query_by_id[name] for name, s in self.matched.items()}

    def without(self, names: Collection[str], version: int) -> AggregationPlan:
        """The plan for fewer queries."""
        return replace(
            self,
            version=version,
            queries=tuple(query for query in self.queries if query.id not in names),
            early={name: bits for name, bits in self.early.items() if name not in names},
            following={name: bits for name, bits in self.following.items() if name not in names},
            complete_from={n: at for n, at in self.complete_from.items() if n not in names},
            matched={name: slots for name, slots in self.matched.items() if name not in names},
        )
