"""Rates are taken from the first micro-batch's start to the end of the run."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from weft.bench.measuring.measure import (
    Measurement,
    combine,
    data_batches,
    input_rows,
    phase_seconds,
    seconds_from_first_batch,
)

PROGRESS = [
    {
        "timestamp": "2024-01-01T00:00:02.500Z",
        "numInputRows": 0,
        "durationMs": {"triggerExecution": 100},
    },
    {
        "timestamp": "2024-01-01T00:00:01.000Z",
        "numInputRows": 40,
        "durationMs": {"triggerExecution": 1500, "addBatch": 1000},
    },
]


def test_seconds_begin_with_the_earliest_batch() -> None:
    ended = datetime(2024, 1, 1, 0, 0, 3, tzinfo=UTC).timestamp()
    assert seconds_from_first_batch(PROGRESS, ended) == pytest.approx(2)
    with pytest.raises(ValueError, match="no micro-batch"):
        seconds_from_first_batch([], ended)


def test_progress_is_added_up() -> None:
    assert input_rows(PROGRESS) == 40
    assert data_batches(PROGRESS) == 1
    assert phase_seconds(PROGRESS) == {"triggerExecution": 1.6, "addBatch": 1.0}


def test_the_median_run_counts() -> None:
    runs = [Measurement("weft", 100, (seconds,), results=10) for seconds in (4.0, 1.0, 2.0)]
    measured = combine(runs)
    assert measured.rows_per_second == 50
    assert measured.results_per_second == 5
    assert measured.seconds == (4.0, 1.0, 2.0)


def test_different_inputs_are_not_combined() -> None:
    with pytest.raises(ValueError, match="same rows"):
        combine([Measurement("weft", 1, (1.0,)), Measurement("weft", 2, (1.0,))])
