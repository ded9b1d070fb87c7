"""The benchmark's stream; running it is not a test."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from weft.bench.state.steps import BEGINNING, MINUTE, NEWEST, RANGE, StateOptions, store


def test_every_size_has_the_same_hour_due(tmp_path: Path) -> None:
    """Whatever is open, the window that a step closes holds as many fragments."""
    due = set()
    for fragments in (1000, 3000):
        options = StateOptions((1000, 3000), per_minute=10, step_rows=50, warm_steps=1, steps=2)
        folder = store(tmp_path / str(fragments), fragments, options)
        first, *steps = (pq.read_table(path).column("ts") for path in sorted(folder.iterdir()))
        assert len(first) == fragments
        latest = pc.max(first.cast("int64")).as_py()
        for number, batch in enumerate(steps):
            times = batch.cast("int64")
            watermark = latest - options.delay(fragments) * MINUTE
            latest = pc.max(times).as_py()
            newest = latest - NEWEST * MINUTE
            assert watermark < newest <= pc.min(times).as_py()
            end = watermark // MINUTE * MINUTE
            old = first.cast("int64").to_numpy()
            if number >= options.warm_steps:
                due.add(int(((old >= end - RANGE * MINUTE) & (old < end)).sum()))
        assert pc.min(first.cast("int64")).as_py() >= BEGINNING
    assert due == {RANGE * 10}


def test_less_than_the_due_hour_is_refused() -> None:
    with pytest.raises(ValueError, match="an hour and the newest rows"):
        StateOptions((50_000,))
