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
        entry
        if entry.window is None or (sql := draw(chosen)) is None
        else replace(entry, predicate=_selection(sql))
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
    elif kind == "ahead":
        # another stream, which other join queries read, has taken the network's watermark there
        assert run.network is not None
        run.network.watermark = max(run.network.watermark, given_)
    elif kind == "matched":
        run.late_joins = given_
    elif kind == "stopped":
        run.failed.update(dict.fromkeys(given_, "stopped"))
    elif kind == "resumed":
        run.failed.clear()
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


@st.composite
def restless_cases(draw: st.DrawFn) -> Case:
    """Two late inputs with many steps, which the network begins to join somewhere, leaves, and joins again; the query is stopped for a while."""
    windows: list[InputWindow | None] = [draw(WINDOWS), draw(WINDOWS)]
    query = query_of(windows, [0, None], ["sum", "count"], {1})
    slots, actions = (0, 1), []
    marks = {"s0": 0, "s1": 0}
    toggles = [("matched", {}), ("matched", {query.id: slots}), ("matched", {query.id: slots})]
    toggles += [("stopped", [query.id]), ("resumed", None), ("restart", None), ("ahead", 25)]
    actions.append(draw(st.sampled_from(toggles)))
    for mark in range(6, 80, draw(st.sampled_from([8, 13]))):
        for name in marks:
            if draw(st.integers(0, 3)):
                rows = st.tuples(
                    st.integers(max(marks[name] - 8, 0), mark),
                    st.integers(0, 1),
                    st.sampled_from("xy"),
                    st.integers(1, 3),
                )
                marks[name] = mark - draw(st.integers(0, 3))
                batch = name, draw(st.lists(rows, max_size=3)), marks[name]
                actions.append(("batch", batch))
        actions += draw(
            st.sampled_from([[("network", None), ("step", None)], [("network", 1)], []])
        )
        if draw(st.booleans()):
            actions.append(draw(st.sampled_from(toggles)))
        actions += draw(st.sampled_from([[("step", None)], []]))
    actions += [("resumed", None), ("step", None), ("end", None)]
    return query, (False, False), actions, {}


@given(case=restless_cases())
@settings(max_examples=50)
def test_the_network_may_come_and_go(case: Case) -> None:
    """A query that is stopped begins anew: what it shows then are whole windows."""
    query, early, script, _ = case
    with tempfile.TemporaryDirectory() as folder:
        run = run_matched(Path(folder), [(query, early)], {})
        run.late_joins = {}
        for action in script:
            play(run, action)
        wanted, shown = oracle(run, query), run.by_instant(query)
        stopped = any(kind == "stopped" for kind, _ in script)
        if stopped:
            wanted = {at: rows for at, rows in wanted.items() if at in shown}
            assert run.log("@aggjoin").last() is not None
        assert shown == wanted


QUERY = query_of([SLIDING, SLIDING], [None, 0], ["count", "sum"], {1})
ROWS = [("s0", [(21, 1, "x", 1), (24, 1, "y", 2)], 0), ("s1", [(22, 1, "x", 3)], 0)]
LATER = [("s0", [(41, 1, "x", 1)], 41), ("s1", [(42, 1, "x", 3)], 42)]
MARKS = [("s0", [], 60), ("s1", [], 60)]


def played(folder: Path, script: Sequence[Action], used: Used | None = None) -> EngineRun:
    run = run_matched(folder, [(QUERY, (False, False))], {})
    for action in [*script, ("end", None)]:
        play(run, action)
    assert used is None or used.times > 0
    return run


def batches(*of_steps: Sequence[Any]) -> list[Action]:
    """Micro-batches, which the network and the engine take one after the other."""
    actions: list[Action] = []
    for batch in of_steps:
        actions += [*(("batch", given_) for given_ in batch), ("network", None), ("step", None)]
    return actions


def test_rows_that_the_network_takes_for_late_have_no_matches(tmp_path: Path) -> None:
    """Its watermark is ahead of streams that it has begun to read: what these take for timely it has not admitted."""
    run = played(tmp_path, [("ahead", 23), *batches(ROWS, LATER, MARKS)])
    assert run.network is not None and run.network.missed == {"s0": 23, "s1": 23}
    assert run.by_instant(QUERY) == oracle(run, QUERY)
    assert any(rows for at, rows in oracle(run, QUERY).items() if at in (30, 40))


def test_matches_that_came_while_the_query_was_stopped_are_found_at_instants(
    tmp_path: Path,
) -> None:
    """The engine has let go what the network published meanwhile; the network has not even seen that the query was stopped."""
    other = replace(QUERY, id="other@2", name="other")
    early = (False, False)
    run = run_matched(tmp_path, [(QUERY, early), (other, early)], {})
    for action in batches(ROWS):
        play(run, action)
    assert run.network is not None
    for given_ in LATER:
        run.publish(*given_)
    run.network.step()
    run.failed[QUERY.id] = "stopped"
    play(run, ("step", None))
    run.failed.clear()
    play(run, ("step", None))
    for action in [*batches(MARKS), ("end", None)]:
        play(run, action)
    assert run.by_instant(other) == oracle(run, other)
    shown, wanted = run.by_instant(QUERY), oracle(run, QUERY)
    assert shown == {at: rows for at, rows in wanted.items() if at in shown} and shown


def test_a_result_waits_for_the_network_where_it_finds_the_matches(tmp_path: Path) -> None:
    run = run_matched(tmp_path, [(QUERY, (False, False))], {})
    for action in batches(ROWS):
        play(run, action)
    for given_ in (*LATER, *MARKS):
        run.publish(*given_)
    run.advance()
    assert run.by_instant(QUERY) == {}
    assert run.network is not None
    run.network.step()
    run.advance()
    wanted = {at: rows for at, rows in oracle(run, QUERY).items() if at <= 60}
    assert run.by_instant(QUERY) == wanted != {}


