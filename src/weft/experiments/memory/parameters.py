"""What the experiments vary: section VIII-A of the Memory paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from weft.workloads.flows import PAIRS

FITTED = (
    frozenset({"src_addr"}),
    frozenset({"src_addr", "dst_addr"}),
    frozenset({"src_addr", "dst_addr", "src_port", "dst_port"}),
)
"""The sets of figures 2 and 3."""
PAPER_ALPHA = (0.85, 0.67, 0.48)


@dataclass(frozen=True)
class MemorySettings:
    """One run. Memory is in entries; the paper's figure 4 goes to 5000 K."""

    records: int
    epochs: int
    """Counted in figure 4; plans are made from the first."""
    shares: tuple[float, ...]
    """Of figure 3: entries by groups."""
    memories: tuple[float, ...]
    queries: int
    sizes: tuple[int, ...]
    size_memories: tuple[float, ...]
    sets: int
    """Query sets of each size in figure 5."""
    seed: int = 1
    other_seed: int = 2
    """Of figure 5, which is about the paper's other router."""
    other_records: int = 350_000

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


FULL = MemorySettings(
    records=400_000,
    epochs=4,
    shares=(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    memories=(10e3, 50e3, 200e3, 500e3, 1000e3, 3200e3, 5000e3),
    queries=len(PAIRS),
    sizes=(20, 40, 60, 78),
    size_memories=(50e3, 500e3, 5000e3),
    sets=3,
)

QUICK = MemorySettings(
    records=4_000,
    epochs=2,
    shares=(0.1, 0.5, 0.9),
    memories=(500, 5_000, 50_000),
    queries=10,
    sizes=(5, 10),
    size_memories=(500, 50_000),
    sets=1,
    other_records=3_500,
)
