"""best is the optimum where all partitions can be looked at, and never worse than the others."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.windows import brute_force
from tests.optimizer.windows.support import RATES, distinct, windows_of, workload_of

from weft.algebra.window import Window
from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows import best as module
from weft.optimizer.windows.best import best
from weft.optimizer.windows.cost import CostModel, TriOps, TwoOps
from weft.optimizer.windows.optimizers import OPTIMIZERS
from weft.optimizer.windows.search.exact_partition import MOST_EDGE_SETS, exact_partition
from weft.optimizer.windows.search.local_search import LocalSearch
from weft.optimizer.windows.search.lower_bound import lower_bound
from weft.optimizer.windows.search.merge_sequence import MergeSequence
from weft.optimizer.windows.search.search_rates import SearchRates
from weft.workloads.sharing import WindowTable, any_slides, zipf_windows

ANY = st.one_of(brute_force.windows(), brute_force.plain_windows(slides=(2, 3, 4, 6, 8, 12, 24)))
SMALL = st.lists(ANY, min_size=1, max_size=7)
MODELS: list[CostModel] = [TwoOps(), TriOps()]
OTHERS = [name for name in OPTIMIZERS if name != "best"]
COST = {"twoops": brute_force.twoops, "triops": brute_force.triops}


def optimum(windows: list[Window], rate: Fraction, model: CostModel) -> Fraction:
    """The least cost of all partitions of all queries, even of those with equal edges."""
    everything = range(len(windows))
    return min(
        COST[model.name]([[windows[i] for i in group] for group in groups], rate)
        for groups in brute_force.partitions(everything)
    )


@settings(max_examples=15, deadline=None)
@given(st.lists(ANY, min_size=1, max_size=6), st.sampled_from(RATES), st.sampled_from(MODELS))
def test_best_is_the_optimum_over_all_partitions_of_all_queries(
    windows: list[Window], rate: Fraction, model: CostModel
) -> None:
    plan = best(workload_of(windows), rate, model)
    assert plan.cost == brute_force_cost(plan, windows, rate, model)
    assert float(plan.cost) == pytest.approx(float(optimum(windows, rate, model)), rel=1e-12)
    assert plan.gap == 0


def brute_force_cost(
    plan: module.Grouping, windows: list[Window], rate: Fraction, model: CostModel
) -> Fraction:
    return COST[model.name](windows_of(plan, windows), rate)


@pytest.mark.parametrize("price", [0.5, 5.0, 40.0])
def test_nine_sets_by_all_their_21147_partitions(price: float, chance: random.Random) -> None:
    windows = [Window(s * chance.randint(1, 50), s) for s in chance.sample(range(4, 40), 9)]
    workload = workload_of(windows)
    rates = SearchRates(workload)
    costs: dict[tuple[int, ...], float] = {}

    def cost(group: list[int]) -> float:
        key = tuple(sorted(group))
        if key not in costs:
            weight = sum(rates.overlaps[list(key)])
            costs[key] = price + rates.union(key) * weight
        return costs[key]

    expected = min(sum(map(cost, groups)) for groups in brute_force.partitions(range(9)))
    total = sum(map(cost, map(list, exact_partition(rates, price, 1.0, 0.0))))
    assert total == pytest.approx(expected, rel=1e-12)


def cheaper_exists(rates: SearchRates, price: float, than: float) -> bool:
    """Whether a partition costs less, by adding one set after the other.

    A set q that joins a group adds at least E_q·Ω_q, so partial plans that cannot become cheaper
    are given up; nothing else is.
    """
    count = len(rates)
    overlaps = rates.overlaps.tolist()
    alone = [rate * overlap for rate, overlap in zip(rates.rates.tolist(), overlaps)]
    still = [sum(alone[edge_set:]) for edge_set in range(count + 1)]

    def cost(group: list[int]) -> float:
        return price + rates.union(group) * sum(overlaps[i] for i in group) if group else 0.0

    def add(edge_set: int, groups: list[list[int]], so_far: float) -> bool:
        if so_far + still[edge_set] >= than:
            return False
        if edge_set == count:
            return True
        options = [
            (cost([*group, edge_set]) - cost(group), number)
            for number, group in enumerate([*groups, []])
        ]
        for increase, number in sorted(options):
            extended = [list(group) for group in groups] + [[]]
            extended[number].append(edge_set)
            if add(edge_set + 1, [group for group in extended if group], so_far + increase):
                return True
        return False

    return add(0, [], 0.0)


@pytest.mark.parametrize(("price", "general"), [(1.0, False), (4.0, True)])
def test_thirteen_sets_by_branch_and_bound(price: float, general: bool) -> None:
    """The same sets in every run: of others the search takes from seconds to minutes."""
    choose = random.Random(13)
    slides = choose.sample(range(6, 60), MOST_EDGE_SETS)
    windows = [
        Window(choose.randint(s, 20 * s) if general else choose.randint(1, 20) * s, s)
        for s in slides
    ]
    workload = workload_of(windows)
    assert len(workload.edge_sets) == MOST_EDGE_SETS
    plan = best(workload, Fraction(price), TwoOps())
    assert plan.gap == 0
    cost = float(plan.cost)
    assert not cheaper_exists(SearchRates(workload), price, than=cost * (1 - 1e-9))
    assert cheaper_exists(SearchRates(workload), price, than=cost * (1 + 1e-9))


def test_more_sets_than_that_are_refused_by_the_exact_search() -> None:
    workload = zipf_windows(60).workload()
    with pytest.raises(ValueError, match="at most 13"):
        exact_partition(SearchRates(workload), 1.0, 1.0, 0.0)


def bound_of(workload: Workload, price: float) -> float:
    edge_rate = float(workload.edge_rate)
    return lower_bound(SearchRates(workload), price, price, 1.0, 0.0, edge_rate, edge_rate)


@settings(max_examples=20, deadline=None)
@given(SMALL, st.sampled_from([0.05, 0.3, 1.0, 5.0, 60.0, 2000.0]))
def test_the_lower_bound_is_below_the_optimum(windows: list[Window], price: float) -> None:
    workload = workload_of(windows)
    rates = SearchRates(workload)
    groups = exact_partition(rates, price, 1.0, 0.0)
    cost = sum(price + rates.union(g) * rates.overlaps[list(g)].sum() for g in groups)
    assert bound_of(workload, price) <= cost


@pytest.mark.parametrize("seed", range(3))
def test_the_lower_bound_is_below_the_optimum_of_thirteen_sets(seed: int) -> None:
    table = zipf_windows(13, seed=seed, slides=any_slides(200), multiples=seed % 2 == 0)
    rates = SearchRates(table.workload())
    for price in (0.2, 1.0, 10.0, 300.0):
        groups = exact_partition(rates, price, 1.0, 0.0)
        cost = sum(price + rates.union(g) * rates.overlaps[list(g)].sum() for g in groups)
        bound = bound_of(table.workload(), price)
        assert bound <= cost
        assert bound >= 0.4 * cost


@settings(max_examples=20, deadline=None)
@given(SMALL, st.floats(0.1, 5.0), st.floats(0.0, 3.0), st.floats(0.0, 2.0))
def test_the_lower_bound_holds_for_costs_of_fragments_and_lone_groups(
    windows: list[Window], price: float, per_fragment: float, lone_price: float
) -> None:
    workload = workload_of(windows)
    rates = SearchRates(workload)
    edge_rate = float(workload.edge_rate)
    bound = lower_bound(rates, price, lone_price, 1.0, per_fragment, edge_rate, edge_rate)
    for groups in brute_force.partitions(range(len(rates))):
        prices = lone_price if len(groups) == 1 else price * len(groups)
        weights = [per_fragment + rates.overlaps[group].sum() for group in groups]
        cost = prices + sum(rates.union(g) * w for g, w in zip(groups, weights))
        assert bound <= cost


CASES = [
    (table, rate, model)
    for table in (
        zipf_windows(40, slides=range(1, 60)),
        zipf_windows(70, seed=3),
        zipf_windows(40, seed=4, multiples=False),
    )
    for rate in (5, 300)
    for model in MODELS
]


@pytest.mark.parametrize(("table", "rate", "model"), CASES)
def test_best_is_never_worse_and_within_its_gap(
    table: WindowTable, rate: int, model: CostModel
) -> None:
    workload = table.workload()
    assert len(workload.edge_sets) > MOST_EDGE_SETS
    plan = best(workload, rate, model)
    assert plan.lower_bound is not None and plan.gap is not None
    assert plan.lower_bound <= plan.cost <= plan.lower_bound * (1 + plan.gap) * (1 + 1e-12)
    for name in OTHERS:
        assert plan.cost <= OPTIMIZERS[name](workload, rate, model).cost, name


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1), Fraction(200)])
def test_without_a_model_best_takes_the_cheaper_of_both(rate: Fraction) -> None:
    windows = [Window(4 * s, s) for s in (2, 3, 5, 7, 8, 12)]
    workload = workload_of(windows)
    plans = [best(workload, rate, model) for model in MODELS]
    plan = best(workload, rate)
    assert plan.cost == min(plan.cost for plan in plans)
    if rate <= workload.edge_rate.value:
        assert plan.model == TwoOps()


def test_guessed_rates_do_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any steps for counting, plans are found with guesses and costed exactly."""
    monkeypatch.setattr("weft.optimizer.windows.search.search_rates._STEPS", 5)
    workload = zipf_windows(30, seed=5, multiples=False).workload()
    plan = best(workload, 50, TwoOps())
    assert plan.exact
    for name in OTHERS:
        assert plan.cost <= OPTIMIZERS[name](workload, 50, TwoOps()).cost, name


