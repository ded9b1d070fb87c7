"""Which aggregation sets are published, and for whom: a finer set serves a coarser one (docs/decisions/0019).

A set by (a, b) gives the one by (a) by adding up entries of equal a. So it serves it if both are of the same relation, selection and
pane, and if it has the partials of the coarser one, too. Sets that are served together are united: the attributes of the finest, the aggregates of
all. Panes must be equal, not only nested: a row that came too late for a short pane may be in time for a long one, and results must not depend on
what is shared.

Preconditions: a set with an expression that can raise an error is left alone, since its failure must name its own queries; so is one with a
sketch, whose estimates depend on how it was combined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from weft.algebra.joinagg.sources import Source

Pays = Callable[[Source, Source], bool]
"""Whether it pays that the first source, which is finer, serves the second."""


def serves(finer: Source, source: Source) -> bool:
    """Whether the panes of a source can be made of those of another."""
    return is_finer(finer, source) and set(source.aggregates) <= set(finer.aggregates)


def is_finer(finer: Source, source: Source) -> bool:
    """Whether entries of one source could be told apart by another, apart from aggregates."""
    alike = (finer.relation, finer.pane, finer.predicate)
    return (
        alike == (source.relation, source.pane, source.predicate)
        and set(source.attributes) <= set(finer.attributes)
        and not any(s.can_raise or s.has_sketches for s in (finer, source))
    )


def providers(
    sources: Sequence[Source], known: Mapping[str, Source], pays: Pays
) -> dict[str, Source]:
    """By the id of each source, the set that is published for it: itself, or a finer one. Those that are `known` stay
    as they are. Time: O(n²) for n sources."""
    chosen = {source.id: known[source.id] for source in sources if source.id in known}
    published = list({provider.id: provider for provider in chosen.values()}.values())
    groups: list[list[Source]] = []
    rest = [source for source in sources if source.id not in chosen]
    for source in sorted(rest, key=lambda s: (-len(s.attributes), s.id)):
        ready = [p for p in published if serves(p, source) and pays(p, source)]
        if ready:
            chosen[source.id] = min(ready, key=_coarseness)
            continue
        fitting = [g for g in groups if is_finer(g[0], source) and pays(g[0], source)]
        if fitting:
            min(fitting, key=lambda group: _coarseness(group[0])).append(source)
        else:
            groups.append([source])
    for group in groups:
        provider = _united(group)
        chosen |= {source.id: provider for source in group}
    return chosen


def _coarseness(source: Source) -> tuple[int, str]:
    return len(source.attributes), source.id


def _united(group: Sequence[Source]) -> Source:
    """The finest source, which stands first, with the aggregates of all."""
    aggregates = tuple(dict.fromkeys(a for source in group for a in source.aggregates))
    return (
        group[0] if aggregates == group[0].aggregates else replace(group[0], aggregates=aggregates)
    )
