"""The kernel in Spark tasks, one per lane.

A lane computes the units that are placed on it: groups of the program, each for some key buckets. Its task
reads the fragments that due windows of these need from the state files, runs the same kernel as the driver,
writes result files, and returns only their manifest entries. The state does not pass through the driver. A
lane that would hold too many fragments at once takes its buckets in portions, and so does one whose fragments would not fit into the
processor's caches. Results of portions are written together.

The names of a task's files have its attempt in them: a task that runs twice, because it was lost or slow,
never writes what another attempt has written. The files of the attempt whose outputs Spark returns count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from weft.errors import RunError
from weft.kernel.failure import QueryFailure
from weft.kernel.windows.program import Program, Shape, compile_program
from weft.kernel.windows.weave import Step, Woven, late, weave
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.level1.fragments import BUCKETS
from weft.runtime.level1.tiles import Extract, Span, StateFile
from weft.runtime.sinks.store import ResultStore
from weft.runtime.tasks import Output, run_tasks, task_attempt
from weft.runtime.windows.memory import bytes_in_memory
from weft.runtime.windows.openstate import OpenState
from weft.runtime.windows.placement import Share
from weft.runtime.windows.spans import due_spans, late_spans

_PORTION = 1 << 26
"""Bytes of fragments that are computed at once. With 200 MB at once a lane took half as long again as with 64, and with 8 MB as long: arrays leave the
caches, or calls cost more than what they do (`weft bench state --only executors` has such a lane)."""


@dataclass(frozen=True)
class LaneWork:
    """What every lane of a step needs to know. Lanes differ only in their number."""

    checkpoint: str
    stream: str
    plan_version: int
    files: Sequence[Entry]
    new_files: Sequence[Entry]
    before: int
    now: int
    ansi: bool
    shares: Sequence[Sequence[Share]]
    """For each lane, what is placed on it."""
    cap_bytes: int
    step: str
    batch: int
    attempt: str
    results_root: str
    owner: str


@dataclass
class LaneOutcome:
    """The outcomes of all lanes of a step together."""

    results: list[Entry] = field(default_factory=list)
    unfinished: list[tuple[Shape, pa.Table]] = field(default_factory=list)
    failures: dict[str, QueryFailure] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    operations: int = 0
    seconds: dict[int, float] = field(default_factory=dict)
    """How long each lane took."""
    processor: dict[int, float] = field(default_factory=dict)
    """The processor's seconds of each lane."""


def run_lanes(spark: SparkSession, work: LaneWork) -> LaneOutcome:
    """Run a step's kernel in tasks."""
    lanes = len(work.shares)

    def lost() -> RunError:
        size = sum(entry["size"] for entry in (*work.files, *work.new_files))
        megabytes = round(size / 1e6)
        return RunError("LANE_LOST", stream=work.stream, megabytes=megabytes, lanes=lanes)

    outcome = LaneOutcome()
    log = StreamLog(Storage(work.checkpoint), work.stream)
    for kind, body in run_tasks(spark, _run_task, json.dumps(asdict(work)), lanes, lost):
        if kind == "result":
            outcome.results.append(body)
        elif kind == "failure":
            outcome.failures[body["query"]] = QueryFailure(body["class"], body["message"])
        elif kind == "late":
            for name, count in body.items():
                outcome.late[name] = outcome.late.get(name, 0) + count
        elif kind == "lane":
            outcome.operations += body["operations"]
            outcome.seconds[body["lane"]] = body["seconds"]
            outcome.processor[body["lane"]] = body["processor"]
        else:
            _collect_unfinished(log, work, body, outcome)
    return outcome


def _collect_unfinished(
    log: StreamLog, work: LaneWork, body: dict[str, Any], outcome: LaneOutcome
) -> None:
    """Take over the rows of a shape that Spark must still project."""
    program = compile_program(log.plan(work.plan_version))
    shape = program.groups[body["group"]].shapes[body["shape"]]
    outcome.unfinished.append((shape, log.storage.read_table(body["name"])))
    log.storage.delete(body["name"])


def _run_task(payload: str, number: int) -> Iterator[Output]:
    body = json.loads(payload)
    shares = [[Share(**share) for share in lane] for lane in body["shares"]]
    return _Lane(LaneWork(**{**body, "shares": shares}), number).run()


def run_here(work: LaneWork, number: int) -> list[Output]:
    """What a lane gives, computed in this process: for tests and benchmarks."""
    return list(_Lane(work, number).run())


@lru_cache(maxsize=8)
def _program(
    checkpoint: str, stream: str, version: int, checksum: int
) -> tuple[Program, StreamLog]:
    """A plan's program, and its log. They are kept for the next step that the process runs a lane of."""
    log = StreamLog(Storage(checkpoint), stream)
    return compile_program(log.plan(version)), log


