"""What ``weft bench soak`` does: run, table, verdict."""

from __future__ import annotations

import json as json_text
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from weft.bench.measuring.session import machine, session
from weft.bench.soak.resources import SERIES, Sample
from weft.bench.soak.scenario import (
    CHANGE_SECONDS,
    MILLISECONDS_PER_BATCH,
    QUERIES,
    ROWS_PER_BATCH,
    Soak,
)
from weft.bench.soak.trend import TOLERATED, Trend, trend

_SAMPLES, _SHORTEST, _SHOWN = 120, 2.0, 20
_HEAP = "1g"


@dataclass(frozen=True)
class SoakReport:
    """The samples of a run and what they say."""

    machine: Mapping[str, str]
    samples: tuple[Sample, ...]

    @property
    def trends(self) -> list[Trend]:
        minutes = [sample.minutes for sample in self.samples]
        return [
            trend(name, minutes, [float(getattr(sample, name)) for sample in self.samples])
            for name in SERIES
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "title": "weft bench soak",
            "machine": dict(self.machine),
            "settings": {
                "rows per micro-batch": ROWS_PER_BATCH,
                "seconds of event time per micro-batch": MILLISECONDS_PER_BATCH / 1000,
                "seconds between changes of queries": CHANGE_SECONDS,
                "queries": len(QUERIES),
                "heap of Java": _HEAP,
            },
            "samples": [sample.to_json() for sample in self.samples],
            "trends": [measured_trend.to_json() for measured_trend in self.trends],
        }


def main(json: bool = False, minutes: float = 10.0, work: Path | None = None) -> SoakReport:
    """What the command does: progress on standard error, the report on standard output."""
    progress = Console(stderr=True)
    spark = session("weft bench soak", heap=_HEAP)

    def say(line: str) -> None:
        progress.print(line, style="dim", highlight=False)

    every = max(_SHORTEST, minutes * 60 / _SAMPLES)
    with tempfile.TemporaryDirectory(prefix="weft-soak-", dir=work) as folder:
        samples = Soak(spark, Path(folder) / "checkpoint", say).run(minutes, every)
    report = SoakReport(machine(spark), tuple(samples))
    if json:
        print(json_text.dumps(report.to_json(), indent=2))
    else:
        out = Console()
        out.print(_table(report.samples))
        out.print(_verdicts(report.trends))
        out.print(
            f"Lines by least squares through the second half of the run; rising is more than "
            f"{TOLERATED:.0%} of the mean, and more than twice the standard error."
        )
    return report


def _table(samples: Sequence[Sample]) -> Table:
    """About twenty of the samples, the first and the last among them."""
    table = Table(title="weft bench soak", title_justify="left")
    for heading in ("minute", "event hours", "batches", "queries", "Python MB", "objects"):
        table.add_column(heading, justify="right")
    for heading in ("Java MB", "live", "files", "result files"):
        table.add_column(heading, justify="right")
    step = max(1, len(samples) // _SHOWN)
    for sample in [*samples[:-1:step], samples[-1]]:
        table.add_row(
            f"{sample.minutes:.1f}",
            f"{sample.event_hours:.1f}",
            f"{sample.batches:,}",
            str(sample.queries),
            f"{sample.python_mb:,.0f}",
            f"{sample.python_objects:,}",
            f"{sample.java_mb:,.0f}",
            f"{sample.java_live_mb:,.0f}",
            f"{sample.files:,}",
            f"{sample.result_files:,}",
        )
    return table


def _verdicts(trends: Sequence[Trend]) -> Table:
    table = Table(title="second half of the run", title_justify="left")
    table.add_column("series")
    for heading in ("mean", "slope per minute", "rise", "verdict"):
        table.add_column(heading, justify="right")
    for measured_trend in trends:
        table.add_row(
            measured_trend.name.replace("_", " "),
            f"{measured_trend.mean:,.1f}",
            f"{measured_trend.per_minute:+,.2f}",
            f"{measured_trend.rise:+,.1f} ± {measured_trend.error:,.1f}",
            measured_trend.verdict,
        )
    return table
