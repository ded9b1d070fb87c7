"""Edge rates: exact against counting one by one, whatever the way they are found.

window 8/5, edges where an instance begins or ends:
    |-------|       |-------|
         |-------|       |-------|
    0  3 5  8 10 13 15 …
window 5/4:
    |----|   |----|
        |----|   |----|
    0 1 4 5 8 9 12 13 …
together, one composite slide of 20:
    0 1 3 4 5 8 9 10 12 13 15 16 17 18      14 edges, rate 7/10
"""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb, gcd, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.windows import brute_force

from weft.algebra.window import EdgeClass, Window
from weft.optimizer.edges import edges as module
from weft.optimizer.edges.coprime_base import coprime_base
from weft.optimizer.edges.edge_bitset import composite_slide, count_edges
from weft.optimizer.edges.edge_counting import EdgeCounter, OutOfSteps
from weft.optimizer.edges.edge_sampling import chernoff_interval, estimate_covered
from weft.optimizer.edges.edges import (
    EdgeRate,
    edge_rate,
    edge_rate_of_windows,
    without_contained,
)
from weft.optimizer.edges.slices import irreducible

SETS = st.lists(brute_force.windows(), min_size=1, max_size=7)


def classes_of(windows: list[Window]) -> list[EdgeClass]:
    return without_contained(edge for window in windows for edge in window.edge_classes)


def test_example_2_of_the_paper() -> None:
    a, b = Window(8, 5), Window(5, 4)
    assert sorted(brute_force.edges_of(a, 1, 14)) == a.edges(1, 14) == [3, 5, 8, 10, 13]
    assert sorted(brute_force.edges_of(b, 1, 13)) == b.edges(1, 13) == [1, 4, 5, 8, 9, 12]
    union = brute_force.edges_of(a, 1, 14) | brute_force.edges_of(b, 1, 14)
    assert sorted(union) == [1, 3, 4, 5, 8, 9, 10, 12, 13]
    assert edge_rate_of_windows([a]).value == Fraction(2, 5)
    assert edge_rate_of_windows([b]).value == Fraction(1, 2)
    assert edge_rate_of_windows([a, b]) == EdgeRate(Fraction(7, 10))


@given(SETS)
def test_rates_equal_counting_one_by_one(windows: list[Window]) -> None:
    assert edge_rate_of_windows(windows) == EdgeRate(brute_force.edge_rate(windows))


@given(SETS)
def test_all_exact_ways_agree(windows: list[Window]) -> None:
    classes = classes_of(windows)
    expected = brute_force.edge_rate(windows)
    period = composite_slide(classes, 10**9)
    assert period is not None
    assert Fraction(count_edges(classes, period), period) == expected
    slides = [edge_class.slide for edge_class in classes]
    assert EdgeCounter(Fraction(1), slides).covered(classes) == expected
    assert EdgeCounter(1.0, slides).covered(classes) == pytest.approx(float(expected), rel=1e-12)


@given(st.lists(brute_force.windows(slides=(8, 9, 16, 27, 32, 36, 48)), min_size=2, max_size=6))
def test_powers_of_primes_are_counted_digit_by_digit(windows: list[Window]) -> None:
    classes = classes_of(windows)
    counter = EdgeCounter(Fraction(1), [edge_class.slide for edge_class in classes])
    assert counter.covered(classes) == brute_force.edge_rate(windows)


@given(SETS, st.integers(1, 1000), st.integers(-(10**6), 10**6))
def test_rates_scale_with_the_unit_and_do_not_depend_on_where_time_begins(
    windows: list[Window], scale: int, shift: int
) -> None:
    classes = [edge for window in windows for edge in window.edge_classes]
    moved = [
        EdgeClass(
            edge_class.slide * scale,
            (edge_class.residue * scale + shift) % (edge_class.slide * scale),
        )
        for edge_class in classes
    ]
    assert edge_rate(moved).value * scale == edge_rate(classes).value


