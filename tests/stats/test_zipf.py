"""Zipf exponents, fitted to samples of generated streams."""

from __future__ import annotations

import numpy as np
import pytest
from tests.stats.laws import Law

from weft.stats.frequencies import Frequencies
from weft.stats.zipf import Zipf, fitted


@pytest.mark.parametrize(
    ("alpha", "values"),
    [
        *((alpha, 100) for alpha in (0.25, 0.5, 0.85, 1.0, 1.1, 1.2)),
        *((alpha, 10_000) for alpha in (0.25, 0.5, 0.85, 1.0, 1.1, 1.2)),
        # A flatter law over far more values than rows looks uniform: no sample can tell.
        *((alpha, 1_000_000) for alpha in (0.5, 0.85, 1.0, 1.1, 1.2)),
    ],
)
def test_the_exponent_is_found(alpha: float, values: int) -> None:
    seen = Frequencies.of_values(Law(alpha, values).draw(20_000, seed=1))
    assert fitted(seen).alpha == pytest.approx(alpha, abs=0.06)


@pytest.mark.parametrize("values", [1, 2, 100, 10_000, 100_000, 10_000_000])
def test_uniform_data_has_no_exponent(values: int) -> None:
    seen = Frequencies.of_values(Law(0, values).draw(20_000, seed=2))
    assert fitted(seen).alpha <= 0.1


def test_distinct_values_and_one_value() -> None:
    assert fitted(Frequencies.of_values(np.arange(5000))).alpha == 0
    assert fitted(Frequencies.of_values(np.zeros(5000))) == Zipf(0.0, 1.0)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 1.2])
@pytest.mark.parametrize("values", [7, 64, 65, 200_000])
def test_blocks_of_ranks_sum_like_single_ranks(alpha: float, values: int) -> None:
    chance = np.arange(1.0, values + 1) ** -alpha
    chance /= chance.sum()
    for rows in (10.0, 1e4, 1e7):
        exact = -np.expm1(-rows * chance).sum()
        assert Zipf(alpha, float(values)).distinct(rows) == pytest.approx(exact, rel=1e-3)
