"""best: weft's own optimizer, never worse than any other, with a bound on what is left.

1. Thirteen edge sets or fewer: the optimum over all partitions (`exact_partition`).
2. More: the groups of every other optimizer are starts; from the cheapest ones a local search
   merges, splits and moves (`local_search`). The cheapest of all is returned, with a cost that no
   grouping is below (`lower_bound`); their ratio is the gap.
A model whose `per_overlap` is 0 needs no search: edge rates are subadditive, E_ij ≤ Eᵢ + E_j, so
every merge lowers the cost and one group is the optimum.
Without a model both of the papers' are tried, and the cheaper plan is taken: with rows fewer than
edges, or with one group, TwoOps wins.
Time: bounded by a number of steps of edge counting; 1000 queries over any slides up to 10,000
take a few seconds. Space: O(n²).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property

from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.cost import CostModel, Number, TriOps, TwoOps
from weft.optimizer.windows.grouping import Grouping, grouping
from weft.optimizer.windows.insert_then_weave import first_come, insert
from weft.optimizer.windows.search.exact_partition import MOST_EDGE_SETS, exact_partition
from weft.optimizer.windows.search.local_search import LocalSearch
from weft.optimizer.windows.search.lower_bound import lower_bound
from weft.optimizer.windows.search.merge_sequence import MergeSequence, merge_sequence
from weft.optimizer.windows.search.search_rates import search_rates

_DESCENT_WORK = 80_000
_ITERATION_WORK = 250_000
_ITERATION_WORK_PER_SET = 1000
_MOST_SEARCHED = 4096
"""Above this many edge sets the starts are not improved: the memory of a search grows with n²."""
_MOST_GUESSED_WRONG = 0.03

Groups = Sequence[Sequence[int]]


def best(workload: Workload, rate: Number, model: CostModel | None = None) -> Grouping:
    """The cheapest grouping found, and a bound; under the cheaper model unless told otherwise.

    >>> from weft.algebra.window import Window
    >>> from weft.optimizer.edges.workload import Windowed
    >>> windows = {"a": Window(20, 10), "b": Window(60, 20), "c": Window(21, 7)}
    >>> workload = Workload.of(Windowed(name, window) for name, window in windows.items())
    >>> found = best(workload, 100)
    >>> found.model.name, [group.queries for group in found.groups], found.gap
    ('triops', [('c',), ('a', 'b')], 0.0)
    """
    if model is not None:
        return _under(_Target(workload, Fraction(rate), model))
    # The model that is likely to win goes first.
    tried: tuple[CostModel, CostModel] = (TriOps(), TwoOps())
    if rate <= workload.edge_rate.value:
        tried = TwoOps(), TriOps()
    first, second = (_Target(workload, Fraction(rate), candidate) for candidate in tried)
    plan = _under(first)
    # A model whose bound is above a plan that is known has no better one.
    if second.bound < plan.cost:
        plan = min(plan, _under(second), key=lambda plan: plan.cost)
    bounds = [plan.lower_bound or 0.0]
    if len(workload.edge_sets) > MOST_EDGE_SETS:
        bounds += [first.bound, second.bound]
    return plan.with_bound(min(bounds))


def _under(target: _Target) -> Grouping:
    """The cheapest plan found under one model."""
    if not target.per_overlap:
        plan = target.cheapest([[range(len(target.rates))]])
        return plan.with_bound(float(plan.cost))
    if len(target.rates) <= MOST_EDGE_SETS:
        weights = target.per_overlap, target.per_fragment
        groups = exact_partition(target.rates, target.price, *weights)
        plan = target.cheapest([groups, [range(len(target.rates))]])
        return plan.with_bound(float(plan.cost) if plan.exact else target.bound)
    return target.cheapest(_candidates(target)).with_bound(target.bound)


class _Target:
    """What is minimized: a workload's cost under a model at a rate."""

    def __init__(self, workload: Workload, rate: Fraction, model: CostModel) -> None:
        self.workload = workload
        self.rate = rate
        self.model = model
        self.rates = search_rates(workload)
        self.price = float(model.price(rate, workload.edge_rate.value))
        self.per_overlap = float(model.per_overlap)
        self.per_fragment = float(model.per_fragment)

    def cost(self, groups: Groups) -> float:
        """As the searches see it: without the model's constant, some rates guessed."""
        if len(groups) == 1:
            edge_rate = self.workload.edge_rate.value
            price = float(self.model.lone_price(self.rate, edge_rate))
        else:
            price = self.price * len(groups)
        return price + sum(
            self.rates.union(group)
            * (self.per_fragment + self.per_overlap * float(self.rates.overlaps[list(group)].sum()))
            for group in groups
        )

    def cheapest(self, candidates: Iterable[Groups]) -> Grouping:
        """The plan of least cost. Guessed rates do not decide: then all near plans are computed."""
        ranked = sorted(candidates, key=self.cost)
        if self.rates.guessed:
            near = self.cost(ranked[0]) * (1 + _MOST_GUESSED_WRONG)
            ranked = [partition for partition in ranked if self.cost(partition) <= near]
        else:
            ranked = ranked[:1]
        plans = [
            grouping("best", self.workload, self.rate, self.model, partition)
            for partition in ranked
        ]
        return min(plans, key=lambda plan: plan.cost)

    @cached_property
    def bound(self) -> float:
        """Less than or equal to the cost of every grouping, with the model's constant."""
        edge_rate = self.workload.edge_rate
        least = float(edge_rate) / (1 + edge_rate.error)
        return float(self.model.constant(self.rate, self.workload.result_rate)) + lower_bound(
            self.rates,
            price=float(self.model.price(self.rate, least)),
            lone_price=float(self.model.lone_price(self.rate, least)),
            per_overlap=self.per_overlap,
            per_fragment=self.per_fragment,
            least_edge_rate=least,
            most_edge_rate=float(edge_rate) / (1 - edge_rate.error),
        )


def _candidates(target: _Target) -> list[Groups]:
    """The groups of the other optimizers, and what a search makes of them."""
    rates = target.rates
    weights = target.per_overlap, target.per_fragment
    in_order = insert(rates, target.price, *weights, first_come(target.workload))
    starts: list[Groups] = [
        merge_sequence(target.workload, target.model).cut(target.price),
        MergeSequence(rates, *weights, *in_order).cut(target.price),
    ]
    others: list[Groups] = [
        [range(len(rates))],
        [(edge_set,) for edge_set in range(len(rates))],
    ]
    if len(rates) > _MOST_SEARCHED:
        return starts + others
    small_first = sorted(range(len(rates)), key=lambda edge_set: (rates.rates[edge_set], edge_set))
    starts.append(insert(rates, target.price, *weights, small_first)[0])
    search = LocalSearch(rates, target.price, *weights, rates.common())
    improved: list[Groups] = []
    for start in starts:
        search.start(start)
        search.descend(_DESCENT_WORK)
        improved.append(search.groups)
    cheapest: Groups = min(improved, key=target.cost)
    search.start(cheapest)
    search.iterate(min(_ITERATION_WORK, _ITERATION_WORK_PER_SET * len(rates)))
    return [search.groups, *improved, *starts, *others]
