"""A benchmark's report: comparisons with targets, the measurements behind them, the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.console import Console, Group, RenderableType
from rich.table import Table

from weft.bench.measuring.measure import Measurement

Direction = Literal["at least", "at most"]


@dataclass(frozen=True)
class Comparison:
    """One line of the table: a ratio (or a time) against its target.

    ``value`` is None where nothing was measured; ``reason`` then says why.
    """

    name: str
    weft: str
    peer: str
    value: float | None
    direction: Direction = "at least"
    target: float | None = None
    unit: str = "×"
    reason: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without a figure or a target."""
        if self.value is None or self.target is None:
            return None
        if self.direction == "at least":
            return self.value >= self.target
        return self.value <= self.target

    @property
    def shown_value(self) -> str:
        if self.value is None:
            return f"not measured: {self.reason}"
        return f"{number(self.value)}{_spaced(self.unit)}"

    @property
    def shown_target(self) -> str:
        if self.target is None:
            return "–"
        sign = "≥" if self.direction == "at least" else "≤"
        return f"{sign} {number(self.target)}{_spaced(self.unit)}"

    @property
    def shown_met(self) -> str:
        return {True: "met", False: "missed", None: "–"}[self.met]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "weft": self.weft,
            "peer": self.peer,
            "value": self.value,
            "unit": self.unit,
            "direction": self.direction,
            "target": self.target,
            "met": self.met,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Report:
    """All a run found."""

    title: str
    machine: Mapping[str, str]
    settings: Mapping[str, str | int | float]
    comparisons: tuple[Comparison, ...]
    measurements: tuple[Measurement, ...] = field(default=())

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(
            {
                "title": self.title,
                "machine": dict(self.machine),
                "settings": dict(self.settings),
                "comparisons": [comparison.to_json() for comparison in self.comparisons],
                "measurements": [measurement.to_json() for measurement in self.measurements],
            },
            indent=2,
        )

    def to_markdown(self) -> str:
        """Both tables, for the documentation."""
        lines = [
            "| comparison | weft | peer | ratio | target | |",
            "|---|---|---|---|---|---|",
        ]
        for c in self.comparisons:
            cells = (c.name, c.weft, c.peer, c.shown_value, c.shown_target, c.shown_met)
            lines.append("| " + " | ".join(cells) + " |")
        lines += [
            "",
            "| run | rows | batches | seconds | rows/s | results/s |",
            "|---|---|---|---|---|---|",
        ]
        lines += ["| " + " | ".join(_measured(m)) + " |" for m in self.measurements]
        return "\n".join(lines) + "\n"


def render(report: Report) -> RenderableType:
    """The report as tables for a terminal."""
    comparisons = Table(title=report.title, title_justify="left")
    for heading in ("comparison", "weft", "peer", "ratio", "target", ""):
        comparisons.add_column(heading, justify="left" if heading == "comparison" else "right")
    for c in report.comparisons:
        style = {True: "green", False: "red", None: "dim"}[c.met]
        met = f"[{style}]{c.shown_met}[/]"
        comparisons.add_row(c.name, c.weft, c.peer, c.shown_value, c.shown_target, met)
    runs = Table(title="runs", title_justify="left")
    for heading in ("run", "rows", "batches", "seconds", "rows/s", "results/s"):
        runs.add_column(heading, justify="left" if heading == "run" else "right")
    for m in report.measurements:
        runs.add_row(*_measured(m))
    facts = ", ".join(f"{name} {value}" for name, value in report.machine.items())
    settings = ", ".join(f"{name} {value}" for name, value in report.settings.items())
    tables = (comparisons, runs) if report.measurements else (comparisons,)
    return Group(*tables, f"machine: {facts}", f"settings: {settings}")


def text(report: Report, width: int = 140) -> str:
    """The tables as plain text."""
    console = Console(width=width, record=True, file=None, quiet=False, color_system=None)
    with console.capture() as captured:
        console.print(render(report))
    return captured.get()


def number(value: float) -> str:
    """A figure with about three significant digits.

    >>> [number(x) for x in (12_345_678, 123_456, 1234.5, 56.78, 1.234, 0.0456)]
    ['12.3 M', '123 k', '1,234', '57', '1.23', '0.046']
    """
    if value >= 1e6:
        return f"{value / 1e6:.1f} M"
    if value >= 1e5:
        return f"{value / 1e3:.0f} k"
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.2g}"


def rate(measurement: Measurement) -> str:
    """Rows per second, to show."""
    return f"{number(measurement.rows_per_second)} rows/s"


def _measured(m: Measurement) -> tuple[str, ...]:
    results = m.results_per_second
    seconds = ", ".join(f"{second:.1f}" for second in m.seconds)
    return (
        m.name + (f" ({m.note})" if m.note else ""),
        f"{m.rows:,}",
        "–" if m.batches is None else str(m.batches),
        seconds,
        number(m.rows_per_second),
        "–" if results is None else number(results),
    )


def _spaced(unit: str) -> str:
    return unit if unit == "×" else f" {unit}"
