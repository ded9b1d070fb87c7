"""The pipeline: passes are pure, can be left out, are timed, and what they break is noticed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.sql.support import BIDS, STREAMS, FakeAnalyzer

from weft.algebra import codec
from weft.algebra.plan import PASS_NAMES, Node, SharedPlan, Sharing
from weft.algebra.query import Query
from weft.algebra.signature import Signature
from weft.algebra.window import EdgeClass
from weft.errors import RunError
from weft.optimizer.gtweave import PASSES, PassRun, groupby, predicates, share, windows
from weft.optimizer.invariants import broken_invariants
from weft.optimizer.weaving import Weaving, WindowWeaving
from weft.sql import bind

FINE = WindowWeaving(Sharing("triweave", "triops", rate=1e6), lambda keys, rows: 10.0 ** len(keys))


def bids(name: str, keys: str, where: str = "", window: str = "'10 seconds'") -> Query:
    filtered = f"WHERE {where}" if where else ""
    sql = f"SELECT {keys}, count(*) AS n FROM bids {filtered} GROUP BY window(ts, {window}), {keys}"
    query = bind(name, sql, STREAMS, FakeAnalyzer(), query_id=f"{name}@1")
    assert isinstance(query, Query)
    return query


QUERIES = [
    bids("wide", "auction, channel"),
    bids("narrow", "channel"),
    bids("slow", "channel", "", "'1 day', '1 day'"),
    bids("odd", "channel", "", "'1 minute', '7 seconds'"),
    *(bids(f"cheap{n}", "channel", f"price < {n}") for n in range(4)),
]


def planned(queries: list[Query], weaving: Weaving = FINE) -> SharedPlan:
    return share(1, BIDS, queries, {query.id: 0 for query in queries}, weaving)


def test_a_pass_is_switched_off_by_the_name_of_its_function() -> None:
    assert tuple(transform.__name__ for transform in PASSES) == PASS_NAMES


@pytest.mark.parametrize("transform", PASSES, ids=lambda transform: transform.__name__)
def test_a_pass_with_nothing_to_do_gives_the_same_plan(
    transform: Callable[[SharedPlan, Weaving], SharedPlan],
) -> None:
    plan = share(1, BIDS, [bids("only", "channel")], {}, FINE, passes=())
    assert transform(plan, FINE) is plan


@pytest.mark.parametrize("transform", PASSES, ids=lambda transform: transform.__name__)
def test_a_pass_leaves_the_plan_that_it_was_given(
    transform: Callable[[SharedPlan, Weaving], SharedPlan],
) -> None:
    plan = share(1, BIDS, QUERIES, {}, FINE, passes=())
    before = codec.dumps(plan)
    changed = transform(plan, FINE)
    assert changed != plan
    assert codec.dumps(plan) == before


@pytest.mark.parametrize("left_out", PASSES, ids=lambda transform: transform.__name__)
def test_a_shorter_pipeline_is_a_pass_switched_off(
    left_out: Callable[[SharedPlan, Weaving], SharedPlan],
) -> None:
    names = tuple(name for name in PASS_NAMES if name != left_out.__name__)
    shorter = [transform for transform in PASSES if transform is not left_out]
    off = planned(QUERIES, replace(FINE, sharing=replace(FINE.sharing, passes=names)))
    assert share(1, BIDS, QUERIES, off.complete_from, FINE, passes=shorter) == off
    assert off != planned(QUERIES)


def test_every_pass_is_timed_and_says_whether_it_changed_the_plan() -> None:
    runs: list[PassRun] = []
    share(1, BIDS, QUERIES, {}, FINE, report=runs.append)
    assert [(run.name, run.changed) for run in runs] == [(name, True) for name in PASS_NAMES]
    assert all(run.seconds >= 0 for run in runs)
    runs.clear()
    share(1, BIDS, [bids("only", "channel")], {}, FINE, report=runs.append)
    assert [run.changed for run in runs] == [False, False, False]


def test_a_plan_of_every_pass_is_sound() -> None:
    plan = planned(QUERIES)
    assert list(broken_invariants(plan)) == []
    assert any(node.parent for node in plan.nodes) and any(g.fragments for g in plan.groups)


def changed_node(plan: SharedPlan, chosen: Callable[[Node], bool], **changes: object) -> SharedPlan:
    """The plan with its first node that is chosen changed."""
    nodes = list(plan.nodes)
    position = next(position for position, node in enumerate(nodes) if chosen(node))
    nodes[position] = replace(nodes[position], **changes)  # type: ignore[arg-type]
    return replace(plan, nodes=tuple(nodes))


def below(node: Node) -> bool:
    return node.parent is not None


def top(node: Node) -> bool:
    return node.parent is None


def selecting(node: Node) -> bool:
    return bool(node.predicates) and top(node)


Break = Callable[[SharedPlan], SharedPlan]
BREAKS: dict[str, Break] = {
    "two nodes are named": lambda plan: replace(plan, nodes=(*plan.nodes, plan.nodes[-1])),
    "comes before its parent": lambda plan: replace(plan, nodes=plan.nodes[::-1]),
    "reads the unknown node": lambda plan: replace(plan, nodes=plan.nodes[:-1]),
    "has other keys": lambda plan: changed_node(plan, top, keys=()),
    "has other partials": lambda plan: changed_node(plan, top, partials=()),
    "keeps rows that are dropped above": lambda plan: changed_node(plan, top, keeps_all_rows=False),
    "ends fragments where those above do not end": lambda plan: changed_node(
        plan, top, fragments=replace(plan.nodes[0].fragments, classes=(EdgeClass(10**13, 0),))
    ),
    "does not decide its predicates": lambda plan: changed_node(
        plan, selecting, signature=Signature()
    ),
    "nothing is computed from the intermediate": lambda plan: changed_node(
        plan, below, intermediate=True
    ),
    "reads the intermediate": lambda plan: changed_node(plan, below, intermediate=True),
    "is in 2 weave groups": lambda plan: replace(plan, groups=(*plan.groups, plan.groups[0])),
    "is in 0 weave groups": lambda plan: replace(plan, groups=plan.groups[1:]),
    "has the unknown query": lambda plan: replace(plan, queries=plan.queries[1:]),
    "lacks partials of": lambda plan: changed_node(plan, below, partials=()),
    "drops rows of": lambda plan: changed_node(plan, below, keeps_all_rows=False),
    "lacks the predicate of": lambda plan: changed_node(
        plan, lambda node: bool(node.predicates) and below(node), predicates=()
    ),
    "cuts a fragment of": lambda plan: changed_node(
        plan, below, fragments=replace(plan.nodes[0].fragments, classes=(EdgeClass(10**13, 0),))
    ),
}


@pytest.mark.parametrize("problem", BREAKS)
def test_what_a_plan_must_not_be_is_noticed(problem: str) -> None:
    sentences = list(broken_invariants(BREAKS[problem](planned(QUERIES))))
    assert any(problem in sentence for sentence in sentences), sentences


def test_a_pass_that_breaks_the_plan_is_named() -> None:
    def forgetful(plan: SharedPlan, weaving: Weaving) -> SharedPlan:
        return replace(plan, groups=plan.groups[1:])

    forgetful.__name__ = "windows"
    with pytest.raises(RunError, match=r"BROKEN_PLAN.*'windows'.*'bids'.*0 weave groups"):
        share(1, BIDS, QUERIES, {}, FINE, passes=(predicates, forgetful, groupby))
    assert windows in PASSES


def test_a_plan_holds_no_dict_that_someone_can_change() -> None:
    bounds = {"only@1": 5}
    plan = share(1, BIDS, [bids("only", "channel")], bounds)
    bounds["only@1"] = 7
    assert plan.complete_from == {"only@1": 5}
    assert not hasattr(plan.complete_from, "__setitem__")
    assert not hasattr(plan.complete_from, "update")
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan and hash(again) == hash(plan)
