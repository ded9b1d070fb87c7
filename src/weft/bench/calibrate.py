"""`weft bench calibrate`: the constants of weft's own cost model, measured on this machine.

Level 1 is measured on a Spark stream, the kernel on made-up fragments, each as the median of
several turns. What is kept (`weft.optimizer.windows.calibration`) serves all later plans.

- row: level 1 of a warm stream of events, per row;
- coalesce: level 2, per fragment that is made part of a coarse one;
- scan: level 3 with a handful of results, per open fragment;
- result: level 3 with many results, and writing them, per result beyond the scan.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from weft.algebra.aggregate import Aggregate
from weft.algebra.plan import Fragments, SharedPlan
from weft.algebra.query import Field, OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Expression, Ref
from weft.algebra.window import EdgeClass, Window
from weft.bench.measuring import loom
from weft.bench.measuring.session import session
from weft.kernel.fragments.coalesce import interceded
from weft.kernel.fragments.state import Encoders, NodeState, load
from weft.kernel.windows.program import compile_program
from weft.kernel.windows.weave import Step, Woven, weave
from weft.optimizer.gtweave import share
from weft.optimizer.windows.calibration import Constants, calibrated, save
from weft.runtime.sinks.store import ResultStore
from weft.workloads.events import KEYS, store_events
from weft.workloads.windows import HOUR_BY_MINUTE

SECOND = 1_000_000
_STREAM = StreamSchema(
    "s", (Field("ts", "timestamp"), Field("k", "int"), Field("v", "bigint")), "ts", 0
)
_KEY = Expression("`k`", "int", ("k",))
_COUNT = Aggregate("count", (), "bigint")
_SUM = Aggregate("sum", (Expression("`v`", "bigint", ("v",)),), "bigint")
_COLUMNS = (
    OutputColumn("start", "timestamp", Ref("window_start", "timestamp")),
    OutputColumn("key", "int", Ref("k0", "int")),
    OutputColumn("n", "bigint", Ref("a0", "bigint")),
    OutputColumn("total", "bigint", Ref("a1", "bigint")),
)


@dataclass(frozen=True)
class CalibrationOptions:
    """How much is measured."""

    millions: int = 12
    batch_millions: int = 4
    turns: int = 5
    seconds: int = 2000
    """Open fragments of each key in the kernel's part, one for each second."""


def measure(options: CalibrationOptions, say: Callable[[str], None]) -> Constants:
    """The constants of this machine."""
    say("levels 2 and 3 on made-up fragments")
    kernel = _Kernel(options.seconds)
    scan = _median(options.turns, kernel.scan) / kernel.fragments
    coalesce = _median(options.turns, kernel.coalesce) / kernel.fragments
    seconds_of_results = _median(options.turns, kernel.results)
    result = max(seconds_of_results - scan * kernel.fragments, 0.0) / kernel.result_rows
    say("level 1 on Spark")
    return Constants(_row(options), coalesce, scan, max(result, 1e-12))


def _median(turns: int, run: Callable[[], object]) -> float:
    run()
    seconds = []
    for _ in range(turns):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


class _Kernel:
    """A state of one-second fragments, and what the kernel does with it."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._few = _plan([Window(seconds * SECOND, seconds * SECOND)])
        self._many = _plan([Window(length * SECOND, SECOND) for length in range(1, 21)])
        self._state, self._encoders = _state(self._few, seconds)
        self._folder = tempfile.TemporaryDirectory(prefix="weft-calibrate-")
        self.fragments = len(self._state)
        self.result_rows = self._woven(self._many, 100).rows

    def scan(self) -> object:
        return self._woven(self._few, 1)

    def coalesce(self) -> object:
        return interceded(self._state, Fragments(classes=(EdgeClass(60 * SECOND, 0),)))

    def results(self) -> object:
        """Many windows woven and written."""
        (tables,) = self._woven(self._many, 100).families.values()
        store = ResultStore(self._folder.name, "calibrate")
        return store.write_file("results.parquet", "family", 0, pa.concat_tables(tables))

    def _woven(self, plan: SharedPlan, steps: int) -> Woven:
        program = compile_program(plan)
        node = plan.nodes[0].id
        now = self._seconds * SECOND
        step = Step(now - steps * SECOND, now, ansi=True)
        return weave(program, {node: self._state}, {node: self._encoders}, step)


def _plan(windows: list[Window]) -> SharedPlan:
    queries = [
        Query(f"q@{i}", f"q{i}", "", "s", w, (_KEY,), None, (_COUNT, _SUM), None, _COLUMNS)
        for i, w in enumerate(windows)
    ]
    return share(1, _STREAM, queries, {query.id: -(1 << 62) for query in queries})


def _state(plan: SharedPlan, seconds: int) -> tuple[NodeState, Encoders]:
    node = plan.nodes[0]
    ends = np.repeat(np.arange(1, seconds + 1) * SECOND, KEYS)
    count = len(ends)
    columns: dict[str, object] = {
        "fragment_end": ends,
        "n": np.full(count, 1000),
        "k0": np.tile(np.arange(KEYS, dtype=np.int32), seconds),
    }
    halves = [pa.array(np.zeros(count, np.int64)), pa.array(np.arange(count))]
    for partial in node.partials:
        wide = partial.type.startswith("struct")
        columns[partial.name] = (
            pa.StructArray.from_arrays(halves, ["high", "low"]) if wide else np.full(count, 1000)
        )
    encoders = Encoders(node, node.id)
    return load(pa.table(columns), node, encoders).rows, encoders


def _row(options: CalibrationOptions) -> float:
    """Level 1 per row, of the second of two runs in one session."""
    spark = session("weft bench calibrate")
    with tempfile.TemporaryDirectory(prefix="weft-calibrate-") as name:
        work = Path(name)
        rows = options.millions * 1_000_000
        stream = store_events(spark, work / "events", rows, options.millions)
        for _ in range(2):
            source = stream.open(spark, options.batch_millions)
            measured = loom.shared(spark, source, [HOUR_BY_MINUTE], work, "calibrate")
    return float(measured.details["weft level1"]) / rows


def main(json: bool = False) -> Constants:
    """Measure, keep and print."""
    progress = Console(stderr=True)
    before = calibrated()
    constants = measure(CalibrationOptions(), lambda line: progress.print(line, style="dim"))
    path = save(constants)
    console = Console()
    if json:
        console.print_json(data={"constants": asdict(constants), "file": str(path)})
        return constants
    table = Table(title="weft bench calibrate: nanoseconds")
    for heading in ("", "measured", "used so far"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, value in asdict(constants).items():
        table.add_row(name, f"{value * 1e9:.1f}", f"{asdict(before)[name] * 1e9:.1f}")
    console.print(table)
    console.print(f"kept in {path}; later plans use them")
    return constants
