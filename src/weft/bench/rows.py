"""`weft bench rows`: windows of rows beside the same windows of time, and the floor.

The row windows are those of time in rows: at the stream's rate they hold as many rows each, and give
as many results. What they cost more is numbering: the rows wait in files, are sorted and written once
more. Contenders take turns in one session, after a warm-up each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from weft.bench.measuring.loom import shared
from weft.bench.measuring.report import Comparison, Report, rate, render
from weft.bench.measuring.session import machine, session
from weft.bench.measuring.turns import Contender, Say, take_turns
from weft.bench.peers.floor import floor
from weft.workloads.events import RATE, store_events
from weft.workloads.windows import WindowQuery, thousand_sliding

MILLION = 1_000_000
BATCH_MILLIONS = 2
TURNS = 3
QUERIES = 100


@dataclass(frozen=True)
class RowQuery(WindowQuery):
    """The query of a window of time over as many rows as it has at the stream's rate."""

    @property
    def sql(self) -> str:
        length, slide = (ms * RATE // 1000 for ms in (self.window.range, self.window.slide))
        return (
            "SELECT window.start AS start, key, COUNT(*) AS n, SUM(value) AS total "
            f"FROM events [RANGE {length} ROWS SLIDE {slide} ROWS] GROUP BY key"
        )


def in_rows(queries: Sequence[WindowQuery]) -> list[RowQuery]:
    """The same windows in rows.

    >>> from weft.workloads.windows import MillisecondWindow
    >>> "[RANGE 1000000 ROWS SLIDE 200000 ROWS]" in in_rows([WindowQuery("q", MillisecondWindow(10_000, 2_000))])[0].sql
    True
    """
    return [RowQuery(query.name, query.window) for query in queries]


def run(rows_millions: int, work: Path, say: Say = lambda _: None) -> Report:
    """Measure and report."""
    spark = session("weft bench rows")
    files = rows_millions // BATCH_MILLIONS
    if files < 1 or rows_millions % BATCH_MILLIONS:
        raise ValueError(f"rows come in batches of {BATCH_MILLIONS} million")
    stream = store_events(spark, work / "events", rows_millions * MILLION, files)
    windows = thousand_sliding(QUERIES)

    def weft(name: str, queries: Sequence[WindowQuery]) -> Contender:
        return lambda stream: shared(spark, stream.open(spark, 1), queries, work, name)

    contenders: dict[str, Contender] = {
        "floor": lambda stream: floor(spark, stream, 1, work),
        "time": weft(f"{QUERIES} windows of time", windows),
        "one": weft("1 window of rows", in_rows(windows[:1])),
        "rows": weft(f"{QUERIES} windows of rows", in_rows(windows)),
    }
    measured = take_turns(contenders, stream, TURNS, say, stream)
    pairs = (("rows", "time"), ("rows", "one"), ("one", "floor"))
    return Report(
        title="weft bench rows",
        machine=machine(spark),
        settings={
            "rows": rows_millions * MILLION,
            "rows per micro-batch": BATCH_MILLIONS * MILLION,
            "turns": TURNS,
        },
        comparisons=tuple(
            Comparison(
                f"{measured[ours].name} / {measured[peer].name}",
                rate(measured[ours]),
                rate(measured[peer]),
                measured[ours].rows_per_second / measured[peer].rows_per_second,
            )
            for ours, peer in pairs
        ),
        measurements=tuple(measured.values()),
    )


def main(json: bool = False, rows_millions: int = 8, work: Path | None = None) -> None:
    """What the command does."""
    progress = Console(stderr=True)

    def say(line: str) -> None:
        progress.print(line, style="dim", highlight=False)

    with tempfile.TemporaryDirectory() as scratch:
        report = run(rows_millions, work or Path(scratch), say)
    if json:
        print(report.to_json())
    else:
        Console().print(render(report))
