"""The benchmark's options and parts; running it is not a test."""

from __future__ import annotations

import pytest

from weft.bench.windows import PARTS, WindowsOptions, run


def test_parts_are_named() -> None:
    assert {"plain-one", "plain-ten", "floor", "slides", "counts", "flink"} <= PARTS.keys()
    with pytest.raises(ValueError, match="no part nonsense"):
        run(only=["nonsense"])


def test_batches_divide_the_rows_and_are_large_enough_by_default() -> None:
    assert WindowsOptions().batch_millions >= 2
    with pytest.raises(ValueError, match="evenly"):
        WindowsOptions(rows_millions=5, batch_millions=2)
