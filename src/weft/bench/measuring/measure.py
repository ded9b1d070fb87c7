"""How a rate is taken: the same rule for weft and for every Spark peer.

A run reads all its files with ``availableNow``. Its seconds go from the start of its first
micro-batch, as Spark's progress reports it, to the return of ``awaitTermination``: reading,
planning, state, results, commits and the last step without data are inside; starting the process,
the session and the query is outside. Of several queries run side by side, the first start and the
last end count. Every contender has a warm-up run before, in the same session.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Progress = Mapping[str, Any]


@dataclass(frozen=True)
class Measurement:
    """One contender's runs on the same input; the median run is what is reported."""

    name: str
    rows: int
    seconds: tuple[float, ...]
    results: int | None = None
    batches: int | None = None
    note: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def median_seconds(self) -> float:
        return statistics.median(self.seconds)

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.median_seconds

    @property
    def results_per_second(self) -> float | None:
        return None if self.results is None else self.results / self.median_seconds

    def to_json(self) -> dict[str, Any]:
        """The measurement with every run's seconds."""
        return {
            "name": self.name,
            "rows": self.rows,
            "seconds": list(self.seconds),
            "batches": self.batches,
            "results": self.results,
            "rows_per_second": self.rows_per_second,
            "results_per_second": self.results_per_second,
            "note": self.note,
            "details": dict(self.details),
        }


def combine(runs: Iterable[Measurement]) -> Measurement:
    """Repeated runs of one contender as one measurement."""
    repeated = list(runs)
    first = repeated[0]
    if any((run.name, run.rows) != (first.name, first.rows) for run in repeated):
        raise ValueError("only runs of the same contender on the same rows can be combined")
    seconds = tuple(second for run in repeated for second in run.seconds)
    return Measurement(
        first.name, first.rows, seconds, first.results, first.batches, first.note, first.details
    )


def seconds_from_first_batch(progress: Iterable[Progress], ended: float) -> float:
    """Seconds from the first micro-batch's start, of one or more queries, to ``ended``."""
    starts = [_start(event) for event in progress]
    if not starts:
        raise ValueError("no micro-batch has run")
    return ended - min(starts)


def input_rows(progress: Iterable[Progress]) -> int:
    """Rows read over all micro-batches."""
    return sum(int(event["numInputRows"]) for event in progress)


def data_batches(progress: Iterable[Progress]) -> int:
    """Micro-batches that read rows."""
    return sum(1 for event in progress if int(event["numInputRows"]) > 0)


def phase_seconds(progress: Iterable[Progress]) -> dict[str, float]:
    """Where Spark says the time went: its ``durationMs`` entries, added up."""
    totals: dict[str, float] = {}
    for event in progress:
        for phase, milliseconds in event["durationMs"].items():
            totals[phase] = totals.get(phase, 0.0) + milliseconds / 1000
    return totals


def _start(event: Progress) -> float:
    return datetime.fromisoformat(str(event["timestamp"])).timestamp()
