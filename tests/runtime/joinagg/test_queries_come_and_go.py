"""Aggregation joins that are registered late, share, fail, are dropped, or keep state for ever."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.joinagg import INSTANTS, Row, expected, query_of, with_changes
from tests.support.joinagg_engine import EngineRun

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.scalar import Call, Literal, Ref
from weft.runtime.checkpoint.failpoints import Crash, crashing
from weft.runtime.joinagg import statefiles
from weft.runtime.joinagg.engine import LOG
from weft.runtime.settings import Kernel

SLIDING = InputWindow("sliding", 30)
SHORT = InputWindow("sliding", 10)
LANDMARK = InputWindow("landmark")
EARLY, LATE = (True, True), (False, False)
END = INSTANTS[-1]


def joined(id_: str, *windows: InputWindow, keys: tuple[int, ...] = (0,)) -> AggregationJoin:
    query = query_of(list(windows), [None, 1], ["count", "sum"], set(keys))
    return replace(query, id=id_, name=id_.split("@")[0])


def opened(
    folder: Path, *queries: tuple[AggregationJoin, tuple[bool, ...]], **options: Any
) -> EngineRun:
    run = EngineRun(
        folder, [q for q, _ in queries], {q.id: early for q, early in queries}, **options
    )
    for name in ("s0", "s1"):
        run.add_stream(name)
    return run


def rows(*times: int) -> list[Row]:
    return [(time, time % 2, "xy"[time % 3 % 2], time) for time in times]


def play(run: EngineRun, first: int, last: int) -> None:
    """Rows at every third time, in micro-batches of ten, up to the watermark `last`; a step after each."""
    for begin in range(first, last, 10):
        for name in ("s0", "s1"):
            run.publish(name, rows(*range(begin, begin + 10, 3)), begin + 10)
        while run.advance():
            pass


def check_from(run: EngineRun, query: AggregationJoin, first: int, last: int) -> None:
    """The results are DuckDB's from the instant `first` to `last`, and there are no others."""
    wanted = expected(query, [run.admitted(query, slot) for slot in (0, 1)])
    shown = run.by_instant(query)
    assert shown == {at: wanted[at] for at in INSTANTS if first <= at <= last and wanted[at]}
    assert shown


@pytest.mark.parametrize("early", [EARLY, LATE, (True, False)])
def test_a_new_query_begins_with_the_first_instant_whose_windows_it_has_seen_whole(
    tmp_path: Path, early: tuple[bool, ...]
) -> None:
    old, new = joined("q@1", SHORT, SHORT), joined("r@2", SLIDING, SHORT)
    run = opened(tmp_path, (old, EARLY))
    play(run, 0, 40)
    run.early[new.id] = early
    run.queries.append(new)
    play(run, 40, 100)
    check_from(run, old, 10, 100)
    complete = run.stepper.last.engine["complete"][new.id] if run.stepper.last else 0
    assert complete == min(run.by_instant(new)) == 70
    check_from(run, new, 70, 100)


def test_a_query_that_shares_a_set_does_not_trust_panes_that_are_gone(tmp_path: Path) -> None:
    # both inputs have the same panes, attributes and aggregates, whatever the length of the window
    old, new = joined("q@1", SHORT, SHORT), joined("r@2", SLIDING, SLIDING)
    run = opened(tmp_path, (old, EARLY))
    play(run, 0, 60)
    run.early[new.id] = EARLY
    run.queries.append(new)
    play(run, 60, 110)
    assert run.streams["s0"].begins.keys() == {s.id for s in _sources(new, 0)}, "one set for both"
    first = min(run.by_instant(new))
    assert 60 < first <= 90
    check_from(run, new, first, 110)


def _sources(query: AggregationJoin, slot: int) -> list[Any]:
    from weft.algebra.joinagg.sources import source_of

    return [source_of(query, slot)]


def test_a_landmark_window_begins_with_the_registration(tmp_path: Path) -> None:
    old, new = joined("q@1", LANDMARK, SHORT), joined("r@2", LANDMARK, SHORT)
    run = opened(tmp_path, (old, EARLY))
    play(run, 0, 40)
    run.early[new.id] = EARLY
    run.queries.append(new)
    play(run, 40, 100)
    check_from(run, old, 10, 100)
    seen = [[r for r in run.admitted(new, 0) if r[0] >= 40], run.admitted(new, 1)]
    wanted, shown = expected(new, seen), run.by_instant(new)
    assert shown and shown == {at: wanted[at] for at in shown}
    assert max(shown) == 100


@pytest.mark.parametrize("early", [EARLY, LATE])
def test_files_are_written_anew_and_old_panes_of_landmarks_folded(
    tmp_path: Path, early: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statefiles, "MOST_FILES", 3)
    landmark, other = joined("q@1", LANDMARK, SLIDING), joined("r@2", SLIDING, LANDMARK)
    run = opened(tmp_path, (landmark, early), (other, early))
    play(run, 0, 60)
    run.restart()
    play(run, 60, 130)
    for query in (landmark, other):
        check_from(run, query, 10, 130)
    last = run.stepper.last
    assert last is not None
    assert len(last.retained) <= 2 * 4 and len(last.state) > 0
    assert max(last.metrics["entries"].values()) < 60, "landmark panes are folded"


