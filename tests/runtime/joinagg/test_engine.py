"""The engine of aggregation joins step by step, without Spark: all plans give what DuckDB gives at every instant."""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.joinagg import (
    INSTANTS,
    STEP,
    Row,
    cases,
    expected,
    query_of,
    rounded,
    rows_of,
    with_changes,
)
from tests.support.joinagg_engine import EngineRun

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.windows import InputWindow
from weft.kernel.joinagg import updating
from weft.runtime.checkpoint.failpoints import FAILPOINTS, Crash, crashing
from weft.runtime.joinagg import inputs, statefiles
from weft.runtime.settings import Kernel

SLIDING = InputWindow("sliding", 30)
END = INSTANTS[-1]
Action = tuple[str, Any]
_BETWEEN = [("step",), ("step", "step"), ("step", "restart"), ("restart",), ()]
"""What the follower does between micro-batches; a restart takes no step."""


@st.composite
def scripts(draw: st.DrawFn, streams: Sequence[str]) -> list[Action]:
    """Micro-batches of streams at different speeds, with late rows and idle streams; steps of the follower; restarts."""
    actions: list[Action] = []
    marks = dict.fromkeys(streams, 0)
    for _ in range(draw(st.integers(2, 4))):
        for name in streams:
            if draw(st.integers(0, 4)):
                rows = draw(rows_of(6))
                marks[name] = min(marks[name] + draw(st.integers(0, 25)), 70)
                actions.append(("batch", (name, rows, marks[name])))
        actions += [(kind, None) for kind in draw(st.sampled_from(_BETWEEN))]
    return [*actions, ("end", None)]


def run_script(
    folder: Path,
    query: AggregationJoin,
    early: tuple[bool, ...],
    script: Sequence[Action],
    tables: dict[str, list[Row]],
    kernel: Kernel = "auto",
) -> EngineRun:
    run = EngineRun(folder, [query], {query.id: early}, kernel=kernel)
    run.table_rows = tables
    streams = [entry.relation for entry in query.inputs if entry.window is not None]
    for name in streams:
        run.add_stream(name)
    for kind, given_ in script:
        if kind == "batch":
            run.publish(*given_)
        elif kind == "restart":
            run.restart()
        elif kind == "end":
            for name in streams:
                run.publish(name, [], END)
            while run.advance():
                pass
        else:
            run.advance()
    return run


