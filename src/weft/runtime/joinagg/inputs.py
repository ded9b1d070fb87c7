"""The inputs of the planned queries: of what each is made, how long it is needed, and who shares it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.algebra.joinagg.plan import AggregationPlan
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sources import Source, row_store, selection, source_of, united
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.query import StreamSchema
from weft.kernel.joinagg.updating import can_update
from weft.runtime.joinagg.served import Key
from weft.runtime.planning.versions import ALWAYS

MANY_PANES = 8
"""Windows of so many panes have sets that are updated from step to step."""


@dataclass(frozen=True)
class Use:
    """An input of a query that is a stream."""

    query: AggregationJoin
    slot: int
    source: Source
    early: bool
    stream: StreamSchema

    @property
    def window(self) -> InputWindow:
        window = self.query.inputs[self.slot].window
        assert window is not None
        return window

    @cached_property
    def key(self) -> Key:
        """Under which it is kept: panes by source, rows by what late inputs share."""
        return ("panes", self.source.id) if self.early else ("rows", row_store(self.source))

    @property
    def served_key(self) -> Key:
        """Under which it is published."""
        return ("panes" if self.early else "rows", self.source.id)

    @cached_property
    def selection(self) -> str | None:
        """The attribute of shared rows that says which are its own; None: all are."""
        if self.early or self.source.predicate is None:
            return None
        return selection(self.source.predicate).name

    def horizon(self, mark: int) -> int:
        """Panes that end by this time count at no instant after the mark."""
        window = self.window
        if window.kind == "landmark":
            return ALWAYS
        if window.kind == "tumbling":
            return mark // window.length * window.length
        return mark + self.source.pane - window.length


def is_updated(window: InputWindow, source: Source) -> bool:
    """Whether the aggregation set of an early input is updated from step to step (`kernel/joinagg/updating`)."""
    many_panes = window.kind == "landmark" or window.length >= MANY_PANES * source.pane
    return many_panes and can_update(source.partials(None))


class Inputs:
    """All inputs of a plan, by what they are made of."""

    def __init__(
        self,
        plan: AggregationPlan,
        schemas: Mapping[str, StreamSchema],
        provider: Callable[[Source], Source | None] = lambda source: None,
    ) -> None:
        self.plan, self.schemas = plan, schemas
        self._provider = provider
        self.uses: dict[str, tuple[Use | None, ...]] = {
            query.id: self._of(query, plan.early[query.id]) for query in plan.queries
        }
        """By query, its inputs; None: a table."""
        self.following: dict[str, tuple[Use | None, ...]] = {
            query.id: self._of(query, plan.following[query.id])
            for query in plan.queries
            if query.id in plan.following
        }
        """The same by the plans that queries are switching to."""

    def _of(self, query: AggregationJoin, early: Sequence[bool]) -> tuple[Use | None, ...]:
        return tuple(
            None
            if entry.window is None
            else Use(query, slot, source_of(query, slot), early[slot], self.schemas[entry.relation])
            for slot, entry in enumerate(query.inputs)
        )

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
        """By what is kept, what it holds."""
        return {
            key: uses[0].source
            if key[0] == "panes"
            else united(list({use.source.id: use.source for use in uses}.values()))
            for key, uses in self.by_key.items()
        }

    @cached_property
    def published_as(self) -> dict[Key, frozenset[str]]:
        """By what is kept, the sources that it serves, as streams publish for them."""
        return {key: frozenset(use.source.id for use in uses) for key, uses in self.by_key.items()}

    @cached_property
    def any_of(self) -> dict[Key, tuple[str, ...]]:
        """By rows that are kept, the published columns of truth values of which one must be true; none: all are kept."""
        wanted: dict[Key, tuple[str, ...]] = {}
        for key, uses in self.by_key.items():
            wanted[key] = ()
            predicates = {use.source.predicate for use in uses}
            if key[0] == "rows" and None not in predicates:
                columns = {use.source.id: row_columns(use.source, None).selected for use in uses}
                chosen = (c.name for c in columns.values() if c is not None)
                wanted[key] = tuple(dict.fromkeys(chosen))
        return wanted

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
        return self.schemas[source.relation]

    def horizons(self, marks: Mapping[str, int], before: Mapping[Key, int]) -> dict[Key, int]:
        """By source, the time up to which panes are gone. It never falls. `marks`: by query, the time up to which it is evaluated."""
        return {
            key: max(min(use.horizon(marks[use.query.id]) for use in uses), before.get(key, ALWAYS))
            for key, uses in self.by_key.items()
        }
