"""Which aggregation sets are published, and for whom: one set serves several inputs (docs/decisions/0019).

A set by (a, b) gives the one by (a) by adding up entries of equal a. A set of all rows with a *signature*, a bit for each of some selections, gives
that of one selection by its entries with the bit. So a set serves an input of the same relation and pane if it has the input's attributes, aggregates and
selection. Sets that are served together are united: the attributes and aggregates of all, of the rows that any of them selects, with a bit for each selection.
Panes must be equal, not only nested: a row that came too late for a short pane may be in time for a long one, and results must not depend on
what is shared.

Preconditions: a set with an expression that can raise an error is left alone, since its failure must name its own queries; so is one with a
sketch, whose estimates depend on how it was combined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.algebra.condition import Condition
from weft.algebra.joinagg.sources import MOST_SELECTIONS, Source
from weft.algebra.scalar import Expression
from weft.algebra.types import BOOLEAN

Price = Callable[[Source, Sequence[Source]], float]
"""What it costs to publish a set and to make the sets of some sources of it."""


def serves(provider: Source, source: Source) -> bool:
    """Whether the panes of a source can be made of those of another."""
    return provider == source or (
        _alike(provider, source)
        and set(source.attributes) <= set(provider.attributes)
        and set(source.aggregates) <= set(provider.aggregates)
        and (
            source.predicate in provider.selections
            if provider.selections and source.predicate is not None
            else source.predicate == provider.predicate
        )
    )


def _alike(one: Source, other: Source) -> bool:
    """Whether two sources may be served together."""
    alike = (one.relation, one.pane) == (other.relation, other.pane)
    return alike and not any(s.can_raise or s.has_sketches for s in (one, other))


def providers(
    sources: Sequence[Source], known: Mapping[str, Source], price: Price
) -> dict[str, Source]:
    """By the id of each source, the set that is published for it: itself, or one that serves others, too. Those that are `known` stay
    as they are. Each source goes where it adds least to the price. A source whose own set is published has that one: no file may have panes of a
    source that another set serves, or they would count twice. Time: O(n²) prices for n sources."""
    chosen = {source.id: known[source.id] for source in sources if source.id in known}
    of_others = {provider.id for provider in known.values()}
    chosen = {s.id: s for s in sources if s.id in of_others} | chosen
    elsewhere = {name for name, provider in known.items() if provider.id != name}
    there: dict[str, tuple[Source, list[Source]]] = {}
    for source in sources:
        if source.id in known:
            provider = known[source.id]
            there.setdefault(provider.id, (provider, []))[1].append(source)
    groups: list[_Group] = []
    rest = [source for source in sources if source.id not in chosen]
    for source in sorted(rest, key=lambda s: (-len(s.attributes), s.id)):
        alone = _Group(source, [source], price(source, [source]))
        added, best = alone.price, alone
        for provider, served in there.values():
            if serves(provider, source):
                more = price(provider, [*served, source]) - price(provider, served)
                if more < added:
                    added, best = more, _Group(provider, [source], more)
        place: int | None = None
        for number, group in enumerate(groups):
            larger = group.with_one_more(source, price)
            if larger is None or larger.provider.id in elsewhere:
                continue
            if larger.price - group.price < added:
                added, best, place = larger.price - group.price, larger, number
        if place is not None:
            groups[place] = best
        elif best is alone:
            groups.append(alone)
        else:
            chosen[source.id] = best.provider
    for group in groups:
        chosen |= {source.id: group.provider for source in group.served}
    published = {group.provider.id for group in groups}
    return chosen | {source.id: source for source in rest if source.id in published}


@dataclass(frozen=True)
class _Group:
    """Sources that are served by one set, and what that costs."""

    provider: Source
    served: Sequence[Source]
    price: float

    def with_one_more(self, source: Source, price: Price) -> _Group | None:
        served = [*self.served, source]
        provider = united(served) if _alike(self.provider, source) else None
        return None if provider is None else _Group(provider, served, price(provider, served))


def united(sources: Sequence[Source]) -> Source | None:
    """The set that serves all sources of one relation and pane; None if there are too many selections."""
    first = sources[0]
    attributes = tuple(dict.fromkeys(a for source in sources for a in source.attributes))
    aggregates = tuple(dict.fromkeys(a for source in sources for a in source.aggregates))
    predicates = tuple(dict.fromkeys(source.predicate for source in sources))
    selections = tuple(one for one in predicates if one is not None)
    if len(predicates) == 1:
        return replace(first, attributes=attributes, aggregates=aggregates)
    if len(selections) > MOST_SELECTIONS:
        return None
    predicate = None if None in predicates else _any_of(selections)
    return Source(first.relation, first.pane, attributes, predicate, aggregates, selections)


def _any_of(selections: Sequence[Expression]) -> Expression:
    columns = sorted({name for one in selections for name in one.columns})
    sql = " OR ".join(f"({one.sql})" for one in selections)
    return Expression(sql, BOOLEAN, tuple(columns), condition=Condition(clauses=(f"({sql})",)))
