"""From `init` to results, in one session; what comes out is recomputed from the files."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.cli.support import MINUTE, PER_MINUTE, YAML, project, put_bids, weft

NAMES = {
    "bidders",
    "channel_turnover",
    "channel_spread",
    "hot",
    "large_bids",
    "per_minute",
    "prices",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A project made by `init`, checked and run to the end of its data."""
    folder = tmp_path_factory.mktemp("cli") / "auctions"
    assert weft("init", folder).exit_code == 0
    checked = weft("check", folder)
    assert checked.exit_code == 0, checked.output
    assert "7 queries are shared" in checked.stdout
    assert not (folder / "checkpoint").exists()
    result = weft("run", folder, "--available-now")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("7 queries (7 registered)\nbids batch 0: 2,000 rows")
    assert "bids: 6,000 rows in " in result.stdout
    return folder


def bids(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "data" / "bids").glob("*.parquet"))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_results_are_those_of_the_data(ran: Path) -> None:
    rows = bids(ran)
    watermark = max(row["ts"] for row in rows) - timedelta(seconds=10)
    groups: dict[tuple[datetime, int], list[int]] = defaultdict(list)
    for row in rows:
        start = row["ts"].replace(second=0, microsecond=0)
        for back in range(5):
            groups[start - back * MINUTE, row["auction"]].append(row["price"])
    expected = {
        (start.isoformat(), auction, len(prices), max(prices))
        for (start, auction), prices in groups.items()
        if len(prices) >= 30 and start + 5 * MINUTE <= watermark
    }
    assert len(expected) > 50
    found = json.loads(weft("results", ran, "hot", "--json").stdout)
    assert len(found) == len(expected)
    assert {(r["start"], r["auction"], r["bids"], r["highest"]) for r in found} == expected


def test_distinct_bidders_are_those_of_the_data(ran: Path) -> None:
    rows = bids(ran)
    watermark = max(row["ts"] for row in rows) - timedelta(seconds=10)
    groups: dict[tuple[datetime, str], set[int]] = defaultdict(set)
    for row in rows:
        start = row["ts"].replace(second=0, microsecond=0)
        start -= timedelta(minutes=start.minute % 5)
        groups[start, row["channel"]].add(row["bidder"])
    expected = {
        (start.isoformat(), channel, len(bidders))
        for (start, channel), bidders in groups.items()
        if start + 5 * MINUTE <= watermark
    }
    found = json.loads(weft("results", ran, "bidders", "--json").stdout)
    assert {(r["start"], r["channel"], r["bidders"]) for r in found} == expected


def test_a_limit_takes_the_latest_rows(ran: Path) -> None:
    every = json.loads(weft("results", ran, "per_minute", "--json").stdout)
    last = json.loads(weft("results", ran, "per_minute", "--json", "--limit", "3").stdout)
    assert last == every[-3:]
    assert last[-1]["start"] == max(row["start"] for row in every)
    shown = weft("results", ran, "per_minute", "--limit", "2")
    lines = [line.split("\t") for line in shown.stdout.splitlines()]
    assert lines[0] == ["start", "bids", "turnover", "mean_price"]
    assert len(lines) == 3
    assert shown.stderr == f"the last 2 of {len(every)} rows\n"


def test_unknown_queries_are_named(ran: Path) -> None:
    result = weft("results", ran, "cold")
    assert result.exit_code == 1
    assert result.stderr.startswith("[UNKNOWN_QUERY] there is no query 'cold'; known: bidders")
    assert weft("drop", ran, "cold").exit_code == 1
    assert weft("explain", ran, "--query", "cold").exit_code == 1


def test_explain_names_every_query_and_source(ran: Path, tmp_path: Path) -> None:
    drawing = tmp_path / "plan.svg"
    result = weft("explain", ran, "--json", "--svg", drawing)
    (stream,) = json.loads(result.stdout)["streams"]
    assert stream["plan_version"] >= 1
    assert {query["name"] for query in stream["queries"]} == NAMES
    titles = {node["title"]: node["queries"] for node in stream["nodes"]}
    asked = {"by channel", "by channel, distinct bidder", "by auction"}
    asked |= {"one group, selecting by channel, price"}
    inner = "by auction, bidder, channel, selecting by price, an intermediate"
    sketches = "one group"
    wanted = {sketches, inner, *(f"{title}, from N2" for title in asked)}
    assert set(titles) == wanted, "rows are few, and sketches of quantiles are large"
    assert titles["by channel, from N2"] == ["bidders", "channel_turnover", "channel_spread"]
    assert drawing.read_text().startswith("<svg ")


