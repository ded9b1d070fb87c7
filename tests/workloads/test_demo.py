"""The demo's queries are many, different, seeded, and plain Spark SQL."""

from __future__ import annotations

from pyspark.sql import SparkSession

from weft.workloads.bids import bids
from weft.workloads.demo import queries


def test_more_than_200_different_queries_that_repeat() -> None:
    generated = queries()
    assert len(generated) >= 200
    assert (
        len({name for name, _ in generated}) == len({sql for _, sql in generated}) == len(generated)
    )
    assert generated == queries()
    assert generated != queries(seed=2)


def test_queries_differ_in_windows_predicates_keys_and_having() -> None:
    texts = [sql for _, sql in queries()]
    windows = {sql[sql.index("window(") :].split(")")[0] for sql in texts}
    assert len(windows) > 100
    for key in ("auction", "bidder", "channel"):
        assert any(f"), {key}" in sql for sql in texts)
    assert any("HAVING" in sql for sql in texts)
    assert any("HAVING" not in sql for sql in texts)


def test_spark_accepts_every_query(spark: SparkSession) -> None:
    session = spark.newSession()
    bids(session.range(0)).createOrReplaceTempView("bids")
    for _, sql in queries(count=24):
        assert session.sql(sql).columns[0] == "start"
