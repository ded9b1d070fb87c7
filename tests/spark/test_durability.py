"""What a commit names is on disk before the commit is, whoever wrote it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.oracle.plain_spark import write_batches
from tests.support import seeds
from tests.support.harness import session

from weft.runtime.checkpoint.commits import Commit
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.fallbacks.log import BatchCommit, FallbackLog

#: A lambda has no shared form.
ALONE = "SELECT k, transform(array(v), x -> x)[0] AS v FROM s"


@pytest.mark.parametrize("kernel", seeds.some(__name__, ["driver", "lanes"], 1))
def test_files_are_synced_before_the_commit_that_names_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    """State, published rows and results of fallbacks, which Spark's tasks write, and other results."""
    synced: set[str] = set()
    sync, put_commit, put_batch = os.fsync, StreamLog.put_commit, FallbackLog.put
    named: list[str] = []

    def recorded(descriptor: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def checked_fallback(log: FallbackLog, commit: BatchCommit) -> None:
        for entry in commit.results:
            path = f"{log.storage.root}/results/{entry['name']}"
            assert {path, os.path.dirname(path)} <= synced, path
            named.append(path)
        put_batch(log, commit)

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
    monkeypatch.setattr(FallbackLog, "put", checked_fallback)
    write_batches(tmp_path / "input", workload.SCHEMA, workload.batches()[:3])
    w = open_weft(session(spark), tmp_path, kernel=kernel)
    register(w, ["counts", "extremes", "row_sums"])
    assert w.register("alone", ALONE).status == "fallback"
    w.start(availableNow=True).awaitTermination()
    assert w.query("alone").status == "fallback", w.query("alone").detail
    kinds = ("/state/", "/published/", "/results/fallback/")
    assert all(any(kind in path for path in named) for kind in kinds)
