"""Atoms of time give the edge rate of every union, and the compiled loops agree with plain ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.placement.support import workload_of
from tests.optimizer.windows import brute_force

from weft.algebra.window import Window
from weft.optimizer.edges.edge_atoms import edge_atoms
from weft.optimizer.placement.compiled import fill_rates, union_rates


@given(listed=st.lists(brute_force.windows(), min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_any_windows_have_the_rate_of_counting(listed: list[Window]) -> None:
    workload = workload_of(listed)
    atoms = edge_atoms(workload)
    assert atoms.exact
    everything = range(len(workload.edge_sets))
    assert atoms.union(everything) == pytest.approx(float(brute_force.edge_rate(listed)))
    assert atoms.rates == pytest.approx([atoms.union([number]) for number in everything])


@given(
    slides=st.sets(st.integers(1, 50), min_size=2, max_size=30),
    chosen=st.sets(st.integers(0, 29), min_size=1),
)
@settings(max_examples=60, deadline=None)
def test_rates_with_and_without_one_more_set(slides: set[int], chosen: set[int]) -> None:
    workload = workload_of([Window(slide, slide) for slide in sorted(slides)])
    atoms = edge_atoms(workload)
    count = len(workload.edge_sets)
    members = np.zeros((2, count), dtype=np.int64)
    members[0, [number % count for number in chosen]] = 1
    members[1, ::3] = 1
    arrays = atoms.begins, atoms.atoms, atoms.family, atoms.chances, atoms.weights
    plus, minus = np.zeros(count), np.zeros(count)
    rate = fill_rates(members[0], *arrays, atoms.rates, plus, minus)
    held = set(np.flatnonzero(members[0]).tolist())
    exact = {number: float(workload.edge_rate_of(held | {number})) for number in range(count)}
    assert rate == pytest.approx(float(workload.edge_rate_of(held)), rel=1e-12)
    assert plus == pytest.approx([exact[number] for number in range(count)], rel=1e-12)
    for number in held:
        left = held - {number}
        expected = float(workload.edge_rate_of(left)) if left else 0.0
        assert minus[number] == pytest.approx(expected, rel=1e-12, abs=1e-15)
    both = held | set(range(0, count, 3))
    union = union_rates(members, np.array([1]), 0, *arrays)[0]
    assert union == pytest.approx(float(workload.edge_rate_of(both)), rel=1e-12)


def test_slides_up_to_fifty_have_few_atoms() -> None:
    atoms = edge_atoms(workload_of([Window(slide, slide) for slide in range(1, 51)]))
    assert (len(atoms.weights), len(atoms.chances), atoms.exact) == (216, 12, True)


def test_primes_are_families_of_one_atom() -> None:
    atoms = edge_atoms(workload_of([Window(slide, slide) for slide in (2, 3, 5, 7, 11)]))
    assert len(atoms.weights) == 1 and len(atoms.chances) == 6
    assert atoms.union([0, 1]) == pytest.approx(2 / 3)


def test_many_long_slides_are_sampled_and_near() -> None:
    random = np.random.default_rng(1)
    slides = random.choice(np.arange(100, 5000), size=60, replace=False)
    workload = workload_of([Window(int(slide) + 7, int(slide)) for slide in slides])
    atoms = edge_atoms(workload)
    assert not atoms.exact
    guess = atoms.union(range(60))
    assert guess == pytest.approx(float(workload.edge_rate_of(range(60))), rel=0.05)
