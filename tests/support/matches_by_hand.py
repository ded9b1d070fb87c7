"""The query network as aggregation joins follow it, written by hand: brute force over the rows that streams have published for it, with a log of its own. It
admits rows by its own watermark, consumes streams at its own pace, and knows only what it was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pyarrow as pa
from tests.support.by_hand import next_step, publish_step
from tests.support.joinagg import Row

from weft.algebra.joinagg.matches import PASSED, PUBLISHED_MATCHES, TIME, matches_id
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import source_of
from weft.algebra.predicates.slots import slot_of
from weft.runtime.checkpoint.commits import Edition
from weft.runtime.checkpoint.log import StreamLog


@dataclass(frozen=True)
class Step:
    """A step of a stream as the network sees it: its rows with the watermark before and after it, and for which queries it was published."""

    stream: str
    rows: tuple[Row, ...]
    before: int
    watermark: int
    latest: int | None
    served: frozenset[tuple[str, tuple[int, ...]]]
    """Queries with their inputs that are matched."""


@dataclass
class NetworkByHand:
    """Finds matches of timely rows. `run` has the queries, and which inputs of each are matched."""

    run: Any
    log: StreamLog
    pending: list[Step] = field(default_factory=list)
    watermark: int = 0
    watermarks: dict[str, int] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    unseen: dict[str, dict[str, int]] = field(default_factory=dict)
    kept: dict[str, dict[int, list[Row]]] = field(default_factory=dict)

    def publish(self, step: Step) -> None:
        self.pending.append(step)

    def step(self, count: int | None = None) -> None:
        """Consume some of what streams have published."""
        queries = {q.id: q for q in self.run.queries if self.run.matched(q) and self.runs(q)}
        slots = {name: tuple(self.run.matched(query)) for name, query in queries.items()}
        for name in [name for name in self.unseen if tuple(self.kept[name]) != slots.get(name)]:
            del self.unseen[name], self.kept[name]
        for name in queries.keys() - self.unseen.keys():
            self.unseen[name] = dict(self.events)
            self.kept[name] = {slot: [] for slot in slots[name]}
        taken, self.pending = (
            self.pending[:count],
            self.pending[len(self.pending) if count is None else count :],
        )
        new: dict[str, dict[int, list[Row]]] = {
            name: {slot: [] for slot in self.kept[name]} for name in queries
        }
        admitted_above = self.watermark
        for step in taken:
            if admitted_above > self.watermarks.get(step.stream, 0):
                self.missed[step.stream] = admitted_above
            self.watermarks[step.stream] = step.watermark
            if step.latest is not None:
                self.events[step.stream] = step.latest
            for name, query in queries.items():
                served = (name, slots[name]) in step.served
                if step.rows and not served and step.stream in query.relations:
                    assert step.latest is not None
                    self.unseen[name][step.stream] = step.latest
                for slot in new[name] if served else ():
                    if query.inputs[slot].relation == step.stream:
                        new[name][slot] += [
                            row
                            for row in step.rows
                            if row[0] > step.before
                            and row[0] > admitted_above
                            and self.run.selects(query, slot, row)
                        ]
        published = [
            self._written(query, found)
            for name, query in queries.items()
            if (found := _matches(query, self.kept[name], new[name]))
        ]
        for name, by_slot in new.items():
            for slot, rows in by_slot.items():
                self.kept[name][slot] += rows
        if len(self.watermarks) == len(self.run.streams):
            self.watermark = max(self.watermark, min(self.watermarks.values()))
        publish_step(
            self.log,
            watermark=self.watermark,
            latest=None,
            published=published,
            editions={PUBLISHED_MATCHES: Edition()},
            engine={
                PASSED: {
                    "watermarks": dict(self.watermarks),
                    "missed": dict(self.missed),
                    "events": dict(self.events),
                    "unseen": {
                        matches_id(name, [*self.kept[name]]): dict(times)
                        for name, times in self.unseen.items()
                    },
                }
            },
        )

    def runs(self, query: AggregationJoin) -> bool:
        return query.id not in self.run.failed

    def _written(
        self, query: AggregationJoin, found: Sequence[Mapping[int, Row]]
    ) -> dict[str, Any]:
        columns: dict[str, pa.Array] = {}
        for slot in found[0]:
            rows = [match[slot] for match in found]
            times = pa.array([row[0] for row in rows], pa.timestamp("us", tz="UTC"))
            made = self.run.row_table(rows, source_of(query, slot))
            columns |= {f"{slot}/{TIME}": times}
            columns |= {f"{slot}/{name}": values for name, values in made.items()}
        name = f"@{matches_id(query.id, [*found[0]])}-{PUBLISHED_MATCHES}"
        folder = f"{self.log.folder('published')}/{next_step(self.log):012d}-x-{name}"
        entry = self.log.storage.write_table(f"{folder}/part-0.parquet", pa.table(columns))
        return {**entry, "publication": name}


def _matches(
    query: AggregationJoin, kept: Mapping[int, list[Row]], new: Mapping[int, list[Row]]
) -> list[dict[int, Row]]:
    """The matches with a new row: rows of all inputs with equal join attributes where a condition says so."""
    slots = sorted(kept)
    pairs = [
        {slot_of(name) for name in predicate.names}
        for predicate in query.predicates.within(set(slots)).predicates
    ]
    every = [
        [(row, False) for row in kept[slot]] + [(row, True) for row in new[slot]] for slot in slots
    ]
    found = []
    for rows in product(*every):
        match = {slot: row for slot, (row, _) in zip(slots, rows, strict=True)}
        joined = all(
            len({match[slot][1] for slot in pair}) == 1
            and None not in {match[slot][1] for slot in pair}
            for pair in pairs
        )
        if joined and any(is_new for _, is_new in rows):
            found.append(match)
    return found
