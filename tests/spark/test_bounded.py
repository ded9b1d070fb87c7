"""What is kept stays bounded on an endless stream, by expiry, compaction, merging and pruning.

Without them the same run breaks every one of these bounds, and gives the same results.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.oracle.plain_spark import python_rows
from tests.support import seeds
from tests.support.harness import session
from tests.support.input_files import put_file

import weft
from weft.runtime.checkpoint import log as log_module
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.level1 import statefiles
from weft.runtime.protocol import stepper
from weft.runtime.sinks import resultfiles

SECOND = 1_000_000
BATCHES, PER_BATCH, STEP = 18, 20, 25_000
"""Half a second of event time in each batch, so that many batches are open at once."""
START = 1_700_000_000 * SECOND
RANGE, SLIDE, DELAY = 4 * SECOND, SECOND // 2, SECOND
SQL = f"""SELECT k, window.end AS e, count(*) AS n, count(DISTINCT v) AS d, max_by(v, ts) AS m,
    var_pop(v) AS p, approx_count_distinct(v) AS a
    FROM s GROUP BY window(ts, '{RANGE // SECOND} seconds', '{SLIDE // 1000} milliseconds'), k"""

BOUNDS = {"expiry": 400, "compaction": 14, "merging": 10, "pruning": 12}
"""Rows of open state, its files, result files, commits."""


def rows_of_batch(batch: int) -> list[tuple[int, str, int]]:
    """Every batch brings keys that never come again."""
    return [
        (
            START + (batch * PER_BATCH + i) * STEP,
            f"{batch}-{i % 3}" if i % 2 else "always",
            (batch * PER_BATCH + i) % 40,
        )
        for i in range(PER_BATCH)
    ]


def write_stream(folder: Path) -> None:
    folder.mkdir()
    for batch in range(BATCHES):
        times, keys, values = zip(*rows_of_batch(batch), strict=True)
        columns = {"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "k": keys, "v": values}
        put_file(pa.table(columns), folder, batch)


def expected() -> list[tuple[Any, ...]]:
    """Every due window by brute force: key, end, rows, distinct values, latest value, variance."""
    rows = [row for batch in range(BATCHES) for row in rows_of_batch(batch)]
    watermark = rows[-1][0] // 1000 * 1000 - DELAY
    windows: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for time, key, value in rows:
        end = (time // SLIDE + 1) * SLIDE
        while end - RANGE <= time:
            if end <= watermark:
                windows.setdefault((key, end), []).append((time, value))
            end += SLIDE
    return sorted(
        (key, end, len(held), len({v for _, v in held}), max(held)[1], _variance(held))
        for (key, end), held in windows.items()
    )


def _variance(held: list[tuple[int, int]]) -> float:
    return round(statistics.pvariance([float(value) for _, value in held]), 6)


@dataclass(frozen=True)
class Kept:
    """What a run has left, and what it gave."""

    counted: dict[str, int]
    rows: list[tuple[Any, ...]]
    intents: int
    engine: Any

    @property
    def too_much(self) -> set[str]:
        return {name for name, count in self.counted.items() if count > BOUNDS[name]}


def run_to_the_end(
    spark: SparkSession, folder: Path, kernel: str, patch: pytest.MonkeyPatch, *, off: bool = False
) -> Kept:
    """Run the whole stream; `off` switches all of it off that keeps the checkpoint small."""
    patch.setattr(statefiles, "MOST_FILES", 10_000 if off else 3)
    patch.setattr(resultfiles, "MERGE_AT_LEAST", 10_000 if off else 3)
    patch.setattr(stepper, "BASE_EVERY", 5)
    patch.setattr(stepper, "CLEAN_EVERY", 5)
    patch.setattr(log_module, "KEPT_COMMITS", 5)
    if off:
        patch.setattr(StreamLog, "prune", lambda *_: None)
        patch.setattr(statefiles, "live", _all_live)
    write_stream(folder / "input")
    own_session = session(spark)
    source = own_session.readStream.schema("ts timestamp, k string, v bigint")
    source = source.option("maxFilesPerTrigger", 1 if kernel == "driver" else 6)
    w = weft.Weft(own_session, folder / "checkpoint", kernel=kernel)
    frame = source.option("latestFirst", "false").parquet(str(folder / "input"))
    w.add_stream("s", frame, time="ts", watermark=f"{DELAY // SECOND} second")
    w.register("sliding", SQL)
    run = w.start(availableNow=True)
    run.awaitTermination()
    stream = folder / "checkpoint/streams/s"
    counted = {
        "expiry": run.recentProgress[-1]["state_rows"],
        "compaction": len(list((stream / "state").rglob("*.parquet"))),
        "merging": len(w._log("s").result_files()),
        "pruning": len(list((stream / "commits").glob("*.json"))),
    }
    rows = python_rows(w.results("sliding").toArrow())
    rounded = sorted((*row[:5], round(float(row[5]), 6)) for row in rows)
    intents = len(list((stream / "intents").glob("*.json")))
    return Kept(counted, rounded, intents, run._streams[0].leader.stepper.engine)


def _all_live(entries: Sequence[Entry], _: dict[str, int]) -> tuple[list[Entry], list[Entry]]:
    return list(entries), []


@pytest.mark.parametrize("kernel", seeds.some(__name__, ["driver", "lanes"], 1))
def test_what_is_kept_does_not_grow_with_the_stream(
    spark: SparkSession, tmp_path: Path, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = run_to_the_end(spark, tmp_path, kernel, monkeypatch)
    assert kept.rows == expected()
    assert kept.too_much == set(), kept.counted
    assert kept.intents <= 12
    if kernel == "driver":
        opened = kept.engine._open
        assert opened is not None
        assert sum(len(slots) for slots in opened.pools.values()) <= BOUNDS["expiry"]
        assert all(len(encoders.keys) < 10_000 for encoders in opened.encoders.values())


def test_without_them_every_bound_is_broken(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the bounds above mean something."""
    kept = run_to_the_end(spark, tmp_path, "driver", monkeypatch, off=True)
    assert kept.rows == expected()
    assert kept.too_much == set(BOUNDS), kept.counted
