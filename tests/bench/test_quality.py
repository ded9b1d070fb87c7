"""The optimum is never beaten, and search never does worse than the greedy groups it starts from."""

from __future__ import annotations

import pytest

from weft.bench.quality import WORKLOADS, excesses, qualities


@pytest.mark.parametrize("name", WORKLOADS)
def test_excesses_over_the_optimum(name: str) -> None:
    found = excesses(WORKLOADS[name], sets=6, cases=4)
    assert len(found["greedy"]) == len(found["search"]) == 4
    for greedy, search in zip(found["greedy"], found["search"], strict=True):
        assert -1e-9 <= search <= greedy + 1e-9


def test_greedy_is_not_always_optimal() -> None:
    (greedy, search) = qualities(["multiples, slides 2 to 60"], sets=8, cases=12)
    assert (greedy.who, search.who) == ("greedy", "search")
    assert greedy.optimal < 1
    assert search.mean_excess < greedy.mean_excess < greedy.worst_excess