def test_explain_shows_the_groups_that_another_optimizer_would_choose(ran: Path) -> None:
    shown = weft("explain", ran, "--optimizer", "noshare", "--model", "twoops").stdout
    assert "groups by noshare (twoops)" in shown
    wrong = weft("explain", ran, "--optimizer", "greedy")
    assert wrong.exit_code == 1
    assert "there is no optimizer 'greedy'; choose one of noshare, shared" in wrong.stderr
    both = weft("explain", ran, "--optimizer", "noshare", "--analyze")
    assert both.exit_code == 2


def test_explain_analyze_shows_what_was_counted(ran: Path) -> None:
    (stream,) = json.loads(weft("explain", ran, "--analyze", "--json").stdout)["streams"]
    measured = stream["measured"]
    assert measured["rows"] == 6000
    assert measured["batches"] == 3
    assert measured["results"] == sum(
        len(json.loads(weft("results", ran, name, "--json").stdout)) for name in NAMES
    )
    assert measured["seconds"] > 0
    assert measured["event_rate"] == pytest.approx(6000 / 3600, rel=0.01)
    assert stream["cost"]["rate_is"] == "measured"
    operations = stream["measured"]["operations"]
    passes = "one pass for sketches of quantiles, one for all other nodes"
    assert operations["level1"]["counted"] == 2 * measured["rows"], passes
    assert operations["level3"]["counted"] > 0
    assert operations["level3"]["predicted_per_second"] > 0
    assert "level 3     predicted" in weft("explain", ran, "--analyze").stdout
    assert "late rows   0; without event time 0" in weft("explain", ran, "--analyze").stdout


def test_one_query_is_explained(ran: Path) -> None:
    text = weft("explain", ran, "--query", "hot").stdout
    assert "5 min every 1 min: a row is in 5 of them" in text
    assert "count(*) >= 30" in text


def test_list_shows_status(ran: Path) -> None:
    rows = json.loads(weft("list", ran, "--json").stdout)
    assert {row["name"]: row["status"] for row in rows} == dict.fromkeys(NAMES, "active")
    assert {row["file"] for row in rows} >= {"queries/hot.sql", "queries/channels.sql"}


