"""Flat or rising: a straight line by least squares through the second half of a series.

The first half is left out: caches fill, classes load and old files have not expired yet. A series
rises if the line rises, over the second half, by more than 2 % of the series' mean there and by more
than twice the standard error of that rise, which says what noise alone would give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TOLERATED = 0.02
_ERRORS = 2.0
_FEWEST = 8


@dataclass(frozen=True)
class Trend:
    """The line through the second half of a series."""

    name: str
    mean: float
    per_minute: float
    rise: float
    """How much the line rises over the second half."""
    error: float
    """The standard error of `rise`."""

    @property
    def is_flat(self) -> bool:
        return self.rise <= max(TOLERATED * abs(self.mean), _ERRORS * self.error)

    @property
    def verdict(self) -> str:
        return "flat" if self.is_flat else "rising"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mean": self.mean,
            "slope_per_minute": self.per_minute,
            "rise_over_second_half": self.rise,
            "standard_error": self.error,
            "verdict": self.verdict,
        }


def trend(name: str, minutes: Sequence[float], values: Sequence[float]) -> Trend:
    """The trend of a series that was sampled at these minutes.

    >>> files = trend("files", range(8), [9, 9, 9, 9, 10, 12, 14, 16])
    >>> files.per_minute, files.rise, files.verdict
    (2.0, 6.0, 'rising')
    >>> trend("files", range(8), [1, 5, 9, 9, 10, 9, 10, 9]).verdict
    'flat'
    """
    if len(minutes) < _FEWEST:
        raise ValueError(f"a trend needs {_FEWEST} samples or more, not {len(minutes)}")
    half = len(minutes) // 2
    times, late = list(minutes[half:]), list(values[half:])
    centre, mean = sum(times) / len(times), sum(late) / len(late)
    spread = sum((time - centre) ** 2 for time in times)
    slope = sum((t - centre) * (v - mean) for t, v in zip(times, late, strict=True)) / spread
    misfit = sum(
        (value - mean - slope * (time - centre)) ** 2
        for time, value in zip(times, late, strict=True)
    )
    error = math.sqrt(misfit / (len(times) - 2) / spread)
    length = times[-1] - times[0]
    return Trend(name, mean, slope, slope * length, error * length)
