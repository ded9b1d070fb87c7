"""Evictions: the lemmas as printed, their correction against sums and simulated tables, and inverses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.experiments.memory.bounded_table import Measures, Passed, bounded
from weft.optimizer.groupby.memory.eviction import LEMMA, MODELS, RANKS, Eviction
from weft.optimizer.groupby.memory.recency import RecencyCurve, zipf_frequencies

models = st.sampled_from(list(MODELS.values()))
skews = st.floats(0, 1.6)


@pytest.mark.parametrize(("b", "g", "alpha"), [(10, 100, 0.0), (7, 90, 0.48), (500, 1e4, 0.85)])
def test_lemma_6_1_and_7_1_are_as_printed(b: float, g: float, alpha: float) -> None:
    assert float(LEMMA.evicted(b, g, alpha)) == pytest.approx(1 - (b / g) ** (1 - alpha))
    assert float(LEMMA.evicted(b, g, 1.0)) == pytest.approx(1 - math.log(b) / math.log(g))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.67, 0.85, 1.0])
@pytest.mark.parametrize("g", [10, 1000, 100_000])
def test_the_mended_model_is_the_sum_over_ranks(alpha: float, g: int) -> None:
    sums = np.cumsum(np.arange(1.0, g + 1) ** -alpha)
    b = np.unique(np.geomspace(1, g, 40).astype(int))
    exact = sums[b - 1] / sums[-1]
    assert np.abs((1 - RANKS.evicted(b, g, alpha)) / exact - 1).max() < 0.09
    far = b >= 10
    assert np.abs((1 - RANKS.evicted(b, g, alpha)) / exact - 1)[far].max() < 0.03


@given(models, skews, st.floats(1, 1e7), st.floats(1, 100), st.floats(0, 1), st.floats(0, 1))
def test_what_leaves_falls_with_entries_and_is_between_groups_and_rows(
    model: Eviction, alpha: float, g: float, ratio: float, one: float, other: float
) -> None:
    n = g * ratio
    few, many = sorted((one * g, other * g))
    low, high = float(model.leaving(many, g, alpha, n)), float(model.leaving(few, g, alpha, n))
    assert g * (1 - 1e-9) <= low <= high * (1 + 1e-9)
    assert high <= n * (1 + 1e-9)


@given(models, skews, st.floats(1, 1e6), st.floats(1, 50), st.floats(0, 1), st.floats(1, 10))
def test_more_rows_cost_at_most_as_many_times_more(
    model: Eviction, alpha: float, g: float, ratio: float, share: float, factor: float
) -> None:
    n, b = g * ratio, share * g
    out, more = float(model.leaving(b, g, alpha, n)), float(model.leaving(b, g, alpha, factor * n))
    assert out * (1 - 1e-9) <= more <= factor * out * (1 + 1e-9)
    assert more <= out + (factor - 1) * n + 1e-6 * n


@given(
    models,
    st.floats(0, 0.98) | st.floats(1, 1.6),
    st.floats(1, 1e6),
    st.floats(1, 50),
    st.floats(0, 1),
)
def test_needed_is_the_fewest_entries(
    model: Eviction, alpha: float, g: float, ratio: float, share: float
) -> None:
    n = g * ratio
    target = g + share * (n - g)
    needed = float(model.needed(target, g, alpha, n))
    assert 0 <= needed <= g * (1 + 1e-9)
    assert float(model.leaving(needed, g, alpha, n)) <= target * (1 + 1e-6)
    fewer = 0.999 * needed - 1e-6
    if fewer > 0:
        assert float(model.leaving(fewer, g, alpha, n)) >= target * (1 - 1e-6)


def _counted(codes: np.ndarray, groups: int, entries: int) -> int:  # type: ignore[type-arg]
    rows = len(codes)
    measures = Measures.of(rows, {"n": ("count", None)})
    given = Passed(codes, measures.whole, measures.real, rows)
    return len(bounded(codes, given, measures, entries, groups).groups)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.85, 1.2])
@pytest.mark.parametrize("share", [0.02, 0.2, 0.6, 1.0])
def test_recency_is_what_a_table_passes_on(alpha: float, share: float) -> None:
    random = np.random.default_rng(7)
    ranks = np.arange(1, 2001) ** -alpha
    drawn = random.choice(2000, 60_000, p=ranks / ranks.sum())
    _, codes, counts = np.unique(drawn, return_inverse=True, return_counts=True)
    frequency, groups = np.unique(counts, return_counts=True)
    curve = RecencyCurve.of(frequency.astype(float), groups.astype(float))
    entries = int(share * len(counts))
    orders = [random.permutation(codes) for _ in range(6)]
    counted = np.mean([_counted(order, len(counts), entries) for order in orders])
    assert float(np.interp(entries, curve.entries, curve.leaving)) == pytest.approx(
        counted, rel=0.02
    )
    # From groups and skew alone it stays close, too; the lemma does not.
    fitted = RecencyCurve.of(*zipf_frequencies(len(counts), alpha, len(codes)))
    assert float(np.interp(entries, fitted.entries, fitted.leaving)) == pytest.approx(
        counted, rel=0.15
    )


def test_the_lemma_is_far_off_for_skewed_data() -> None:
    """The reason for the other models: if this ever fails, they are not needed."""
    random = np.random.default_rng(7)
    ranks = np.arange(1, 2001) ** -0.85
    codes = random.choice(2000, 60_000, p=ranks / ranks.sum())
    counted = _counted(codes, 2000, 100)
    assert float(LEMMA.leaving(100, 2000, 0.85, 60_000)) < 0.7 * counted


def test_recency_is_lemma_7_1_for_equal_frequencies() -> None:
    curve = RecencyCurve.of(np.array([400.0]), np.array([100.0]))
    for entries in (0, 10, 50, 90, 100):
        leaving = float(np.interp(entries, curve.entries, curve.leaving))
        assert leaving == pytest.approx(float(LEMMA.leaving(entries, 100, 0.0, 40_000)), rel=0.02)
