"""A small stream without late rows, with queries over it: windows, and a join. Every row counts, however the
rows are batched, so all runs give the same results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.workload import DDL, SCHEMA, SECOND, SPECS, START, joined
from tests.oracle import model
from tests.oracle.plain_spark import write_batches
from tests.support import seeds
from tests.support.stored import stored_rows

import weft

DELAY = 2 * SECOND
WINDOWS = ("counts", "distinct")
JOIN = "pairs"
QUERIES = {
    **{name: workload.QUERIES[name] for name in WINDOWS},
    JOIN: workload.JOIN_QUERIES[JOIN],
}
Row = dict[str, Any]


def batches(count: int, rows: int = 60) -> list[list[Row]]:
    """Rows of six seconds per batch, in the order of batches; the same in all processes of a test run."""
    chance = seeds.chance_for("a steady stream")
    made = []
    for number in range(count):
        first = START + 6 * number * SECOND
        times = sorted(first + chance.randrange(6 * SECOND) for _ in range(rows))
        made.append(
            [
                {
                    "ts": time,
                    "k": chance.choice("abcdefgh"),
                    "v": chance.randrange(6),
                    "x": chance.random(),
                }
                for time in times
            ]
        )
    return made


def write_input(folder: Path, count: int) -> None:
    write_batches(folder, SCHEMA, batches(count))


def expected(count: int) -> dict[str, Counter[Any]]:
    """The results of all queries, by brute force."""
    rows = [row for batch in batches(count) for row in batch]
    results = {
        name: Counter(row for _, row in model.run(SPECS[name], SCHEMA, batches(count), DELAY))
        for name in WINDOWS
    }
    return {**results, JOIN: Counter(joined(JOIN, rows, rows))}


def bursts(count: int) -> Counter[Any]:
    """The results of the guide's aggregation join, by brute force: at every two seconds up to the last watermark, by key, how many pairs
    of a row of the last four seconds and one of the last two there are, and the largest v of these."""
    rows = [row for batch in batches(count) for row in batch]
    last = max(row["ts"] for row in rows) // 1000 * 1000 - DELAY
    found: Counter[Any] = Counter()
    for at in range(START // (2 * SECOND) * 2 * SECOND, last + 1, 2 * SECOND):
        for key in "abcdefgh":
            p, q = (
                [r for r in rows if r["k"] == key and at - length * SECOND <= r["ts"] < at]
                for length in (4, 2)
            )
            if p and q:
                found[at, key, len(p) * len(q), max(row["v"] for row in q)] += 1
    return found


def opened(spark: SparkSession, folder: Path, checkpoint: str, **settings: Any) -> weft.Weft:
    """A weft with the stream and all queries."""
    source = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
    w = weft.Weft(spark, checkpoint, **settings)
    w.add_stream("s", source.parquet(str(folder)), time="ts", watermark="2 seconds")
    live = {handle.name for handle in w.queries}
    with w.changes():
        for name, sql in QUERIES.items():
            if name not in live:
                w.register(name, sql)
    return w


def results(w: weft.Weft) -> dict[str, Counter[Any]]:
    """What the queries have given so far."""
    return {name: Counter(stored_rows(w, name)) for name in QUERIES}
