"""What queries share in the kernel, and what happens when one of them goes wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.support import NoAnalyzer, network_of
from tests.support.network_steps import (
    SECOND,
    Oracle,
    Spec,
    conditions,
    counted,
    difference,
    plan_of,
    rows_of,
    stream,
    table,
)

from weft.algebra.condition.values import Values, single
from weft.algebra.joinagg.matches import matches_id
from weft.algebra.network.bits import bit_of
from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates import LiteralPredicate, OrPredicate
from weft.algebra.query import Field, OutputColumn
from weft.algebra.scalar import Call, Literal, Opaque, Ref
from weft.kernel import network
from weft.kernel.failure import QueryFailure
from weft.kernel.network import Limits, State
from weft.kernel.network.distinct import Emitted, fresh
from weft.sql import bind

PAIR = ("a", "a")
SAME_KEY = difference(PAIR, (0, "k"), (1, "k"), 0, 0)
SHOWN = ((0, "ts"), (1, "ts"))


def seconds(*keys: tuple[int, int | None]) -> pa.Table:
    """Rows of stream `a` with a second and a key."""
    return table(
        "a",
        [
            {"ts": second * SECOND, "#time": second * SECOND, "#step": 1, "k": k}
            for second, k in keys
        ],
    )


def run(specs: list[Spec], rows: pa.Table, limits: Limits = Limits()) -> network.Outcome:  # noqa: B008
    program = network.program(plan_of(specs))
    return network.advance(program, State.empty(program), {"a": rows}, -1, 0, {}, limits)


@settings(max_examples=8)
@given(st.data())
def test_many_selections_of_one_relation_and_of_one_join(data: st.DataObject) -> None:
    """So many that they start with their rarest test."""
    filters = [
        Spec(
            f"f{at}",
            ("a",),
            tuple(data.draw(st.lists(conditions(("a",), several=False), max_size=3))),
            ((0, "k"), (0, "s")),
        )
        for at in range(10)
    ]
    joins = [
        Spec(
            f"j{at}",
            PAIR,
            (SAME_KEY, *data.draw(st.lists(conditions(PAIR, several=True), max_size=3))),
            SHOWN,
            above=3,
        )
        for at in range(10)
    ]
    specs = [*filters, *joins]
    rows = pa.concat_tables([data.draw(rows_of("a", step)) for step in range(1, 6)])
    program = network.program(plan_of(specs))
    outcome = network.advance(program, State.empty(program), {"a": rows}, 0, 0, {})
    expected = Oracle().step(specs, {"a": rows}, 0, {})
    assert {query: counted(new) for query, new in outcome.results.items()} == expected


def test_joins_on_the_same_keys_are_one_physical_join() -> None:
    specs = [
        Spec(f"q{days}", PAIR, (SAME_KEY, difference(PAIR, (1, "ts"), (0, "ts"), 0, days)), SHOWN)
        for days in range(1, 21)
    ]
    other = Spec("g", PAIR, (difference(PAIR, (0, "g"), (1, "g"), 0, 0),), SHOWN)
    program = network.program(plan_of([*specs, other]))
    joins = [node for node in program.nodes if node.join is not None]
    assert sorted(len(node.join.members) for node in joins if node.join) == [1, 20]
    alone = network.program(plan_of([specs[3]], version=7))
    assert {node.id for node in alone.nodes} < {node.id for node in program.nodes}


def test_rows_expire_once_nothing_to_come_can_match() -> None:
    """Left rows are needed for five seconds, right rows not at all: t1 in [t0, t0 + 5]."""
    spec = Spec("q", PAIR, (SAME_KEY, difference(PAIR, (1, "ts"), (0, "ts"), 0, 5 * SECOND)), SHOWN)
    program = network.program(plan_of([spec]))
    state = State.empty(program)
    rows = seconds(*((second, 1) for second in range(10)))
    state = network.advance(program, state, {"a": rows}, -1, 9 * SECOND, {}).state
    left, right = state.input_rows().values()
    assert (left, right) == (5, 0)
    assert network.advance(program, state, {}, 9 * SECOND, 20 * SECOND, {}).state.rows == 0


def test_a_key_that_joins_everything_names_its_queries() -> None:
    everything = Spec("hot", PAIR, (SAME_KEY,), SHOWN)
    careful = Spec("cold", PAIR, (SAME_KEY, difference(PAIR, (1, "ts"), (0, "ts"), 1, 2)), SHOWN)
    rows = seconds(*((second, 1) for second in range(100)))
    limits = Limits(most_matches=2000, block=500)
    with pytest.raises(QueryFailure) as failure:
        run([everything, careful], rows, limits)
    assert failure.value.queries == ("hot",)
    assert "more than 2000 matches" in failure.value.message
    assert run([careful], rows, limits).counters.candidates.popitem()[1] == 10_000
    with pytest.raises(QueryFailure, match="more than 5000 pairs"):
        run([careful], rows, Limits(most_candidates=5000, block=500))


def test_matches_of_aggregation_joins_give_way_to_join_queries() -> None:
    """Neither has too many rows by itself."""
    matches = matches_id("q@1", (0, 1))
    before = difference(PAIR, (1, "ts"), (0, "ts"), -12 * SECOND, 0)
    after = difference(PAIR, (1, "ts"), (0, "ts"), 1, 15 * SECOND)
    specs = [Spec("hot", PAIR, (SAME_KEY, after), SHOWN)]
    specs.append(Spec(matches, PAIR, (SAME_KEY, before), SHOWN))
    rows = seconds(*((second, 1) for second in range(100)))
    limits = Limits(most_matches=2000, block=500)
    with pytest.raises(QueryFailure) as failure:
        run(specs, rows, limits)
    assert failure.value.queries == (matches,)
    assert all(run([spec], rows, limits) for spec in specs)
    with pytest.raises(QueryFailure) as failure:
        run([Spec("all", PAIR, (SAME_KEY,), SHOWN), specs[1]], rows, limits)
    assert failure.value.queries == ("all",)


def test_a_lookup_with_too_many_matches_names_its_queries() -> None:
    """Its own queries, not those that only read the stream."""
    field = Field("k", "int")
    queries = [
        bind(name, sql, {"a": stream("a")}, NoAnalyzer(), query_id=name, tables={"t": (field,)})
        for name, sql in (
            ("hot", "SELECT a.k, t.k AS tk FROM a LEFT JOIN t ON a.k = t.k"),
            ("cold", "SELECT k FROM a WHERE k IN (SELECT k FROM t)"),
            ("plain", "SELECT k FROM a"),
        )
    ]
    joins = [query for query in queries if isinstance(query, JoinQuery)]
    program = network.program(network_of(joins, [stream("a")]))
    tables = {"t": [pa.table({"k": pa.array([1] * 50, pa.int32())})]}
    state = network.restored(program, tables)
    rows = seconds(*((second, 1) for second in range(50)))
    limits = Limits(most_matches=2000, block=500)
    with pytest.raises(
        QueryFailure, match="a join of a and t has more than 2000 matches"
    ) as failure:
        network.advance(program, state, {"a": rows}, -1, 0, {}, limits)
    assert failure.value.queries == ("hot",)


def test_late_rows_and_rows_without_a_time_come_into_no_join() -> None:
    specs = [Spec("pairs", PAIR, (SAME_KEY,), SHOWN), Spec("all", ("a",), (), ((0, "k"),))]
    program = network.program(plan_of(specs))
    rows = pa.concat_tables([seconds((1, 1), (5, 1), (6, 1)), table("a", [{"#step": 1, "k": 1}])])
    outcome = network.advance(
        program, State.empty(program), {"a": rows}, 5 * SECOND, 5 * SECOND, {}
    )
    assert outcome.results["pairs"].num_rows == 1
    assert outcome.results["all"].num_rows == 4
    assert outcome.counters.late == {"a": 3}


def test_what_only_spark_can_evaluate_comes_as_a_column() -> None:
    upper = Opaque("upper(`0.s`)", ("0.s",), "string")
    predicate = OrPredicate((LiteralPredicate(upper, Values((single("A"),))),))
    spec = Spec("q", ("a",), (), ((0, "k"), (0, "s")))
    plan = plan_of([replace(spec, conditions=(replace(SAME_KEY, predicate=predicate),))])
    program = network.program(plan)
    rows = table("a", [{"#step": 1, "k": at, "s": s} for at, s in enumerate(["a", "b", None])])
    rows = rows.append_column(bit_of(upper).name, pa.array(["A", "B", None]))
    outcome = network.advance(program, State.empty(program), {"a": rows}, 0, 0, {})
    assert outcome.results["q"].to_pylist() == [{"c0": 0, "c1": "a"}]


@pytest.mark.parametrize("k", [3, 2**31 - 1])
def test_what_spark_must_project_is_given_as_rows(k: int) -> None:
    """A function that the kernel does not know, and a sum that overflows: the query's own columns."""
    plan = plan_of([Spec("q", PAIR, (SAME_KEY,), SHOWN, order=(1, 0))])
    second = Ref("1.k", "int")
    unknown = Opaque("hash(`1.k`)", ("1.k",), "int")
    more = Call("+", (second, Literal(1, "int")), "int")
    for value, is_raw in ((unknown, True), (more, k > 3)):
        query = replace(plan.queries[0], columns=(OutputColumn("n", "int", value),))
        program = network.program(replace(plan, queries=(query,)))
        outcome = network.advance(program, State.empty(program), {"a": seconds((1, k))}, 0, 0, {})
        expected = [{"1.k": k}] if is_raw else [{"n": k + 1}]
        assert (outcome.raw if is_raw else outcome.results)["q"].to_pylist() == expected
        assert not (outcome.results if is_raw else outcome.raw)


