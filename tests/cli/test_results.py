"""`weft results` and `weft resume`: without Spark, in the order of batches, as people read values."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.cli.support import PER_MINUTE, YAML, project, weft
from tests.support.input_files import put_file

from weft.catalog.store import Catalog
from weft.cli.project.folder import load
from weft.runtime.checkpoint.identity import open_checkpoint
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.fallbacks import batches
from weft.runtime.protocol import stepper
from weft.runtime.sinks import resultfiles

VALUES = (
    "SELECT auction, ts, cast(ts AS timestamp_ntz) AS local, cast(ts AS date) AS day, "
    "cast(price AS decimal(12,3)) / 1000 AS small, cast(0 AS decimal(12,8)) AS nothing, "
    "INTERVAL '90' SECOND * auction AS span, transform(array(auction, NULL), x -> x) AS list, "
    "price > 3 AS large "
    "FROM bids WHERE auction < 2"
)
START = datetime(2024, 1, 1, 20, tzinfo=UTC)


def put_bids(folder: Path, number: int) -> None:
    """One file: a bid on auctions 0, 1 and 2 in the minute of its number."""
    times = [START + timedelta(minutes=number)] * 3
    rows = {"auction": [0, 1, 2], "price": [number] * 3, "ts": times}
    put_file(pa.table(rows), folder / "data", number)


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was asked for a session")

    monkeypatch.setattr("weft.cli.project.session.session", refuse)
    monkeypatch.setattr("weft.cli.project.opening.open_weft", refuse)
    monkeypatch.setattr(SparkSession, "getActiveSession", refuse)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuse)


@pytest.fixture
def ran(tmp_path: Path, spark: SparkSession) -> Path:
    """A project in Kolkata whose fallback has run over two files."""
    yaml = YAML + "spark: {spark.sql.session.timeZone: Asia/Kolkata}\n"
    folder = project(tmp_path, yaml, alone=VALUES)
    for number in (0, 4):
        put_bids(folder, number)
    result = weft("run", folder, "--available-now")
    assert result.exit_code == 0, result.output
    (listed,) = json.loads(weft("list", folder, "--json").stdout)
    assert listed["status"] == "fallback"
    return folder


def test_a_fallback_is_read_without_spark(ran: Path, no_spark: None) -> None:
    shown = weft("results", ran, "alone")
    assert shown.exit_code == 0, shown.output
    cells = [line.split("\t") for line in shown.stdout.splitlines()]
    assert cells[0] == [
        "auction",
        "ts",
        "local",
        "day",
        "small",
        "nothing",
        "span",
        "list",
        "large",
    ]
    assert sorted(cells[1:])[3] == [
        "1",
        "2024-01-02 01:34:00",
        "2024-01-02 01:34:00",
        "2024-01-02",
        "0.00400000",
        "0.00000000",
        "0:01:30",
        "[1, None]",
        "true",
    ]
    assert len(cells) == 5
    assert shown.stderr == "4 rows\n"
    rows = json.loads(weft("results", ran, "alone", "--json").stdout)
    (row,) = [row for row in rows if row["auction"] == 1 and row["large"]]
    assert row["ts"] == "2024-01-01T20:04:00+00:00"
    assert row["local"] == "2024-01-02T01:34:00"
    assert (row["day"], row["span"], row["list"]) == ("2024-01-02", 90.0, [1, None])


def test_a_truncated_result_file_is_one_line(ran: Path, no_spark: None) -> None:
    (file, *_) = (ran / "checkpoint" / "results").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    damaged = weft("results", ran, "alone")
    assert damaged.exit_code == 1
    assert damaged.stderr.startswith("[DAMAGED]") and file.name in damaged.stderr
    assert damaged.stderr.count("\n") == 1
    file.unlink()
    missing = weft("results", ran, "alone")
    assert missing.exit_code == 1
    assert "[DAMAGED]" in missing.stderr and "missing" in missing.stderr


def test_the_last_rows_are_the_latest_though_files_were_merged(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of windows, filters and fallbacks, merged more than once."""
    monkeypatch.setattr(stepper, "BASE_EVERY", 4)
    monkeypatch.setattr(batches, "BASE_EVERY", 4)
    monkeypatch.setattr(resultfiles, "MERGE_AT_LEAST", 2)
    yaml = YAML.replace("    time: ts", "    options: {maxFilesPerTrigger: 1}\n    time: ts")
    sql = PER_MINUTE.replace("auction, COUNT", "auction, window.start AS s, max(price) AS p, COUNT")
    filtered = "SELECT auction, price AS p FROM bids"
    alone = "SELECT auction, transform(array(price), x -> x)[0] AS p FROM bids"
    folder = project(tmp_path, yaml, windows=sql, filtered=filtered, alone=alone)
    for number in range(14):
        put_bids(folder, number)
    assert weft("run", folder, "--available-now").exit_code == 0
    listed = json.loads(weft("list", folder, "--json").stdout)
    statuses = {row["name"]: row["status"] for row in listed}
    assert statuses == {"windows": "active", "filtered": "active", "alone": "fallback"}
    assert len(list((folder / "checkpoint").rglob("*merged*.parquet"))) >= 3
    for name, last in (("windows", 11), ("filtered", 13), ("alone", 13)):
        rows = json.loads(weft("results", folder, name, "--json").stdout)
        minutes = [row["p"] for row in rows]
        assert minutes == sorted(minutes), name
        assert len(rows) == 3 * (last + 1)
        latest = json.loads(weft("results", folder, name, "--limit", "4", "--json").stdout)
        assert [row["p"] for row in latest] == [last - 1, last, last, last]