class _Lane:
    """One lane of a step."""

    def __init__(self, work: LaneWork, number: int) -> None:
        self._work, self._number = work, number
        checksum = StreamLog(Storage(work.checkpoint), work.stream).plan_checksum(work.plan_version)
        self._program, self._log = _program(
            work.checkpoint, work.stream, work.plan_version, checksum
        )
        self._files = [StateFile(self._log.storage, entry) for entry in work.files]
        self._new_files = [StateFile(self._log.storage, entry) for entry in work.new_files]
        self._step = Step(work.before, work.now, work.ansi)
        self._sink = ResultStore(work.results_root, work.owner)
        self._name = f"{number}-{task_attempt()}"
        self._written = 0
        self._families: dict[str, list[pa.Table]] = {}
        """Results that are not written yet."""

    def run(self) -> Iterator[Output]:
        started, busy = time.perf_counter(), time.process_time()
        operations = 0
        for share in self._work.shares[self._number]:
            program = self._program.only(share.groups)
            spans = due_spans(program, self._step.before, self._step.now)
            for buckets in self._portions(spans, share.buckets):
                pairs, woven = self._woven(program, spans, buckets)
                if pairs:
                    yield "late", pairs
                operations += woven.operations
                yield from self._outputs(woven)
        yield from self._results()
        yield (
            "lane",
            {
                "lane": self._number,
                "operations": operations,
                "seconds": time.perf_counter() - started,
                "processor": time.process_time() - busy,
            },
        )

    def _portions(
        self, spans: dict[str, Span], buckets: Sequence[int]
    ) -> Iterator[np.ndarray[Any, np.dtype[np.bool_]]]:
        """The buckets, marked among all, or several parts of them if they are too much at once."""
        needed = 0.0
        whole = _marked(buckets)
        for file in (*self._files, *self._new_files):
            span = spans.get(file.entry["node"])
            if span is not None:
                rows = file.expected(Extract(span, whole))
                needed += rows * bytes_in_memory(self._log, file.entry)
        bound = min(self._work.cap_bytes, _PORTION)
        at_once = max(int(bound * len(buckets) / needed), 1) if needed else len(buckets)
        for start in range(0, len(buckets), at_once):
            yield _marked(buckets[start : start + at_once])

    def _woven(
        self,
        program: Program,
        spans: dict[str, Span],
        buckets: np.ndarray[Any, np.dtype[np.bool_]],
    ) -> tuple[dict[str, int], Woven]:
        """What came too late for some buckets, and their results."""

        def within(spans: dict[str, Span], node: str) -> Extract | None:
            return Extract(spans[node], buckets) if node in spans else None

        too_late = late_spans(program, self._step.before)
        opened, tardy = OpenState().read(
            self._log, self._new_files, lambda node: within(too_late, node)
        )
        pairs = late(program, tardy, opened.encoders, self._step.before)
        opened, rows = OpenState().read(
            self._log, [*self._files, *self._new_files], lambda node: within(spans, node)
        )
        state, due = opened.with_rows(program, rows).due(program, self._step)
        return pairs, weave(program, due, state.encoders, self._step)

    def _outputs(self, woven: Woven) -> Iterator[Output]:
        work = self._work
        for family, tables in woven.families.items():
            self._families.setdefault(family, []).extend(tables)
        waiting = (table for tables in self._families.values() for table in tables)
        if sum(table.nbytes for table in waiting) > work.cap_bytes:
            yield from self._results()
        for query, failure in woven.failures.items():
            body = {"query": query, "class": failure.error_class, "message": failure.message}
            yield "failure", body
        for shape, raw in woven.unfinished:
            folder = self._log.folder("handoff")
            name = f"{folder}/{work.step}-{work.attempt}-{self._name}-{self._next()}.parquet"
            self._log.storage.write_table(name, raw)
            group, index = _shape_indices(self._program, shape)
            yield "unfinished", {"name": name, "group": group, "shape": index}

    def _results(self) -> Iterator[Output]:
        """Write the results that wait, a file for each family."""
        work = self._work
        for family, tables in self._families.items():
            table = pa.concat_tables(tables).sort_by("query")
            suffix = f"-{self._name}-{self._next()}"
            file = self._sink.file_name(work.stream, work.step, work.attempt, family, suffix)
            yield "result", self._sink.write_file(file, family, work.batch, table)
        self._families.clear()

    def _next(self) -> int:
        self._written += 1
        return self._written


def _marked(buckets: Sequence[int]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    marked = np.zeros(BUCKETS, bool)
    marked[list(buckets)] = True
    return marked


def _shape_indices(program: Program, shape: Shape) -> tuple[int, int]:
    """The index of a shape's group, and that of the shape in the group."""
    for group_index, group in enumerate(program.groups):
        for shape_index, candidate in enumerate(group.shapes):
            if candidate is shape:
                return group_index, shape_index
    raise LookupError("the program does not contain the shape")
