"""The log of a stepper: deltas fold to whole commits, and what is missing or damaged is noticed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.algebra import codec
from weft.algebra.nodes.reads import reads_alike
from weft.algebra.query import Field, Query, StreamSchema
from weft.errors import CheckpointError
from weft.optimizer.gtweave import share
from weft.runtime.checkpoint import log as log_module
from weft.runtime.checkpoint.commits import (
    Commit,
    Intent,
    Position,
    Staged,
    delta,
    folded,
    step_name,
)
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.sql.binding.bind import bind

STREAM = StreamSchema("s", (Field("ts", "timestamp"), Field("v", "bigint")), "ts", 0)


def bound(sql: str) -> Query:
    query = bind("q", sql, {"s": STREAM}, _Unasked(), query_id="q@1")
    assert isinstance(query, Query)
    return query


class _Unasked:
    """Knows no types: the queries here are bound without Spark."""

    def types(self, fields: object, expressions: Sequence[str]) -> tuple[str, ...]:
        return ("boolean",) * len(expressions)

    def output_names(self, fields: object, expressions: Sequence[str]) -> tuple[str, ...]:
        return tuple(expressions)


def entry(name: str) -> dict[str, Any]:
    return {"name": name, "size": 1, "checksum": 2, "rows": 3, "version": 1}


def commit(batch: int, before: Commit | None, **values: Any) -> Commit:
    return Commit(
        stream="s",
        kind=values.pop("kind", "data"),
        batch=batch,
        sequence=before.sequence + 1 if before else 0,
        previous=before.name if before else None,
        spark_query="q",
        offsets="o",
        epoch=1,
        plan_version=1,
        watermark=batch,
        max_event_time=batch,
        settings={"ansi": "true"},
        **values,
    )


def written(log: StreamLog, count: int) -> list[Commit]:
    """A chain of commits: each adds a state file, keeps the last three and has one result file."""
    chain: list[Commit] = []
    for batch in range(count):
        before = chain[-1] if chain else None
        kept = before.state[-2:] if before else ()
        made = commit(
            batch,
            before,
            live={"state": (*kept, entry(f"state-{batch}"))},
            results=({**entry(f"result-{batch}"), "root": "", "batch": batch},),
            late={f"q@{batch % 3}": batch},
        )
        log.put_commit(made, before)
        chain.append(made)
    return chain


names = st.sets(st.sampled_from("abcdef")).map(sorted)
steps = st.tuples(
    names, names, st.dictionaries(st.sampled_from("xyz"), st.integers(0, 3)), st.booleans()
)


@given(st.lists(steps, min_size=1, max_size=6))
def test_deltas_fold_to_the_whole_commits(drawn: list[Any]) -> None:
    whole: Commit | None = None
    read: Commit | None = None
    for batch, (state, retained, late, consumed) in enumerate(drawn):
        live = {"state": tuple(map(entry, state)), "retained": tuple(map(entry, retained))}
        inputs = {"other": Position(batch, step_name(batch, "data"))} if consumed else {}
        now = commit(batch, whole, live=live, late=late, inputs=inputs)
        read = folded(json.loads(json.dumps(delta(now, whole))), read, "path")
        assert {k: sorted(map(str, v)) for k, v in read.live.items()} == {
            k: sorted(map(str, v)) for k, v in live.items() if v
        }
        assert replace(read, live={}) == replace(now, live={})
        whole = now


def test_a_commit_does_not_grow_with_the_files_it_keeps(tmp_path: Path) -> None:
    log = StreamLog(Storage(tmp_path), "s")
    first = commit(0, None, live={"state": tuple(entry(f"state-{i}") for i in range(1000))})
    log.put_commit(first, None)
    second = commit(1, first, live={"state": (*first.state, entry("one-more"))})
    log.put_commit(second, first)
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("streams/s/commits/*.json"))]
    assert sizes[0] > 50_000
    assert sizes[1] < 1500
    assert StreamLog(Storage(tmp_path), "s").last() == second


def test_another_reader_finds_what_was_written(tmp_path: Path) -> None:
    chain = written(StreamLog(Storage(tmp_path), "s"), 5)
    other = StreamLog(Storage(tmp_path), "s")
    assert other.last() == chain[-1]
    assert [file["name"] for file in other.result_files()] == [f"result-{i}" for i in range(5)]


@pytest.mark.parametrize("gone", [0, 2, 3])
def test_a_deleted_commit_is_noticed(tmp_path: Path, gone: int) -> None:
    """A deleted one would lose its results, and the files it added, silently."""
    chain = written(StreamLog(Storage(tmp_path), "s"), 5)
    (tmp_path / f"streams/s/commits/{chain[gone].name}.json").unlink()
    log = StreamLog(Storage(tmp_path), "s")
    with pytest.raises(CheckpointError, match=chain[gone].name):
        log.last()
    with pytest.raises(CheckpointError, match=chain[gone].name):
        log.result_files()


def test_a_base_lets_older_commits_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "KEPT_COMMITS", 2)
    log = StreamLog(Storage(tmp_path), "s")
    chain = written(log, 6)
    merged = {**entry("merged-0-3"), "root": "", "batch": 3}
    log.put_base(chain[3], [merged], [{"root": "", "name": f"result-{i}"} for i in range(4)])
    log.prune(chain[-1])
    commits = sorted(path.stem for path in tmp_path.glob("streams/s/commits/*.json"))
    assert commits == [chain[4].name, chain[5].name]
    reader = StreamLog(Storage(tmp_path), "s")
    assert reader.last() == chain[-1]
    assert [file["name"] for file in reader.result_files()] == [
        "merged-0-3",
        "result-4",
        "result-5",
    ]
    assert len(reader.all_result_files()) == 3 + 4
    (tmp_path / f"streams/s/commits/{chain[4].name}.json").unlink()
    with pytest.raises(CheckpointError, match=chain[4].name):
        StreamLog(Storage(tmp_path), "s").last()


def test_commits_that_a_follower_has_not_consumed_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "KEPT_COMMITS", 1)
    log = StreamLog(Storage(tmp_path), "s")
    chain = written(log, 6)
    log.put_base(chain[4], [], [])
    log.prune(chain[-1], passed=chain[1].name)
    assert [step["batch"] for step in log.steps_after(chain[1].position)] == [2, 3, 4, 5]
    assert log.commits_after(chain[1].name) == 4
    assert StreamLog(Storage(tmp_path), "s").last() == chain[-1]
    log.prune(chain[-1], passed=chain[-1].name)
    assert [step["batch"] for step in log.steps_after(None)] == [5]


def test_a_step_is_committed_once(tmp_path: Path) -> None:
    log = StreamLog(Storage(tmp_path), "s")
    log.put_commit(commit(0, None), None)
    with pytest.raises(CheckpointError, match="committed already"):
        log.put_commit(commit(0, None), None)


def test_intents_and_staged_steps_come_back_as_they_were(tmp_path: Path) -> None:
    log = StreamLog(Storage(tmp_path), "s")
    position = Position(4, step_name(3, "flush"))
    intent = Intent(7, 2, 10, 20, {"ansi": "true"}, ("rows",), inputs={"other": position})
    staged = Staged(intent, "q", "o", 19, {"rows": 5}, (entry("a"),), (entry("b"),))
    log.put_intent(intent)
    log.put_staged(staged)
    reader = StreamLog(Storage(tmp_path), "s")
    assert reader.intent(7) == intent
    assert reader.staged(commit(6, None)) == staged
    assert (staged.batch, staged.plan_version, staged.watermark) == (7, 2, 20)


def test_a_plan_has_a_checksum(tmp_path: Path) -> None:
    StreamLog(Storage(tmp_path), "s").put_plan(share(3, STREAM, [], {}))
    assert StreamLog(Storage(tmp_path), "s").plan(3).stream == STREAM
    path = tmp_path / "streams/s/plans/00000003.json"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"ts"', b'"tz"', 1))
    with pytest.raises(CheckpointError, match="checksum differs"):
        StreamLog(Storage(tmp_path), "s").plan(3)
    path.write_bytes(data.replace(b'"format":4', b'"format":9'))
    with pytest.raises(CheckpointError, match="NEWER_FORMAT"):
        StreamLog(Storage(tmp_path), "s").plan(3)
    path.unlink()
    with pytest.raises(CheckpointError, match="missing"):
        StreamLog(Storage(tmp_path), "s").plan(3)


def test_a_plan_of_the_format_before_is_read(tmp_path: Path) -> None:
    """Format 3 wrote every query whole."""
    query = bound("SELECT v, count(*) AS n FROM s GROUP BY v, window(ts, '10 seconds')")
    same_parts = replace(query, id="r@2", name="r")
    plan = share(3, STREAM, [query, same_parts], {"q@1": 5, "r@2": 6})
    log = StreamLog(Storage(tmp_path), "s")
    log.put_plan(plan)
    path = tmp_path / "streams/s/plans/00000003.json"
    now = path.read_bytes()
    assert StreamLog(Storage(tmp_path), "s").plan(3) == plan
    data = codec.dumps(plan).encode()
    header = {"format": 3, "size": len(data), "checksum": zlib.crc32(data)}
    path.write_bytes(json.dumps(header).encode() + b"\n" + data)
    assert StreamLog(Storage(tmp_path), "s").plan(3) == plan
    assert len(now) < len(path.read_bytes())


def test_a_plan_that_names_a_part_that_is_not_there_is_damaged(tmp_path: Path) -> None:
    log = StreamLog(Storage(tmp_path), "s")
    query = bound("SELECT v, count(*) AS n FROM s GROUP BY v, window(ts, '10 seconds')")
    log.put_plan(share(3, STREAM, [query, replace(query, id="r@2")], {}))
    path = tmp_path / "streams/s/plans/00000003.json"
    _, _, data = path.read_bytes().partition(b"\n")
    data = data.replace(b'"is":"part","n":0', b'"is":"part","n":999')
    header = {"format": 4, "size": len(data), "checksum": zlib.crc32(data)}
    path.write_bytes(json.dumps(header).encode() + b"\n" + data)
    with pytest.raises(CheckpointError, match="DAMAGED"):
        StreamLog(Storage(tmp_path), "s").plan(3)


def test_what_queries_have_in_common_is_one_object_again(tmp_path: Path) -> None:
    query = bound("SELECT v, count(*) AS n FROM s WHERE v > 2 GROUP BY v, window(ts, '10 seconds')")
    queries = [replace(query, id=f"q@{number}") for number in range(3)]
    StreamLog(Storage(tmp_path), "s").put_plan(share(3, STREAM, queries, {}))
    first, *others = StreamLog(Storage(tmp_path), "s").plan(3).queries
    assert all(reads_alike(first, other) for other in others)


@pytest.mark.parametrize("read_before", range(5))
def test_steps_are_read_while_older_ones_are_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_before: int
) -> None:
    """A follower that rested reads on while its stream deletes what nobody waits for: what is left is
    given, without a hole in it."""
    monkeypatch.setattr(log_module, "KEPT_COMMITS", 2)
    log = StreamLog(Storage(tmp_path), "s")
    chain = written(log, 6)
    log.put_base(chain[-1], (), ())
    reads, original = [], log.storage.read_json

    def pruning(name: str) -> Any:
        if len(reads) == read_before:
            StreamLog(Storage(tmp_path), "s").prune(chain[-1])
        reads.append(name)
        return original(name)

    monkeypatch.setattr(log.storage, "read_json", pruning)
    batches = [step["batch"] for step in log.steps_after(Position(0, chain[0].name))]
    assert len(reads) > read_before
    assert batches == list(range(batches[0], 6))
    assert batches[0] == max(4 - max(read_before - 2, 0), 1)