@pytest.mark.parametrize("plan_deleted", [False, True])
def test_a_quarantined_query_shows_its_earlier_rows_and_its_error(
    tmp_path: Path, spark: SparkSession, plan_deleted: bool
) -> None:
    sql = "SELECT auction, SUM(100 / (price - 4)) AS q FROM bids GROUP BY window(ts, '1 minute'), auction"
    folder = project(tmp_path, YAML, fine=PER_MINUTE, divides=sql)
    for number in range(3):
        put_bids(folder, number)
    assert weft("run", folder, "--available-now").exit_code == 0
    put_bids(folder, 4)
    assert weft("run", folder, "--available-now").exit_code == 3
    if plan_deleted:
        first, *_ = sorted((folder / "checkpoint/streams/bids/plans").glob("*.json"))
        first.unlink()
    shown = weft("results", folder, "divides")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.splitlines()[0] == "auction\tq"
    assert len(shown.stdout.splitlines()) == 1 + 3
    error, count = shown.stderr.splitlines()
    assert error.startswith("[QUERY_FAILED] query 'divides'") and "DIVIDE_BY_ZERO" in error
    assert count == "3 rows"


def test_a_query_that_failed_at_once_is_its_error(tmp_path: Path, spark: SparkSession) -> None:
    sql = "SELECT SUM(100 / (price - 4)) AS q FROM bids GROUP BY window(ts, '1 minute')"
    folder = project(tmp_path, YAML, divides=sql)
    put_bids(folder, 4)
    assert weft("run", folder, "--available-now").exit_code == 3
    shown = weft("results", folder, "divides")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert shown.stderr.startswith("[QUERY_FAILED] query 'divides'")


def test_a_failed_query_is_resumed_by_command(tmp_path: Path, no_spark: None) -> None:
    folder = project(tmp_path, YAML, first=PER_MINUTE)
    unknown = weft("resume", folder, "other")
    assert unknown.exit_code == 1 and "[UNKNOWN_QUERY]" in unknown.stderr
    fresh = weft("resume", folder, "first")
    assert fresh.exit_code == 1 and "'first' is new" in fresh.stderr
    loaded = load(folder)
    open_checkpoint(Storage(loaded.checkpoint), loaded.name, lanes=1)
    catalog = Catalog(f"sqlite:///{folder}/checkpoint/catalog.db")
    record = catalog.add_query("first", PER_MINUTE)
    running = weft("resume", folder, "first")
    assert running.exit_code == 1 and "'first' is active" in running.stderr
    for status in ("quarantined", "rejected"):
        before = catalog.revision()
        catalog.set_status(record.change, status, "it failed")
        failed = catalog.revision()
        assert weft("resume", folder, "first").stdout == "resumed first\n"
        assert catalog.find("first").status == "active"
        assert catalog.find("first").detail == ""
        assert before != failed != catalog.revision(), "a process that runs it must notice"
