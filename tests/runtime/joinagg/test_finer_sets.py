"""One published set serves several inputs, coarser ones and those of other selections: what is published, and equal results with it and without."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.joinagg.test_engine import Action, oracle, play, scripts, too_large
from tests.support.joinagg import aggregate, query_of
from tests.support.joinagg_engine import PREDICATES, EngineRun, together

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.serving import Price, providers, serves
from weft.algebra.joinagg.sources import MOST_SELECTIONS, SIGNATURE, Source, source_of
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.scalar import Expression
from weft.optimizer.joinagg.published_sets import SetPrices
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg import statefiles
from weft.runtime.joinagg.serving import Serving, apart
from weft.stats import StreamStatistics
from weft.stats.estimate import Estimate, Selectivity

SLIDING, LANDMARK = InputWindow("sliding", 30), InputWindow("landmark")
EARLY = (True, True)


def joined(
    id_: str,
    windows: list[InputWindow],
    function: str,
    keys: set[int],
    selections: tuple[str | None, str | None] = (None, None),
) -> AggregationJoin:
    """Rule 1: an input that nobody groups by has the join attribute alone."""
    query = query_of(list(windows), [None, 1], ["count", function], keys)
    inputs = tuple(
        replace(
            entry,
            attributes=entry.attributes if slot in keys else entry.attributes[:1],
            predicate=None if selected is None else Expression(selected, "boolean", ("a",)),
        )
        for slot, (entry, selected) in enumerate(zip(query.inputs, selections, strict=True))
    )
    return replace(query, id=id_, name=id_.split("@")[0], inputs=inputs)


def opened(folder: Path, queries: list[AggregationJoin], *, finer: bool) -> EngineRun:
    run = EngineRun(folder, queries, {query.id: EARLY for query in queries})
    run.price = together if finer else apart
    for name in ("s0", "s1"):
        run.add_stream(name)
    return run


def published(run: EngineRun) -> list[int]:
    return [len(stream.begins) for stream in run.streams.values()]


WINDOWS = st.sampled_from([SLIDING, LANDMARK, InputWindow("tumbling", 20)])
SELECTIONS = st.one_of(st.none(), st.sampled_from(sorted(PREDICATES)))


@given(
    st.lists(
        st.tuples(
            WINDOWS,
            st.sampled_from(["sum", "max", "avg"]),
            st.sets(st.sampled_from([0, 1])),
            st.tuples(SELECTIONS, SELECTIONS),
        ),
        min_size=2,
        max_size=4,
    ),
    scripts(["s0", "s1"]),
)
@settings(max_examples=20)
def test_sets_made_of_a_shared_one_equal_duckdb(
    drawn: list[tuple[InputWindow, str, set[int], tuple[str | None, str | None]]],
    script: list[Action],
) -> None:
    queries = [
        joined(f"q@{number + 1}", [window, SLIDING], function, keys, selections)
        for number, (window, function, keys, selections) in enumerate(drawn)
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


def test_other_selections_come_and_go(tmp_path: Path) -> None:
    """Those that are there together share a set; one that comes later has its own until the others are gone."""
    first, second = (
        joined(f"q@{n}", [SLIDING, SLIDING], "sum", set(), (sql, None))
        for n, sql in enumerate(("(`a` > 0)", "(`g` = 'x')"), 1)
    )
    third = joined("q@3", [SLIDING, SLIDING], "max", {0}, ("(`j` >= 0)", None))
    run = opened(tmp_path, [first, second], finer=True)
    sets = []
    for start in range(0, 120, 10):
        if start == 40:
            run.queries.append(third)
            run.early[third.id] = EARLY
        if start == 80:
            run.queries.remove(first)
        for name in run.streams:
            rows: list[Any] = [
                (t, t % 2, "xy"[t % 3 % 2], None if t % 5 == 0 else t % 7 - 3)
                for t in range(start, start + 10, 3)
            ]
            run.publish(name, rows, start + 10)
        while run.advance():
            pass
        run.restart()
        sets.append(published(run))
    assert sets[0] == [1, 1] and sets[-1] == [2, 2] and len(run.served_by) == 4
    for query, begin, end in ((first, 0, 80), (second, 0, 120), (third, 40, 120)):
        wanted, shown = oracle(run, query), run.by_instant(query)
        assert shown and begin <= min(shown) <= begin + 40
        assert shown == {at: rows for at, rows in wanted.items() if min(shown) <= at <= end}


def test_a_set_that_is_published_for_others_is_a_sources_own_again(tmp_path: Path) -> None:
    """The fine query goes, its set stays for the coarse one. When it comes again with another, it would cost less to publish a third set for both: then
    the files would have its panes twice."""
    coarse = joined("coarse@1", [SLIDING, SLIDING], "sum", set())
    fine = joined("fine@2", [SLIDING, SLIDING], "sum", {0, 1})
    again = replace(fine, id="again@3", name="again")
    large = joined("large@4", [SLIDING, SLIDING], "sum", {0, 1}, ("(`a` > 0)", "(`a` > 0)"))
    run = opened(tmp_path, [coarse, fine], finer=True)
    run.price = lambda provider, served: 0.5 if provider.selections and len(served) > 1 else 1.0
    for start in range(0, 130, 10):
        if start == 40:
            run.queries.remove(fine)
        if start == 70:
            run.queries += [again, large]
            run.early |= {again.id: EARLY, large.id: EARLY}
        for name in run.streams:
            rows: list[Any] = [
                (t, t % 2, "xy"[t % 3 % 2], t % 7 - 3) for t in range(start, start + 10, 3)
            ]
            run.publish(name, rows, start + 10)
        while run.advance():
            pass
    for query in (coarse, again, large):
        wanted, shown = oracle(run, query), run.by_instant(query)
        assert shown and shown == {at: rows for at, rows in wanted.items() if min(shown) <= at}


def source(*names: str, function: str = "sum", **changes: Any) -> Source:
    made = source_of(query_of([SLIDING, SLIDING], [0], [function], {0}), 0)
    attributes = tuple(
        replace(made.attributes[0], name=name, value=Expression(f"`{name}`", "int", (name,)))
        for name in names
    )
    return replace(made, attributes=attributes, **changes)


def served_by(*sources: Source, known: dict[str, Source] | None = None) -> list[Source]:
    chosen = providers(sources, known or {}, together)
    return [chosen[one.id] for one in sources]


def selecting(sql: str) -> Expression:
    return Expression(sql, "boolean", ("a",))


def test_sets_of_one_selection_are_united_with_all_attributes() -> None:
    fine, coarse, other = source("a", "b"), source("a", function="max"), source("c")
    united, same, again = served_by(fine, coarse, other)
    assert united is same is again and {a.name for a in united.attributes} == {"a", "b", "c"}
    assert {a.function for a in united.aggregates} == {"sum", "max"} and not united.selections
    assert serves(united, fine) and serves(united, coarse) and not serves(fine, coarse)
    assert serves(united, other) and not serves(united, source("d"))


def test_selections_are_bits_of_a_signature() -> None:
    all_rows, large = source("a"), source("a", "b", predicate=selecting("`a` > 1"))
    odd = source("a", predicate=selecting("`a` % 2 = 1"))
    united = served_by(large, odd)[0]
    assert united.selections == (large.predicate, odd.predicate)
    assert united.predicate is not None
    assert united.predicate.sql == "(`a` > 1) OR (`a` % 2 = 1)", "of what nobody selects, nothing"
    assert [a.name for a in united.keys] == ["a", "b", SIGNATURE]
    assert serves(united, large) and serves(united, odd) and not serves(united, all_rows)
    with_all = served_by(all_rows, large, odd)[0]
    assert with_all.predicate is None and serves(with_all, all_rows) and serves(with_all, odd)
    assert not serves(with_all, source("a", predicate=selecting("`a` < 5")))


def test_a_set_has_no_more_selections_than_a_signature_has_bits() -> None:
    many = [source("a", predicate=selecting(f"`a` > {n}")) for n in range(MOST_SELECTIONS + 1)]
    published = set(served_by(*many))
    assert sorted(len(one.selections) for one in published) == [0, MOST_SELECTIONS]


@pytest.mark.parametrize(
    "other",
    [
        source("a", pane=5),
        source("a", relation="s1"),
        source("a", predicate=replace(selecting("`a` / `b` > 1"), can_raise=True)),
        source("a", aggregates=(replace(aggregate("sum"), arguments=(Expression("`a` / `b`", "bigint", ("a", "b"), can_raise=True),)),)),
    ],
)  # fmt: skip
def test_other_relations_and_panes_and_what_may_raise_stay_alone(other: Source) -> None:
    fine = source("a", "b")
    assert served_by(fine, other) == [fine, other]


def test_known_sets_stay_and_serve_newcomers() -> None:
    fine, coarse, newcomer = source("a", "b", "c"), source("a", "b"), source("a")
    known = {coarse.id: coarse}
    assert served_by(fine, coarse, newcomer, known=known) == [fine, coarse, coarse]


def test_no_set_is_made_whose_panes_another_set_has_for_its_source() -> None:
    sums, largest = source("a"), source("a", function="max")
    (both,) = set(providers([sums, largest], {}, together).values())
    wide = replace(both, attributes=source("a", "b").attributes)

    def narrow(provider: Source, served: Sequence[Source]) -> float:
        return 10.0 * len(served) if provider == wide else 1.0

    for known in ({both.id: wide}, {both.id: wide, wide.id: wide}):
        chosen = providers([wide, both, sums, largest], known, narrow)
        assert chosen[both.id] == wide and both not in chosen.values()


def prices(known: StreamStatistics, *passes: str) -> Price:
    return SetPrices(lambda _: known, passes or ("predicates", "groupby")).price


def test_a_finer_set_serves_where_it_has_few_entries_more(tmp_path: Path) -> None:
    def serving(rate: float, *, on: bool = True) -> Serving:
        known = StreamStatistics(rate=Estimate(rate, "measured", 1000))
        storage = Storage(str(tmp_path / str(rate)))
        return Serving(storage, "sets.json", lambda: prices(known) if on else apart)

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


def test_selections_share_a_set_where_it_has_few_entries_more() -> None:
    """With keys of few values the signature costs little; where nearly every row is an entry of its own, each selection looks at all of them."""
    rare = Selectivity(matched=1, rows=1_000_000)
    sql = ["`a` > 1", "`x` > 2", "`y` < 0"]
    known = StreamStatistics(
        rate=Estimate(1e6, "measured", 1000), selectivities=dict.fromkeys(sql, rare)
    )

    def published(*names: str) -> int:
        chosen = providers(
            [source(*names, pane=60_000_000, predicate=selecting(one)) for one in sql]
            + [source(*names, pane=60_000_000)],
            {},
            prices(known),
        )
        return len({provider.id for provider in chosen.values()})

    assert published("a") == 1
    assert published("a", "b", "c", "d") == 2, "the few rows of selections apart from all rows"


def test_passes_say_what_may_be_united() -> None:
    known = StreamStatistics.unknown()
    fine, coarse = source("a", "b", pane=1000), source("a", pane=1000)
    large = replace(coarse, predicate=selecting("`a` > 1"))
    for passes, sets in (
        ((), 3),
        (("groupby",), 2),
        (("predicates",), 2),
        (("predicates", "groupby"), 1),
    ):
        price = SetPrices(lambda _: known, passes).price
        chosen = providers([fine, coarse, large], {}, price)
        assert len({one.id for one in chosen.values()}) == sets, passes