@pytest.mark.parametrize(("early", "kernel"), [(EARLY, "driver"), (LATE, "lanes")])
def test_a_new_sliding_window_does_not_count_folded_panes_of_a_landmark(
    tmp_path: Path, early: tuple[bool, ...], kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # panes of 10 are folded at 40: one entry for all that ended by then
    monkeypatch.setattr(statefiles, "MOST_FILES", 3)
    old, new = joined("q@1", LANDMARK, LANDMARK), joined("r@2", SLIDING, SLIDING)
    run = opened(tmp_path, (old, early), kernel=kernel)
    play(run, 0, 50)
    run.early[new.id] = early
    run.queries.append(new)
    run.restart()
    play(run, 50, 130)
    check_from(run, old, 10, 130)
    check_from(run, new, 70, 130)


@pytest.mark.parametrize("early", [EARLY, LATE])
def test_the_first_landmark_on_a_running_stream_begins_in_one_place_for_all_plans(
    tmp_path: Path, early: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statefiles, "MOST_FILES", 3)
    query = joined("q@1", LANDMARK, LANDMARK)
    run = opened(tmp_path)
    for name in ("s0", "s1"):
        run.publish(name, rows(1, 3, 5), 0)
    run.early[query.id] = early
    run.queries.append(query)
    play(run, 7, 127)  # 7 is in the pane that had begun
    wanted = expected(query, [[r for r in run.admitted(query, s) if r[0] >= 10] for s in (0, 1)])
    shown = run.by_instant(query)
    assert shown == {at: wanted[at] for at in INSTANTS if at < 127 and wanted[at]}


def test_complete_from_is_the_first_instant_that_a_new_query_shows(tmp_path: Path) -> None:
    old, new = joined("q@1", SLIDING, SLIDING), joined("r@2", SHORT, SHORT)
    run = opened(tmp_path, (old, EARLY))
    play(run, 0, 60)
    run.early[new.id] = EARLY  # the same sets: what it needs is kept
    run.queries.append(new)
    play(run, 60, 90)
    last = run.stepper.last
    assert last is not None
    assert last.engine["complete"][new.id] == min(run.by_instant(new)) == 70


def test_a_query_that_overflows_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    good, bad = joined("q@1", SLIDING, SLIDING), joined("bad@2", SLIDING, SHORT)
    good = replace(good, aggregates=good.aggregates[:1], columns=good.columns[:-1])
    run = opened(tmp_path, (bad, EARLY), (good, EARLY), ansi="true")
    for name in ("s0", "s1"):
        run.publish(name, [(1, 1, "x", 2**62), (2, 1, "x", 2**62)], 0)
        run.publish(name, [], END)
    while run.advance():
        pass
    assert run.failed.keys() == {"bad@2"} and "overflow" in run.failed["bad@2"]
    (counted,) = run.by_instant(good)[10]
    assert counted == ("x", 4)


def test_a_dropped_query_leaves_nothing_behind(tmp_path: Path) -> None:
    run = opened(tmp_path, (joined("q@1", LANDMARK, SLIDING), LATE))
    play(run, 0, 30)
    assert run.stepper.last is not None and run.stepper.last.retained
    kept, run.queries = run.queries, []
    for name in ("s0", "s1"):
        run.publish(name, [], 40)
    run.advance()
    assert not run.stepper.last.retained and not run.stepper.last.state
    assert run.follower.resting
    # the same sources again: what is gone does not count as seen
    run.queries = [replace(kept[0], id="again@2")]
    run.early["again@2"] = LATE
    play(run, 40, 100)
    assert min(run.by_instant(run.queries[0])) >= 60


def test_an_idle_stream_holds_the_others_back_and_nothing_is_lost(tmp_path: Path) -> None:
    query = joined("q@1", SLIDING, SLIDING)
    run = opened(tmp_path, (query, (False, True)))
    run.publish("s1", rows(1, 4), 0)
    for begin in range(0, 60, 10):
        run.publish("s0", rows(*range(begin, begin + 10, 3)), begin)
        run.advance()
    assert not run.by_instant(query)
    assert run.stepper.last is not None
    (waits_for,) = run.stepper.last.metrics["waits_for"].items()
    assert waits_for[0] == "s1" and waits_for[1]["watermark"] == 0
    run.publish("s1", rows(40, 55), 60)
    run.publish("s0", [], 60)
    while run.advance():
        pass
    check_from(run, query, 10, 60)


@pytest.mark.parametrize("early", [EARLY, LATE])
@pytest.mark.parametrize("kernel", ["driver", "lanes"])
@pytest.mark.parametrize("window", [SLIDING, LANDMARK])
def test_an_idle_stream_holds_only_those_back_that_read_it(
    tmp_path: Path,
    early: tuple[bool, ...],
    kernel: Kernel,
    window: InputWindow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both queries read the same sets or rows of s0; one of them also an idle stream, and sees all of it when that goes on."""
    monkeypatch.setattr(statefiles, "MOST_FILES", 3)
    query, other = joined("q@1", window, SLIDING), joined("r@2", window, SLIDING)
    waiting = replace(other, inputs=(other.inputs[0], replace(other.inputs[1], relation="s2")))
    run = opened(tmp_path, (query, early), (waiting, early), kernel=kernel)
    run.add_stream("s2")
    run.publish("s2", rows(1, 4), 8)
    play(run, 0, 60)
    run.restart()
    play(run, 60, 90)
    check_from(run, query, 10, 90)
    assert not run.by_instant(waiting)
    last = run.stepper.last
    assert last is not None and list(last.metrics["waits_for"]) == ["s2"]
    run.publish("s2", rows(40, 55, 85), 90)
    while run.advance():
        pass
    check_from(run, waiting, 10, 90)
    play(run, 90, 120)
    run.publish("s2", [], END)
    while run.advance():
        pass
    for one in (query, waiting):
        check_from(run, one, 10, 120)


def test_a_commit_without_marks_of_queries_goes_on_where_all_queries_were(tmp_path: Path) -> None:
    """As versions before wrote it: then all queries had one mark, that of the slowest stream."""
    query = joined("q@1", SLIDING, SLIDING)
    run = opened(tmp_path, (query, EARLY))
    play(run, 0, 60)
    log = run.log(LOG)
    path = f"{log.folder('commits')}/{run.storage.names(log.folder('commits'))[-1]}"
    commit = run.storage.read_json(path)
    del commit["engine"]["marks"]
    run.storage.put(path, json.dumps(commit).encode())
    run.restart()
    play(run, 60, 120)
    check_from(run, query, 10, 120)


@pytest.mark.parametrize("before", [EARLY, LATE, (True, False)])
def test_another_plan_loses_no_instant_and_repeats_none(
    tmp_path: Path, before: tuple[bool, ...]
) -> None:
    query = joined("q@1", SLIDING, InputWindow("tumbling", 20))
    after = tuple(not early for early in before)
    run = opened(tmp_path, (query, before))
    play(run, 0, 40)
    run.following[query.id] = after
    play(run, 40, 50)
    run.restart()
    assert run.early[query.id] == before, "the windows are not complete yet"
    play(run, 50, 130)
    assert run.early[query.id] == after and not run.following
    check_from(run, query, 10, 130)
    last = run.stepper.last
    assert last is not None
    kinds = {name.split("/")[0] for name in last.metrics["entries"]}
    assert kinds == {"panes" if early else "rows" for early in after}


def test_a_query_without_groups_has_a_row_at_every_instant_also_after_a_restart(
    tmp_path: Path,
) -> None:
    query = joined("q@1", SHORT, SHORT, keys=())
    run = opened(tmp_path, (query, EARLY))
    play(run, 0, 20)
    for watermark in (50, END):
        for name in ("s0", "s1"):
            run.publish(name, [], watermark)
        run.advance()
        run.restart()
    check_from(run, query, 10, END)
    assert run.by_instant(query)[END] == {(0, None): 1}


def test_a_change_to_nothing_joined_is_shown_once_if_having_chooses_it(tmp_path: Path) -> None:
    nothing = Call("=", (Ref("a0", "bigint"), Literal(0, "bigint")), "boolean")
    query = with_changes(replace(joined("q@1", SHORT, SHORT, keys=()), having=nothing))
    run = opened(tmp_path, (query, EARLY))
    play(run, 0, 20)
    for watermark in (30, 40, 60):
        for name in ("s0", "s1"):
            run.publish(name, [], watermark)
        run.advance()
    play(run, 60, 70)
    shown = [(row["at"].microsecond, row["v0"], row["removed"]) for row in run.shown(query)]
    assert shown == [(30, 0, False), (70, None, True)]


@pytest.mark.parametrize("kernel", ["driver", "lanes"])
@pytest.mark.parametrize("early", [EARLY, LATE])
def test_a_table_that_changes_is_seen_by_the_next_run_and_not_by_a_step_that_runs_again(
    tmp_path: Path, early: tuple[bool, ...], kernel: Any
) -> None:
    query = replace(query_of([SHORT, None], [None, 1], ["count", "sum"], {0}), id="q@1")
    run = EngineRun(tmp_path, [query], {"q@1": early}, kernel=kernel)
    before: list[Row] = [(0, 0, "x", 1), (0, 1, "y", 2)]
    after: list[Row] = [(0, 1, "y", 50), (0, 1, "z", 1)]
    run.table_rows = {"s1": before}
    run.add_stream("s0")

    def step(begin: int) -> None:
        run.publish("s0", rows(*range(begin, begin + 10, 3)), begin + 10)
        while run.advance():
            pass

    step(0)
    run.table_rows["s1"] = after
    step(10)  # the run goes on with what it has read
    with crashing("after_intent", 1), pytest.raises(Crash):
        step(20)
    run.table_rows["s1"] = after
    run.restart()
    while run.advance():
        pass
    step(30)
    shown = run.by_instant(query)
    for at, table in ((10, before), (20, before), (30, before), (40, after)):
        assert shown[at] == expected(query, [run.admitted(query, 0), table])[at], at
