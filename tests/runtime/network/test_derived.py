"""The network publishes the rows of derived streams: those that DuckDB says, each once, whoever asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.derived import Published, over
from tests.support.network_engine import EngineRun
from tests.support.network_steps import (
    SECOND,
    GeneratedPlans,
    Oracle,
    Spec,
    counted,
    difference,
    histories,
    table,
    watermark_of,
)

from weft.runtime.checkpoint.failpoints import FAILPOINTS, Crash, crashing
from weft.runtime.network.engine import LOG

CHAIN = ("a", "b", "a")
JOIN = Spec(
    "join@1",
    CHAIN,
    (
        difference(CHAIN, (0, "k"), (1, "k"), 0, 0),
        difference(CHAIN, (1, "k"), (2, "k"), 0, 0),
        difference(CHAIN, (1, "ts"), (0, "ts"), -2 * SECOND, 2 * SECOND),
        difference(CHAIN, (2, "ts"), (1, "ts"), 0, 3 * SECOND),
    ),
    (),
)
NARROW, WIDE = [(1, "g")], [(1, "g"), (2, "s")]


def shown(names: Sequence[tuple[int, str]], slot: int = 0) -> Spec:
    """The join in DuckDB, with the columns of a published file: in the order of their names."""
    stream = over(JOIN, "q@1", ()).derived
    read = sorted({*names, (slot, "ts")}, key=lambda c: stream.column(f"{c[0]}.{c[1]}"))
    return replace(JOIN, shown=tuple(read))


def published(run: EngineRun) -> Counter[Any]:
    tables = [run.storage.read_table(entry["name"]) for entry in run.last.published]
    return counted(pa.concat_tables(tables)) if tables else Counter()


@settings(max_examples=8, deadline=None)
@given(
    histories(),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.integers(1, 4),
    st.integers(0, 4),
)
def test_rows_are_published_while_queries_come_and_go(
    deltas: list[dict[str, pa.Table]], in_lanes: list[bool], second: int, restart: int
) -> None:
    """A second query needs one more column: the first one's matches go on, over a restart, on the driver and
    in tasks. The second one leaves again in the last step."""
    narrow, wide = over(JOIN, "q@1", NARROW), over(JOIN, "w@2", WIDE)
    oracle = Oracle()
    with TemporaryDirectory() as folder:
        run = EngineRun(Path(folder), [Published((narrow,))], plan=GeneratedPlans())
        for number, delta in enumerate(deltas, 1):
            if number == restart:
                run.restart()
            both = second <= number < len(deltas)
            run.use([Published((narrow, wide) if both else (narrow,))])
            given_rows = {name: rows for name, rows in delta.items() if name in "ab"}
            expected = oracle.step([shown(NARROW)], given_rows, watermark_of(number - 1), {})
            run.step(given_rows, watermark_of(number), in_lanes=in_lanes[number - 1])
            rows = published(run)
            if both:
                place = shown(WIDE).shown.index((2, "s"))
                narrowed: Counter[Any] = Counter()
                for row, count in rows.items():
                    narrowed[(*row[:place], *row[place + 1 :])] += count
                rows = narrowed
            assert rows == expected.get(JOIN.id, Counter())


def rows(relation: str, keys: Sequence[int], second: int, step: int = 0) -> pa.Table:
    times = pa.scalar(second * SECOND, pa.timestamp("us", tz="UTC")).as_py()
    return table(
        relation,
        [{"k": key, "ts": times, "#time": second * SECOND, "#step": step} for key in keys],
    )


def test_history_stays_when_another_query_comes(tmp_path: Path) -> None:
    """The join keeps its nodes: rows that it had joined before meet new ones."""
    old, new = over(JOIN, "old@1", NARROW), over(JOIN, "new@2", WIDE)
    for place in ("start", "end"):
        first = {"a": rows("a", [1], 10), "b": rows("b", [1], 11)}
        if place == "end":
            first = {"a": rows("a", [1], 14), "b": rows("b", [1], 11)}
        run = EngineRun(tmp_path / place, [Published((old,))], plan=GeneratedPlans())
        run.step(first, 0, registered=1)
        run.use([Published((old, new))])
        run.step({"a": rows("a", [1], 14 if place == "start" else 10)}, 0, registered=2)
        assert published(run).total() == 1, place


def test_what_a_query_has_not_seen_is_known(tmp_path: Path) -> None:
    """Rows from before it was in the plan, and rows of steps that were published without it."""
    old, new = over(JOIN, "old@1", NARROW), over(JOIN, "new@2", NARROW)
    run = EngineRun(tmp_path, [Published((old,))], plan=GeneratedPlans())

    def unseen() -> dict[str, int]:
        times: dict[str, int] = run.last.engine["unseen"][name]
        return {relation: time // SECOND for relation, time in times.items()}

    run.step({"a": rows("a", [1], 10), "b": rows("b", [1], 14)}, 0, registered=1)
    name = old.id
    assert unseen() == {}
    run.use([Published((old, new))])
    run.step({"a": rows("a", [1], 20)}, 0, registered=1)
    name = new.id
    assert unseen() == {"a": 20, "b": 14}
    run.step({"a": rows("a", [1], 30), "b": rows("b", [1], 31)}, 0, registered=2)
    assert unseen() == {"a": 20, "b": 14}
    assert new.derived.complete_from(run.last.engine["unseen"][new.id]) == 22 * SECOND + 1
    run.step({"b": rows("b", [1], 44)}, 0, registered=1)  # a step that does not read a column yet
    run.restart()
    run.step({"b": rows("b", [1], 45)}, 0, registered=2)
    assert unseen() == {"a": 20, "b": 44}
    name = old.id
    assert unseen() == {}
    run.use([Published((old,))])
    run.step({"b": rows("b", [1], 50)}, 0, registered=2)
    run.use([Published((old, new))])
    run.step({"b": rows("b", [1], 51)}, 0, registered=2)
    name = new.id
    assert unseen() == {"a": 30, "b": 50}


@pytest.mark.parametrize("in_lanes", [False, True])
def test_a_join_that_is_too_large_takes_its_queries_with_it(tmp_path: Path, in_lanes: bool) -> None:
    queries = (over(JOIN, "one@1", NARROW), over(JOIN, "two@2", WIDE))
    run = EngineRun(tmp_path, [Published(queries)], plan=GeneratedPlans(), most_matches=50)
    deltas = {"a": rows("a", [1] * 20, 10), "b": rows("b", [1] * 20, 10)}
    run.step(deltas, 0, in_lanes=in_lanes)
    assert set(run.failed) == {"one@1", "two@2"}
    assert "more than 50 matches" in run.failed["two@2"]
    assert run.last.published == ()
    assert run.last.engine["unseen"] == {}
    assert run.log(LOG).network(run.last.plan_version).queries == ()


@pytest.mark.parametrize("in_lanes", [False, True])
def test_a_crash_publishes_nothing_twice(tmp_path: Path, in_lanes: bool) -> None:
    """The network's step ends at every failpoint that it visits; the rows are published once after it."""
    deltas = {"a": rows("a", [1, 2, 2], 10), "b": rows("b", [1, 2], 10)}
    query = over(JOIN, "q@1", NARROW)
    whole = EngineRun(tmp_path / "whole", [Published((query,))], plan=GeneratedPlans())
    with crashing() as visits:
        whole.step(deltas, 5 * SECOND, in_lanes=in_lanes)
    expected = published(whole)
    assert expected.total() == 5
    for failpoint in dict.fromkeys(visits.visited):
        run = EngineRun(tmp_path / failpoint, [Published((query,))], plan=GeneratedPlans())
        with crashing(failpoint), pytest.raises(Crash):
            run.step(deltas, 5 * SECOND, in_lanes=in_lanes)
        run.restart()
        if run.stepper.last is None:
            run.step({}, 5 * SECOND, in_lanes=in_lanes)
        assert published(run) == expected, failpoint
        folder = Path(run.storage.root) / "streams/@network/published"
        named = {Path(entry["name"]).parent.name for entry in run.last.published}
        assert {path.name for path in folder.iterdir()} == named, failpoint
    assert {"before_commit", "after_commit"} <= set(visits.visited) <= set(FAILPOINTS)
