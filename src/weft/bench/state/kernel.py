"""The kernel alone beside more and more open fragments, without Spark: the part of a step that knew all of them.

The processor's seconds of a step are taken, so that others on the machine do not count. A step has 20,000 new
fragments and one window of an hour that is due. On the driver the state is in memory; a lane reads what it
needs of two lanes' work from files.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from weft.algebra.aggregate import Aggregate
from weft.algebra.query import Field, OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Expression, Ref
from weft.algebra.window import Window
from weft.bench.measuring.scratch import fresh
from weft.kernel.fragments.buckets import buckets
from weft.kernel.windows.program import Program, compile_program
from weft.kernel.windows.weave import Step, late, weave
from weft.optimizer.gtweave import share
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.level1 import statefiles
from weft.runtime.level1.fragments import BUCKETS
from weft.runtime.level1.tiles import StateFile, write_tiles
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.windows.lanes import LaneWork, run_here
from weft.runtime.windows.openstate import OpenState
from weft.runtime.windows.placement import placed

MINUTE = 60_000_000
RANGE, NEWEST = 60, 20
WARM = 2
_LANES = 2
Times = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class KernelSteps:
    """Seconds of the processor in a step on the driver, and in one lane; and the results of a step."""

    driver: float
    lane: float
    results: int


def program() -> Program:
    """One query: an hour sliding by a minute, three aggregates."""
    key, value = (Expression(f"`{name}`", "bigint", (name,)) for name in ("key", "value"))
    fields = (Field("ts", "timestamp"), Field("key", "bigint"), Field("value", "bigint"))
    aggregates = (
        Aggregate("count", (), "bigint"),
        Aggregate("sum", (value,), "bigint"),
        Aggregate("max", (value,), "bigint"),
    )
    columns = [
        OutputColumn("key", "bigint", Ref("k0", "bigint")),
        OutputColumn("end", "timestamp", Ref("window_end", "timestamp")),
        *(OutputColumn(f"a{i}", "bigint", Ref(f"a{i}", "bigint")) for i in range(3)),
    ]
    window = Window(RANGE * MINUTE, MINUTE)
    query = Query(
        "hour@0", "hour", "", "events", window, (key,), None, aggregates, None, tuple(columns)
    )
    stream = StreamSchema("events", fields, "ts", 0)
    return compile_program(share(1, stream, [query], {query.id: ALWAYS}))


class FragmentStream:
    """State files of fragments with keys that hardly ever come again."""

    def __init__(self, folder: Path, compiled: Program) -> None:
        self.program = compiled
        self.log = StreamLog(Storage(folder), "events")
        self.log.put_plan(compiled.plan)
        self._chance = np.random.default_rng(1)
        self._written = 0

    def put(self, minutes: Times) -> Entry:
        """A file of fragments that end with the given minutes."""
        (node,) = self.program.plan.nodes
        rows = len(minutes)
        keys = pa.array(self._chance.integers(0, 1 << 40, rows))
        values = pa.array(self._chance.integers(0, 1000, rows))
        ones, zeros = pa.array(np.ones(rows, np.int64)), pa.array(np.zeros(rows, np.int64))
        wide = pa.StructArray.from_arrays([zeros, values], ["high", "low"])
        columns = {"fragment_end": pa.array(minutes * MINUTE), "n": ones, "k0": keys}
        by_kind = {"add_wide": wide, "max": values}
        columns |= {p.name: by_kind.get(p.combine.name, ones) for p in node.partials}
        columns["bucket"] = pa.array(buckets([keys], rows, BUCKETS))
        self._written += 1
        name = f"{self.log.folder('state')}/{self._written}/part.parquet"
        write_tiles(self.log.storage, name, pa.table(columns))
        return statefiles.describe(self.log, name, node.id, self.program.plan.version)

    def newest(self, last: int, rows: int) -> Times:
        return last - self._chance.integers(0, NEWEST, rows)


def measure(fragments: int, per_minute: int, step_rows: int, steps: int) -> KernelSteps:
    """Run some steps beside so many open fragments; the medians after the first ones."""
    with tempfile.TemporaryDirectory() as scratch:
        stream = FragmentStream(fresh(Path(scratch) / "state"), program())
        minutes = fragments // per_minute
        files = [stream.put(1 + np.repeat(np.arange(minutes), per_minute))]
        state = _added(stream, OpenState(), files)
        driver: list[float] = []
        lanes: list[float] = []
        results = 0
        for number in range(WARM + steps):
            new = stream.put(stream.newest(minutes + number, step_rows))
            step = Step((RANGE + number - 1) * MINUTE, (RANGE + number) * MINUTE, ansi=False)
            started = time.process_time()
            opened, rows = state.read(stream.log, [StateFile(stream.log.storage, new)])
            late(stream.program, rows, opened.encoders, step.before)
            opened, due = opened.with_rows(stream.program, rows).due(stream.program, step)
            results = weave(stream.program, due, opened.encoders, step).rows
            state = opened.after(stream.program, step.now)
            driver.append(time.process_time() - started)
            started = time.process_time()
            for lane in range(_LANES):
                run_here(lane_work(stream, files, new, step, Path(scratch)), lane)
            lanes.append((time.process_time() - started) / _LANES)
            files.append(new)
    return KernelSteps(statistics.median(driver[WARM:]), statistics.median(lanes[WARM:]), results)


def _added(stream: FragmentStream, state: OpenState, files: Sequence[Entry]) -> OpenState:
    stored = [StateFile(stream.log.storage, entry) for entry in files]
    opened, rows = state.read(stream.log, stored)
    return opened.with_rows(stream.program, rows)


def lane_work(
    stream: FragmentStream, files: Sequence[Entry], new: Entry, step: Step, folder: Path
) -> LaneWork:
    return LaneWork(
        checkpoint=stream.log.storage.uri,
        stream="events",
        plan_version=stream.program.plan.version,
        files=files,
        new_files=[new],
        before=step.before,
        now=step.now,
        ansi=step.ansi,
        shares=placed(stream.program, (1.0,) * _LANES).shares,
        cap_bytes=1 << 28,
        step="step",
        batch=0,
        attempt="attempt",
        results_root=str(folder / "results"),
        owner="bench",
    )
