"""Steps of networks against DuckDB: the new rows of every query in every step, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.network_steps import (
    SECOND,
    STREAMS,
    Oracle,
    Spec,
    counted,
    difference,
    histories,
    plan_of,
    queries_of,
    table,
    watermark_of,
)

from weft.algebra.network.plan import NetworkPlan
from weft.kernel import network
from weft.kernel.network import Limits, Outcome, Program, State

Rows = dict[str, Counter[Any]]
SMALL = Limits(block=3)
"""Blocks so small that every join takes several."""


class Runner:
    """A network over some steps, and everything that a restart would read."""

    def __init__(
        self,
        queries: Sequence[Any],
        limits: Limits = SMALL,
        plan: Callable[[Sequence[Any]], NetworkPlan] = plan_of,
    ) -> None:
        self.limits, self.plan = limits, plan
        self.base: dict[str, list[pa.Table]] = {}
        self.joined: dict[str, list[pa.Table]] = {}
        self.shown: dict[str, list[pa.Table]] = {}
        self.program: Program
        self.state: State
        self.outcome: Outcome
        self.use(queries)
        self.state = State.empty(self.program)

    def use(self, queries: Sequence[Any]) -> None:
        self.program = network.program(self.plan(queries))

    def step(
        self,
        number: int,
        deltas: Mapping[str, pa.Table],
        from_steps: Mapping[str, Mapping[str, int]] | None = None,
        watermark: int | None = None,
    ) -> Rows:
        before = watermark_of(number - 1)
        after = watermark_of(number) if watermark is None else watermark
        outcome = network.advance(
            self.program, self.state, deltas, before, after, from_steps or {}, self.limits
        )
        self._remember(outcome, deltas, before)
        self.outcome, self.state = outcome, outcome.state
        assert not outcome.raw
        shown: Rows = {}
        for name, rows in outcome.results.items():
            shown.setdefault(self.program.outputs[name].query.id, Counter()).update(counted(rows))
        return shown

    def _remember(self, outcome: Outcome, deltas: Mapping[str, pa.Table], before: int) -> None:
        for relation, rows in deltas.items():
            admitted = network.admitted(rows, before) if relation in STREAMS else rows
            self.base.setdefault(relation, []).append(admitted)
        for join, rows in outcome.joined.items():
            self.joined.setdefault(join, []).append(rows)
        for query, rows in outcome.shown.items():
            self.shown.setdefault(query, []).append(rows)

    def restart(self, watermark: int) -> None:
        self.state = network.restored(
            self.program,
            self.base,
            self.joined,
            shown=self.shown,
            watermark=watermark,
            limits=self.limits,
        )


@settings(max_examples=15)
@given(queries_of(4), histories())
def test_new_matches_are_those_of_duckdb(
    queries: list[Spec], deltas: list[dict[str, pa.Table]]
) -> None:
    oracle, runner = Oracle(), Runner(queries)
    for number, delta in enumerate(deltas, 1):
        expected = oracle.step(queries, delta, watermark_of(number - 1), {})
        assert runner.step(number, delta) == expected


@settings(max_examples=10)
@given(queries_of(3), histories(), st.integers(1, 3))
def test_a_restart_changes_nothing(
    queries: list[Spec], deltas: list[dict[str, pa.Table]], after: int
) -> None:
    oracle, runner = Oracle(), Runner(queries)
    for number, delta in enumerate(deltas, 1):
        expected = oracle.step(queries, delta, watermark_of(number - 1), {})
        assert runner.step(number, delta) == expected
        if number == after:
            runner.restart(watermark_of(number))


@settings(max_examples=10)
@given(queries_of(4), histories(), st.integers(1, 3), st.integers(0, 3))
def test_queries_come_and_go(
    queries: list[Spec],
    deltas: list[dict[str, pa.Table]],
    after: int,
    dropped: int,
) -> None:
    """A query that comes later sees rows from then on, tables whole; the others notice nothing."""
    first, last = queries[:3], [*queries[:dropped], *queries[dropped + 1 :]]
    from_steps = {"q3": dict.fromkeys(STREAMS, after + 1)}
    oracle, runner = Oracle(), Runner(first)
    for number, delta in enumerate(deltas, 1):
        live = first if number <= after else last
        expected = oracle.step(live, delta, watermark_of(number - 1), from_steps)
        assert runner.step(number, delta, from_steps) == expected
        if number == after:
            runner.use(last)
            runner.restart(watermark_of(number))


def test_a_new_query_sees_tables_whole() -> None:
    """Also where it joins them with each other before it joins the stream."""
    relations = ("t", "t", "a")
    same = [difference(relations, (slot, "k"), (slot + 1, "k"), 0, 0) for slot in (0, 1)]
    old = Spec("old", ("a", "t"), (difference(("a", "t"), (0, "k"), (1, "k"), 0, 0),), ((0, "k"),))
    new = Spec("new", relations, tuple(same), ((1, "k"),))
    runner, oracle = Runner([old]), Oracle()
    row = {"k": 1, "ts": 5 * SECOND, "#time": 5 * SECOND}
    first = {"t": table("t", [{"k": 1, "#step": 0}]), "a": table("a", [{**row, "#step": 1}])}
    assert runner.step(1, first) == oracle.step([old], first, 0, {})
    runner.use([old, new])
    runner.restart(watermark_of(1))
    second = {"a": table("a", [{**row, "#step": 2}])}
    from_steps = {"new": {"a": 2}}
    expected = oracle.step([old, new], second, 0, from_steps)
    assert expected == {"old": Counter({(1,): 1}), "new": Counter({(1,): 1})}
    assert runner.step(2, second, from_steps) == expected


@settings(max_examples=12)
@given(queries_of(3), histories())
def test_expiry_changes_no_result(queries: list[Spec], deltas: list[dict[str, pa.Table]]) -> None:
    with_expiry, without = Runner(queries), Runner(queries)
    for number, delta in enumerate(deltas, 1):
        kept_all = without.step(number, delta, watermark=-(2**62))
        assert with_expiry.step(number, delta) == kept_all
    assert with_expiry.state.rows <= without.state.rows


@settings(max_examples=10)
@given(queries_of(3), histories())
def test_a_failed_step_leaves_the_state_as_it_was(
    queries: list[Spec], deltas: list[dict[str, pa.Table]]
) -> None:
    """Every step is run twice from the same state."""
    runner = Runner(queries, Limits())
    for number, delta in enumerate(deltas, 1):
        state = runner.state
        first = runner.step(number, delta)
        runner.state = state
        assert runner.step(number, delta) == first
