"""What the windows of a stream are measured in, as EXPLAIN writes it: time, or rows.

The cost models count per second of a million microseconds. On the numbered stream the unit is a row,
so the same figures are per million rows, and the rate is a million by definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.algebra.query import StreamSchema
from weft.algebra.window import EdgeClass, Window
from weft.explain.wording import counted, duration, edges_text, instant, window_text


@dataclass(frozen=True)
class Axis:
    """How lengths and points are written, and what rates are per."""

    unit: str
    per: str
    per_short: str
    length: Callable[[int], str]
    point: Callable[[int], str]

    def window(self, window: Window) -> str:
        return window_text(window, self.length)

    def edges(self, *classes: EdgeClass) -> list[str]:
        return edges_text(classes, self.length)


def _rows(number: int) -> str:
    return counted(number, "row")


TIME = Axis("microsecond", "second", "s", duration, instant)
ROWS = Axis("row", "million rows", "million rows", _rows, lambda number: f"row {number:,}")


def axis_of(stream: StreamSchema) -> Axis:
    """The axis of a stream's windows.

    >>> axis_of(StreamSchema("s@rows", (), "row#", 0)).window(Window(1000, 100))
    '1,000 rows every 100 rows'
    """
    return ROWS if stream.counts_rows else TIME
