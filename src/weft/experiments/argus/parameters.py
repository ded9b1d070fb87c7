"""What the experiments vary: section 8 of ARGUS."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from weft.workloads.fed import stream as fed
from weft.workloads.fed.queries import QUERIES as FED_QUERIES
from weft.workloads.med import stream as med
from weft.workloads.med.queries import QUERIES as MED_QUERIES


@dataclass(frozen=True)
class Scale:
    """How much of a workload is run: rows before the first increment, rows of one, and networks of
    how many queries."""

    workload: str
    history: int
    increment: int
    increments: int
    counts: tuple[int, ...]
    by_node_history: int | None = None
    by_node_increments: int | None = None
    """With how much of the history, and how many increments, joins are run each by itself; None: the same."""
    direct_history: int | None = None
    """How much history there is when queries are run directly; None: the same."""

    @property
    def by_node(self) -> Scale:
        """The scale at which joins are run each by itself: the newest rows of the history, and the same first
        increments."""
        return replace(
            self,
            history=self.by_node_history or self.history,
            increments=self.by_node_increments or self.increments,
        )

    @property
    def direct(self) -> Scale:
        """The scale at which the network of all queries is compared with queries that are run directly."""
        if self.direct_history is None:
            return self
        return replace(
            self, history=self.direct_history, counts=self.counts[-1:], direct_history=None
        )

    @property
    def records(self) -> int:
        return self.history + self.increment * self.increments


@dataclass(frozen=True)
class ArgusSettings:
    """One run."""

    scales: tuple[Scale, ...]
    direct_queries: int
    """How many queries of each workload are run directly; all others are taken to cost as much."""
    seed: int = 1

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


# Of Med a sixth of the paper's history: among 600,000 stays the large categories find so many groups of cases
# that loading the history alone takes a minute for each of the networks. The comparison with queries that are
# run directly, which is about the size of the history, has all of it.
FULL = ArgusSettings(
    scales=(
        Scale(
            "fed",
            fed.HISTORY,
            fed.INCREMENT,
            10,
            (100, 300, 500, FED_QUERIES),
            fed.HISTORY // 6,
            3,
        ),
        Scale(
            "med",
            med.HISTORY // 6,
            med.INCREMENT,
            10,
            (100, 300, MED_QUERIES),
            med.HISTORY // 12,
            3,
            direct_history=med.HISTORY,
        ),
    ),
    direct_queries=96,
)

QUICK = ArgusSettings(
    scales=(
        Scale("fed", 8_000, 1_000, 2, (8, 32)),
        Scale("med", 8_000, 1_000, 2, (8, 16), direct_history=12_000),
    ),
    direct_queries=4,
)
