"""The engine of aggregation joins over a checkpoint on disk, without Spark: streams are logs written by hand, with panes and late rows as
the engine of windows and Spark would publish them. What counts is told by brute force (`admitted`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tests.support.by_hand import (
    next_step,
    publish_step,
    result_store,
    stepper_over,
    through_json,
)
from tests.support.joinagg import Row, entries, lifted_rows, rounded
from tests.support.matches_by_hand import NetworkByHand, Step

from weft.algebra import codec
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.serving import Price, providers
from weft.algebra.joinagg.sets import PANES
from weft.algebra.joinagg.sources import SIGNATURE, Source, source_of
from weft.algebra.network.query import BEFORE
from weft.algebra.query import Field, StreamSchema
from weft.algebra.scalar import Expression
from weft.kernel.columns import partial_columns
from weft.kernel.columns.column import column, to_arrow
from weft.runtime.checkpoint.commits import Edition, Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg.engine import LOG, JoinAggEngine
from weft.runtime.joinagg.lanes.computing import Lanes
from weft.runtime.joinagg.lanes.stage import Stage
from weft.runtime.joinagg.lanes.task import run_task
from weft.runtime.joinagg.matches.held import NETWORK
from weft.runtime.joinagg.publication import LATE_ROWS, TIME
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.protocol.follower import Follower, InputLog
from weft.runtime.settings import Kernel, Settings
from weft.runtime.tables import table_path
from weft.runtime.tasks import Output

FIELDS = (Field("t", "timestamp"), Field("j", "int"), Field("g", "string"), Field("a", "bigint"))


def schema(name: str) -> StreamSchema:
    return StreamSchema(name, FIELDS, "t", 0)


def session(ansi: str = "false") -> Any:
    """As much of a Spark session as a step without Spark asks for."""
    values = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": ansi}
    return SimpleNamespace(conf=SimpleNamespace(get=values.__getitem__))


@dataclass
class Stream:
    """A stream: its rows so far with the watermark at which each came, and what it has published."""

    name: str
    log: StreamLog
    arrived: list[tuple[Row, int]] = field(default_factory=list)
    watermark: int = 0
    latest: int | None = None
    begins: dict[str, int] = field(default_factory=dict)
    """By set: from when on its panes are complete, as the plan of the stream would say."""

    def step(
        self, rows: Sequence[Row], watermark: int, early: Sequence[Source], late: Sequence[Source]
    ) -> None:
        """A micro-batch: the rows come, the watermark moves, panes that it has passed are published."""
        before = self.watermark
        begin = ALWAYS if self.latest is None else self.latest + 1
        self.begins = {s.id: self.begins.get(s.id, begin) for s in early}
        self.arrived += [(row, before) for row in rows]
        self.watermark = max(before, watermark)
        times = [row[0] for row in rows]
        self.latest = max([*times, *([] if self.latest is None else [self.latest])], default=None)
        folder = f"{self.log.folder('published')}/{next_step(self.log):012d}-x"
        published = [entry for s in early for entry in self._panes(s, f"{folder}-{PANES}", before)]
        if any(selects(source.predicate, row) for source in late for row in rows):
            published.append(self._late_rows(rows, late, f"{folder}-{LATE_ROWS}", before))
        publish_step(
            self.log,
            watermark=self.watermark,
            latest=self.latest,
            published=published,
            editions={LATE_ROWS: Edition(names=tuple(s.id for s in late))},
            engine={"sets": dict(self.begins)},
        )

    def _panes(self, source: Source, folder: str, before: int) -> list[Entry]:
        begin = self.begins[source.id]
        due = [
            row
            for row, came in self.arrived
            for end in [(row[0] // source.pane + 1) * source.pane]
            if in_set(source, row)
            and came < end
            and before < end <= self.watermark
            and end - source.pane >= begin
        ]
        if not due:
            return []
        partials = list(source.partials(schema(self.name)))
        kept = entries(due, None, partials)
        chosen = {a.name: kept.columns[a.name] for a in source.attributes}
        if source.selections:
            chosen[SIGNATURE] = column(pa.array([signature(source, row) for row in due]))
        object.__setattr__(kept, "columns", chosen)
        ends = np.array([(row[0] // source.pane + 1) * source.pane for row in due], np.int64)
        object.__setattr__(kept, "first", ends)
        object.__setattr__(kept, "last", ends)
        kept = kept.combined(partials)
        count = pa.StructArray.from_arrays(
            [pa.StructArray.from_arrays([pa.array(kept.counts)], ["v0"])], ["p0"]
        )
        columns = [pa.array([source.id] * len(kept)), pa.array(kept.first).cast(_TIMESTAMP)]
        columns += [to_arrow(kept.columns[a.name]) for a in source.keys]
        columns.append(count)
        for lifted in source.lifted(schema(self.name)):
            packed = [partial_columns.packed(p, kept.partials[p.name]) for p in lifted]
            names = [f"p{i}" for i in range(len(packed))]
            columns.append(pa.StructArray.from_arrays(packed, names))
        names = ["query", *(f"c{i}" for i in range(len(columns) - 1))]
        entry = self.log.storage.write_table(
            f"{folder}/{source.id[1:]}.parquet", pa.table(columns, names)
        )
        about = {"publication": PANES, "sets": [source.id], "end": int(kept.first.max())}
        return [{**entry, **about}]

    def _late_rows(
        self, rows: Sequence[Row], late: Sequence[Source], folder: str, before: int
    ) -> Entry:
        rows = [row for row in rows if any(selects(source.predicate, row) for source in late)]
        columns: dict[str, Any] = {
            TIME: pa.array([row[0] for row in rows], pa.int64()),
            BEFORE: pa.array([before] * len(rows), pa.int64()),
        }
        for source in late:
            columns |= row_table(rows, source, schema(self.name))
        entry = self.log.storage.write_table(f"{folder}/part-0.parquet", pa.table(columns))
        times = [row[0] for row in rows]
        bounds = {"first": min(times), "last": max(times)}
        return {**entry, **bounds, "publication": LATE_ROWS}


PREDICATES: dict[str, Callable[[Row], bool | None]] = {
    "(`a` > 0)": lambda row: None if row[3] is None else row[3] > 0,
    "(`g` = 'x')": lambda row: None if row[2] is None else row[2] == "x",
    "(`j` >= 0)": lambda row: None if row[1] is None else row[1] >= 0,
}
"""Selections as Spark evaluates them."""

_TIMESTAMP = pa.timestamp("us", tz="UTC")


def row_table(
    rows: Sequence[Row], source: Source, stream: StreamSchema | None
) -> dict[str, pa.Array]:
    """What Spark would compute of rows for a source."""
    names, partials = row_columns(source, stream), list(source.partials(stream))
    lifted = lifted_rows(list(rows), partials)
    values = {
        "j": pa.array([r[1] for r in rows], pa.int32()),
        "g": pa.array([r[2] for r in rows], pa.string()),
    }
    columns = {
        made.name: values[attribute.name]
        for made, attribute in zip(names.attributes, source.attributes, strict=True)
    }
    if names.selected is not None:
        predicate = PREDICATES[names.selected.sql]
        columns[names.selected.name] = pa.array([predicate(row) for row in rows], pa.bool_())
    columns |= {
        made.name: lifted[partial.name]
        for made, partial in zip(names.partials, partials, strict=True)
    }
    return columns


def in_process(stage: Stage, name: str) -> list[Output]:
    """The tasks of a stage, one after the other. What they give passes through JSON, as in Spark."""
    payload = f"{stage.checkpoint}\n{name}"
    return through_json(o for number in range(stage.tasks) for o in run_task(payload, number))


class _Tables:
    """The versions of tables: a run keeps what it has read first."""

    def __init__(self, run: EngineRun) -> None:
        self._run = run
        self._read: dict[str, str] = {}

    def versions(self, log: str, bits: Mapping[str, Any]) -> dict[str, str]:
        for name in bits:
            if name not in self._read:
                rows = self._run.table_rows[name]
                self._read[name] = f"{name}-{codec.digest([list(row) for row in rows])}"
                self._run.versions[self._read[name]] = (name, list(rows))
            version = self._read[name]
            self._run.storage.write_table(table_path(version), self.rows(version))
        return {name: self._read[name] for name in bits}

    def rows(self, version: str) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        name, rows = self._run.versions[version]
        for query in self._run.queries:
            for slot, entry in enumerate(query.inputs):
                if entry.relation == name:
                    columns |= row_table(rows, source_of(query, slot), None)
        return pa.table(columns)

    def clean(self) -> None:
        pass


def together(provider: Source, served: Sequence[Source]) -> float:
    """Sets are united where they can be."""
    return 1.0


def same_attributes(provider: Source, served: Sequence[Source]) -> float:
    """Sets are united if only their aggregates differ."""
    alike = (provider.attributes, provider.predicate)
    return float(sum((source.attributes, source.predicate) != alike for source in served))


class EngineRun:
    """Aggregation joins over hand-written streams. `restart` is another process."""

    def __init__(
        self,
        folder: Path,
        queries: Sequence[AggregationJoin],
        early: Mapping[str, tuple[bool, ...]],
        ansi: str = "false",
        kernel: Kernel = "auto",
    ) -> None:
        self.settings = Settings(lanes=2, kernel=kernel)
        self.storage = Storage(str(folder))
        self.queries, self.early = list(queries), dict(early)
        self.table_rows: dict[str, list[Row]] = {}
        self.versions: dict[str, tuple[str, list[Row]]] = {}
        """Versions of tables that are in the checkpoint: the table, and its rows."""
        self.streams: dict[str, Stream] = {}
        self.failed: dict[str, str] = {}
        self.following: dict[str, tuple[bool, ...]] = {}
        """What queries are switching to."""
        self.price: Price = same_attributes
        """What it costs to publish one set for several inputs."""
        self.served_by: dict[str, Source] = {}
        self.late_joins: dict[str, tuple[int, ...]] = {}
        """By query the late inputs that the network joins."""
        self.network: NetworkByHand | None = None
        self.joined: dict[str, float | None] = {}
        """By query, what the engine has counted."""
        self._session = session(ansi)
        self.restart()

    def restart(self) -> None:
        """Another process on the same checkpoint."""
        self._logs: dict[str, StreamLog] = {}
        for stream in self.streams.values():
            stream.log = self.log(stream.name)
        tables: Any = _Tables(self)
        log = self.log(LOG)
        engine = JoinAggEngine(
            log,
            self.log,
            lambda: [query for query in self.queries if query.id not in self.failed],
            self,
            lambda: {name: schema(name) for name in self.streams},
            tables,
            Lanes(self.settings.lane_weights(2), self.settings, lambda _: in_process),
        )
        sink = result_store(self.storage)
        self.stepper = stepper_over(log, engine, sink, self.settings, self.failed)
        inputs = [self._input(stream) for stream in self.streams.values()]
        if self.network is not None:
            self.network.log = self.log(NETWORK)
            inputs.append(self._network_input())
        self.follower = Follower(self.stepper, inputs)

    def log(self, name: str) -> StreamLog:
        return self._logs.setdefault(name, StreamLog(self.storage, name))

    def _input(self, stream: Stream) -> InputLog:
        def asked() -> bool:
            return any(stream.name in query.relations for query in self.queries)

        return InputLog(stream.log, lambda: stream.log.last(), lambda: None, lambda: False, asked)

    def join_in_network(self, slots: Mapping[str, tuple[int, ...]]) -> None:
        """Let the network join late inputs of queries."""
        self.late_joins = dict(slots)
        if self.network is None:
            self.network = NetworkByHand(self, self.log(NETWORK))
            self.follower.add_input(self._network_input())

    def _network_input(self) -> InputLog:
        log = self.log(NETWORK)
        return InputLog(log, log.last, lambda: None, lambda: False, lambda: bool(self.late_joins))

    def row_table(self, rows: Sequence[Row], source: Source) -> dict[str, pa.Array]:
        return row_table(rows, source, schema(source.relation))

    def selects(self, query: AggregationJoin, slot: int, row: Row) -> bool:
        return selects(query.inputs[slot].predicate, row)

    # the choice of plans

    def plans(self, query: AggregationJoin) -> tuple[tuple[bool, ...], tuple[bool, ...] | None]:
        return self.early[query.id], self.following.get(query.id)

    def matched(self, query: AggregationJoin) -> tuple[int, ...]:
        return self.late_joins.get(query.id, ())

    def reconsider(self, query: AggregationJoin, joined: float | None) -> bool:
        self.joined[query.id] = joined
        return False

    def settle(self, query: AggregationJoin) -> None:
        self.early[query.id] = self.following.pop(query.id)

    def provider(self, source: Source) -> Source | None:
        return self.served_by.get(source.id)

    def keep_sets(self, needed: Collection[str]) -> None:
        self.served_by = {name: self.served_by[name] for name in self.served_by if name in needed}

    def add_stream(self, name: str) -> None:
        self.streams[name] = Stream(name, self.log(name))
        self.follower.add_input(self._input(self.streams[name]))

    def publish(self, name: str, rows: Sequence[Row], watermark: int) -> None:
        """A micro-batch of a stream."""
        kinds: dict[bool, dict[str, Source]] = {True: {}, False: {}}
        for query in self.queries:
            for slot, entry in enumerate(query.inputs):
                if entry.relation == name and query.id not in self.failed:
                    source = source_of(query, slot)
                    for plan in self.plans(query):
                        if plan is not None:
                            kinds[plan[slot]][source.id] = source
        wanted, late = ([*kinds[kind].values()] for kind in (True, False))
        chosen = providers(wanted, self.served_by, self.price)
        self.served_by |= chosen
        early = list({provider.id: provider for provider in chosen.values()}.values())
        before = self.streams[name].watermark
        self.streams[name].step(rows, watermark, early, late)
        if self.network is not None:
            stream = self.streams[name]
            served = frozenset(
                (name, tuple(slots))
                for name, slots in self.late_joins.items()
                if name not in self.failed
            )
            step = Step(name, tuple(rows), before, stream.watermark, stream.latest, served)
            self.network.publish(step)

    def advance(self) -> bool:
        return self.follower.advance(lambda: self._session)

    def shown(self, query: AggregationJoin) -> list[dict[str, Any]]:
        """All result rows of a query, in the order of steps."""
        store = Storage(f"{self.storage.uri}/results")
        rows: list[dict[str, Any]] = []
        names = [column.name for column in query.columns]
        for entry in self.log(LOG).result_files():
            table = store.read_table(entry["name"])
            table = table.filter(pc.equal(table.column("query"), query.id))
            if table.num_rows and table.num_columns == len(names) + 2:
                rows += table.drop_columns(["query", "batch"]).rename_columns(names).to_pylist()
        return rows

    def by_instant(self, query: AggregationJoin) -> dict[int, Counter[Any]]:
        """The rows of a query that emits whole results, by instant."""
        results: dict[int, Counter[Any]] = {}
        for row in self.shown(query):
            at = int(row.pop("at").timestamp() * 1_000_000)
            key = tuple(rounded(value) for value in row.values())
            results.setdefault(at, Counter())[key] += 1
        return results

    def admitted(self, query: AggregationJoin, slot: int) -> list[Row]:
        """The rows of an input whose panes were still open when they came."""
        entry = query.inputs[slot]
        if entry.window is None:
            return self.table_rows[entry.relation]
        pane = entry.window.pane(query.step)
        arrived = self.streams[entry.relation].arrived
        return [
            row
            for row, before in arrived
            if (row[0] // pane + 1) * pane > before and selects(entry.predicate, row)
        ]


def in_set(source: Source, row: Row) -> bool:
    """Whether a set has a row: all rows, or those that it selects, or that any of its selections does."""
    if source.predicate is None or not source.selections:
        return selects(source.predicate, row)
    assert source.predicate.sql == " OR ".join(f"({one.sql})" for one in source.selections)
    return bool(signature(source, row))


def signature(source: Source, row: Row) -> int:
    """The selections of a row as a set, a bit for each."""
    return sum(1 << bit for bit, one in enumerate(source.selections) if selects(one, row))


def selects(predicate: Expression | None, row: Row) -> bool:
    return predicate is None or PREDICATES[predicate.sql](row) is True
