"""The network's engine over a checkpoint on disk, without Spark: streams are logs written by hand, and tasks
run one after the other in this process. What DuckDB says of the same rows is in `network_steps`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from tests.support.by_hand import (
    SETTINGS,
    next_step,
    publish_step,
    result_store,
    stepper_over,
    through_json,
)
from tests.support.network_steps import STEP, TIME, Spec, UnionSpec, counted, plan_of

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.runtime.checkpoint.commits import Commit, Edition, Entry, Intent
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.network.engine import LOG, NetworkEngine
from weft.runtime.network.lanes.computing import Lanes
from weft.runtime.network.lanes.stage import Stage, encoded
from weft.runtime.network.lanes.step import Runner
from weft.runtime.network.lanes.task import run_task
from weft.runtime.network.publication import NETWORK
from weft.runtime.protocol.step import StepWork
from weft.runtime.protocol.stepper import Origin
from weft.runtime.settings import Settings
from weft.runtime.tables import TableVersions
from weft.runtime.tasks import Output

SpecT = TypeVar("SpecT", Spec, UnionSpec)


def here(spark: object, log: StreamLog) -> Runner:
    """Runs the tasks of a stage in this process."""

    def run(stage: Stage) -> list[Output]:
        name = f"{log.folder('handoff')}/{stage.around.folder}/stage.json"
        log.storage.put(name, encoded(stage).encode())
        payload = f"{stage.around.checkpoint}\n{name}"
        return through_json(one for task in range(stage.tasks) for one in run_task(payload, task))

    return run


class _Planner:
    """Plans exactly the given queries."""

    def __init__(
        self, log: StreamLog, specs: Callable[[], Sequence[Any]], plan: Callable[..., NetworkPlan]
    ) -> None:
        self._log, self._specs, self._plan = log, specs, plan

    def new_plan(self, queries: Sequence[NetworkQuery], last: Commit | None) -> int:
        version = max(self._log.plan_versions(), default=0) + 1
        self._log.put_plan(self._plan(self._specs(), version))
        return version


class EngineRun:
    """A network over published rows, step by step. `use` changes the queries, `restart` is another
    process. `plan` makes a plan of the queries: in the shapes that they ask for, or as the generator
    does."""

    def __init__(
        self,
        folder: Path,
        specs: Sequence[Any],
        *,
        lanes: int | Sequence[float] = 2,
        plan: Callable[..., NetworkPlan] = plan_of,
        **settings: Any,
    ) -> None:
        self._plan = plan
        self.storage = Storage(str(folder))
        self.settings = Settings(lanes=lanes, **settings)
        self._specs = list(specs)
        self._last = 0
        self._logs: dict[str, StreamLog] = {}
        self._tables: dict[str, pa.Table] = {}
        self._read: set[str] = set()
        self.failed: dict[str, str] = {}
        self.restart()

    def use(self, specs: Sequence[Any]) -> None:
        self._specs = list(specs)

    def log(self, name: str) -> StreamLog:
        return self._logs.setdefault(name, StreamLog(self.storage, name))

    def restart(self) -> None:
        self._logs = {}
        sink = result_store(self.storage)
        log = self.log(LOG)
        tables: Any = TableVersions(
            self.storage,
            lambda: {
                name: SimpleNamespace(schema=(), toArrow=lambda rows=rows: rows)
                for name, rows in self._tables.items()
            },
            lambda: [log],
        )
        planner: Any = _Planner(log, lambda: self._specs, self._plan)
        self.engine = NetworkEngine(
            log,
            self.log,
            lambda: [spec.query() for spec in self._specs],
            planner,
            tables,
            Lanes(self.settings.lane_weights(2), self.settings, sink, here),
        )
        self.stepper = stepper_over(log, self.engine, sink, self.settings, self.failed)

    @property
    def last(self) -> Commit:
        commit = self.stepper.last
        assert commit is not None
        return commit

    # streams

    def publish(self, relation: str, rows: pa.Table, watermark: int, registered: int) -> None:
        """A step of a stream in two files, for the queries up to a registration."""
        log = self.log(relation)
        last = log.last()
        sequence = next_step(log)
        published: list[Entry] = []
        half = -(-rows.num_rows // 2)
        for part in (0, half) if rows.num_rows > 1 else (0,) * rows.num_rows:
            name = f"{log.folder('published')}/{sequence:012d}-x-{NETWORK}/part-{part}.parquet"
            chosen = rows.slice(part, half).drop_columns([STEP])
            times = pc.min_max(chosen.column(TIME)).as_py()
            bounds = {"first": times["min"], "last": times["max"], "publication": NETWORK}
            published.append({**self.storage.write_table(name, chosen), **bounds})
        publish_step(
            log,
            watermark=watermark,
            latest=_latest(last, rows),
            published=published,
            editions={NETWORK: Edition(registered)},
        )

    # steps

    def step(
        self,
        deltas: Mapping[str, pa.Table],
        watermark: int,
        *,
        registered: int = 99,
        in_lanes: bool | None = None,
    ) -> dict[str, Counter[Any]]:
        """Publish new rows and take a step over them; None: where the settings say. What each query
        emits."""
        for relation, rows in deltas.items():
            if relation in ("a", "b"):
                self.publish(relation, rows, watermark, registered)
                self._read.add(relation)
            else:
                self._tables[relation] = rows
        if in_lanes is None:
            return self._stepped(watermark)
        with patch("weft.runtime.network.engine.use_lanes", lambda *_: in_lanes):
            return self._stepped(watermark)

    def _stepped(self, watermark: int) -> dict[str, Counter[Any]]:
        last = self.stepper.last
        batch = last.batch + 1 if last else 0
        spark: Any = None
        work = StepWork(batch, "data", spark, None)
        self.stepper.run(work, lambda version: self._intent(batch, version, watermark), _origin)
        return self._results(self.last.results)

    def _intent(self, batch: int, version: int, watermark: int) -> Intent:
        positions = {}
        for relation in self._read:
            commit = self.log(relation).last()
            if commit is not None:
                positions[relation] = commit.position
        before = self.stepper.last.watermark if self.stepper.last else 0
        return Intent(batch, version, before, watermark, SETTINGS, inputs=positions)

    def _results(self, entries: Sequence[Entry]) -> dict[str, Counter[Any]]:
        store = Storage(f"{self.storage.uri}/results")
        results: dict[str, Counter[Any]] = {}
        for entry in entries:
            rows = store.read_table(entry["name"]).drop_columns(["batch"])
            for query in pc.unique(rows.column("query")).to_pylist():
                chosen = rows.filter(pc.equal(rows.column("query"), query))
                new = counted(chosen.drop_columns(["query"]))
                results[query] = results.get(query, Counter()) + new
        return results


def _latest(last: Commit | None, rows: pa.Table) -> int | None:
    """The latest event time of all rows so far."""
    times = [pc.max(rows.column(TIME)).as_py(), last.max_event_time if last else None]
    return max((time for time in times if time is not None), default=None)


def _origin(intent: Intent) -> Origin:
    return Origin(inputs=intent.inputs)


def numbered(spec: SpecT, registration: int) -> SpecT:
    """A query with an id as the catalog gives it."""
    return replace(spec, id=f"{spec.id}@{registration}")
