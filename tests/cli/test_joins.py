"""Join queries on the command line: checked, run, listed, explained and read like any other."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import duckdb
import pytest
from pyspark.sql import SparkSession
from tests.cli.support import PER_MINUTE, project, put_bids, weft

from weft.catalog.store import Catalog

FAR = """SELECT x.auction, x.price AS before, y.price AS after FROM bids x, bids y
WHERE x.auction = y.auction AND y.price > x.price AND y.ts > x.ts
  AND y.ts <= x.ts + INTERVAL 2 DAYS"""
NEAR = """SELECT x.auction, x.price AS before, y.price AS after FROM bids x JOIN bids y
ON x.auction = y.auction WHERE x.price < y.price AND y.ts > x.ts
  AND y.ts <= x.ts + INTERVAL 1 MINUTE"""
HIGH = "SELECT auction, price FROM bids WHERE price > 20"
EVER = "SELECT x.price AS p, y.price AS q FROM bids x, bids y WHERE x.auction = y.auction AND x.price > 23"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A project with three join queries and a windowed aggregate, run to the end of its data."""
    folder = project(
        tmp_path_factory.mktemp("joins"), far=FAR, near=NEAR, high=HIGH, per_minute=PER_MINUTE
    )
    put_bids(folder)
    checked = weft("check", folder)
    assert checked.exit_code == 0, checked.output
    assert "4 queries are shared" in checked.stdout
    result = weft("run", folder, "--available-now")
    assert result.exit_code == 0, result.output
    assert re.search(r"^joins: 15 rows in .*, \d+ results", result.stdout, re.MULTILINE)
    return folder


def in_duckdb(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW bids AS SELECT * FROM '{folder}/data/bids.parquet'")
        return sorted(database.execute(sql).fetchall())


@pytest.mark.parametrize(("name", "sql"), [("far", FAR), ("near", NEAR), ("high", HIGH)])
def test_results_are_those_of_the_data(ran: Path, name: str, sql: str) -> None:
    rows = json.loads(weft("results", ran, name, "--json").stdout)
    expected = in_duckdb(ran, sql)
    assert len(expected) >= 3
    assert sorted(tuple(row.values()) for row in rows) == expected
    lines = weft("results", ran, name, "--limit", 0).stdout.splitlines()
    assert len(lines) == 1 + len(expected)


def test_the_list_has_all_queries(ran: Path) -> None:
    queries = {query["name"]: query for query in json.loads(weft("list", ran, "--json").stdout)}
    assert {name: query["status"] for name, query in queries.items()} == {
        "high": "active",
        "near": "active",
        "per_minute": "active",
        "far": "active",
    }


def test_explain_shows_the_network_beside_the_windows(ran: Path) -> None:
    text = weft("explain", ran).stdout
    assert "stream bids: 1 query" in text
    assert "network: 3 queries over bids" in text
    flat = " ".join(text.split())
    assert "2 joins of the queries alone: here 1 join node in 1 physical join (2×)" in flat
    assert "bids2.ts > bids1.ts AND bids2.ts <= bids1.ts + 1 min" in flat
    assert "bids2.ts > bids1.ts AND bids2.ts <= bids1.ts + 2 d" in flat
    assert "kept for ever" not in flat
    one = " ".join(weft("explain", ran, "--query", "near").stdout.split())
    assert one.startswith("query near (shared") and "y.ts <= x.ts + 1 min" in one


def test_analyze_has_what_was_counted(ran: Path) -> None:
    document = json.loads(weft("explain", ran, "--analyze", "--json").stdout)
    network = document["network"]
    assert network["measured"]["rows"] == 15
    assert network["measured"]["results"] == sum(
        len(in_duckdb(ran, sql)) for sql in (FAR, NEAR, HIGH)
    )
    assert network["measured"]["history_rows"] > 0 and network["measured"]["history_bytes"] > 0
    by_feed = {name: node for node in network["nodes"] for name in node["feeds"]}
    assert by_feed["far"]["measured"]["rows"] == len(in_duckdb(ran, FAR))
    assert by_feed["high"]["measured"]["rows"] == len(in_duckdb(ran, HIGH))
    text = weft("explain", ran, "--analyze").stdout
    assert re.search(r"history of \d+ rows", text)


def test_the_drawing_has_the_network(ran: Path, tmp_path: Path) -> None:
    target = tmp_path / "plan.svg"
    assert weft("explain", ran, "--svg", target).exit_code == 0
    drawing = "".join(ElementTree.parse(target).getroot().itertext())
    assert "network of join queries: 3 queries" in drawing and "weave groups" in drawing


def test_a_query_that_keeps_rows_for_ever_is_told_of(ran: Path, spark: SparkSession) -> None:
    source = ran / "ever.txt"
    source.write_text(EVER)
    registered = weft("register", ran, "ever", source)
    assert registered.exit_code == 0, registered.output
    assert "ever: the rows of x, y are kept for ever" in registered.stderr
    listed = {query["name"]: query for query in json.loads(weft("list", ran, "--json").stdout)}
    assert "kept for ever" in listed["ever"]["detail"]
    checked = json.loads(weft("check", ran, "--json").stdout)
    assert [entry["query"] for entry in checked["warnings"]] == ["ever"]
    drafted = " ".join(weft("explain", ran).stdout.split())
    assert "network: 4 queries over bids" in drafted
    assert "warning query ever: the rows of x, y are kept for ever" in drafted
    assert weft("drop", ran, "ever").exit_code == 0
    assert "network: 3 queries" in weft("explain", ran).stdout


def test_a_query_with_backfill_sees_what_history_holds(tmp_path: Path, spark: SparkSession) -> None:
    """It is registered without Spark, and its file says so, too."""
    folder, file = project(tmp_path, far=FAR), tmp_path / "again.txt"
    put_bids(folder)
    assert weft("run", folder, "--available-now").exit_code == 0
    file.write_text(PER_MINUTE)
    refused = weft("register", folder, "again", file, "--backfill")
    assert refused.exit_code == 1 and "[BAD_BACKFILL]" in refused.stderr
    file.write_text(NEAR)
    assert weft("register", folder, "again", file, "--backfill").stdout == "registered again\n"
    assert (folder / "queries" / "again.sql").read_text().startswith("-- backfill\n")
    assert weft("run", folder, "--available-now").exit_code == 0
    rows = json.loads(weft("results", folder, "again", "--json").stdout)
    assert sorted(tuple(row.values()) for row in rows) == in_duckdb(folder, NEAR)
    assert "joins of its own" in weft("explain", folder, "--query", "again").stdout


def test_a_resumed_query_still_says_what_it_keeps(ran: Path, tmp_path: Path) -> None:
    folder, file = tmp_path / "project", tmp_path / "ever.sql"
    shutil.copytree(ran, folder)
    file.write_text(EVER)
    assert "kept for ever" in weft("register", folder, "ever", file).stderr
    catalog = Catalog(f"sqlite:///{folder}/checkpoint/catalog.db")
    record = catalog.find("ever")
    catalog.set_status(record.change, "quarantined", "it failed")
    assert weft("resume", folder, "ever").exit_code == 0
    assert catalog.find("ever").detail == record.detail != ""
    catalog.close()