def test_a_condition_that_fails_names_its_queries() -> None:
    ratio = Call("/", (Ref("0.x", "double"), Ref("1.x", "double")), "double")
    predicate = OrPredicate((LiteralPredicate(ratio, Values((single(1.0),))),))
    failing = Spec("q", PAIR, (SAME_KEY, replace(SAME_KEY, predicate=predicate)), SHOWN)
    rows = table(
        "a", [{"ts": 0, "#time": 0, "#step": 1, "k": at, "x": float(at)} for at in range(2)]
    )
    with pytest.raises(QueryFailure) as failure:
        run([failing, Spec("other", PAIR, (SAME_KEY,), SHOWN)], rows)
    assert failure.value.queries == ("q",)
    without_ansi = run([failing], rows, Limits(ansi=False))
    assert without_ansi.results["q"].num_rows == 1


def test_distinct_rows_are_shown_once() -> None:
    nan = float("nan")
    first = pa.table({"x": [0.0, -0.0, nan, None, nan, None], "k": [1, 1, 2, 3, 2, 3]})
    rows, emitted, hashes = fresh(Emitted(), first)
    assert counted(rows) == Counter({(0.0, 1): 1, ("NaN", 2): 1, (None, 3): 1})
    assert len(hashes) == 3
    again, after, _ = fresh(emitted, pa.table({"x": [-0.0, 0.5], "k": [1, 1]}))
    assert again.to_pylist() == [{"x": 0.5, "k": 1}]
    assert len(after.hashes) == 4 and len(emitted.hashes) == 3


