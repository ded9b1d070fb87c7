"""``weft bench bounded``: does a bounded table in Python ever beat Spark's own aggregation?

The Memory paper's table holds a bounded number of entries and passes evicted ones on; Spark's
aggregation holds all groups and spills what does not fit. Both run in the tasks of one small session
(a heap of 512 MiB, so that Spark spills; the report says how much) on flows grouped by their four-tuple: Spark alone, and
Spark over what bounded tables of several sizes pass on. The tables get the best case: keys are hashed
natively, a task's rows are one table, and compilation is outside.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from weft.bench.measuring.measure import Measurement, combine
from weft.bench.measuring.report import Comparison, Report, rate, render
from weft.bench.measuring.scratch import fresh
from weft.bench.measuring.session import cores, machine, session
from weft.experiments.memory.bounded_table import Measures, Passed, bounded
from weft.workloads.flows import flows

KEYS = ("src_addr", "dst_addr", "src_port", "dst_port")
ENTRIES = (1_000, 50_000)
EPOCHS = 16
COPIES = 4
REPEATS = 3


def run(say: Callable[[str], None] = lambda _: None, epochs: int = EPOCHS) -> Report:
    """Measure all contenders."""
    spark = session("weft bench bounded", heap="512m")
    folder = fresh(Path(tempfile.gettempdir()) / "weft-bench" / "bounded")
    rows = 0
    for seed in range(1, COPIES + 1):
        table = flows(seed, epochs)
        rows += table.num_rows
        pq.write_table(table, folder / f"{seed}.parquet", row_group_size=400_000)
    source = spark.read.parquet(str(folder))
    keyed = source.select(F.xxhash64(*KEYS).alias("key"), F.col("bytes"))
    contenders: dict[str, DataFrame] = {"Spark alone": _native(keyed)}
    for entries in ENTRIES:
        passed = keyed.mapInArrow(_table(entries), "key bigint, n bigint, bytes bigint")
        merged = passed.groupBy("key").agg(F.sum("n"), F.sum("bytes"))
        contenders[f"a table of {entries:,} entries, then Spark"] = merged
    measurements: dict[str, list[Measurement]] = {name: [] for name in contenders}
    spilled: dict[str, int] = {}
    for turn in range(REPEATS + 1):
        for name, frame in contenders.items():
            before, started = _spilled_bytes(spark), time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            seconds = time.perf_counter() - started
            spilled[name] = _spilled_bytes(spark) - before
            say(f"turn {turn}, {name}: {seconds:.1f} s, {spilled[name] / 1e6:.0f} MB spilled")
            if turn:
                measurements[name].append(Measurement(name, rows, (seconds,)))
    medians = {name: combine(runs) for name, runs in measurements.items()}
    alone = medians.pop("Spark alone")
    comparisons = [
        Comparison(
            f"{name}, against Spark alone",
            rate(measurement),
            rate(alone),
            measurement.rows_per_second / alone.rows_per_second,
        )
        for name, measurement in medians.items()
    ]
    return Report(
        title="weft bench bounded",
        machine=machine(spark),
        settings={
            "rows": rows,
            "keys": ", ".join(KEYS),
            "shuffle partitions": cores(),
            "MB spilled by Spark alone": round(spilled["Spark alone"] / 1e6),
        },
        comparisons=tuple(comparisons),
        measurements=(alone, *medians.values()),
    )


def _spilled_bytes(spark: SparkSession) -> int:
    """What the tasks so far have moved out of memory."""
    context = spark.sparkContext
    quantiles = context._gateway.new_array(context._gateway.jvm.double, 0)  # type: ignore[union-attr]
    store = context._jsc.sc().statusStore()
    stages = store.stageList(None, False, False, quantiles, None)
    return sum(stages.apply(number).memoryBytesSpilled() for number in range(stages.size()))


def _native(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*"), F.sum("bytes"))


def _table(entries: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def passed_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = [batch for batch in batches if batch.num_rows]
        if not filled:
            return
        table = pa.Table.from_batches(filled)
        keys, codes = np.unique(table.column("key").to_numpy(), return_inverse=True)
        values = table.column("bytes").to_numpy().astype(np.int64)
        measures = Measures.of(len(codes), {"n": ("count", None), "bytes": ("sum", values)})
        given = Passed(codes, measures.whole, measures.real, len(codes))
        passed = bounded(codes, given, measures, entries, len(keys))
        columns = measures.columns(passed.whole, passed.real)
        yield pa.RecordBatch.from_arrays(
            [pa.array(keys[passed.groups]), pa.array(columns["n"]), pa.array(columns["bytes"])],
            ["key", "n", "bytes"],
        )

    return passed_on


def main(json: bool = False) -> Report:
    """What the command does."""
    progress = Console(stderr=True)
    report = run(lambda line: progress.print(line, style="dim", highlight=False))
    if json:
        print(report.to_json())
    else:
        Console().print(render(report))
    return report
