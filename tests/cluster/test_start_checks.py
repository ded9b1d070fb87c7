"""A run refuses workers without weft, and a cluster that nobody runs, when it starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cluster.bare import bare_python
from tests.review.support import COUNTS, opened, put_rows
from tests.support.harness import session
from tests.support.servers import free_port

import weft
from weft.cli.project.session import require_cluster, workers_python
from weft.errors import RunError
from weft.runtime.tasks import missing_in_workers


def test_workers_without_weft_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_rows(tmp_path / "input", 0, [(1, "a", 1)])
    python = bare_python(tmp_path)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    own = session(spark)
    with opened(own, tmp_path) as w:
        w.register("q", COUNTS)
        with pytest.raises(RunError, match=r"has no package weft.*weft package") as caught:
            w.start(availableNow=True)
        assert caught.value.error_class == "WORKERS"


def test_workers_with_another_weft_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other" / "weft").mkdir(parents=True)
    (tmp_path / "other" / "weft" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/other" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    missing = missing_in_workers(spark)
    assert missing is not None
    assert f"has weft 0.0.1, and the driver has {weft.__version__}" in missing


def test_no_worker_is_started_where_this_python_runs_them(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("checks at the start", "")
    try:
        assert missing_in_workers(spark) is None
        assert not context.statusTracker().getJobIdsForGroup("checks at the start")
        spark.range(1).foreach(lambda _: None)
        assert context.statusTracker().getJobIdsForGroup("checks at the start")
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("master", ["spark://127.0.0.1:{port}", "spark://nowhere"])
def test_a_cluster_that_refuses_connection_is_a_clear_error(master: str) -> None:
    address = master.format(port=free_port())
    with pytest.raises(RunError, match="cannot be reached") as caught:
        require_cluster(address)
    assert address in str(caught.value)
    require_cluster("local[2]")


def test_workers_of_a_cluster_have_the_python_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On this machine they have the command's own: it has weft."""
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    masters = ("local", "local[2]", "local-cluster[2,1,1024]", "spark://host:7077", "yarn")
    assert [workers_python(master) == "/opt/python" for master in masters] == [False] * 2 + [
        True
    ] * 3
    monkeypatch.delenv("PYSPARK_PYTHON")
    assert {workers_python(master) for master in masters} == {sys.executable}