def oracle(run: EngineRun, query: AggregationJoin) -> dict[int, Counter[Any]]:
    """What DuckDB gives, from the first instant on at which an input has a row."""
    rows = [run.admitted(query, slot) for slot in range(len(query.inputs))]
    firsts = []
    for slot, entry in enumerate(query.inputs):
        for row in rows[slot] if entry.window is not None else ():
            pane = entry.window.pane(STEP)
            first, last = entry.window.instants((row[0] // pane + 1) * pane, STEP)
            if first <= last:
                firsts.append(first)
    start = min(firsts, default=END + 1)
    wanted = expected(query, rows)
    return {at: found for at, found in wanted.items() if found and at >= start}


def too_large(wanted: dict[int, Counter[Any]]) -> bool:
    values = (v for rows in wanted.values() for row in rows for v in row)
    return any(isinstance(v, int) and abs(v) >= 2**63 for v in values)


@st.composite
def scripted(draw: st.DrawFn) -> tuple[AggregationJoin, list[Action], dict[str, list[Row]]]:
    query, drawn = draw(cases())
    streams = [entry.relation for entry in query.inputs if entry.window is not None]
    tables = {
        entry.relation: drawn[slot]
        for slot, entry in enumerate(query.inputs)
        if entry.window is None
    }
    return query, draw(scripts(streams)), tables


def in_folder(check: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))


@pytest.mark.parametrize("updated", [False, True], ids=["merged", "updated"])
@given(scripted())
@settings(max_examples=15)
def test_all_plans_equal_duckdb_whatever_comes_when(
    updated: bool, case: tuple[AggregationJoin, list[Action], dict[str, list[Row]]]
) -> None:
    """Aggregation sets of few panes are merged from them; `updated`: they are kept from step to step, as those of many."""
    query, script, tables = case
    for early in itertools.product([False, True], repeat=len(query.inputs)):

        def check(folder: Path, early: tuple[bool, ...] = early) -> None:
            with pytest.MonkeyPatch.context() as patched:
                if updated:
                    patched.setattr(inputs, "MANY_PANES", 0)
                    patched.setattr(updating, "_WORTH", 0)
                run = run_script(folder, query, early, script, tables)
            wanted = oracle(run, query)
            if not too_large(wanted):
                assert run.by_instant(query) == wanted, early

        in_folder(check)


@st.composite
def many_steps(draw: st.DrawFn) -> tuple[AggregationJoin, list[Action]]:
    """Two windows of several panes, sums and counts, and a step after every micro-batch: sets are updated again and again."""
    lengths = st.sampled_from([InputWindow("sliding", 30), SLIDING, InputWindow("landmark")])
    functions = [draw(st.sampled_from(["sum", "avg", "count"])) for _ in range(2)]
    query = query_of([draw(lengths), draw(lengths)], [0, 1], functions, {0})
    actions: list[Action] = []
    for mark in range(10, 80, draw(st.sampled_from([7, 10]))):
        for name in ("s0", "s1"):
            rows = st.tuples(
                st.integers(mark - 10, mark),
                st.integers(0, 1),
                st.sampled_from("xy"),
                st.integers(1, 3),
            )
            actions.append(("batch", (name, draw(st.lists(rows, min_size=1, max_size=4)), mark)))
        actions.append(("step", None))
    return query, [*actions, ("end", None)]


@given(many_steps(), st.sampled_from([2, 100]))
@settings(max_examples=12)
def test_sets_are_updated_from_step_to_step(
    case: tuple[AggregationJoin, list[Action]], most_files: int
) -> None:
    """Where files are few, panes of landmark windows are folded again and again: then sets are made anew."""
    query, script = case

    def check(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(inputs, "MANY_PANES", 0)
            patched.setattr(updating, "_WORTH", 0)
            patched.setattr(statefiles, "MOST_FILES", most_files)
            run = run_script(folder, query, (True, True), script, {})
        assert run.by_instant(query) == oracle(run, query)

    in_folder(check)


@given(scripted())
@settings(max_examples=15)
def test_changes_add_up_to_the_whole_result_of_every_instant(
    case: tuple[AggregationJoin, list[Action], dict[str, list[Row]]],
) -> None:
    query, script, tables = case
    early = (True, False, True)[: len(query.inputs)]

    def check(folder: Path) -> None:
        run = run_script(folder, with_changes(query), early, script, tables)
        wanted = oracle(run, query)
        if too_large(wanted):
            return
        changes: dict[int, list[dict[str, Any]]] = {}
        for row in run.shown(with_changes(query)):
            changes.setdefault(int(row.pop("at").timestamp() * 1_000_000), []).append(row)
        shown: dict[Any, Any] = {}
        for at in INSTANTS:
            for row in sorted(changes.get(at, []), key=lambda row: not row["removed"]):
                key = tuple(v for name, v in row.items() if name.startswith("g"))
                if row.pop("removed"):
                    del shown[key]
                else:
                    values = tuple(rounded(v) for v in row.values())
                    assert shown.get(key) != values, "a row that did not change"
                    shown[key] = values
            assert Counter(shown.values()) == wanted.get(at, Counter())

    in_folder(check)


PLAN = [((False, True), "late and early"), ((True, False), "early and late")]
SCRIPT: list[Action] = [
    ("batch", ("s0", [(1, 1, "x", 5), (3, 2, "y", 7), (12, 1, None, None)], 0)),
    ("batch", ("s1", [(2, 1, "p", 10), (15, 2, None, 20)], 0)),
    ("step", None),
    ("batch", ("s0", [(31, 1, "x", 2), (4, 1, "x", 9)], 12)),
    ("batch", ("s1", [(33, 1, "p", 30), (1, 2, "p", 3)], 15)),
    ("step", None),
    ("batch", ("s0", [(45, 2, "y", 3)], 31)),
    ("batch", ("s1", [(50, 2, "p", 1)], 33)),
    ("end", None),
]


@pytest.mark.parametrize("failpoint", FAILPOINTS)
@pytest.mark.parametrize(("visit", "kernel"), [(1, "driver"), (3, "driver"), (2, "lanes")])
def test_a_crash_anywhere_loses_nothing_and_repeats_nothing(
    tmp_path: Path, failpoint: str, visit: int, kernel: Kernel
) -> None:
    query = query_of([SLIDING, InputWindow("landmark")], [None, 0], ["count", "sum"], {0})
    plans = itertools.product([False, True], repeat=2)
    queries = {replace(query, id=f"q@{number}"): plan for number, plan in enumerate(plans)}
    changing = replace(with_changes(query), id="r@2")
    run = EngineRun(
        tmp_path,
        [*queries, changing],
        {one.id: plan for one, plan in queries.items()} | {changing.id: (True, True)},
        kernel=kernel,
    )
    for name in ("s0", "s1"):
        run.add_stream(name)
    with crashing(failpoint, visit):
        for action in SCRIPT:
            try:
                play(run, action)
            except Crash:
                break
    left = SCRIPT[SCRIPT.index(action) :]
    run.restart()
    for action in left:
        play(run, action)
    for one, plan in queries.items():
        assert run.by_instant(one) == oracle(run, one), plan
    keys = [(row["at"], row["g0"], row["removed"]) for row in run.shown(changing)]
    assert len(set(keys)) == len(keys) > 0


def play(run: EngineRun, action: Action) -> None:
    kind, given_ = action
    if kind == "batch":
        run.publish(*given_)
    elif kind == "end":
        for name in run.streams:
            run.publish(name, [], END)
        while run.advance():
            pass
    else:
        run.advance()
