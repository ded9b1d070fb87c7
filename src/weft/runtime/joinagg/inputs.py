"""The inputs of the planned queries: of what each is made, how long it is needed, and who shares it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.algebra.joinagg.plan import AggregationPlan
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import Source, source_of
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.query import StreamSchema
from weft.runtime.joinagg.served import Key
from weft.runtime.planning.versions import ALWAYS


@dataclass(frozen=True)
class Use:
    """An input of a query that is a stream."""

    query: AggregationJoin
    slot: int
    source: Source
    early: bool

    @property
    def window(self) -> InputWindow:
        window = self.query.inputs[self.slot].window
        assert window is not None
        return window

    @property
    def key(self) -> Key:
        return ("panes" if self.early else "rows", self.source.id)

    def horizon(self, watermark: int) -> int:
        """Panes that end by this time count at no instant after the watermark."""
        window = self.window
        if window.kind == "landmark":
            return ALWAYS
        if window.kind == "tumbling":
            return watermark // window.length * window.length
        return watermark + self.source.pane - window.length


class Inputs:
    """All inputs of a plan, by what they are made of."""

    def __init__(
        self,
        plan: AggregationPlan,
        schemas: Mapping[str, StreamSchema],
        provider: Callable[[Source], Source | None] = lambda source: None,
    ) -> None:
        self.plan, self._schemas = plan, schemas
        self._provider = provider
        self.uses: dict[str, tuple[Use | None, ...]] = {
            query.id: _uses(query, plan.early[query.id]) for query in plan.queries
        }
        """By query, its inputs; None: a table."""
        self.following: dict[str, tuple[Use | None, ...]] = {
            query.id: _uses(query, plan.following[query.id])
            for query in plan.queries
            if query.id in plan.following
        }
        """The same by the plans that queries are switching to."""

    def __iter__(self) -> Iterator[Use]:
        of_all = (*self.uses.values(), *self.following.values())
        return (use for uses in of_all for use in uses if use is not None)

    @cached_property
    def by_key(self) -> dict[Key, list[Use]]:
        """The inputs that share a source."""
        grouped: dict[Key, list[Use]] = {}
        for use in self:
            grouped.setdefault(use.key, []).append(use)
        return grouped

    @cached_property
    def sources(self) -> dict[Key, Source]:
        return {key: uses[0].source for key, uses in self.by_key.items()}

    @cached_property
    def finer(self) -> dict[str, Source]:
        """By source of early inputs that a finer set serves: that set."""
        providers = {
            source.id: self._provider(source)
            for (kind, _), source in self.sources.items()
            if kind == "panes"
        }
        return {name: p for name, p in providers.items() if p is not None and p.id != name}

    def stream(self, source: Source) -> StreamSchema:
        return self._schemas[source.relation]

    def horizons(self, watermark: int, before: Mapping[Key, int]) -> dict[Key, int]:
        """By source, the time up to which panes are gone. It never falls."""
        return {
            key: max(min(use.horizon(watermark) for use in uses), before.get(key, ALWAYS))
            for key, uses in self.by_key.items()
        }


def _uses(query: AggregationJoin, early: Sequence[bool]) -> tuple[Use | None, ...]:
    return tuple(
        None if entry.window is None else Use(query, slot, source_of(query, slot), early[slot])
        for slot, entry in enumerate(query.inputs)
    )
