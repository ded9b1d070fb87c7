"""What it costs to publish one aggregation set for several inputs (`algebra/joinagg/serving`), in microseconds of a pane.

    PUBLISHED_SET + ENTRY·n + Σ of selections (TOLD_APART·n + DERIVED·(entries of the selection) + Σ of its coarser sets DERIVED·(entries of its finest))

for n published entries. A set with a signature has at most one entry for each group and combination of selections. Selections that follow from the
attributes tell nothing apart, and n is never more than the rows: this bound is used, since nothing says which selections hold together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from weft.algebra.joinagg.query import Attribute
from weft.algebra.joinagg.sources import Source
from weft.algebra.query import quote
from weft.algebra.scalar import Expression
from weft.optimizer.joinagg.weft_cost import ENTRY

DERIVED = 0.2
"""Microseconds for an entry of a set that is added up to a coarser one."""
TOLD_APART = 0.01
"""Microseconds for an entry of a set with a signature, to see whether it is of a selection."""
PUBLISHED_SET = 20_000.0
"""Microseconds of a step for one more set, however small: most often one more node of level 1, so a job or a part of one; and it is woven, written and read
by itself."""
_SECOND = 1_000_000
_MOST_BITS = 40


class Number(Protocol):
    """An estimate."""

    @property
    def value(self) -> float: ...


class Rows(Protocol):
    """What is known of a stream's rows."""

    @property
    def rate(self) -> Number:
        """Rows in a second of event time."""

    def selectivity(self, predicate: str) -> Number:
        """Which part of the rows a predicate selects."""

    def groups(self, keys: Iterable[str], rows: float) -> float:
        """How many groups so many rows have."""


class SetPrices:
    """Prices of sets, by what is known of their streams. Without the pass `groupby` sets of other attributes are not united, without
    `predicates` those of other selections are not."""

    def __init__(self, statistics: Callable[[str], Rows], passes: Collection[str]) -> None:
        self._statistics, self._passes = statistics, passes
        self._groups: dict[tuple[str, frozenset[str], float], float] = {}

    def price(self, provider: Source, served: Sequence[Source]) -> float:
        """What it costs to publish a set, and to make the sets of some sources of it."""
        if not self._may(provider, served):
            return math.inf
        published = self._published(provider)
        cost = PUBLISHED_SET + ENTRY * published
        by_selection: dict[Expression | None, list[Source]] = {}
        for source in served:
            if source != provider:
                by_selection.setdefault(source.predicate, []).append(source)
        for predicate, sources in by_selection.items():
            rows = self._rows(provider, (predicate,))
            share = min(rows / self._rows(provider, _selections(provider)), 1.0)
            cost += published * (TOLD_APART * bool(provider.selections) + DERIVED * share)
            finest = frozenset(a for source in sources for a in source.attributes)
            coarser = {source.attributes for source in sources if set(source.attributes) != finest}
            cost += DERIVED * len(coarser) * self._entries(provider, finest, rows)
        return cost

    def _may(self, provider: Source, served: Sequence[Source]) -> bool:
        if provider.selections and "predicates" not in self._passes:
            return False
        attributes = set(provider.attributes)
        return "groupby" in self._passes or all(set(s.attributes) == attributes for s in served)

    def _published(self, provider: Source) -> float:
        """How many entries a pane of a set has, at most."""
        rows = self._rows(provider, _selections(provider))
        groups = self._entries(provider, provider.attributes, rows)
        plain = {a.value.columns[0] for a in provider.attributes if _is_column(a)}
        free = sum(not plain.issuperset(one.columns) for one in provider.selections)
        return min(groups * 2.0 ** min(free, _MOST_BITS), rows)

    def _entries(
        self, provider: Source, attributes: Sequence[Attribute] | frozenset[Attribute], rows: float
    ) -> float:
        keys = frozenset(attribute.value.sql for attribute in attributes)
        name = provider.relation, keys, rows
        if name not in self._groups:
            self._groups[name] = self._statistics(provider.relation).groups(keys, rows)
        return self._groups[name]

    def _rows(self, provider: Source, predicates: Sequence[Expression | None]) -> float:
        """How many rows of a pane any of some selections has."""
        stream = self._statistics(provider.relation)
        rows = stream.rate.value / _SECOND * provider.pane
        parts = (1.0 if p is None else stream.selectivity(p.sql).value for p in predicates)
        return max(rows * min(sum(parts), 1.0), 1.0)


def _selections(provider: Source) -> tuple[Expression | None, ...]:
    """Of which some row of a set is."""
    if provider.selections and provider.predicate is not None:
        return provider.selections
    return (provider.predicate,)


def _is_column(attribute: Attribute) -> bool:
    columns = attribute.value.columns
    return len(columns) == 1 and attribute.value.sql == quote(columns[0])
