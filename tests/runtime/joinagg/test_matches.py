"""Late inputs that the network joins: the engine gives what DuckDB gives, whatever the network has seen, and when."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.joinagg.test_engine import END, Action, oracle, scripts, too_large
from tests.support import joinagg_engine
from tests.support.joinagg import Row, query_of, rows_of
from tests.support.joinagg_engine import PREDICATES, EngineRun

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.scalar import Expression
from weft.runtime.checkpoint.failpoints import FAILPOINTS, Crash, crashing
from weft.runtime.joinagg import engine as engines
from weft.runtime.joinagg.matches import held
from weft.runtime.joinagg.matches.possible import matching_slots
from weft.runtime.settings import Kernel

SLIDING = InputWindow("sliding", 30)
WINDOWS = st.one_of(
    st.builds(InputWindow, st.just("sliding"), st.sampled_from([5, 15, 30, 70])),
    st.builds(InputWindow, st.just("tumbling"), st.sampled_from([20, 25])),
)
OTHERS = st.one_of(WINDOWS, st.just(InputWindow("landmark")), st.none())
Case = tuple[AggregationJoin, tuple[bool, ...], list[Action], dict[str, list[Row]]]


@st.composite
def matched_cases(draw: st.DrawFn) -> Case:
    """Two late inputs that are joined, maybe a third one in any form, anywhere."""
    windows: list[InputWindow | None] = [draw(WINDOWS), draw(WINDOWS)]
    early = [False, False]
    if draw(st.booleans()):
        place = draw(st.sampled_from([0, 2]))
        windows.insert(place, draw(OTHERS))
        early.insert(place, draw(st.booleans()))
    inputs = len(windows)
    slots = draw(st.lists(st.one_of(st.none(), st.integers(0, inputs - 1)), min_size=1, max_size=2))
    functions = [draw(st.sampled_from(["count", "sum", "min", "avg"])) for _ in slots]
    query = query_of(windows, slots, functions, draw(st.sets(st.integers(0, inputs - 1))))
    chosen = st.one_of(st.none(), st.sampled_from([*PREDICATES]))
    entries = tuple(
        entry if (sql := draw(chosen)) is None else replace(entry, predicate=_selection(sql))
        for entry in query.inputs
    )
    query = replace(query, inputs=entries)
    streams = [entry.relation for entry in query.inputs if entry.window is not None]
    tables = {e.relation: draw(rows_of(5)) for e in query.inputs if e.window is None}
    actions = draw(scripts(streams))
    for place in sorted(draw(st.lists(st.integers(0, len(actions) - 1), max_size=6)), reverse=True):
        actions.insert(place, ("network", draw(st.sampled_from([None, None, 1, 2]))))
    return query, tuple(early), actions, tables


def _selection(sql: str) -> Expression:
    return Expression(sql, "boolean", ("a",))


def run_matched(
    folder: Path,
    queries: Sequence[tuple[AggregationJoin, tuple[bool, ...]]],
    tables: dict[str, list[Row]],
    kernel: Kernel = "auto",
) -> EngineRun:
    run = EngineRun(folder, [q for q, _ in queries], {q.id: e for q, e in queries}, kernel=kernel)
    run.table_rows = tables
    names = {e.relation for q, _ in queries for e in q.inputs if e.window is not None}
    for name in sorted(names):
        run.add_stream(name)
    run.join_in_network({q.id: s for q, e in queries if (s := matching_slots(q, e))})
    return run


def play(run: EngineRun, action: Action) -> None:
    kind, given_ = action
    if kind == "batch":
        run.publish(*given_)
    elif kind == "network":
        assert run.network is not None
        run.network.step(given_)
    elif kind == "restart":
        run.restart()
    elif kind == "end":
        assert run.network is not None
        for name in run.streams:
            run.publish(name, [], END)
        run.advance()
        run.network.step()
        while run.advance():
            pass
    else:
        run.advance()


class Used:
    """Counts how often matches were used."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.times = 0
        found = engines.complete_matches

        def counting(*given_: Any) -> Any:
            complete = found(*given_)
            self.times += len(complete)
            return complete

        patched.setattr(engines, "complete_matches", counting)


@pytest.mark.parametrize("most_files", [0, 48])
@given(case=matched_cases())
@settings(max_examples=40)
def test_results_are_those_of_duckdb(most_files: int, case: Case) -> None:
    query, early, script, tables = case
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(held, "MOST_FILES", most_files)
        used = Used(patched)
        run = run_matched(Path(folder), [(query, early)], tables)
        for action in script:
            play(run, action)
        wanted = oracle(run, query)
        if not too_large(wanted):
            assert run.by_instant(query) == wanted
            assert used.times > 0
