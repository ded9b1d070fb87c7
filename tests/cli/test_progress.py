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
        "where": "driver",
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


def rendered(tally: Tally, width: int) -> str:
    screen = io.StringIO()
    with LiveTable("weft tests", Console(file=screen, width=width, force_terminal=True)) as shown:
        shown.update(tally, [])
    Console(file=screen, width=width).print(StreamFigures(tally))
    return screen.getvalue()


def two_streams() -> Tally:
    tally = Tally()
    tally.add([step(0), step(4, stream="clicks", late_rows=3, rows=12_345_678)])
    return tally


def test_a_wide_terminal_has_a_table_with_a_row_per_stream() -> None:
    text = rendered(two_streams(), 160)
    assert "weft tests" in text
    for word in ("rows/s", "batch time", "watermark", "late rows", "state", "clicks", "2.0 KiB"):
        assert word in text


def test_at_80_columns_every_figure_is_whole_and_has_its_word() -> None:
    shown = io.StringIO()
    Console(file=shown, width=80).print(StreamFigures(two_streams()))
    assert shown.getvalue().splitlines() == [
        "bids: batch 0 took 0.50 s, 2,000 rows/s",
        "  so far 1,000 rows, 10 results, 0 late rows",
        "  watermark 2024-01-01 00:00:00 UTC, state 2.0 KiB",
        "clicks: batch 4 took 0.50 s, 24,700,000 rows/s",
        "  so far 12,345,678 rows, 10 results, 3 late rows",
        "  watermark 2024-01-01 00:00:00 UTC, state 2.0 KiB",
    ]


def test_steps_that_left_the_list_are_forgotten() -> None:
    tally = Tally()
    for batch in range(500):
        tally.add([step(number) for number in range(max(0, batch - 9), batch + 1)])
    assert tally.totals["bids"].steps == 500
    assert len(tally._seen) == 10
