"""`weft bench soak`: the verdict, what is counted, and a run of a few seconds."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from weft.bench.soak.benchmark import SoakReport
from weft.bench.soak.resources import (
    SERIES,
    Sample,
    count_files,
    java_process,
    python_objects,
    resident_mb,
)
from weft.bench.soak.scenario import QUERIES, Soak
from weft.bench.soak.trend import trend

MINUTES = [number / 10 for number in range(100)]


def noisy(slope: float) -> list[float]:
    """A series around 200 that begins with a steep rise, as a process that warms up does."""
    choose = random.Random(3)
    return [
        200 + slope * minute - 80 * max(0.0, 2 - minute) + choose.gauss(0, 3) for minute in MINUTES
    ]


@pytest.mark.parametrize(
    ("slope", "verdict"), [(0.0, "flat"), (-4.0, "flat"), (0.3, "flat"), (4.0, "rising")]
)
def test_only_the_second_half_and_more_than_noise_counts(slope: float, verdict: str) -> None:
    found = trend("python_mb", MINUTES, noisy(slope))
    assert found.verdict == verdict
    assert found.per_minute == pytest.approx(slope, abs=0.6)


def test_the_line_is_that_of_least_squares() -> None:
    found = trend("files", range(8), [0, 0, 0, 0, 1, 3, 2, 4])
    assert (found.mean, found.per_minute, found.rise) == (
        2.5,
        pytest.approx(0.8),
        2.4000000000000004,
    )
    # residuals 0.3 -0.9 … of 4 points: sqrt(1.8 / 2 / 5) a minute, over three minutes
    assert found.error == pytest.approx(3 * (1.8 / 2 / 5) ** 0.5)


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="8 samples or more, not 7"):
        trend("files", range(7), range(7))


def test_files_of_results_are_counted_apart(tmp_path: Path) -> None:
    for name in ("weft.json", "streams/s/commits/1", "results/a.parquet", "fallback/x/results/b/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert count_files(tmp_path) == (2, 2)


def test_memory_of_this_process_is_counted() -> None:
    before = resident_mb(os.getpid())
    held = bytearray(50_000_000)
    assert resident_mb(os.getpid()) - before > 40
    del held
    assert python_objects() > 1000


@pytest.mark.slow
def test_a_short_run_counts_everything_while_queries_come_and_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.bench.soak.scenario.CHANGE_SECONDS", math.inf)
    monkeypatch.setattr("weft.bench.soak.scenario.ROWS_PER_BATCH", 1_000)
    few = dict(itertools.islice(QUERIES.items(), 3))
    monkeypatch.setattr("weft.bench.soak.scenario.QUERIES", few)
    said: list[str] = []
    samples: list[Sample] = []
    with closing(Soak(spark, tmp_path / "checkpoint", said.append).watch(every=2.0)) as watched:
        for last in watched:
            samples.append(last)
            if last.batches >= 1 and last.event_hours > 0:
                monkeypatch.setattr("weft.bench.soak.scenario.CHANGE_SECONDS", 0.0)
            if last.queries > len(few):
                break
    assert len(samples) == len(said)
    assert samples[0].queries == len(few)
    assert min(last.python_mb, last.java_mb, last.java_live_mb, last.files) > 10
    assert last.java_mb == pytest.approx(resident_mb(java_process(spark)), rel=0.5)


def test_the_report_has_a_verdict_for_everything_that_must_not_rise() -> None:
    steady = Sample(0.0, 1.0, 10, 7, 200.0, 400_000, 500.0, 70.0, 60, 10)
    samples = [replace(steady, minutes=n, files=60 + 20 * n) for n in range(8)]
    report = SoakReport({"cores": "2"}, tuple(samples)).to_json()
    assert json.loads(json.dumps(report)) == report
    verdicts = {found["name"]: found["verdict"] for found in report["trends"]}
    assert verdicts == dict.fromkeys(SERIES, "flat") | {"files": "rising"}
