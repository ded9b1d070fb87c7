"""Checkpoints that must not be used as they are: refused, and nothing in them changed."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.oracle.plain_spark import python_rows, write_batches
from tests.support.harness import session

import weft


@pytest.fixture(scope="module")
def finished(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with some batches done."""
    folder = tmp_path_factory.mktemp("finished")
    write_batches(folder / "input", workload.SCHEMA, workload.batches()[:3])
    w = open_weft(session(spark), folder)
    register(w, ["counts", "extremes"])
    w.start(availableNow=True).awaitTermination()
    return folder


@pytest.fixture
def checkpoint(finished: Path, tmp_path: Path) -> Iterator[Path]:
    """The finished checkpoint, put back after the test: Spark's file source knows its files
    by their full paths, so a copy elsewhere could not go on."""
    shutil.copytree(finished, tmp_path / "kept")
    yield finished
    shutil.rmtree(finished)
    shutil.copytree(tmp_path / "kept", finished)


def last_commit(folder: Path) -> Path:
    return max((folder / "checkpoint/streams/s/commits").glob("*.json"), key=lambda p: p.stem)


def contents(folder: Path) -> dict[str, str]:
    """All files but the database's, the lock and the lease."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "checkpoint").rglob("*"))
        if path.is_file() and "catalog" not in path.name and "lease" not in path.name
    }


def assert_refused(spark: SparkSession, folder: Path, error_class: str) -> str:
    before = contents(folder)
    with pytest.raises(weft.CheckpointError) as caught:
        open_weft(spark, folder).start(availableNow=True).awaitTermination()
    assert caught.value.error_class == error_class
    assert contents(folder) == before
    return str(caught.value)


def test_a_finished_checkpoint_goes_on(spark: SparkSession, checkpoint: Path) -> None:
    w = open_weft(session(spark), checkpoint)
    before = python_rows(w.results("counts").toArrow())
    w.start(availableNow=True).awaitTermination()
    assert sorted(map(str, python_rows(w.results("counts").toArrow()))) == sorted(map(str, before))
    assert before


def test_a_deleted_spark_checkpoint(spark: SparkSession, checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "checkpoint/streams/s/spark")
    assert "is gone" in assert_refused(session(spark), checkpoint, "SPARK_CHECKPOINT")


def test_the_spark_checkpoint_of_another_query(spark: SparkSession, checkpoint: Path) -> None:
    metadata = checkpoint / "checkpoint/streams/s/spark/metadata"
    metadata.write_text(json.dumps({"id": "00000000-0000-0000-0000-000000000000"}))
    (metadata.parent / ".metadata.crc").unlink(missing_ok=True)
    message = assert_refused(session(spark), checkpoint, "SPARK_CHECKPOINT")
    assert "another streaming query" in message


def test_lost_weft_commits(spark: SparkSession, checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "checkpoint/streams/s/commits")
    assert "weft has none" in assert_refused(session(spark), checkpoint, "SPARK_CHECKPOINT")


def test_another_project(spark: SparkSession, checkpoint: Path) -> None:
    with pytest.raises(weft.CheckpointError, match="FOREIGN_CHECKPOINT"):
        weft.Weft(session(spark), checkpoint / "checkpoint", project="other")


def test_a_folder_that_is_no_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    with pytest.raises(weft.CheckpointError, match=r"FOREIGN_CHECKPOINT.*offsets"):
        weft.Weft(session(spark), tmp_path)


def test_a_newer_format(spark: SparkSession, checkpoint: Path) -> None:
    path = checkpoint / "checkpoint/weft.json"
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, "format": 99}))
    assert "Update weft" in assert_refused(session(spark), checkpoint, "NEWER_FORMAT")
    path.write_text(json.dumps({**body, "format": body["format"] - 1}))
    told = assert_refused(session(spark), checkpoint, "OLDER_FORMAT")
    assert "Finish it with the weft that wrote it, or start over with a new checkpoint" in told


def test_a_newer_commit(spark: SparkSession, checkpoint: Path) -> None:
    last = last_commit(checkpoint)
    last.write_text(json.dumps({**json.loads(last.read_text()), "format": 99}))
    assert_refused(session(spark), checkpoint, "NEWER_FORMAT")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}'])
def test_a_damaged_commit(spark: SparkSession, checkpoint: Path, text: str) -> None:
    last = last_commit(checkpoint)
    last.write_text(text)
    assert last.name in assert_refused(session(spark), checkpoint, "DAMAGED")


def test_a_damaged_state_file(spark: SparkSession, checkpoint: Path) -> None:
    file = next((checkpoint / "checkpoint/streams/s/state").rglob("*.parquet"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))
    assert file.name in assert_refused(session(spark), checkpoint, "DAMAGED")


def test_a_missing_state_file(spark: SparkSession, checkpoint: Path) -> None:
    next((checkpoint / "checkpoint/streams/s/state").rglob("*.parquet")).unlink()
    assert "missing" in assert_refused(session(spark), checkpoint, "DAMAGED")


@pytest.mark.parametrize(
    ("key", "value"),
    [("spark.sql.session.timeZone", "Asia/Tokyo"), ("spark.sql.ansi.enabled", "false")],
)
def test_other_session_settings(
    spark: SparkSession, checkpoint: Path, key: str, value: str
) -> None:
    own_session = session(spark)
    own_session.conf.set(key, value)
    assert "set it back" in assert_refused(own_session, checkpoint, "SETTINGS_CHANGED")


def test_a_changed_stream(spark: SparkSession, checkpoint: Path) -> None:
    own_session = session(spark)
    w = weft.Weft(own_session, checkpoint / "checkpoint", project="crash")
    source = own_session.readStream.schema("ts timestamp, k int").parquet(str(checkpoint / "input"))
    with pytest.raises(weft.CheckpointError, match="STREAM_CHANGED"):
        w.add_stream("s", source, time="ts", watermark="2 seconds")


def test_a_lost_catalog_is_rebuilt_from_the_plans(spark: SparkSession, checkpoint: Path) -> None:
    for path in (checkpoint / "checkpoint").glob("catalog.db*"):
        path.unlink()
    w = open_weft(session(spark), checkpoint)
    assert [handle.name for handle in w.queries] == ["counts", "extremes"]
    assert w.results("counts").count() > 0


def test_a_second_process_is_kept_out(spark: SparkSession, checkpoint: Path) -> None:
    """Another process holds the lock as long as it lives, and no longer."""
    text = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); "
    text += "print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", text, str(checkpoint / "checkpoint/lease.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    w = open_weft(session(spark), checkpoint)
    with pytest.raises(weft.RunError, match="ALREADY_RUNNING"):
        w.start(availableNow=True)
    holder.kill()
    holder.communicate()
    w.start(availableNow=True).awaitTermination()
