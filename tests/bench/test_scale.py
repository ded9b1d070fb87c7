"""`weft bench mixed --only scale` with few queries: every figure is of the step that it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from weft.bench.scale.benchmark import BATCHES, scale
from weft.workloads.mixed import FEW, store_bids

ROWS = 2000


@pytest.mark.spark
def test_registering_planning_running_and_planning_again_are_measured(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = store_bids(spark, tmp_path / "bids", ROWS * (BATCHES + 1), BATCHES + 1, FEW)
    said: list[str] = []
    comparisons, runs = scale(spark, stream, tmp_path, said.append, counts=(2, 5))
    assert [run.rows for run in runs] == [BATCHES * ROWS] * 2
    assert [run.batches for run in runs] == [BATCHES] * 2
    steps = [comparison.name.split(" 5 queries")[0] for comparison in comparisons]
    assert steps == [
        "registering",
        "planning",
        "planning again",
        "explaining",
        "explaining after the run",
        "opening again",
        "running",
    ]
    assert all((comparison.value or 0) > 0 for comparison in comparisons)
    # One more query came with a fourth micro-batch: the plan that is measured again is another one.
    assert (tmp_path / "scale/streams/events/plans/00000002.json").exists()
    with pytest.raises(ValueError, match="4 files are needed, there are 3"):
        scale(spark, stream.first(BATCHES), tmp_path, said.append)
