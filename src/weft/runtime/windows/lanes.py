"""The kernel in Spark tasks, one per lane.

A lane owns a share of the key buckets. Its task reads the lane's open fragments from the state files,
runs the same kernel as the driver, writes result files, and returns only their manifest entries. The
state does not pass through the driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from weft.errors import RunError
from weft.kernel.failure import QueryFailure
from weft.kernel.windows.program import Program, Shape, compile_program
from weft.kernel.windows.weave import Step, counted_operations, late, weave
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.sinks.store import ResultStore
from weft.runtime.tasks import Output, run_tasks
from weft.runtime.windows.openstate import Lane, OpenState


@dataclass(frozen=True)
class LaneWork:
    """What every lane of a step needs to know. Lanes differ only in their index."""

    checkpoint: str
    stream: str
    plan_version: int
    files: Sequence[Entry]
    new_files: Sequence[Entry]
    before: int
    now: int
    ansi: bool
    lanes: int
    step: str
    batch: int
    attempt: str
    results_root: str
    owner: str


@dataclass
class LaneOutcome:
    """The outcomes of all lanes of a step together."""

    results: list[Entry]
    unfinished: list[tuple[Shape, pa.Table]]
    failures: dict[str, QueryFailure]
    late: dict[str, int]
    operations: dict[str, int]


def run_lanes(spark: SparkSession, work: LaneWork) -> LaneOutcome:
    """Run a step's kernel in tasks."""

    def lost() -> RunError:
        size = sum(entry["size"] for entry in (*work.files, *work.new_files))
        megabytes = round(size / 1e6)
        return RunError("LANE_LOST", stream=work.stream, megabytes=megabytes, lanes=work.lanes)

    outcome = LaneOutcome([], [], {}, {}, {})
    log = StreamLog(Storage(work.checkpoint), work.stream)
    for kind, body in run_tasks(spark, _run_task, json.dumps(asdict(work)), work.lanes, lost):
        if kind == "result":
            outcome.results.append(body)
        elif kind == "failure":
            outcome.failures[body["query"]] = QueryFailure(body["class"], body["message"])
        elif kind in ("late", "operations"):
            totals = outcome.late if kind == "late" else outcome.operations
            for name, count in body.items():
                totals[name] = totals.get(name, 0) + count
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
    work = LaneWork(**json.loads(payload))
    return _run_lane(work, Lane(number, work.lanes))


def _run_lane(work: LaneWork, lane: Lane) -> Iterator[Output]:
    log = StreamLog(Storage(work.checkpoint), work.stream)
    plan = log.plan(work.plan_version)
    program = compile_program(plan)
    opened, new = OpenState().read(log, work.new_files, lane)
    pairs = late(program, new, opened.encoders, work.before)
    if pairs:
        yield "late", pairs
    opened, old = opened.read(log, work.files, lane)
    step = Step(work.before, work.now, work.ansi)
    state, due = opened.with_rows(program, old).with_rows(program, new).due(program, step)
    woven = weave(program, due, state.encoders, step)
    yield "operations", counted_operations(program, new, woven)
    sink = ResultStore(work.results_root, work.owner)
    for name, tables in woven.families.items():
        table = pa.concat_tables(tables).sort_by("query")
        file = sink.file_name(work.stream, work.step, work.attempt, name, f"-{lane.index}")
        yield "result", sink.write_file(file, name, work.batch, table)
    for query, failure in woven.failures.items():
        body = {"query": query, "class": failure.error_class, "message": failure.message}
        yield "failure", body
    for number, (shape, raw) in enumerate(woven.unfinished):
        name = f"{log.folder('handoff')}/{work.step}-{work.attempt}-{lane.index}-{number}.parquet"
        log.storage.write_table(name, raw)
        group, index = _shape_indices(program, shape)
        yield "unfinished", {"name": name, "group": group, "shape": index}


def _shape_indices(program: Program, shape: Shape) -> tuple[int, int]:
    """The index of a shape's group, and that of the shape in the group."""
    for group_index, group in enumerate(program.groups):
        for shape_index, candidate in enumerate(group.shapes):
            if candidate is shape:
                return group_index, shape_index
    raise LookupError("the program does not contain the shape")
