"""What a commit names is on disk before the commit is, whoever wrote it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.oracle.plain_spark import write_batches
from tests.support.harness import session

from weft.runtime.checkpoint.commits import Commit
from weft.runtime.checkpoint.log import StreamLog


@pytest.mark.parametrize("kernel", ["driver", "lanes"])
def test_files_are_synced_before_the_commit_that_names_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    """State and published rows, which Spark's tasks write, and results."""
    synced: set[str] = set()
    sync, put_commit = os.fsync, StreamLog.put_commit
    named: list[str] = []

    def recorded(descriptor: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def checked(log: StreamLog, commit: Commit, before: Commit | None) -> None:
        entries = [*(e for files in commit.live.values() for e in files), *commit.published]
        paths = [log.storage.path(entry["name"]) for entry in entries]
        if kernel == "driver":  # lanes sync their results in processes of their own
            paths += [f"{log.storage.root}/results/{entry['name']}" for entry in commit.results]
        for path in paths:
            assert path in synced, path
            assert os.path.dirname(path) in synced, path
        named.extend(paths)
        put_commit(log, commit, before)

    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(StreamLog, "put_commit", checked)
    write_batches(tmp_path / "input", workload.SCHEMA, workload.batches()[:3])
    w = open_weft(session(spark), tmp_path, kernel=kernel)
    register(w, ["counts", "extremes", "row_sums"])
    w.start(availableNow=True).awaitTermination()
    kinds = {part for path in named for part in ("/state/", "/published/") if part in path}
    assert kinds == {"/state/", "/published/"}
