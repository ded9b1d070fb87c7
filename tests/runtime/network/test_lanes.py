"""The network's steps in tasks: what they emit is what DuckDB says, and what the driver emits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.equal_keys import rows, same_key
from tests.support.network_engine import EngineRun, numbered
from tests.support.network_steps import (
    SECOND,
    STREAMS,
    Oracle,
    Spec,
    histories,
    queries_of,
    table,
    watermark_of,
)

from weft.runtime.network.engine import LOG

Deltas = list[dict[str, pa.Table]]
SMALL: Mapping[str, Any] = {"lane_cap_bytes": 600}
"""Every block of rows is a piece of its own."""


@settings(max_examples=10, deadline=None)
@given(
    queries_of(4),
    histories(),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.lists(st.sampled_from([0.5, 1, 1, 3]), min_size=1, max_size=3),
    st.integers(0, 4),
)
def test_steps_in_tasks_give_what_duckdb_says(
    queries: list[Spec], deltas: Deltas, in_lanes: list[bool], lanes: list[float], restart: int
) -> None:
    """Some steps run in tasks of some weights and some on the driver; at some step another process takes over."""
    specs = [numbered(spec, number) for number, spec in enumerate(queries)]
    with TemporaryDirectory() as folder:
        oracle, run = Oracle(), EngineRun(Path(folder), specs, lanes=lanes, **SMALL)
        for number, delta in enumerate(deltas, 1):
            if number == restart:
                run.restart()
            expected = oracle.step(specs, delta, watermark_of(number - 1), {})
            assert run.step(delta, watermark_of(number), in_lanes=in_lanes[number - 1]) == expected


@settings(max_examples=8, deadline=None)
@given(
    queries_of(4),
    histories(),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_queries_come_and_go_in_tasks(
    queries: list[Spec], deltas: Deltas, in_lanes: list[bool], after: int, dropped: int
) -> None:
    """A query that comes later sees rows from then on, also those that others have in bucket files."""
    specs = [numbered(spec, number) for number, spec in enumerate(queries)]
    first, last = specs[:3], [*specs[:dropped], *specs[dropped + 1 :]]
    from_steps = {specs[3].id: dict.fromkeys(STREAMS, after + 1)}
    with TemporaryDirectory() as folder:
        oracle, run = Oracle(), EngineRun(Path(folder), first, **SMALL)
        for number, delta in enumerate(deltas, 1):
            live = first if number <= after else last
            run.use(live)
            expected = oracle.step(live, delta, watermark_of(number - 1), from_steps)
            emitted = run.step(
                {name: delta.get(name, table(name, [])) for name in {*delta, *STREAMS}},
                watermark_of(number),
                registered=2 if number <= after else 3,
                in_lanes=in_lanes[number - 1],
            )
            assert emitted == expected


def files_in(run: EngineRun, kind: str) -> set[str]:
    return {str(path) for path in Path(run.storage.root).glob(f"streams/@network/{kind}/*/*")}


@pytest.mark.parametrize(
    ("keys", "lanes"), [([7], 3), (range(20), 3)], ids=["in one task", "in the sum of all tasks"]
)
def test_a_key_that_joins_everything_is_quarantined_in_tasks(
    tmp_path: Path, keys: Sequence[int], lanes: int
) -> None:
    """The same query is named as on the driver, in the same step; a query of the same join goes on."""
    wild, tame = same_key("wild@1"), same_key("tame@2", within=1)
    copies = 400 // len(keys)
    deltas = {
        "a": rows("a", [*keys] * copies, 10),
        "b": pa.concat_tables([rows("b", keys, 10), rows("b", keys, 50)]),
    }
    emitted = {}
    for in_lanes in (False, True):
        folder = tmp_path / str(in_lanes)
        run = EngineRun(folder, [wild, tame], lanes=lanes, most_matches=600)
        emitted[in_lanes] = run.step(deltas, 0, in_lanes=in_lanes)
        assert list(run.failed) == ["wild@1"]
        assert "a join of a and b has more than 600 matches in one step" in run.failed["wild@1"]
        assert [query.id for query in run.log(LOG).network(run.last.plan_version).queries] == [
            "tame@2"
        ]
    assert emitted[True] == emitted[False]
    assert emitted[True]["tame@2"].total() == 400


def test_history_in_tasks_expires(tmp_path: Path) -> None:
    """Bucket files go when no row to come can match theirs; back on the driver all of them go."""
    run = EngineRun(tmp_path, [same_key("q@1", within=1)])
    sizes = []
    for second in range(10, 70, 10):
        deltas = {name: rows(name, [1, 2], second) for name in STREAMS}
        emitted = run.step(deltas, max(0, second - 5) * SECOND, in_lanes=True)
        assert emitted["q@1"].total() == 2
        sizes.append(len(files_in(run, "buckets")))
        assert files_in(run, "buckets") == {
            run.storage.path(entry["name"]) for entry in run.last.live["buckets"]
        }
    assert max(sizes) == sizes[-1] <= 4
    run.step({}, 70 * SECOND, in_lanes=False)
    assert files_in(run, "buckets") == set()
    assert run.last.live["buckets"] == ()


def test_bucket_files_are_made_anew_when_there_are_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.runtime.network.lanes.layout.MOST_FILES", 2)
    monkeypatch.setattr("weft.runtime.network.history.MOST_FILES", 2)
    run = EngineRun(tmp_path, [same_key("q@1")], lanes=1)
    for step in range(1, 8):
        emitted = run.step({"a": rows("a", [1], 9), "b": rows("b", [1], 9)}, 0, in_lanes=True)
        assert emitted["q@1"].total() == 2 * step - 1
        assert len(files_in(run, "buckets")) <= 6
        assert len(run.last.live["state"]) <= 4


def test_the_choice_goes_by_the_size_of_history(tmp_path: Path) -> None:
    """To tasks above the cap, back below half of it."""
    run = EngineRun(tmp_path, [same_key("q@1", within=1)], driver_cap_bytes=600_000)
    places = []
    for second, count in enumerate([10, 4000, 10, 10, 2000, 10]):
        deltas = {name: rows(name, [*range(count)], 100 * second) for name in STREAMS}
        run.step(deltas, max(0, 100 * second - 50) * SECOND)
        places.append(run.engine.where)
        assert run.last.metrics["where"] == run.engine.where
    assert places == ["driver", "lanes", "lanes", "driver", "driver", "driver"]


def test_files_of_lost_tasks_go_with_the_next_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost task has left a result and something for the driver in the first step; another writes for a step to come,
    and another checkpoint has files in the same store."""
    monkeypatch.setattr("weft.runtime.protocol.stepper.BASE_EVERY", 1)
    monkeypatch.setattr("weft.runtime.protocol.stepper.CLEAN_EVERY", 1)
    run = EngineRun(tmp_path, [same_key("q@1")], lanes=2)
    delta = {"a": rows("a", [1, 2], 10), "b": rows("b", [1, 2], 10)}
    run.step(delta, 0, in_lanes=True)
    shown = Path(run.log(LOG).result_files()[0]["name"])
    results, handoff = (
        Path(run.storage.root) / kind for kind in ("results", f"streams/{LOG}/handoff")
    )
    assert (results / shown).is_file() and "~000000000000~" in shown.name
    name = shown.name.replace("-t", "-u") if "-t" in shown.name else f"{shown.stem}-lost.parquet"
    lost = results / shown.parent / name
    coming = results / shown.parent / name.replace("~000000000000~", "~000000000009~")
    foreign = results / shown.parent / f"another{name}"
    handed = handoff / "000000000000-attempt-0-t7-1.parquet"
    for path in (lost, coming, foreign, handed):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    run.step(delta, 20 * SECOND, in_lanes=True)
    assert not lost.exists() and not handed.exists()
    assert coming.exists() and foreign.exists()
    for entry in run.log(LOG).result_files():
        run.storage.verify({**entry, "name": f"results/{entry['name']}"})
