"""A windowed aggregate over a join on the command line: checked, run, listed, explained and read."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from tests.cli.support import project, put_bids, weft

RAISED = """SELECT window.start, x.auction, count(*) AS n, max(y.price) AS price
FROM bids x JOIN bids y ON x.auction = y.auction AND y.price > x.price
AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 1 MINUTE GROUP BY window(x.ts, '1 minute'), x.auction"""


def test_a_windowed_aggregate_over_a_join(tmp_path: Path, spark: SparkSession) -> None:
    folder = project(tmp_path, raised=RAISED)
    put_bids(folder)
    checked = weft("check", folder)
    assert checked.exit_code == 0, checked.output
    assert "1 query is shared" in checked.stdout
    ran = weft("run", folder, "--available-now")
    assert ran.exit_code == 0, ran.output
    rows = json.loads(weft("results", folder, "raised", "--json").stdout)
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW bids AS SELECT * FROM '{folder}/data/bids.parquet'")
        expected = database.execute(
            "SELECT x.auction, count(*), max(y.price) FROM bids x JOIN bids y ON x.auction = y.auction "
            "AND y.price > x.price AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 1 MINUTE "
            "GROUP BY time_bucket(INTERVAL 1 MINUTE, x.ts), x.auction"
        ).fetchall()
    emitted = [(row["auction"], row["n"], row["price"]) for row in rows]
    assert emitted
    assert all(row in expected for row in emitted)
    (listed,) = json.loads(weft("list", folder, "--json").stdout)
    assert (listed["status"], listed["detail"]) == ("active", "over the join of bids x, bids y")
    text = " ".join(weft("explain", folder, "--analyze").stdout.split())
    assert ", the join of bids x, bids y: 1 query" in text
    assert "network: 1 query over bids" in text
    document = json.loads(weft("explain", folder, "--analyze", "--json").stdout)
    (stream,) = document["streams"]
    assert stream["measured"]["results"] == len(emitted)
    assert stream["measured"]["late_rows"] == 0
    one = weft("explain", folder, "--query", "raised").stdout
    assert "the join of bids x, bids y" in one
