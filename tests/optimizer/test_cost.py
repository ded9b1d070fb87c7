"""The papers' equations on plans small enough to count by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.explain.support import explained, numbered

from weft.algebra.plan import Sharing
from weft.algebra.window import EdgeClass, Window
from weft.optimizer.cost import SECOND, edge_rate, fragment_rate, window_rate
from weft.optimizer.edges.slices import slices
from weft.optimizer.weaving import WindowWeaving

classes = st.builds(
    lambda slide, residue: EdgeClass(slide, residue % slide),
    st.integers(1, 8),
    st.integers(0, 7),
)


@given(st.lists(classes, min_size=1, max_size=5))
def test_edges_are_counted_once_however_many_classes_have_them(edges: list[EdgeClass]) -> None:
    span = 840  # a multiple of every slide up to 8
    brute = sum(any(t % e.slide == e.residue for e in edges) for t in range(span))
    rate = edge_rate(edges)
    assert rate.exact
    assert rate.per_second == pytest.approx(brute * SECOND / span)


def test_edges_of_coprime_slides_are_counted_exactly_too() -> None:
    primes = [1009, 1013, 1019, 1021, 1031]
    rate = edge_rate(EdgeClass(prime * 1000, 0) for prime in primes)
    missed = 1.0
    for prime in primes:
        missed *= 1 - 1 / prime
    assert rate.exact
    assert rate.per_second == pytest.approx((1 - missed) * 1000)


def test_the_composite_slide_of_the_papers_second_example() -> None:
    # (8, 5): 3 5 | 8 10 | 13 15 | 18 20        (5, 4): 1 4 | 5 8 | 9 12 | 13 16 | 17 20
    # together 1 3 4 5 8 9 10 12 13 15 16 17 18 20 in twenty seconds
    windows = [Window(8 * SECOND, 5 * SECOND), Window(5 * SECOND, 4 * SECOND)]
    assert window_rate(windows).per_second == pytest.approx(14 / 20)
    assert fragment_rate(slices(windows)).per_second == pytest.approx(14 / 20)


def test_one_node_by_equation_four() -> None:
    explanation = explained(
        """-- name: a
        SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '60 seconds', '10 seconds');
        -- name: b
        SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '30 seconds', '15 seconds');
        -- name: c
        SELECT COUNT(*) AS n FROM bids WHERE price > 1 GROUP BY window(ts, '10 seconds')""",
        rate=500.0,
    )
    cost = explanation.to_json()["streams"][0]["cost"]
    # edges of a and b: 0 10 15 20 in thirty seconds; c selects rows, and has a node of its own
    shared_rate = 4 / 30
    assert cost["rate_is"] == "given"
    assert cost["plain_spark"] == pytest.approx(500 * (6 + 2 + 1))
    assert cost["alone"] == pytest.approx(3 * 500 + 6 / 10 + 2 / 15 + 1 / 10)
    assert cost["level1"] == 2 * 500
    assert cost["level2"] == 0, "no group has fragments of its own"
    assert cost["level3"] == pytest.approx(shared_rate * (6 + 2) + 1 / 10)
    assert cost["saves"] == pytest.approx(cost["alone"] / cost["shared"])


def test_count_distinct_pays_for_a_second_node_alone_and_shared() -> None:
    sql = "SELECT COUNT(DISTINCT bidder) AS n FROM bids GROUP BY window(ts, '10 seconds')"
    cost = explained(sql).to_json()["streams"][0]["cost"]
    assert cost["level1"] == 2000
    assert cost["alone"] == pytest.approx(2 * (1000 + 0.1))


def test_many_queries_of_one_node_cost_little_more_than_one() -> None:
    template = "SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '{n} minutes', '1 minute')"
    cost = explained(numbered(template, 100)).to_json()["streams"][0]["cost"]
    assert cost["saves"] > 80
    assert cost["saves_plain_spark"] > 4000


TWO_WINDOWS = """-- name: a
    SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '60 seconds', '10 seconds');
    -- name: b
    SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '30 seconds', '15 seconds')"""


def test_groups_of_their_own_by_equation_four() -> None:
    weaving = WindowWeaving(Sharing("noshare", "triops", rate=500.0))
    explanation = explained(TWO_WINDOWS, rate=500.0, weaving=weaving)
    cost = explanation.to_json()["streams"][0]["cost"]
    assert cost["level1"] == 500
    assert cost["level2"] == pytest.approx(2 * 4 / 30)
    assert cost["level3"] == pytest.approx(6 / 10 + 2 / 15)
    assert "coarse fragments end every 10 s" in str(explanation)
    assert "groups by noshare (triops)" in str(explanation)


def test_a_sub_aggregation_for_each_group_by_equation_three() -> None:
    weaving = WindowWeaving(Sharing("noshare", "twoops", rate=500.0))
    cost = explained(TWO_WINDOWS, rate=500.0, weaving=weaving).to_json()["streams"][0]["cost"]
    assert (cost["level1"], cost["level2"]) == (1000, 0)
    assert cost["level3"] == pytest.approx(6 / 10 + 2 / 15)


def test_short_and_long_windows_are_kept_apart_by_wefts_own_cost() -> None:
    sql = """-- name: alert
        SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '2 seconds', '1 second');
        -- name: report
        SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '1 day', '1 hour')"""
    apart = explained(sql, weaving=WindowWeaving(Sharing("best")))
    together = explained(sql, weaving=WindowWeaving(Sharing("shared")))
    costs = [
        explanation.to_json()["streams"][0]["seconds_per_second"]
        for explanation in (apart, together)
    ]
    assert costs[0]["total"] < costs[1]["total"] / 10
    assert costs[0]["level2"] > 0
    assert len(apart.to_json()["streams"][0]["groups"]) == 2


def test_panes_much_finer_than_the_edges_are_made_coarse_again() -> None:
    """Above twelve edge classes level 1 writes panes; long ranges should not keep them open."""
    primes = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163)
    sql = ";\n".join(
        f"-- name: q{p}\nSELECT COUNT(*) AS n FROM bids "
        f"GROUP BY window(ts, '{30 * p} seconds', '{p} seconds')"
        for p in primes
    )
    chosen = explained(sql, weaving=WindowWeaving(Sharing("best"))).to_json()["streams"][0]
    shared = explained(sql, weaving=WindowWeaving(Sharing("shared"))).to_json()["streams"][0]
    assert shared["nodes"][0]["fragments"]["pane"] == SECOND
    assert all(group["coarse_fragments"] for group in chosen["groups"])
    assert chosen["seconds_per_second"]["total"] < shared["seconds_per_second"]["total"] / 2
