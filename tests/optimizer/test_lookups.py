"""Plans of queries whose rows are looked up in tables: who shares with whom."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sql.support import BIDS, FakeAnalyzer
from tests.sql.test_lookups import TABLES

from weft.algebra.plan import PASS_NAMES, SharedPlan, Sharing
from weft.algebra.query import Query
from weft.optimizer.gtweave import share
from weft.optimizer.invariants import broken_invariants
from weft.optimizer.weaving import WindowWeaving
from weft.sql import bind

LEFT = "bids LEFT JOIN people p ON channel = p.name"
ADULTS = f"{LEFT} AND p.age > 17"


def queries(*texts: str) -> list[Query]:
    """Counts over FROM, WHERE and the keys of GROUP BY: `from; keys`."""
    bound: list[Query] = []
    for number, text in enumerate(texts):
        source, _, keys = text.partition("; ")
        sql = f"SELECT count(*) AS n FROM {source} GROUP BY window(ts, '{number + 1} minutes')"
        sql += f", {keys}" if keys else ""
        id_ = f"q{number}@{number}"
        query = bind(f"q{number}", sql, {"bids": BIDS}, FakeAnalyzer(), query_id=id_, tables=TABLES)
        assert isinstance(query, Query), query
        bound.append(query)
    return bound


def shared(*texts: str, **sharing: object) -> SharedPlan:
    settings = replace(Sharing(optimizer="best"), **sharing)  # type: ignore[arg-type]
    return share(1, BIDS, queries(*texts), {}, WindowWeaving(settings))


def test_queries_with_equal_lookups_share_a_node() -> None:
    plan = shared(
        f"{LEFT}; p.city", f"{LEFT} WHERE price > 3; city", f"{LEFT} WHERE price > 9; city"
    )
    assert len({node.base for node in plan.nodes}) == 1
    assert len(plan.groups) == 3
    assert plan.tables == ("people",)
    assert plan.columns == ("price", "channel", "ts")


@pytest.mark.parametrize("passes", [(), PASS_NAMES])
def test_queries_with_other_lookups_share_none(passes: tuple[str, ...]) -> None:
    """The keys are the same text, but other values: a node of one must not serve the other."""
    plan = shared(f"{LEFT}; p.city", f"{ADULTS}; p.city", "bids; channel", passes=passes)
    assert len({node.base for node in plan.nodes}) == 3
    assert len({node.lookups for node in plan.nodes}) == 3
    assert not list(broken_invariants(plan))


def test_every_set_of_lookups_has_a_tree_of_its_own() -> None:
    keys = ["p.city, channel", "p.city", "channel", ""]
    texts = [f"{source}; {key}" for source in (LEFT, ADULTS) for key in keys]
    plan = shared(*texts, "bids; channel, price", "bids; channel")
    by_id = plan.node_by_id
    roots = [node for node in plan.nodes if node.parent is None]
    assert len(roots) == len({node.lookups for node in roots}) == 3
    for node in plan.nodes:
        assert node.parent is None or by_id[node.parent].lookups == node.lookups


def test_intermediates_of_other_lookups_have_other_names_and_one_budget() -> None:
    keys = ["p.city, channel", "p.city, price", "p.city, auction"]
    texts = [f"{source}; {key}" for source in (LEFT, ADULTS) for key in keys]
    plan = shared(*texts, rate=1e6, keys=5.0)
    intermediates = [node for node in plan.nodes if node.intermediate]
    assert len({node.id for node in intermediates}) == len(intermediates) == 2
    bounded = shared(*texts, rate=1e6, keys=5.0, memory_budget=1000)
    assert [len(node.keys) for node in bounded.nodes if node.intermediate] == [4, 3]


def test_a_plan_that_mixes_lookups_is_broken() -> None:
    plan = shared(f"{LEFT}; p.city, channel", f"{LEFT}; channel")
    child = next(node for node in plan.nodes if node.parent is not None)
    mixed = tuple(replace(n, lookups=()) if n is child else n for n in plan.nodes)
    problems = list(broken_invariants(replace(plan, nodes=mixed)))
    assert any("has other lookups" in problem for problem in problems)
