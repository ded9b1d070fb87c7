"""The simulated workloads of the papers repeat and have the stated shapes."""

from __future__ import annotations

import itertools
from math import gcd
from pathlib import Path

import numpy as np

from weft.workloads.sharing import (
    any_slides,
    coprime_slides,
    even_slides,
    random_slides,
    round_slides,
    zipf_windows,
)


def test_workloads_repeat_and_depend_on_the_seed() -> None:
    first, again, other = zipf_windows(50), zipf_windows(50), zipf_windows(50, seed=2)
    assert (first.slides == again.slides).all() and (first.ranges == again.ranges).all()
    assert (first.slides != other.slides).any()


def test_ranges_are_one_to_fifty_slides() -> None:
    table = zipf_windows(5000)
    overlaps = table.ranges / table.slides
    assert (table.ranges % table.slides == 0).all()
    assert overlaps.min() == 1 and overlaps.max() == 50
    assert table.slides.min() >= 1 and table.slides.max() <= 10_000
    general = zipf_windows(5000, multiples=False)
    assert (general.ranges % general.slides != 0).mean() > 0.8
    assert (general.ranges >= general.slides).all()
    assert (general.ranges <= 50 * general.slides).all()


def test_popularity_falls_with_rank_as_zipf_says() -> None:
    table = zipf_windows(200_000, slides=[10, 20, 40])
    counts = np.array([(table.slides == slide).sum() for slide in (10, 20, 40)])
    expected = np.array([1, 2**-0.6, 3**-0.6])
    assert np.allclose(counts / counts.sum(), expected / expected.sum(), atol=0.01)
    reversed_table = zipf_windows(1000, slides=[10, 20, 40], popular_first=False)
    assert (reversed_table.slides == 40).sum() > (reversed_table.slides == 10).sum()


def test_lists_of_slides() -> None:
    assert any_slides(5) == [1, 2, 3, 4, 5]
    assert even_slides()[-1] == 10_000 and len(even_slides()) == 100
    assert len(set(random_slides(100))) == 100 and max(random_slides(100)) <= 10_000
    assert max(round_slides()) == 10_000
    primes = coprime_slides(200, least=50)
    assert len(primes) == 200 and primes[0] == 53
    assert all(gcd(a, b) == 1 for a, b in itertools.pairwise(primes))


def test_a_table_writes_the_csv_that_plan_reads(tmp_path: Path) -> None:
    table = zipf_windows(3, slides=[5])
    table.write_csv(tmp_path / "w.csv")
    lines = (tmp_path / "w.csv").read_text().splitlines()
    assert lines[0] == "name,range,slide"
    assert lines[1] == f"q0,{table.ranges[0]},5" and len(lines) == 4