def test_many_coprime_slides_have_the_product_form() -> None:
    primes = [p for p in range(2, 2000) if all(p % d for d in range(2, int(p**0.5) + 1))]
    rate = edge_rate([EdgeClass(p, p // 2) for p in primes])
    assert rate.exact
    assert float(rate) == pytest.approx(1 - prod(1 - 1 / p for p in primes), rel=1e-12)


def test_large_slides_need_no_factors() -> None:
    """Two primes of ten digits: their product is never factored, only compared."""
    p, q, r = 9_999_999_967, 9_999_999_943, 9_999_999_929
    rate = edge_rate([EdgeClass(p * q, 0), EdgeClass(q * r, 0), EdgeClass(p * r, 5)])
    inside = Fraction(1, p * q * r)
    alone = Fraction(1, p * q) + Fraction(1, q * r) + Fraction(1, p * r)
    assert rate.value == alone - inside


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=12))
def test_a_coprime_base_multiplies_to_its_numbers(numbers: list[int]) -> None:
    parts = coprime_base(numbers)
    for number in numbers:
        assert prod(power for _, power in parts[number]) == number
        assert all(power % element == 0 for element, power in parts[number])
    elements = sorted({element for factors in parts.values() for element, _ in factors})
    for i, first in enumerate(elements):
        for second in elements[i + 1 :]:
            assert gcd(first, second) == 1


@given(SETS)
def test_contained_classes_are_dropped_as_in_slices(windows: list[Window]) -> None:
    classes = [edge for window in windows for edge in window.edge_classes]
    assert tuple(without_contained(classes)) == irreducible(classes)


def random_classes(count: int, seed: int, largest: int = 500) -> list[EdgeClass]:
    choose = random.Random(seed)
    slides = [choose.randint(20, largest) for _ in range(count)]
    return without_contained(EdgeClass(s, choose.randrange(s)) for s in slides)


@pytest.mark.parametrize("seed", range(12))
def test_estimates_are_within_their_bound(seed: int) -> None:
    classes = random_classes(10 + 5 * seed, seed, largest=40 + 40 * seed)
    exact = float(EdgeCounter(1.0, [c.slide for c in classes]).covered(classes))
    estimate = estimate_covered(classes)
    assert estimate.error <= 0.005 * (1 + 1e-6)
    assert estimate.confidence == 0.99
    assert abs(estimate.share / exact - 1) <= estimate.error


def test_an_estimate_repeats_and_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_PERIOD", 1)
    classes = random_classes(60, 3)
    rate = edge_rate(classes, steps=10)
    assert not rate.exact and rate.confidence == 0.99 and 0 < rate.error <= 0.0051
    assert rate == edge_rate(list(reversed(classes)), steps=10)
    assert abs(float(rate) / float(edge_rate(classes, steps=10**6)) - 1) <= rate.error


def test_counting_stops_at_its_budget_and_small_periods_are_counted_after() -> None:
    classes = random_classes(40, 5, largest=60)
    counter = EdgeCounter(1.0, [edge_class.slide for edge_class in classes])
    with pytest.raises(OutOfSteps):
        counter.covered(classes, steps=30)
    small = [c for c in classes if 1_441_440 % c.slide == 0]
    assert edge_rate(small, steps=1).exact


@given(st.integers(1, 400), st.data())
def test_chernoff_intervals_hold_the_observed_share(count: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, count))
    low, high = chernoff_interval(successes, count, 0.01)
    assert 0 <= low <= successes / count <= high <= 1
    wide = chernoff_interval(successes, count, 0.0001)
    assert wide[0] <= low and high <= wide[1]


@settings(max_examples=20)
@given(st.integers(2, 40))
def test_chernoff_intervals_fail_rarely(percent: int) -> None:
    """Exactly: the binomial weight of all counts whose interval misses the true chance."""
    p, n = percent / 100, 60
    missed = sum(
        comb(n, k) * p**k * (1 - p) ** (n - k)
        for k in range(n + 1)
        if not chernoff_interval(k, n, 0.05)[0] <= p <= chernoff_interval(k, n, 0.05)[1]
    )
    assert missed <= 0.05
