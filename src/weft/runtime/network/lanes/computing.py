"""A step of the network in tasks, from the files that it reads to the files that its commit names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weft.errors import RunError
from weft.kernel.failure import QueryFailure
from weft.kernel.network import Limits, Program
from weft.kernel.network.passing import FromSteps
from weft.runtime.checkpoint.commits import RETAINED, STATE, Commit, Entry, Intent
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.frames import failure_of
from weft.runtime.network.history import Published, stale_joins
from weft.runtime.network.lanes.layout import below, layouts, usable
from weft.runtime.network.lanes.node_rows import BUCKETS
from weft.runtime.network.lanes.results import ShownRows
from weft.runtime.network.lanes.stage import Stage, Surroundings, encoded
from weft.runtime.network.lanes.step import LaneStep, Runner, Tables
from weft.runtime.network.lanes.task import run_task
from weft.runtime.network.outcome import NetworkOutcome
from weft.runtime.network.projection import projected_by_spark
from weft.runtime.protocol.step import StepFailed, StepWork
from weft.runtime.settings import Settings
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.store import ResultStore
from weft.runtime.tasks import Output, run_tasks


@dataclass(frozen=True)
class Lanes:
    """How steps run in tasks: the weight of each, with which settings, and where their results go."""

    weights: tuple[float, ...]
    settings: Settings
    sink: Sink
    runner: Callable[[SparkSession, StreamLog], Runner]


def on_spark(spark: SparkSession, log: StreamLog) -> Runner:
    """Runs stages as Spark jobs. What a stage is told may be long: tasks read it from a file."""
    numbers = count()

    def run(stage: Stage) -> list[Output]:
        around = stage.around
        name = f"{log.folder('handoff')}/{around.folder}/stage-{next(numbers)}.json"
        log.storage.put(name, encoded(stage).encode())

        def lost() -> RunError:
            size = sum(entry["size"] for entry in (*stage.old, *stage.new))
            megabytes = round(size / 1e6)
            return RunError("LANE_LOST", stream=log.stream, megabytes=megabytes, lanes=stage.tasks)

        return run_tasks(spark, run_task, f"{around.checkpoint}\n{name}", stage.tasks, lost)

    return run


@dataclass(frozen=True)
class StepFiles:
    """What a step in tasks reads: history, the new files of relations, the tables in use."""

    last: Commit | None
    new: Sequence[Published]
    tables: Tables
    versions: Mapping[str, str]

    @property
    def has_buckets(self) -> bool:
        """Whether the last step ran in tasks."""
        return self.last is not None and self.last.engine.get(BUCKETS) is not None

    def with_history(self, entries: Sequence[Entry]) -> StepFiles:
        """With more files of history, which the step itself has written before."""
        if self.last is None or not entries:
            return self
        state = (*self.last.live.get(STATE, ()), *entries)
        return replace(self, last=replace(self.last, live={**self.last.live, STATE: state}))

    @property
    def base(self) -> tuple[Entry, ...]:
        live = self.last.live if self.last else {}
        return (*live.get(RETAINED, ()), *live.get(STATE, ()))


class LaneComputing:
    """Computes one step in tasks."""

    def __init__(
        self,
        lanes: Lanes,
        work: StepWork,
        log: StreamLog,
        program: Program,
        sequence: int,
        *,
        only: Sequence[str] | None = None,
        attempt: str | None = None,
    ) -> None:
        """`only`: the queries that the program is for; None: all of the plan. `attempt`: under which name
        its files are written."""
        self._lanes, self._work, self._log = lanes, work, log
        self._program, self._sequence = program, sequence
        self._only = None if only is None else tuple(only)
        self._attempt = work.attempt if attempt is None else attempt
        sink = lanes.sink
        self._store = sink if isinstance(sink, ResultStore) else None
        self._handoff = f"{log.folder('handoff')}/{work.name}-{self._attempt}"
        self._target = self._store or ResultStore(f"{log.storage.uri}/{self._handoff}/results")

    def run(
        self, files: StepFiles, intent: Intent, from_steps: FromSteps, limits: Limits
    ) -> NetworkOutcome:
        """All stages of the step."""
        around = self._around(files, intent, from_steps, limits)
        wanted = layouts(self._program, files.versions)
        with self._handing_off():
            step = LaneStep(around, self._program, self._lanes.runner(self._work.spark, self._log))
            again = stale_joins(files.base, files.versions) & self._program.node_by_id.keys()
            wrong = below(self._program, again)
            old, stale = usable(wanted, files.last, around.tasks, wrong)
            with self._work.timed("history"):
                built = step.build(stale, old, files.base, files.tables, again)
            with self._work.timed("kernel"):
                new = [(file.relation, file.with_step) for file in files.new]
                step.advance([*old, *built], new)
            with self._work.timed("projection"):
                self._project(step, around)
            with self._work.timed("distinct"):
                step.distinct([entry for entry in files.base if "distinct" in entry])
            results, families = self._delivered(step.written.results)
        written = step.written
        buckets = [*old, *built, *written.buckets]
        step.counters.add_unions(self._program)
        return NetworkOutcome(
            families,
            written.history,
            step.counters,
            published=written.published,
            written=results,
            buckets=buckets,
            layouts=wanted,
            lane_seconds=step.seconds,
        )

    def _around(
        self, files: StepFiles, intent: Intent, from_steps: FromSteps, limits: Limits
    ) -> Surroundings:
        return Surroundings(
            checkpoint=self._log.storage.uri,
            log=self._log.stream,
            plan_version=intent.plan_version,
            queries=self._only,
            weights=self._lanes.weights,
            tables=files.tables,
            versions=files.versions,
            watermark_before=intent.watermark_before,
            watermark=intent.watermark,
            from_steps=from_steps,
            most_matches=limits.most_matches,
            most_candidates=limits.most_candidates,
            ansi=limits.ansi,
            cap_bytes=self._lanes.settings.lane_cap_bytes,
            step=self._work.name,
            attempt=self._attempt,
            sequence=self._sequence,
            results_root=self._target.storage.uri,
            owner=self._target.owner,
        )

    @contextmanager
    def _handing_off(self) -> Iterator[None]:
        """Files between stages are deleted at the end of the block; of a failed attempt, all files."""
        try:
            yield
        except Exception:
            self._delete("handoff", STATE, BUCKETS)
            raise
        self._delete("handoff")

    def _delete(self, *kinds: str) -> None:
        for kind in kinds:
            folder = f"{self._work.name}-{self._attempt}"
            self._log.storage.delete(f"{self._log.folder(kind)}/{folder}")

    def _project(self, step: LaneStep, around: Surroundings) -> None:
        """Let Spark project what tasks could not, a piece at a time."""
        failures: dict[str, QueryFailure] = {}
        shown = ShownRows(around, self._log, "spark")
        for entry in step.written.raw:
            output = self._program.outputs[entry["output"]]
            rows = self._log.storage.read_table(entry["name"])
            try:
                shown.add(output, projected_by_spark(self._work.spark, output.query, rows))
            except PySparkException as error:
                failures[output.query.id] = failure_of(error)
        step.take(shown.close())
        if failures:
            raise StepFailed(failures)

    def _delivered(self, entries: Sequence[Entry]) -> tuple[list[Entry], dict[str, list[pa.Table]]]:
        """Result files as the commit names them. For other sinks than a store: their rows."""
        families: dict[str, list[pa.Table]] = {}
        if self._store is not None:
            return [{**entry, "root": self._store.place} for entry in entries], families
        for entry in entries:
            table = self._target.storage.read_table(entry["name"]).drop_columns(["batch"])
            families.setdefault(entry["family"], []).append(table)
        return [], families
