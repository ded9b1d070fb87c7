"""The paper's equations, written out as printed, beside the costs of plans of any number of inputs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optimizer.joinagg.support import any_costs

from weft.errors import QepError
from weft.optimizer.joinagg.generic_cost import InputCosts, JoinCosts, plan_cost
from weft.optimizer.joinagg.papers_costs import JOINS, Constants, hash_join, nested_loop_join
from weft.optimizer.joinagg.plans import all_plans
from weft.optimizer.joinagg.statistics import (
    InputStatistics,
    JoinStatistics,
    join_statistics,
)

LAP, EAP01, EAP10, EAP11 = (False, False), (False, True), (True, False), (True, True)

statistics = st.builds(
    InputStatistics,
    rate=st.floats(0, 1e4),
    window=st.floats(1, 1e5),
    groups=st.floats(1, 1e5),
    selectivity=st.floats(1e-4, 1),
)
constants = st.builds(Constants, *[st.floats(1e-3, 1e3)] * 5)
two_way = st.builds(JoinStatistics, st.tuples(statistics, statistics), st.floats(1, 1e4))


@dataclass(frozen=True)
class Printed:
    """The letters of section 7.1.1 and Appendix A, with m₁ as its own sentence says."""

    join: JoinStatistics
    constants: Constants

    def __getattr__(self, name: str) -> Any:
        first, second = self.join.inputs
        g, w, s = (first.groups, second.groups), (first.window, second.window), self._sigma
        letters = {
            "l1": first.rate, "l2": second.rate, "w1": w[0], "w2": w[1],
            "al": min(w[0], g[0]) * min(w[1], g[1]),
            "al1": min(w[0], g[0] / s[0]), "al2": min(w[1], g[1] / s[1]),
            "m1": s[0] * w[0], "m2": s[1] * w[1],
            "n1": min(w[0] * s[0], g[0]), "n2": min(w[1] * s[1], g[1]),
            "b1": min(1 / s[0], self.join.buckets), "b2": min(1 / s[1], self.join.buckets),
            "bg": min(g[0], self.join.buckets),
            "pn": self.constants.P_n, "un": self.constants.U_n,
            "ph": self.constants.P_h, "uh": self.constants.U_h, "ug": self.constants.U_g,
        }  # fmt: skip
        return letters[name]

    @property
    def _sigma(self) -> tuple[float, float]:
        first, second = self.join.inputs
        return first.selectivity, second.selectivity


def printed_nested(p: Printed) -> dict[tuple[bool, ...], float]:
    """Equations 19, 21 and 22 as printed; 20 with the buckets B₁ and B_g of the others."""
    return {
        LAP: p.l1 * (2 * p.w2 * p.pn + 2 * p.un + 2 * p.m2 * p.al / p.bg * p.ug)
        + p.l2 * (2 * p.w1 * p.pn + 2 * p.un + 2 * p.m1 * p.al / p.bg * p.ug),
        EAP10: p.l1
        * (2 * p.w2 * p.pn + 2 * p.un + 2 * p.al1 / p.b1 * p.ug + 2 * p.m2 * p.al / p.bg * p.ug)
        + p.l2 * (2 * p.al1 * p.pn + 2 * p.un + 2 * p.n1 * p.al / p.bg * p.ug),
        EAP01: p.l1 * (2 * p.al2 * p.pn + 2 * p.un + 2 * p.n2 * p.al / p.bg * p.ug)
        + p.l2
        * (2 * p.w1 * p.pn + 2 * p.un + 2 * p.m1 * p.al / p.bg * p.ug + 2 * p.al2 / p.b2 * p.ug),
        EAP11: p.l1
        * (2 * p.al2 * p.pn + 2 * p.un + 2 * p.al1 / p.b1 * p.ug + 2 * p.n2 * p.al / p.bg * p.ug)
        + p.l2
        * (2 * p.al1 * p.pn + 2 * p.un + 2 * p.al2 / p.b2 * p.ug + 2 * p.n1 * p.al / p.bg * p.ug),
    }


def printed_hash(p: Printed) -> dict[tuple[bool, ...], float]:
    """Equations 23 to 26 as printed."""
    return {
        LAP: p.l1 * (2 * p.w2 / p.b2 * p.ph + 2 * p.uh + 2 * p.m2 * p.al / p.bg * p.ug)
        + p.l2 * (2 * p.w1 / p.b1 * p.ph + 2 * p.uh + 2 * p.m1 * p.al / p.bg * p.ug),
        EAP10: p.l1
        * (
            2 * p.w2 / p.b2 * p.ph
            + 2 * p.uh
            + 2 * p.al1 / p.b1 * p.ug
            + 2 * p.m2 * p.al / p.bg * p.ug
        )
        + p.l2 * (2 * p.al1 / p.b1 * p.ph + 2 * p.uh + 2 * p.n1 * p.al / p.bg * p.ug),
        EAP01: p.l1 * (2 * p.al2 / p.b2 * p.ph + 2 * p.uh + 2 * p.n2 * p.al / p.bg * p.ug)
        + p.l2
        * (
            2 * p.w1 / p.b1 * p.ph
            + 2 * p.uh
            + 2 * p.al2 / p.b2 * p.ug
            + 2 * p.m1 * p.al / p.bg * p.ug
        ),
        EAP11: p.l1
        * (
            2 * p.al2 / p.b2 * p.ph
            + 2 * p.uh
            + 2 * p.al1 / p.b1 * p.ug
            + 2 * p.n2 * p.al / p.bg * p.ug
        )
        + p.l2
        * (
            2 * p.al1 / p.b1 * p.ph
            + 2 * p.uh
            + 2 * p.al2 / p.b2 * p.ug
            + 2 * p.n1 * p.al / p.bg * p.ug
        ),
    }


@given(two_way, constants)
def test_two_inputs_cost_what_equations_19_to_26_say(
    join: JoinStatistics, tuned: Constants
) -> None:
    printed = Printed(join, tuned)
    for kind, equations in (("hash", printed_hash), ("nested", printed_nested)):
        costs = JOINS[kind](join, tuned)
        for plan, cost in equations(printed).items():
            assert plan_cost(costs, plan) == pytest.approx(cost, rel=1e-9)


def test_equation_20_as_printed_is_another_number() -> None:
    join = join_statistics([(300, 5000, 150, 0.1), (300, 5000, 1, 0.5)], buckets=1021)
    p = Printed(join, Constants())
    as_printed = p.l1 * (2 * p.w2 + 2 + 2 * p.al1 / p.bg + 2 * p.m2 * p.al / p.b2)
    as_printed += p.l2 * (2 * p.al1 + 2 + 2 * p.n1 * p.al / p.bg)
    derived = plan_cost(nested_loop_join(join, Constants()), EAP10)
    assert derived == pytest.approx(printed_nested(p)[EAP10])
    assert as_printed > 10 * derived


def test_the_defaults_of_figure_4() -> None:
    join = join_statistics([(300, 5000, 150, 0.1), (300, 5000, 1, 0.1)], buckets=1021)
    costs = hash_join(join, Constants())
    # LAP: both inputs look at 500 rows of a bucket and update the result 500 times.
    assert plan_cost(costs, LAP) == 2 * 300 * 2 * (500 + 1 + 500)
    # EAP01: rows of the first look at one group, find one, and update the result once.
    assert plan_cost(costs, EAP01) == 300 * 2 * (1 + 1 + 1) + 300 * 2 * (500 + 1 + 500 + 1)
    assert plan_cost(costs, EAP10) == 300 * 2 * (500 + 1 + 500 + 150) + 300 * 2 * (150 + 1 + 150)
    assert plan_cost(costs, EAP11) == 300 * 2 * (1 + 1 + 1 + 150) + 300 * 2 * (150 + 1 + 1 + 150)


@given(any_costs(inputs=(2, 2)))
def test_two_inputs_cost_what_equations_15_to_18_say(costs: JoinCosts) -> None:
    one, two = costs.inputs
    late_1 = one.update_window + two.find_rows + two.matching_rows * costs.update_result
    late_2 = two.update_window + one.find_rows + one.matching_rows * costs.update_result
    early_1 = one.update_window + two.find_groups + two.matching_groups * costs.update_result
    early_2 = two.update_window + one.find_groups + one.matching_groups * costs.update_result
    expected = {
        LAP: one.rate * late_1 + two.rate * late_2,
        EAP10: one.rate * (late_1 + one.update_set) + two.rate * early_2,
        EAP01: one.rate * early_1 + two.rate * (late_2 + two.update_set),
        EAP11: one.rate * (early_1 + one.update_set) + two.rate * (early_2 + two.update_set),
    }
    for plan, cost in expected.items():
        assert plan_cost(costs, plan) == pytest.approx(cost)


def test_three_inputs_join_every_combination_of_matches() -> None:
    """The defaults of figure 5: a row meets 30 rows or 20 or 1 groups of each other input."""
    rows = [(200, 300, 20, 0.1), (200, 300, 1, 0.1), (200, 300, 1, 0.1)]
    costs = hash_join(join_statistics(rows, buckets=1021), Constants())
    late = 200 * 2 * 3 * (1 + 30 + 30 + 30 * 30)
    early = 200 * 2 * (1 + (1 + 1) + 1 * 1 + 20)
    early += 2 * 200 * 2 * (1 + (20 + 1) + 20 * 1 + 1)
    assert plan_cost(costs, (False,) * 3) == pytest.approx(late)
    assert plan_cost(costs, (True,) * 3) == pytest.approx(early)
    mixed = 200 * 2 * (1 + (1 + 30) + 1 * 30)  # EAP010: the first meets groups and rows
    mixed += 200 * 2 * (1 + (30 + 30) + 30 * 30 + 1)
    mixed += 200 * 2 * (1 + (30 + 1) + 30 * 1)
    assert plan_cost(costs, (False, True, False)) == pytest.approx(mixed)


@given(any_costs(), st.randoms(use_true_random=False))
def test_the_order_of_inputs_does_not_matter(costs: JoinCosts, random: Any) -> None:
    order = list(range(len(costs.inputs)))
    random.shuffle(order)
    shuffled = JoinCosts(tuple(costs.inputs[i] for i in order), costs.update_result)
    for plan in all_plans(len(order)):
        moved = tuple(plan[i] for i in order)
        assert plan_cost(shuffled, moved) == pytest.approx(plan_cost(costs, plan))


@pytest.mark.parametrize(
    "row",
    [
        (-1, 1, 1, 1), (math.inf, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0.5, 1), (1, 1, 1, 0),
        (1, 1, 1, 1.5), (1, 1, 1, math.nan), (math.nan, 1, 1, 1),
    ],
)  # fmt: skip
def test_statistics_of_no_input_are_refused(row: tuple[float, float, float, float]) -> None:
    with pytest.raises(QepError):
        InputStatistics(*row)


def test_joins_that_cannot_be_priced_are_refused() -> None:
    fine = InputStatistics(1, 1e300, 1, 1)
    with pytest.raises(QepError, match="two inputs"):
        JoinStatistics((fine,), 10)
    with pytest.raises(QepError, match="buckets"):
        JoinStatistics((fine, fine), 0)
    with pytest.raises(QepError, match="finite"):
        hash_join(JoinStatistics((fine, fine, fine), 10), Constants())
    with pytest.raises(QepError, match="U_g"):
        Constants(U_g=0)
    more_groups = InputCosts(1, 1, 1, 1, 1, matching_rows=1, matching_groups=2)
    with pytest.raises(QepError, match="cannot match"):
        JoinCosts((more_groups, more_groups), 1)