@pytest.mark.parametrize(("low", "high"), [(-3, 2), (1, 1), (2, None), (None, -4), (0, 0)])
def test_without_equal_keys_a_range_is_searched(low: int | None, high: int | None) -> None:
    """Seconds 0 to 59 in two steps; the second row comes `low` to `high` seconds after the first."""
    micros = [None if end is None else end * SECOND for end in (low, high)]
    spec = Spec("q", PAIR, (difference(PAIR, (1, "ts"), (0, "ts"), *micros),), SHOWN)
    program = network.program(plan_of([spec]))
    state, emitted, candidates = State.empty(program), Counter[tuple[int, int]](), 0
    for first in (0, 30):
        rows = seconds(*((second, 1) for second in range(first, first + 30)))
        outcome = network.advance(program, state, {"a": rows}, -1, -1, {}, Limits(block=7))
        state = outcome.state
        candidates += sum(outcome.counters.candidates.values())
        shown = [column.cast(pa.int64()).to_pylist() for column in outcome.results["q"].columns]
        emitted += Counter(zip(*shown, strict=True))
    expected = Counter(
        (one * SECOND, two * SECOND)
        for one in range(60)
        for two in range(60)
        if (low is None or two - one >= low) and (high is None or two - one <= high)
    )
    assert emitted == expected
    assert candidates <= expected.total() * 1.2
