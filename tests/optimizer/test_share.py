"""Shared plans: what is shared, and what is not."""

from __future__ import annotations

from dataclasses import replace

from weft.algebra import codec
from weft.algebra.aggregate import Aggregate
from weft.algebra.condition import condition
from weft.algebra.query import Field, OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Call, Expression, Literal, Ref
from weft.algebra.signature import WORD_BITS, Signature
from weft.algebra.window import Window
from weft.optimizer.gtweave import share

STREAM = StreamSchema(
    "s", (Field("ts", "timestamp"), Field("k", "string"), Field("v", "bigint")), "ts", 0
)
K = Expression("`k`", "string", ("k",))
V = Expression("`v`", "bigint", ("v",))
COUNT = Aggregate("count", (), "bigint")


def query(number: int, **changes: object) -> Query:
    base = Query(
        f"q{number}@{number}",
        f"q{number}",
        "",
        "s",
        Window(60, 10),
        (K,),
        None,
        (COUNT,),
        None,
        (OutputColumn("n", "bigint", Ref("a0", "bigint")),),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def equals(number: int) -> Expression:
    return Expression(f"(`v` = {number})", "boolean", ("v",))


def test_windows_share_one_node() -> None:
    plan = share(1, STREAM, [query(i, window=Window(60 * i, 10)) for i in range(1, 9)], {})
    assert len(plan.nodes) == 1
    assert len(plan.groups) == 1
    assert len(plan.nodes[0].partials) == 1


def test_equal_predicates_are_one_bit_and_other_keys_another_node() -> None:
    queries = [query(1, predicate=equals(1)), query(2, predicate=equals(1))]
    queries += [query(3, predicate=equals(2)), query(4, keys=(V,))]
    plan = share(1, STREAM, queries, {})
    first, second = plan.nodes
    assert len(first.predicates) == 2
    assert not first.keeps_all_rows
    assert second.keeps_all_rows
    assert {group.queries for group in plan.groups} == {
        ("q1@1", "q2@2"),
        ("q3@3",),
        ("q4@4",),
    }


def test_a_thousand_predicates_take_several_words() -> None:
    plan = share(1, STREAM, [query(i, predicate=equals(i)) for i in range(1000)], {})
    assert plan.nodes[0].signature.words == -(-1000 // WORD_BITS)


def indexed(number: int) -> Expression:
    condition_ = condition(Call("=", (Ref("v", "bigint"), Literal(number, "bigint")), "boolean"))
    return Expression(condition_.sql, "boolean", ("v",), condition=condition_)


def test_a_thousand_equality_conditions_are_one_cut() -> None:
    plan = share(1, STREAM, [query(i, predicate=indexed(i * 2)) for i in range(1000)], {})
    (node,) = plan.nodes
    (cut,) = node.signature.cuts
    assert not node.signature.bits
    assert len(set(cut.classes)) == 1001


def test_conditions_on_a_key_need_no_signature() -> None:
    plan = share(1, STREAM, [query(i, keys=(V,), predicate=indexed(i)) for i in range(1000)], {})
    (node,) = plan.nodes
    assert node.signature == Signature()


def test_a_distinct_argument_is_a_node_of_its_own() -> None:
    distinct = Aggregate("count", (V,), "bigint", distinct=True)
    plan = share(1, STREAM, [query(1, aggregates=(COUNT, distinct))], {})
    assert [len(node.keys) for node in plan.nodes] == [1, 2]
    assert [node.group_keys for node in plan.nodes] == [1, 1]


def test_what_can_raise_stays_behind_its_querys_predicate() -> None:
    division = Expression("(10 / `v`)", "double", ("v",), can_raise=True)
    total = Aggregate("sum", (division,), "double")
    key = Expression("(`v` DIV 0)", "bigint", ("v",), can_raise=True)
    plan = share(1, STREAM, [query(1, predicate=equals(1), aggregates=(total,), keys=(key,))], {})
    node = plan.nodes[0]
    guard = "CASE WHEN (`v` = 1) THEN (`v` DIV 0) END"
    assert node.keys[0].sql == guard
    assert all("CASE WHEN ((`v` = 1)) THEN" in partial.lift for partial in node.partials)


def test_columns_in_use_are_those_of_the_queries_and_the_event_time() -> None:
    plan = share(1, STREAM, [query(1)], {})
    assert plan.columns == ("ts", "k")


def test_a_plan_survives_its_json() -> None:
    distinct = Aggregate("count", (V,), "bigint", equals(3), distinct=True)
    queries = [query(1, predicate=equals(1)), query(2, aggregates=(distinct,))]
    plan = share(7, STREAM, queries, {"q1@1": -5})
    assert codec.loads(codec.dumps(plan)) == plan
