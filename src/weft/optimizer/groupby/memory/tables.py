"""How a bounded table behaves, for any model of evictions: what leaves it, and the entries that
takes.

A planner sees a table only through this: out = intercept(b) + slope(b)·n, kept within g ≤ out ≤ n,
falling with b. `ZipfTable` is the Memory paper's (`eviction`), `Recency` is ours (`recency`).
`TableModel` gives the table of a node; `zipf_tables` and `recency_tables` make one from statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from weft.optimizer.groupby.memory.eviction import LEMMA, Eviction, Floats
from weft.optimizer.groupby.memory.recency import RecencyCurve, zipf_frequencies
from weft.optimizer.groupby.trees.aggregate_tree import GroupBySet
from weft.optimizer.groupby.trees.statistics import Statistics


class BoundedTable(Protocol):
    """A table of one node; equal tables are equal values."""

    @property
    def groups(self) -> float: ...

    def line(self, entries: float) -> tuple[float, float]:
        """Intercept and slope of what leaves, by what comes in."""
        ...

    def leaving(self, entries: Any, rows: Any) -> Floats: ...

    def needed(self, target: Any, rows: Any) -> Floats: ...


TableModel = Callable[[GroupBySet], BoundedTable]


@dataclass(frozen=True)
class ZipfTable:
    """By the most frequent groups."""

    groups: float
    alpha: float
    eviction: Eviction

    def line(self, entries: float) -> tuple[float, float]:
        held = min(entries, self.groups)
        return held, float(self.eviction.evicted(held, self.groups, self.alpha))

    def leaving(self, entries: Any, rows: Any) -> Floats:
        return self.eviction.leaving(entries, self.groups, self.alpha, rows)

    def needed(self, target: Any, rows: Any) -> Floats:
        return self.eviction.needed(target, self.groups, self.alpha, rows)


class Recency:
    """By the most recent groups: what would leave if the table read the stream, at most what comes in."""

    def __init__(self, curve: RecencyCurve) -> None:
        self._curve = curve

    @property
    def groups(self) -> float:
        return self._curve.groups

    @cached_property
    def _falling(self) -> tuple[Floats, Floats]:
        return self._curve.leaving[::-1], self._curve.entries[::-1]

    def line(self, entries: float) -> tuple[float, float]:
        return float(np.interp(entries, self._curve.entries, self._curve.leaving)), 0.0

    def leaving(self, entries: Any, rows: Any) -> Floats:
        out = np.interp(np.asarray(entries, np.float64), self._curve.entries, self._curve.leaving)
        least: Floats = np.minimum(out, rows)
        return least

    def needed(self, target: Any, rows: Any) -> Floats:
        o, n = np.broadcast_arrays(np.asarray(target, np.float64), np.asarray(rows, np.float64))
        entries: Floats = np.where(o >= n, 0.0, np.interp(o, *self._falling))
        return entries


def zipf_tables(statistics: Statistics, eviction: Eviction = LEMMA) -> TableModel:
    """Tables by groups and Zipf parameters."""

    def table(node: GroupBySet) -> ZipfTable:
        return ZipfTable(statistics.groups(node), statistics.alpha(node), eviction)

    return table


def recency_tables(statistics: Statistics) -> TableModel:
    """Tables by how groups come again.

    From frequencies if the statistics have a `frequency_table`, else from groups and Zipf parameters.
    """
    tables: dict[GroupBySet, Recency] = {}
    measured = getattr(statistics, "frequency_table", None)

    def table(node: GroupBySet) -> Recency:
        if node not in tables:
            if measured is None:
                groups, alpha = statistics.groups(node), statistics.alpha(node)
                frequencies = zipf_frequencies(groups, alpha, statistics.tuples)
            else:
                frequencies = measured(node)
            tables[node] = Recency(RecencyCurve.of(*frequencies))
        return tables[node]

    return table