def test_a_wrong_query_leaves_nothing_behind(ran: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.sql"
    bad.write_text("SELECT auction,\n  prize\nFROM bids GROUP BY window(ts, '1 minute'), auction")
    result = weft("register", ran, "bad", bad)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(
        "[UNKNOWN_COLUMN] query 'bad', line 2, column 3: 'prize' is not a column"
    )
    assert not (ran / "queries" / "bad.sql").exists()
    assert "bad" not in weft("list", ran).stdout
    taken = tmp_path / "taken.sql"
    taken.write_text("SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '1 hour')")
    assert "[DUPLICATE_NAME] query 'hot'" in weft("register", ran, "hot", taken).stderr
    assert "[BAD_NAME]" in weft("register", ran, "no name", taken).stderr
    assert "cannot read" in weft("register", ran, "x", tmp_path / "nothing.sql").stderr


def test_the_files_are_the_desired_state(ran: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra.sql"
    extra.write_text("SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '1 hour')")
    assert weft("register", ran, "extra", extra).stdout == "registered extra\n"
    assert (ran / "queries" / "extra.sql").read_text() == extra.read_text() + "\n"
    assert weft("drop", ran, "channel_spread").exit_code == 0
    assert "channel_spread" not in (ran / "queries" / "channels.sql").read_text()
    hot = ran / "queries" / "hot.sql"
    hot.write_text(hot.read_text() + "-- a comment\n")
    prices = ran / "queries" / "prices.sql"
    prices.write_text(prices.read_text().replace("0.5", "0.9"))
    (ran / "queries" / "large_bids.sql").unlink()
    (ran / "queries" / "new.sql").write_text(extra.read_text())
    statuses = {
        row["name"]: row["status"] for row in json.loads(weft("list", ran, "--json").stdout)
    }
    assert statuses == {
        "bidders": "active",
        "channel_turnover": "active",
        "extra": "active",
        "hot": "active",
        "large_bids": "orphan",
        "new": "new",
        "per_minute": "active",
        "prices": "changed",
    }
    result = weft("run", ran, "--available-now")
    assert "7 queries (1 registered, 1 changed, 1 dropped)" in result.stdout
    rows = json.loads(weft("list", ran, "--json").stdout)
    assert {row["status"] for row in rows} == {"active"}
    assert len(json.loads(weft("results", ran, "hot", "--json").stdout)) > 50
    assert json.loads(weft("results", ran, "prices", "--json").stdout) == []


def test_init_overwrites_nothing(ran: Path) -> None:
    result = weft("init", ran)
    assert result.exit_code == 1
    assert "not empty; nothing was written" in result.stderr


def test_check_tells_all_errors_with_their_places(tmp_path: Path, spark: SparkSession) -> None:
    folder = project(
        tmp_path,
        column="SELECT auction, MAX(prize) AS p\nFROM bids GROUP BY window(ts, '1 minute'), auction",
        stream="SELECT COUNT(*) AS n FROM bidz GROUP BY window(ts, '1 minute')",
        several=f"-- name: fine\n{PER_MINUTE};\n-- name: broken\nSELECT 1 +\nFROM bids",
        empty="SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '0 seconds')",
        alone="SELECT COLLECT_LIST(auction) AS a FROM bids GROUP BY window(ts, '1 minute')",
    )
    result = weft("check", folder)
    assert result.exit_code == 1
    found = result.stdout.splitlines()
    assert len(found) == 4
    assert found[0].startswith("queries/column.sql:1:21: [UNKNOWN_COLUMN] query 'column': 'prize'")
    assert found[1].startswith("queries/empty.sql:1:") and "[BAD_WINDOW]" in found[1]
    assert found[2].startswith("queries/several.sql:") and "query 'broken'" in found[2]
    assert int(found[2].split(":")[1]) >= 4
    assert found[3].startswith("queries/stream.sql:1:27: [UNKNOWN_STREAM] query 'stream': ")
    verdict = json.loads(weft("check", folder, "--json").stdout)
    assert not verdict["ok"]
    assert verdict["shared"] == ["fine"]
    assert [each["query"] for each in verdict["fallbacks"]] == ["alone"]
    run = weft("run", folder, "--available-now")
    assert run.exit_code == 1
    assert [line for line in run.stderr.splitlines() if not line.endswith(" …")] == found
    assert weft("list", folder).stdout.count("new") == 6


def test_a_source_that_cannot_be_opened_is_told_at_its_place(
    tmp_path: Path, spark: SparkSession
) -> None:
    yaml = YAML.replace("path: data", "path: nowhere").replace("BIGINT, ts", "BIGGINT, ts")
    result = weft("check", project(tmp_path, yaml, q=PER_MINUTE))
    assert result.exit_code == 1
    assert result.stdout.startswith("weft.yaml:3:3: [PROJECT] Spark cannot open 'bids': ")
    late = YAML.replace("time: ts", "time: price")
    result = weft("check", project(tmp_path, late))
    assert result.stdout.startswith("weft.yaml:3:3: [TIME_COLUMN] the event time of stream 'bids'")


def test_a_fallback_runs_beside_and_a_folder_of_its_own_takes_the_results(
    tmp_path: Path, spark: SparkSession
) -> None:
    alone = "SELECT COLLECT_SET(auction) AS a FROM bids GROUP BY window(ts, '1 minute')"
    folder = project(tmp_path, YAML + "sink: {parquet: out}\n", first=PER_MINUTE, alone=alone)
    put_bids(folder)
    result = weft("run", folder, "--available-now")
    assert result.exit_code == 0, result.output
    assert list((folder / "out").glob("*/*.parquet"))
    first = json.loads(weft("results", folder, "first", "--json").stdout)
    assert len(first) == 3 * 3
    assert {row["n"] for row in first} == {1}
    sets = json.loads(weft("results", folder, "alone", "--json").stdout)
    assert [sorted(row["a"]) for row in sets] == [[0, 1, 2]] * 3
    explained = weft("explain", folder).stdout
    assert "1 query runs by itself, as plain Spark (fallback)" in explained
    assert "alone  on bids: collect_set has no partial form" in explained
    (folder / "weft.yaml").write_text(YAML + "sink: console\n")
    refused = weft("results", folder, "first")
    assert refused.exit_code == 1
    assert "[NO_RESULTS] the results of 'first' went to the sink console" in refused.stderr


def test_windows_of_rows_are_queries_like_others(tmp_path: Path, spark: SparkSession) -> None:
    """Twelve rows are before the last watermark: 0…10 and 11, of which 12 make three windows."""
    sql = "SELECT window.start, SUM(price) AS total FROM bids [RANGE 8 ROWS SLIDE 4 ROWS]"
    pairs = "SELECT x.price AS p, y.price AS q FROM bids x, bids y WHERE x.auction = y.auction AND x.ts = y.ts"
    in_lanes = f"{YAML}settings: {{kernel: lanes, lanes: [2, 1]}}\n"
    joined = (
        "SELECT x.auction, COUNT(*) AS n FROM bids AS x [WINDOW 1 MINUTE], bids AS y [WINDOW 1 MINUTE] "
        "WHERE x.auction = y.auction GROUP BY x.auction EVERY 1 MINUTE"
    )
    queries = {"rows": sql, "minutes": PER_MINUTE, "pairs": pairs, "joined": joined}
    folder = project(tmp_path, in_lanes, **queries)
    put_bids(folder)
    assert "4 queries are shared" in weft("check", folder).stdout
    ran = weft("run", folder, "--available-now")
    assert ran.exit_code == 0, ran.output
    assert re.search(r"bids@rows batch \d: 12 rows", ran.stdout)
    assert "12 rows numbered" in ran.stdout
    prices = [10 * auction + minute for minute in range(5) for auction in range(3)]
    found = json.loads(weft("results", folder, "rows", "--json").stdout)
    assert found == [
        {"start": start, "total": sum(prices[max(start, 0) : start + 8])} for start in (-4, 0, 4)
    ]
    listed = {
        row["name"]: row["status"] for row in json.loads(weft("list", folder, "--json").stdout)
    }
    assert listed == dict.fromkeys(queries, "active")
    document = json.loads(weft("explain", folder, "--analyze", "--json").stdout)
    times, rows = document["streams"]
    assert (times["stream"], rows["stream"]) == ("bids", "bids@rows")
    assert rows["queries"][0]["window"]["text"] == "8 rows every 4 rows"
    assert (rows["unit"], rows["measured"]["rows"], rows["measured"]["results"]) == ("row", 12, 3)
    analyzed = weft("explain", folder, "--analyze").stdout
    assert "watermark   row 12" in analyzed
    assert analyzed.count("lanes       seconds in each: ") == 4
    (aggregations,) = document["aggregation_joins"]
    assert (aggregations["query"], len(aggregations["lane_costs"])) == ("joined", 2)
    alone = weft("explain", folder, "--analyze", "--query", "joined").stdout
    assert alone.startswith("aggregation join joined: plan ") and "2 lanes, µs per instant" in alone
    explained = weft("explain", folder).stdout
    assert "rows of bids, numbered" in explained
    assert "2 lanes, ms of work per second in each: " in explained
    assert "2 lanes, ms of work per million rows in each: " in explained
    network = document["network"]
    for kind, cost in (
        (times, "seconds_per_second"),
        (rows, "seconds_per_second"),
        (network, "rows"),
    ):
        heavy, light = (lane[cost] for lane in kind["lanes"])
        assert heavy >= light > 0 or kind is rows, "row windows without keys are one unit"
        assert len(kind["measured"]["lane_seconds"]) == 2 and sum(kind["measured"]["lane_seconds"])
    assert network["lanes"][0]["rows"] == pytest.approx(2 * network["lanes"][1]["rows"])


def test_registering_before_the_first_run_opens_the_source(
    tmp_path: Path, spark: SparkSession
) -> None:
    folder = project(tmp_path)
    sql = tmp_path / "mine.sql"
    sql.write_text(PER_MINUTE)
    assert weft("register", folder, "mine", sql).stdout == "registered mine\n"
    assert (folder / "queries" / "mine.sql").exists()
    (row,) = json.loads(weft("list", folder, "--json").stdout)
    assert (row["name"], row["status"]) == ("mine", "active")
    assert weft("explain", folder, "--analyze").exit_code == 1
    assert json.loads(weft("results", folder, "mine", "--json").stdout) == []
    (folder / "weft.yaml").write_text(YAML.replace("name: tests", "name: others"))
    foreign = weft("list", folder)
    assert foreign.exit_code == 1
    assert "[FOREIGN_CHECKPOINT]" in foreign.stderr
