"""Progress: each step once, plain lines elsewhere, a table on a terminal."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from weft.cli.run.progress import Lines, LiveTable, StreamFigures, Tally, step_line


def step(batch: int, kind: str = "data", **values: Any) -> dict[str, Any]:
    return {
        "stream": "bids",
        "batch": batch,
        "kind": kind,
        "rows": 1000,
        "results": 10,
        "seconds": 0.5,
        "watermark": 1_704_067_200_000_000,
        "late_rows": 0,
        "null_times": 0,
        "state_rows": 7,
        "state_bytes": 2048,
        "plan_version": 1,
        "queries": 3,
        "placement": "driver",
        "durations": {},
    } | values


def test_a_step_counts_once_however_often_it_is_seen() -> None:
    tally = Tally()
    assert len(tally.add([step(0)])) == 1
    assert len(tally.add([step(0), step(1), step(1, "flush", rows=0, results=5)])) == 2
    total = tally.totals["bids"]
    assert (total.rows, total.results, total.steps) == (2000, 25, 3)
    assert total.last_data["batch"] == 1
    assert total.rows_per_second == pytest.approx(2000 / 1.5)
    assert "2,000 rows in 1.5 s (1,330 rows/s), 25 results" in tally.summary()


def test_a_line_says_what_a_step_did() -> None:
    line = step_line(step(3, late_rows=2))
    assert line == (
        "bids batch 3: 1,000 rows (2,000/s), 0.50 s, 10 results, "
        "watermark 2024-01-01 00:00:00 UTC, state 2.0 KiB, 2 late rows"
    )
    assert step_line(step(3, "flush", rows=0, watermark=0)).startswith("bids flush: 0.50 s")
    assert "watermark none yet" in step_line(step(0, watermark=0))


def test_json_lines_hold_the_whole_step(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    with Lines(as_json=True) as shown:
        shown.update(tally, tally.add([step(0), step(1)]))
    assert [json.loads(line)["batch"] for line in capsys.readouterr().out.splitlines()] == [0, 1]


def test_the_table_has_a_row_per_stream() -> None:
    tally = Tally()
    tally.add([step(0), step(4, stream="clicks", late_rows=3)])
    screen = io.StringIO()
    with LiveTable("weft tests", Console(file=screen, width=160, force_terminal=True)) as shown:
        shown.update(tally, [])
    Console(file=screen, width=160).print(StreamFigures(tally))
    text = screen.getvalue()
    assert "weft tests" in text
    for word in ("rows/s", "batch time", "watermark", "late", "state", "clicks", "2.0 KiB"):
        assert word in text
