"""Windows for window sharing: the simulated workloads of the TriOps and Placement papers.

Slides are drawn from a list with Zipf popularity, ranges are a whole number ω of slides, ω uniform.
The TriOps paper says "a discrete range" of slides up to 10,000 and a skew of 0.6, but not which
slides are in the list nor whether short or long ones are popular; so the list is an argument, and
several are given here. Seeded and in NumPy: a million queries take a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.edges.workload import Workload

LARGEST_SLIDE = 10_000
SKEW = 0.6
LARGEST_OVERLAP = 50

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class WindowTable:
    """Windows as columns, as in the CSV that `weft plan` reads."""

    names: tuple[str, ...]
    ranges: Integers
    slides: Integers

    def workload(self) -> Workload:
        """As the optimizers take it."""
        return Workload.of_columns(self.names, self.ranges, self.slides)

    def write_csv(self, path: Path) -> None:
        """With the header name,range,slide."""
        rows = zip(self.names, self.ranges.tolist(), self.slides.tolist())
        lines = [f"{name},{length},{slide}\n" for name, length, slide in rows]
        path.write_text("name,range,slide\n" + "".join(lines), encoding="utf-8")


def zipf_windows(
    count: int,
    seed: int = 1,
    slides: Sequence[int] | None = None,
    skew: float = SKEW,
    largest_overlap: int = LARGEST_OVERLAP,
    multiples: bool = True,
    popular_first: bool = True,
) -> WindowTable:
    """`count` windows over a list of slides, by default all up to 10,000.

    The popularity of the k-th slide of the list is k^-skew, or that of the k-th from the end if not
    `popular_first`. Without `multiples`, ranges are any whole number from one slide to
    `largest_overlap` slides.

    >>> set(zipf_windows(100, slides=[5, 10, 20]).slides.tolist()) == {5, 10, 20}
    True
    """
    listed = np.asarray(any_slides() if slides is None else slides, dtype=np.int64)
    random = np.random.default_rng([seed, count])
    popularity = np.arange(1, len(listed) + 1, dtype=np.float64) ** -skew
    if not popular_first:
        popularity = popularity[::-1]
    drawn = listed[random.choice(len(listed), size=count, p=popularity / popularity.sum())]
    if multiples:
        ranges = drawn * random.integers(1, largest_overlap + 1, size=count)
    else:
        ranges = random.integers(drawn, largest_overlap * drawn + 1)
    return WindowTable(tuple(f"q{i}" for i in range(count)), ranges, drawn)


def any_slides(largest: int = LARGEST_SLIDE) -> list[int]:
    """Every slide from 1 on."""
    return list(range(1, largest + 1))


def even_slides(count: int = 100, largest: int = LARGEST_SLIDE) -> list[int]:
    """`count` slides at equal distances, the multiples of `largest / count`.

    >>> even_slides(4, 100)
    [25, 50, 75, 100]
    """
    return [largest * k // count for k in range(1, count + 1)]


def random_slides(count: int = 100, seed: int = 1, largest: int = LARGEST_SLIDE) -> list[int]:
    """`count` different slides, any of them equally likely, ascending."""
    random = np.random.default_rng([seed, count, largest])
    return sorted(int(slide) + 1 for slide in random.choice(largest, size=count, replace=False))


def round_slides(largest: int = LARGEST_SLIDE) -> list[int]:
    """Slides that people choose: 1, 2, 3, 5, 6 and such times powers of ten.

    >>> round_slides(60)
    [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 40, 50, 60]
    """
    leading = (1, 2, 3, 4, 5, 6, 12, 15)
    powers = [10**k for k in range(len(str(largest)))]
    return sorted({lead * power for lead in leading for power in powers if lead * power <= largest})


def coprime_slides(count: int, least: int = 2) -> list[int]:
    """The first `count` primes from `least` on: no two slides share a factor.

    >>> coprime_slides(4)
    [2, 3, 5, 7]
    """
    limit = 64
    while True:
        sieve = np.ones(limit, dtype=np.bool_)
        sieve[:2] = False
        for number in range(2, int(limit**0.5) + 1):
            if sieve[number]:
                sieve[number * number :: number] = False
        primes = [int(prime) for prime in np.flatnonzero(sieve) if prime >= least]
        if len(primes) >= count:
            return primes[:count]
        limit *= 4