def search_of(workload: Workload, price: float) -> LocalSearch:
    rates = SearchRates(workload)
    return LocalSearch(rates, price, 1.0, 0.0, rates.common())


@pytest.mark.parametrize("price", [0.3, 3.0, 100.0])
def test_a_local_search_never_raises_the_cost_and_states_the_true_one(price: float) -> None:
    workload = zipf_windows(80, seed=7, slides=any_slides(500)).workload()
    rates = SearchRates(workload)
    search = search_of(workload, price)
    for start in (MergeSequence(rates, 1.0, 0.0).cut(price), [(i,) for i in range(len(rates))]):
        search.start(start)
        before = search.cost
        search.descend(20_000)
        search.iterate(20_000)
        groups = search.groups
        assert sorted(edge_set for group in groups for edge_set in group) == list(range(len(rates)))
        weights = [rates.overlaps[list(group)].sum() for group in groups]
        cost = sum(price + rates.union(g) * w for g, w in zip(groups, weights))
        assert search.cost == pytest.approx(cost)
        assert search.cost <= before


def test_a_local_search_finds_the_optimum_of_most_small_sets() -> None:
    optimal = 0
    for seed in range(20):
        workload = zipf_windows(11, seed=seed, slides=any_slides(60)).workload()
        rates = SearchRates(workload)
        groups = exact_partition(rates, 2.0, 1.0, 0.0)
        least = sum(2.0 + rates.union(g) * rates.overlaps[list(g)].sum() for g in groups)
        search = search_of(workload, 2.0)
        search.start(MergeSequence(rates, 1.0, 0.0).cut(2.0))
        search.iterate(20_000)
        assert search.cost >= least * (1 - 1e-12)
        optimal += search.cost <= least * (1 + 1e-9)
    assert optimal >= 16


def test_equal_edges_are_together_in_an_optimal_plan() -> None:
    windows = [Window(8, 5), Window(13, 5), Window(5, 4), Window(9, 4)]
    assert len(distinct(windows)) == 2
    assert len(best(workload_of(windows), 1, TwoOps()).partition) <= 2
