"""weft in a few lines: bids from files, three queries as one stream, their results.

Run it with the environment's Python: `.venv/bin/python examples/quickstart.py`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import weft

QUERIES = {
    "per_minute": """
        SELECT window.start AS start, COUNT(*) AS bids, AVG(price) AS mean_price
        FROM bids GROUP BY window(ts, '1 minute')""",
    "hot": """
        SELECT window.start AS start, auction, COUNT(*) AS bids
        FROM bids GROUP BY window(ts, '5 minutes', '1 minute'), auction
        HAVING COUNT(*) > 3""",
    "large": """
        SELECT auction, MAX(price) AS highest, COUNT(*) AS bids
        FROM bids WHERE price > 90 GROUP BY auction, window(ts, '2 minutes')""",
}


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as folder:
        run(spark, Path(folder))
    spark.stop()


def run(spark: SparkSession, folder: Path) -> dict[str, int]:
    """Make ten minutes of bids, run the queries on them, count the rows of each."""
    spark.range(1200).selectExpr(
        "id % 7 AS auction",
        "id * 37 % 100 AS price",
        "timestamp'2024-01-01 00:00:00' + make_dt_interval(0, 0, 0, id / 2) AS ts",
    ).write.parquet(str(folder / "bids"))
    schema = "auction BIGINT, price BIGINT, ts TIMESTAMP"
    bids = spark.readStream.schema(schema).parquet(str(folder / "bids"))

    w = weft.Weft(spark, checkpoint=folder / "checkpoint")
    w.add_stream("bids", bids, time="ts", watermark="10 seconds")
    for name, sql in QUERIES.items():
        w.register(name, sql)
    print(w.explain())

    w.start(availableNow=True).awaitTermination()
    for name in QUERIES:
        print(name)
        w.results(name).show(5, truncate=False)
    return {name: w.results(name).count() for name in QUERIES}


if __name__ == "__main__":
    main()
