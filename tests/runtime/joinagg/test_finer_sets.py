"""A finer aggregation set serves coarser ones: what is published, and equal results with it and without."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.joinagg.test_engine import Action, oracle, play, scripts, too_large
from tests.support.joinagg import aggregate, query_of
from tests.support.joinagg_engine import EngineRun

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.serving import providers, serves
from weft.algebra.joinagg.sources import Source, source_of
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.scalar import Expression
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg import statefiles
from weft.runtime.joinagg.serving import Serving
from weft.stats import StreamStatistics
from weft.stats.estimate import Estimate

SLIDING, LANDMARK = InputWindow("sliding", 30), InputWindow("landmark")
EARLY = (True, True)


def joined(id_: str, windows: list[InputWindow], function: str, keys: set[int]) -> AggregationJoin:
    """Rule 1: an input that nobody groups by has the join attribute alone."""
    query = query_of(list(windows), [None, 1], ["count", function], keys)
    inputs = tuple(
        entry if slot in keys else replace(entry, attributes=entry.attributes[:1])
        for slot, entry in enumerate(query.inputs)
    )
    return replace(query, id=id_, name=id_.split("@")[0], inputs=inputs)


def opened(folder: Path, queries: list[AggregationJoin], *, finer: bool) -> EngineRun:
    run = EngineRun(folder, queries, {query.id: EARLY for query in queries})
    run.pays = lambda *_: finer
    for name in ("s0", "s1"):
        run.add_stream(name)
    return run


def published(run: EngineRun) -> list[int]:
    return [len(stream.begins) for stream in run.streams.values()]


WINDOWS = st.sampled_from([SLIDING, LANDMARK, InputWindow("tumbling", 20)])


@given(
    st.lists(
        st.tuples(
            WINDOWS, st.sampled_from(["sum", "max", "avg"]), st.sets(st.sampled_from([0, 1]))
        ),
        min_size=2,
        max_size=3,
    ),
    scripts(["s0", "s1"]),
)
@settings(max_examples=12)
def test_coarser_sets_made_of_a_finer_one_equal_duckdb(
    drawn: list[tuple[InputWindow, str, set[int]]], script: list[Action]
) -> None:
    queries = [
        joined(f"q@{number + 1}", [window, SLIDING], function, keys)
        for number, (window, function, keys) in enumerate(drawn)
    ]
    for finer in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            run = opened(Path(folder), queries, finer=finer)
            for action in script:
                if action[0] == "restart":
                    run.restart()
                else:
                    play(run, action)
            for query in queries:
                wanted = oracle(run, query)
                if not too_large(wanted):
                    assert run.by_instant(query) == wanted, finer
            sources = [{source_of(q, slot).id for q in queries} for slot in (0, 1)]
            if finer:
                assert published(run) == [1, 1]
            else:
                assert published(run) == [len(ids) for ids in sources]


def test_a_coarser_query_that_comes_later_uses_the_set_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statefiles, "MOST_FILES", 3)
    fine = joined("fine@1", [SLIDING, LANDMARK], "sum", {0, 1})
    coarse = joined("coarse@2", [SLIDING, SLIDING], "sum", set())
    run = opened(tmp_path, [fine], finer=True)
    begin = 40
    for start in range(0, 120, 10):
        if start == begin:
            run.queries.append(coarse)
            run.early[coarse.id] = EARLY
        if start == 80:
            run.queries.remove(fine)
        for name in run.streams:
            rows: list[Any] = [(t, t % 2, "xy"[t % 3 % 2], t) for t in range(start, start + 10, 3)]
            run.publish(name, rows, start + 10)
        while run.advance():
            pass
        run.restart()
        assert published(run) == [1, 1], "one set for both, also when the finer query is gone"
    wanted, shown = oracle(run, coarse), run.by_instant(coarse)
    assert shown and shown == {at: rows for at, rows in wanted.items() if min(shown) <= at <= 120}
    assert begin < min(shown) <= begin + 40, "not before its windows are complete"
    wanted, shown = oracle(run, fine), run.by_instant(fine)
    assert shown == {at: rows for at, rows in wanted.items() if at <= 80}


def source(*names: str, function: str = "sum", **changes: Any) -> Source:
    made = source_of(query_of([SLIDING, SLIDING], [0], [function], {0}), 0)
    attributes = tuple(
        replace(made.attributes[0], name=name, value=Expression(f"`{name}`", "int", (name,)))
        for name in names
    )
    return replace(made, attributes=attributes, **changes)


def served_by(*sources: Source, known: dict[str, Source] | None = None) -> list[Source]:
    chosen = providers(sources, known or {}, lambda *_: True)
    return [chosen[one.id] for one in sources]


def test_sets_of_one_selection_are_united_under_the_finest() -> None:
    fine, coarse = source("a", "b"), source("a", function="max")
    united, same = served_by(fine, coarse)
    assert united is same and united.attributes == fine.attributes
    assert {a.function for a in united.aggregates} == {"sum", "max"}
    assert serves(united, fine) and serves(united, coarse) and not serves(fine, coarse)


@pytest.mark.parametrize(
    "other",
    [
        source("c"),
        source("a", pane=5),
        source("a", predicate=Expression("`a` > 1", "boolean", ("a",))),
        source("a", aggregates=(replace(aggregate("sum"), arguments=(Expression("`a` / `b`", "bigint", ("a", "b"), can_raise=True),)),)),
    ],
)  # fmt: skip
def test_other_attributes_panes_selections_and_what_may_raise_stay_alone(other: Source) -> None:
    fine = source("a", "b")
    assert served_by(fine, other) == [fine, other]


def test_known_sets_stay_and_serve_newcomers() -> None:
    fine, coarse, newcomer = source("a", "b", "c"), source("a", "b"), source("a")
    known = {coarse.id: coarse}
    assert served_by(fine, coarse, newcomer, known=known) == [fine, coarse, coarse]


def test_a_finer_set_serves_where_it_has_few_entries_more(tmp_path: Path) -> None:
    def serving(rate: float, *, on: bool = True) -> Serving:
        known = StreamStatistics(rate=Estimate(rate, "measured", 1000))
        return Serving(Storage(str(tmp_path / str(rate))), "sets.json", lambda _: known, on)

    pane = 60_000_000
    fine, coarse = source("a", "b", "c", pane=pane), source("a", pane=pane)
    slow = serving(10.0)
    assert slow.published([fine, coarse]) == [fine]
    assert len(serving(10.0, on=False).published([fine, coarse], fixed=False)) == 1, "as decided"
    assert serving(1e6).published([fine, coarse]) == sorted([fine, coarse], key=lambda s: s.id)
    again = serving(10.0)
    assert again.provider(coarse.id) == fine and again.served_by(fine.id) == [fine.id, coarse.id]
    again.keep([coarse.id])
    assert serving(10.0).provider(fine.id) is None
    assert len(serving(20.0, on=False).published([fine, coarse])) == 2
