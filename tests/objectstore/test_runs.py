"""Runs whose checkpoint and results are in object storage."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.crash.simulated import dying
from tests.kafka.test_kafka import with_jars
from tests.objectstore.server import SECRET, ObjectServer, connector_jars
from tests.support import steady
from tests.support.harness import session

import weft
from weft.errors import CheckpointError, RunError, WeftError
from weft.runtime.checkpoint.lease import Lease
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage

pytestmark = [pytest.mark.slow, pytest.mark.crash]
CHECKPOINT = "s3://bucket/checkpoint"
BATCHES = 3


def s3a_settings(endpoint: str) -> dict[str, str]:
    """Spark's connector for the server. It finds the credentials in the environment."""
    return {
        # Hadoop's own defaults, which the tests' sessions do without.
        "spark.hadoop.fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.s3a.impl": "org.apache.hadoop.fs.s3a.S3A",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        # Hadoop cannot buffer in files where the tests' sessions write local ones more quickly.
        "spark.hadoop.fs.s3a.fast.upload.buffer": "array",
        "spark.hadoop.fs.s3a.attempts.maximum": "2",
        "spark.hadoop.fs.s3a.retry.limit": "2",
    }


def s3_session(spark: SparkSession, endpoint: str) -> SparkSession:
    """A session of the tests' Spark that can use the server."""
    with_jars(spark, connector_jars())
    short = {name.removeprefix("spark.hadoop."): v for name, v in s3a_settings(endpoint).items()}
    keys = {"fs.s3a.access.key": os.environ["AWS_ACCESS_KEY_ID"]}
    keys |= {"fs.s3a.secret.key": os.environ["AWS_SECRET_ACCESS_KEY"]}
    return session(spark, spark_settings=short | keys)


def test_a_run_crashes_then_loses_its_storage_then_ends_with_all_results_once(
    spark: SparkSession,
    server: ObjectServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    steady.write_input(tmp_path / "input", BATCHES)
    catalog = f"sqlite:///{tmp_path / 'catalog.db'}"
    own = s3_session(spark, server.endpoint)
    said = crashed(own, tmp_path / "input", catalog)
    monkeypatch.setenv("WEFT_STORAGE_PATIENCE", "1")
    with steady.opened(own, tmp_path / "input", CHECKPOINT, catalog=catalog) as w:
        assert steady.results(w) != steady.expected(BATCHES), "it had ended before it crashed"
        said += without_storage(w, server, monkeypatch)
        run = w.start(availableNow=True)
        with pytest.raises(RunError, match="in use by process"):
            Lease(Storage(CHECKPOINT)).acquire()
        run.awaitTermination()
        assert steady.results(w) == steady.expected(BATCHES)
        assert w.results("counts").count() == sum(steady.expected(BATCHES)["counts"].values())
    assert SECRET not in said + caplog.text


def crashed(spark: SparkSession, folder: Path, catalog: str) -> str:
    """A run that crashes in its second step; what it ends with. `test_storage` has a holder of the lease that is
    really killed."""
    with dying("before_commit", 2) as crash:
        w = steady.opened(spark, folder, CHECKPOINT, catalog=catalog)
        with pytest.raises(WeftError, match="Crash") as caught:
            w.start(availableNow=True).awaitTermination()
        assert crash.crashed
    return str(caught.value)


def without_storage(w: weft.Weft, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run whose storage goes away when a step is to be committed; what it ends with. The storage is there again
    afterwards."""
    put_commit = StreamLog.put_commit

    def put_into_nothing(log: StreamLog, *arguments: Any) -> None:
        server.stop()
        put_commit(log, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(StreamLog, "put_commit", put_into_nothing)
        # It ends with weft's error or with that of Spark's connector, whichever comes first.
        failures = (WeftError, StreamingQueryException)
        with pytest.raises(failures, match=r"cannot be reached|Connection refused") as caught:
            w.start(availableNow=True).awaitTermination()
    server.start()
    return str(caught.value)


def test_a_remote_checkpoint_needs_a_catalog(spark: SparkSession, server: ObjectServer) -> None:
    with pytest.raises(CheckpointError, match="catalog="):
        weft.Weft(spark, "s3://bucket/without")
