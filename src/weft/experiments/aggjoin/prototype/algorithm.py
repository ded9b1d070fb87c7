"""Algorithm 1 of the AggJoin paper: windows, aggregation sets and the result, one row at a time.

For every row that enters input k, and for every row that leaves it:

1. if input k is early, its aggregation set is updated (AS update);
2. so is its window;
3. matches are looked for in every other input j: in its aggregation set if *j* is early, else in its
   window (AS join or window join);
4. every combination of matches updates the result, by the coalescing rule: an entry stands for as many
   rows as its count, so the sum of one input's attribute is taken times the counts of the others.

Mended, beside the printed text: lines 5 and 11 ask whether an early aggregation is on S_k, not on S_j;
line 12 updates AS_early instead of AS_out; and groups that nobody is in any more are removed
(`docs/early-aggregation.md`). Aggregates are SUM of every input's attribute, as in the experiments,
and COUNT(*).

Windows are of rows: while a window is full, one row leaves for every row that comes, which is the factor 2
of the cost functions. Any number of inputs, any plan, hash or nested loop join. One thread, plain
Python: operations are counted as the cost functions count them (`Operations`).

Time for a row: the probes, plus the product of the matches times the length of a bucket of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from weft.experiments.aggjoin.prototype.tables import AggregationSet, Entry, Key, ResultSet, Window
from weft.optimizer.joinagg.plans import Plan
from weft.optimizer.joinagg.statistics import JoinStatistics


@dataclass(frozen=True, slots=True)
class Operations:
    """What was done, by the constants of table III that it is priced with."""

    probes: float = 0
    """Rows and groups of inputs looked at for a match: P."""
    window_updates: float = 0
    """Rows added to windows and removed from them: U."""
    groups_looked_at: float = 0
    """Groups of aggregation sets and of the result looked at to update one: U_g."""
    joined: float = 0
    """Combinations of matches. No part of the sum: each of them looks at groups."""

    @property
    def total(self) -> float:
        return self.probes + self.window_updates + self.groups_looked_at

    def since(self, earlier: Operations, scale: float = 1.0) -> Operations:
        """What was done after `earlier`, times `scale`."""
        return Operations(
            (self.probes - earlier.probes) * scale,
            (self.window_updates - earlier.window_updates) * scale,
            (self.groups_looked_at - earlier.groups_looked_at) * scale,
            (self.joined - earlier.joined) * scale,
        )


class Prototype:
    """A plan at work. `join` is `hash` or `nested`."""

    def __init__(self, statistics: JoinStatistics, plan: Plan, join: str) -> None:
        if len(plan) != len(statistics.inputs):
            raise ValueError(f"a plan of {len(plan)} inputs for a join of {len(statistics.inputs)}")
        self.plan = plan
        self._statistics = statistics
        self._join = join
        self._sizes = [int(given.window) for given in statistics.inputs]
        self._windows = [Window(1 if join == "nested" else count) for count in self._buckets()]
        self._sets = self._made_sets(plan)
        self._result = ResultSet(round(statistics.result_buckets))
        self._joined = 0

    def add(self, number: int, row: Entry) -> None:
        """A row enters an input; if its window was full, the oldest one leaves."""
        self._change(number, row, 1)
        if len(self._windows[number].rows) > self._sizes[number]:
            self._change(number, self._windows[number].rows[0], -1)

    def add_all(self, rows: Iterable[tuple[int, Entry]]) -> None:
        for number, row in rows:
            self.add(number, row)

    def replanned(self, plan: Plan) -> Prototype:
        """The same windows and result under another plan, with nothing counted."""
        other = Prototype(self._statistics, plan, self._join)
        for window, own in zip(other._windows, self._windows, strict=True):
            for row in own.rows:
                window.add(row)
            window.updates = 0
        other._sets = other._made_sets(plan)
        other._result = ResultSet(
            round(self._statistics.result_buckets), groups=self._result.groups()
        )
        return other

    @property
    def operations(self) -> Operations:
        sets = [made for made in self._sets if made is not None]
        return Operations(
            probes=sum(window.probes for window in self._windows)
            + sum(made.probes for made in sets),
            window_updates=sum(window.updates for window in self._windows),
            groups_looked_at=sum(made.looks for made in sets) + self._result.looks,
            joined=self._joined,
        )

    @property
    def result(self) -> dict[Key, tuple[int, ...]]:
        """By group: the number of joined rows, and the sum of every input's attribute."""
        return {group.key: (group.count, *group.totals) for group in self._result.groups()}

    def _change(self, number: int, row: Entry, sign: int) -> None:
        own_set = self._sets[number]
        if own_set is not None:
            own_set.update(row, sign)
        if sign > 0:
            self._windows[number].add(row)
        else:
            self._windows[number].remove_oldest()
        matches: list[Sequence[Entry]] = []
        for other, (made, window) in enumerate(zip(self._sets, self._windows, strict=True)):
            if other == number:
                matches.append([row])
            else:
                matches.append((window if made is None else made).matches(row.join))
        for combination in product(*matches):
            copies = sign
            for entry in combination:
                copies *= entry.count
            self._joined += 1
            self._result.update(
                tuple([entry.group for entry in combination]),
                copies,
                [entry.total * (copies // entry.count) for entry in combination],
            )

    def _buckets(self) -> list[int]:
        most = self._statistics.buckets
        return [round(given.buckets(most)) for given in self._statistics.inputs]

    def _made_sets(self, plan: Plan) -> list[AggregationSet | None]:
        """The aggregation sets of early inputs, from what their windows hold."""
        return [
            AggregationSet(count, window.rows, probe_all=self._join == "nested") if early else None
            for early, count, window in zip(plan, self._buckets(), self._windows, strict=True)
        ]
