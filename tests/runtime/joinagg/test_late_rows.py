"""Late inputs: each query admits the rows of its own selection, rows are kept once, and equal joins are one."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.joinagg.test_engine import Action, oracle, play, scripts, too_large
from tests.support.joinagg import Row, query_of
from tests.support.joinagg_engine import PREDICATES, EngineRun

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.predicates.canonical import predicate_set
from weft.algebra.scalar import Call, Expression, Ref
from weft.kernel.joinagg import together
from weft.runtime.joinagg import statefiles
from weft.runtime.joinagg.joins import physical

SLIDING, LANDMARK = InputWindow("sliding", 30), InputWindow("landmark")
LATE = (False, False)
Selections = tuple[str | None, str | None]


def joined(
    number: int,
    selections: Selections = (None, None),
    *,
    windows: tuple[InputWindow, InputWindow] = (SLIDING, SLIDING),
    function: str = "sum",
    keys: tuple[int, ...] = (0,),
    same_group: bool = False,
) -> AggregationJoin:
    """`same_group`: with one more condition between the inputs."""
    query = query_of(list(windows), [None, 1], ["count", function], set(keys))
    inputs = tuple(
        replace(entry, predicate=None if sql is None else Expression(sql, "boolean", ("a",)))
        for entry, sql in zip(query.inputs, selections, strict=True)
    )
    if same_group:
        equal = [
            Call("=", (Ref(f"0.{name}", type_), Ref(f"1.{name}", type_)), "boolean")
            for name, type_ in (("j", "int"), ("g", "string"))
        ]
        predicates = predicate_set(Call("and", tuple(equal), "boolean"))
        query = replace(query, predicates=predicates)
    return replace(query, id=f"q{number}@{number}", name=f"q{number}", inputs=inputs)


def opened(folder: Path, queries: list[AggregationJoin]) -> EngineRun:
    run = EngineRun(folder, queries, {query.id: LATE for query in queries})
    for name in ("s0", "s1"):
        run.add_stream(name)
    return run


def metrics(run: EngineRun, name: str) -> object:
    assert run.stepper.last is not None
    return run.stepper.last.metrics[name]


SELECTION = st.sampled_from([None, *PREDICATES])


@given(
    st.lists(
        st.tuples(
            st.tuples(SELECTION, SELECTION),
            st.sampled_from(["sum", "max", "avg"]),
            st.sampled_from([(0,), (1,), ()]),
            st.sampled_from([SLIDING, SLIDING, LANDMARK]),
        ),
        min_size=2,
        max_size=4,
    ),
    scripts(["s0", "s1"]),
    st.sampled_from([0.0, 0.1, 9.0]),
)
@settings(max_examples=12)
def test_queries_that_join_together_or_not_equal_duckdb(
    drawn: list[tuple[Selections, str, tuple[int, ...], InputWindow]],
    script: list[Action],
    test_cost: float,
) -> None:
    queries = [
        joined(number + 1, selections, windows=(window, SLIDING), function=function, keys=keys)
        for number, (selections, function, keys, window) in enumerate(drawn)
    ]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(together, "TEST", test_cost)
        patch.setattr(statefiles, "MOST_FILES", 2)
        run = opened(Path(folder), queries)
        for action in script:
            if action[0] == "restart":
                run.restart()
            else:
                play(run, action)
        for query in queries:
            wanted = oracle(run, query)
            if not too_large(wanted):
                assert run.by_instant(query) == wanted


def rows(*times: int) -> list[Row]:
    return [(time, time % 2, "xy"[time % 3 % 2], time) for time in times]


def publish(run: EngineRun, begin: int) -> None:
    for name in run.streams:
        run.publish(name, rows(*range(begin, begin + 10, 2)), begin + 10)
    while run.advance():
        pass


@pytest.mark.parametrize(("shared", "joins"), [(True, 1), (False, 2)])
def test_equal_inputs_join_once_with_other_groups_aggregates_and_selections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool, joins: int
) -> None:
    if not shared:
        monkeypatch.setattr(together, "TEST", 2.0)
    queries = [
        joined(1),
        joined(2, function="max", keys=(1,)),
        joined(3, ("(`a` > 0)", None), keys=()),
    ]
    run = opened(tmp_path, queries)
    publish(run, 0)
    assert metrics(run, "joins") == joins
    entries = metrics(run, "entries")
    assert isinstance(entries, dict) and len(entries) == 2, "rows are kept once for each stream"
    for query in queries:
        assert run.by_instant(query) == {10: oracle(run, query)[10]}


def test_other_keys_or_windows_join_by_themselves(tmp_path: Path) -> None:
    queries = [joined(1), joined(2, same_group=True), joined(3, windows=(LANDMARK, SLIDING))]
    run = opened(tmp_path, queries)
    publish(run, 0)
    assert metrics(run, "joins") == 3


def test_rows_that_no_selection_wants_are_not_kept(tmp_path: Path) -> None:
    chosen = "(`g` = 'x')"
    run = opened(tmp_path, [joined(1, (chosen, chosen)), joined(2, (chosen, None))])
    publish(run, 0)
    entries = metrics(run, "entries")
    assert isinstance(entries, dict)
    selected = [row for row in rows(*range(0, 10, 2)) if row[2] == "x"]
    assert sorted(entries.values()) == [len(selected), 5] and len(selected) < 5


def test_a_late_query_that_comes_later_counts_only_rows_with_its_columns(tmp_path: Path) -> None:
    first, later = joined(1), joined(2, ("(`a` > 0)", "(`j` >= 0)"), function="avg")
    run = opened(tmp_path, [first])
    for begin in range(0, 120, 10):
        if begin == 30:
            run.queries.append(later)
            run.early[later.id] = LATE
        if begin == 60:
            run.restart()
        publish(run, begin)
    for query, begins in ((first, 10), (later, 60)):
        shown, wanted = run.by_instant(query), oracle(run, query)
        assert min(shown) == begins
        assert shown == {at: wanted[at] for at in range(begins, 121, 10)}


def test_one_of_several_that_join_together_fails_and_the_others_go_on(tmp_path: Path) -> None:
    bad, good = joined(1), joined(2, function="max")
    run = EngineRun(tmp_path, [bad, good], {bad.id: LATE, good.id: LATE}, ansi="true")
    for name in ("s0", "s1"):
        run.add_stream(name)
        run.publish(name, [(1, 1, "x", 2**62), (2, 1, "x", 2**62)], 10)
    while run.advance():
        pass
    assert run.failed.keys() == {bad.id} and "overflow" in run.failed[bad.id]
    assert run.by_instant(good)[10] == {("x", 4, 2**62): 1}


def test_many_late_rows_are_joined_at_few_instants_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is there at every instant at which it counts, so memory would grow with the instants of a step."""
    monkeypatch.setattr(physical, "_COPIES", 12)
    sizes = []
    evaluated = physical.evaluated_together

    def seen(members: Any, sides: Any, instants: Any, **options: Any) -> Any:
        sizes.append((len(instants), sum(len(side.contents(instants)) for side in sides)))
        return evaluated(members, sides, instants, **options)

    monkeypatch.setattr(physical, "evaluated_together", seen)
    query = joined(1)
    run = opened(tmp_path, [query])
    rows: list[Row] = [(5, 1, "x", 1), (6, 1, "y", 2), (7, 2, "x", 3)]
    for action in [("batch", ("s0", rows, 0)), ("batch", ("s1", rows, 0)), ("end", None)]:
        play(run, action)
    assert run.by_instant(query) == oracle(run, query) != {}
    assert len(sizes) > 1 and max(size for size, _ in sizes) == 2
    assert max(entries for _, entries in sizes) <= 12
