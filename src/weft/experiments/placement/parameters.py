"""What the experiment varies: table 2 of the Placement paper, the setting of figure 3, and the paper's own times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from types import MappingProxyType
from typing import Any

from weft.optimizer.edges.workload import Workload
from weft.workloads.sharing import any_slides, coprime_slides, zipf_windows


@dataclass(frozen=True, order=True)
class Configuration:
    """One of the 256 experiments."""

    queries: int
    nodes: int
    rate: int
    largest_slide: int
    skew: int
    largest_overlap: int
    primes: bool

    def workload(self, seed: int, short_popular: bool = False) -> Workload:
        """Slides by a Zipf distribution in which long slides (or short ones) are popular, overlap factors uniform from
        1 on."""
        slides = any_slides(self.largest_slide)
        if self.primes:
            slides = [prime for prime in coprime_slides(20) if prime <= self.largest_slide]
        return zipf_windows(
            self.queries,
            seed,
            slides,
            skew=self.skew,
            largest_overlap=self.largest_overlap,
            popular_first=short_popular,
        ).workload()


TABLE_2: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "queries": (250, 500),
        "nodes": (4, 8, 16, 32),
        "rate": (10, 100),
        "largest_slide": (25, 50),
        "skew": (0, 1),
        "largest_overlap": (10, 100),
        "primes": (False, True),
    }
)

FIGURE_3 = Configuration(250, 4, 100, 25, 1, 100, False)

PAPER_SECONDS: Mapping[str, float] = MappingProxyType(
    {
        "g-rand": 0.01,
        "w-rand": 2.31,
        "wg-rand": 0.02,
        "g-rr": 0.01,
        "w-rr": 2.34,
        "wg-rr": 0.01,
        "g-tl": 0.01,
        "w-tl": 12.6,
        "wg-tl": 9.11,
        "w-tn": 2.95,
        "wg-tn": 2.83,
        "w-i": 5.68,
        "wg-i": 3.94,
    }
)
"""Table 4: average seconds for a plan."""


def configurations() -> Iterator[Configuration]:
    """All combinations of table 2."""
    for values in product(*TABLE_2.values()):
        yield Configuration(*values)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PlacementSettings:
    """One run of the experiment."""

    configurations: tuple[Configuration, ...]
    seeds: tuple[int, ...]
    """The runs of each configuration, which are averaged."""
    balances: tuple[float, ...]
    """Settings of `balanced` on its front; the default is among them."""
    front_seeds: tuple[int, ...]
    processes: int | None
    """None: as many as the machine has cores."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"configurations": len(self.configurations)}


FULL = PlacementSettings(
    configurations=tuple(configurations()),
    seeds=(1, 2, 3),
    balances=(0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0),
    front_seeds=(1,),
    processes=None,
)

QUICK = PlacementSettings(
    configurations=(
        Configuration(40, 4, 10, 25, 0, 10, False),
        Configuration(40, 4, 100, 25, 1, 10, False),
        Configuration(40, 8, 100, 25, 0, 10, True),
    ),
    seeds=(1, 2),
    balances=(0.0, 0.5, 1.0),
    front_seeds=(1,),
    processes=1,
)
"""Small enough for a test; it says nothing about the paper."""
