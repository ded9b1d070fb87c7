"""Window queries over the events of ``weft.workloads.events``: sum per key, after Scotty and Desis.

Plain Python and seeded. All lengths are in milliseconds, so that a window prints as Spark SQL and
as Flink SQL alike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

MINUTE = 60_000
HOUR = 60 * MINUTE
SLIDE_SWEEP_SECONDS = (60, 30, 10, 5, 1, 0.5, 0.25)
WINDOW_COUNTS = (1, 10, 100, 1000)


@dataclass(frozen=True, order=True)
class MillisecondWindow:
    """A sliding window; tumbling if range and slide are equal. Milliseconds."""

    range: int
    slide: int

    @property
    def overlap(self) -> float:
        """In how many windows a row falls."""
        return self.range / self.slide


@dataclass(frozen=True)
class WindowQuery:
    """A named query: count and sum per key in one window."""

    name: str
    window: MillisecondWindow

    @property
    def sql(self) -> str:
        """The query in plain Spark SQL."""
        length, slide = self.window.range, self.window.slide
        return (
            "SELECT window.start AS start, key, COUNT(*) AS n, SUM(value) AS total FROM events "
            f"GROUP BY window(ts, '{length} milliseconds', '{slide} milliseconds'), key"
        )


HOUR_BY_MINUTE = WindowQuery("hour_by_minute", MillisecondWindow(HOUR, MINUTE))


def named(prefix: str, windows: list[MillisecondWindow]) -> list[WindowQuery]:
    """Give every window a query, numbered from 0."""
    return [WindowQuery(f"{prefix}_{i}", window) for i, window in enumerate(windows)]


def thousand_sliding(count: int = 1000, seed: int = 1) -> list[WindowQuery]:
    """Distinct sliding windows with whole-second slides of 2–120 s and ranges up to ten minutes.

    The slide need not divide the range. With 100 keys, 1000 of them emit about 3.7 results per
    100 events of a stream of 100,000 events per second.
    """
    choose = random.Random(f"sliding {seed}")
    windows: dict[MillisecondWindow, None] = {}
    while len(windows) < count:
        slide = choose.randint(2, 120)
        windows[MillisecondWindow(choose.randint(slide + 1, 600) * 1000, slide * 1000)] = None
    return named("sliding", list(windows))


def hundred_hopping(count: int = 100, seed: int = 1) -> list[WindowQuery]:
    """Distinct sliding windows whose slide divides the range, as Flink's HOP demands."""
    choose = random.Random(f"hopping {seed}")
    windows: dict[MillisecondWindow, None] = {}
    while len(windows) < count:
        slide = choose.randint(1, 60)
        windows[MillisecondWindow(choose.randint(2, 20) * slide * 1000, slide * 1000)] = None
    return named("hopping", list(windows))


def ten_sliding() -> list[WindowQuery]:
    """Ten sliding windows as a dashboard has them; a row falls into 277 windows in all."""
    seconds = (
        (3600, 60),
        (1800, 60),
        (1200, 60),
        (900, 60),
        (600, 30),
        (600, 20),
        (360, 20),
        (300, 10),
        (120, 5),
        (60, 2),
    )
    return named("dashboard", [MillisecondWindow(r * 1000, s * 1000) for r, s in seconds])


def random_tumbling(count: int, seed: int = 1, step: int = 1000) -> list[WindowQuery]:
    """``count`` tumbling windows of 1–20 s, lengths in multiples of ``step`` milliseconds.

    Whole seconds repeat (there are twenty of them); ``step=1`` gives almost as many lengths as
    queries, as in the published experiments.
    """
    choose = random.Random(f"tumbling {seed} {step}")
    lengths = [choose.randint(1000 // step, 20_000 // step) * step for _ in range(count)]
    return named("tumbling", [MillisecondWindow(length, length) for length in lengths])


def slide_sweep() -> list[WindowQuery]:
    """A 60 s window with slides of 60 s down to 0.25 s, to be run one at a time."""
    return named("slide", [MillisecondWindow(60_000, round(s * 1000)) for s in SLIDE_SWEEP_SECONDS])