def test_matches_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the network joins or not: what is joined at an instant, on average."""
    monkeypatch.setattr(engines, "_RECONSIDERED_EVERY", 1)
    counted = []
    for place, matched in enumerate((True, False)):
        run = run_matched(tmp_path / str(place), [(QUERY, (False, False))], {})
        run.late_joins = run.late_joins if matched else {}
        for action in batches(ROWS, [("s0", [], 30), ("s1", [], 30)], MARKS):
            play(run, action)
        counted.append(run.joined[QUERY.id])
    assert counted == [2, 2], "two rows of s0 with one of s1, at the instant 30"


def test_only_matches_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without late rows nobody asks for the rows of matched inputs; with the setting off, rows are joined."""
    asked: list[object] = []
    of = engines.KeptEntries.of
    monkeypatch.setattr(
        engines.KeptEntries, "of", lambda *args: (asked.append(args[1]), of(*args))[1]
    )
    used = Used(monkeypatch)
    run = run_matched(tmp_path, [(QUERY, (False, False))], {})
    for action in batches(ROWS, LATER, [("s0", [], 41), ("s1", [], 42)]):
        play(run, action)
    assert run.by_instant(QUERY) == {at: r for at, r in oracle(run, QUERY).items() if at <= 40}
    asked.clear()
    play(run, ("end", None))
    assert used.times > 0 and asked == []
    assert run.by_instant(QUERY) == oracle(run, QUERY)


@pytest.mark.parametrize("failpoint", FAILPOINTS)
@pytest.mark.parametrize("visit", [1, 3])
def test_a_crash_anywhere_loses_nothing_and_repeats_nothing(
    tmp_path: Path, failpoint: str, visit: int
) -> None:
    run = run_matched(tmp_path, [(QUERY, (False, False))], {})
    script = [*batches(ROWS, LATER, MARKS), ("end", None)]
    left = list(script)
    with crashing(failpoint, visit):
        try:
            for action in script:
                play(run, action)
                left.pop(0)
        except Crash:
            run.restart()
    for action in left:
        play(run, action)
    assert run.by_instant(QUERY) == oracle(run, QUERY) != {}


def test_files_that_are_written_anew_have_no_matches_that_count_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of many steps: every file that is written anew has matches that the next one takes over."""
    monkeypatch.setattr(held, "MOST_FILES", 3)
    run = run_matched(tmp_path, [(QUERY, (False, False))], {})
    stored = []
    for mark in range(2, END, 2):
        rows = [("s0", [(mark, 1, "x", 1)], mark), ("s1", [(mark, 1, "x", 3)], mark)]
        for action in batches(rows):
            play(run, action)
        last = run.log("@aggjoin").last()
        assert last is not None
        written = [entry for entry in last.state if held.of_matches(entry)]
        stored += [run.storage.read_table(entry["name"]).num_rows for entry in written]
    play(run, ("end", None))
    assert run.by_instant(QUERY) == oracle(run, QUERY)
    assert max(stored[-20:]) == max(stored[20:40]) > 0


def test_a_query_that_switches_has_other_inputs_matched(tmp_path: Path) -> None:
    """Of three inputs two are joined by the network, then all, then two again; its matches of before are of no use."""
    query = query_of([SLIDING] * 3, [None, 0], ["count", "sum"], {1})
    run = run_matched(tmp_path, [(query, (False, False, True))], {})
    assert run.late_joins == {query.id: (0, 1)}
    used: list[object] = []
    for mark in range(2, END, 2):
        rows = [(f"s{place}", [(mark, 1, "x", place)], mark) for place in range(3)]
        for action in batches(rows):
            play(run, action)
        if mark in (30, 70):
            run.following[query.id] = (False, False, mark == 70)
        run.late_joins = {query.id: matching_slots(query, run.early[query.id])}
        used.append(run.late_joins[query.id])
        if mark == 50:
            run.restart()
    play(run, ("end", None))
    assert used[0] == used[-1] == (0, 1) and (0, 1, 2) in used
    assert run.by_instant(query) == oracle(run, query) != {}


def test_joins_in_tasks_are_at_instants(tmp_path: Path) -> None:
    run = run_matched(tmp_path, [(QUERY, (False, False))], {}, kernel="lanes")
    for action in [*batches(ROWS, LATER), ("end", None)]:
        play(run, action)
    assert run.by_instant(QUERY) == oracle(run, QUERY) != {}


def test_files_of_matches_do_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written anew, they have what may still count and nothing else; a query that is gone leaves none."""
    monkeypatch.setattr(held, "MOST_FILES", 1)
    run = run_matched(tmp_path, [(QUERY, (False, False))], {})
    rows = []
    for end in range(10, 400, 10):
        batch = [(end - 5, 1, "x", 1), (end - 4, 2, "y", 2)]
        for action in batches([(name, batch, end) for name in ("s0", "s1")]):
            play(run, action)
        last = run.log("@aggjoin").last()
        assert last is not None
        files = [entry for entry in (*last.state, *last.retained) if "matches" in entry]
        rows.append(sum(run.storage.read_table(entry["name"]).num_rows for entry in files))
        assert len(files) <= 2
    assert max(rows[20:]) <= max(rows[:20]) > 0
    run.queries.clear()
    run.late_joins = {}
    play(run, ("end", None))
    last = run.log("@aggjoin").last()
    assert last is not None and not any("matches" in e for e in (*last.state, *last.retained))
