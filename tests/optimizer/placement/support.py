"""Workloads for tests of placement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.algebra.window import Window
from weft.optimizer.edges.workload import Windowed, Workload


def workload_of(windows: Sequence[Window]) -> Workload:
    return Workload.of(Windowed(f"q{number}", window) for number, window in enumerate(windows))


def random_windows(
    count: int, seed: int, slides: Sequence[int] = tuple(range(1, 21))
) -> list[Window]:
    """Ranges are multiples of the slide, with overlap factors so different that no two plans cost the same."""
    random = np.random.default_rng(seed)
    return [
        Window(int(slide) * int(random.integers(100_000, 1_000_000)), int(slide))
        for slide in random.choice(list(slides), size=count)
    ]
