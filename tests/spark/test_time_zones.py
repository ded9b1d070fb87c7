"""Timestamps without a zone stay what they are, in every time zone and on every way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.oracle.plain_spark import python_rows
from tests.review.support import START, put
from tests.support import seeds
from tests.support.harness import session

import weft
from weft.runtime.frames import frame_of

SECOND = 1_000_000
ZONES = ["UTC", "Asia/Kolkata", "America/New_York", "Pacific/Apia"]
AWAY = seeds.some(__name__, ZONES[1:], 1)
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("nt", pa.timestamp("us")),
        ("x", pa.float64()),
        ("until", pa.timestamp("us", tz="UTC")),
    ]
)
COLUMNS = "ts timestamp, nt timestamp_ntz, x double, until timestamp"
FAR = [253_402_214_400 * SECOND, -11_676_096_000 * SECOND, 9_300_000_000 * SECOND]
"""Times of the years 9999, 1600 and 2264, which do not fit into 64 bits of nanoseconds."""
QUERIES = {
    "key": "SELECT nt, round(avg(x), 1) AS r FROM s GROUP BY window(ts, '10 seconds'), nt",
    "value": "SELECT round(sum(x), 1) AS r, max(nt) AS latest, min(ts) AS first FROM s "
    "GROUP BY window(ts, '10 seconds')",
    "plain": "SELECT nt, max(nt) AS latest, window.end AS e, count(*) AS n FROM s "
    "GROUP BY window(ts, '10 seconds'), nt",
    "shown": "SELECT date_format(nt, 'HH:mm') AS t, nt, count(*) AS n FROM s "
    "GROUP BY window(ts, '10 seconds'), nt",
    "filtered": "SELECT nt, ts, x, cast(nt AS date) AS d FROM s WHERE x < 1000",
    "local": "SELECT date_format(ts, 'yyyy-MM-dd HH:mm') AS t, hour(until) AS h, until, "
    "date_format(nt, 'HH:mm') AS n FROM s WHERE x < 1000",
    "paired": "SELECT date_format(a.until, 'yyyy-MM-dd HH:mm') AS t, b.until, a.ts, a.nt "
    "FROM s a JOIN s b ON a.x = b.x AND a.until = b.until AND a.ts = b.ts WHERE a.x < 1000",
    "days": "SELECT x, to_date(until) AS d FROM s WHERE x < 1000 AND until > DATE '1600-01-01' "
    "AND until < DATE '9999-12-30' + INTERVAL 1 DAY AND to_date(ts) >= DATE '2000-01-01'",
    "ends": "SELECT date_format(until, 'yyyy-MM-dd HH:mm') AS t, until, count(*) AS n FROM s "
    "GROUP BY window(ts, '10 seconds'), until",
    "alone": "SELECT nt, ts, transform(array(x), v -> v)[0] AS x, cast(nt AS date) AS d FROM s "
    "WHERE x < 1000",
}


def write_input(folder: Path) -> None:
    """Two batches; the second ends the windows of the first. Local times fall into an hour that
    does not exist, or exists twice, where clocks change."""
    local = [1_710_036_000 + hour * 3600 for hour in range(6)]
    first = {
        "ts": [START + i * SECOND for i in range(6)],
        "nt": [time * SECOND + 123_456 for time in local],
        "x": [i + 0.25 for i in range(6)],
        "until": [*FAR, START, None, START + 1],
    }
    put(folder, 0, first, SCHEMA)
    late: dict[str, list[Any]] = {
        "ts": [START + 100 * SECOND],
        "nt": [0],
        "x": [5000.0],
        "until": [None],
    }
    put(folder, 1, late, SCHEMA)


def ran(
    spark: SparkSession, folder: Path, zone: str, sink: Any, **settings: Any
) -> tuple[SparkSession, weft.Weft]:
    own_session = session(spark)
    own_session.conf.set("spark.sql.session.timeZone", zone)
    write_input(folder / "input")
    frame = own_session.readStream.schema(COLUMNS)
    frame = frame.option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))
    w = weft.Weft(own_session, folder / "checkpoint", **settings)
    w.add_stream("s", frame, time="ts", watermark="0 seconds")
    for name, sql in QUERIES.items():
        w.register(name, sql)
    assert w.query("key").status == "active" and w.query("alone").status == "fallback"
    w.start(sink=sink, availableNow=True).awaitTermination()
    return own_session, w


def oracle(own_session: SparkSession, folder: Path) -> dict[str, Any]:
    """Plain Spark over the rows of the first batch."""
    rows = own_session.read.schema(COLUMNS)
    rows.parquet(str(folder / "input" / "00000.parquet")).createOrReplaceTempView("s")
    return {name: own_session.sql(sql) for name, sql in QUERIES.items()}


def by_text(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=str)


def assert_as_plain_spark(frames: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, frame in frames.items():
        assert frame.dtypes == wanted[name].dtypes, name
        rows = by_text(python_rows(frame.toArrow()))
        assert rows == by_text(python_rows(wanted[name].toArrow())), name


@pytest.mark.parametrize("zone", seeds.some(__name__, ZONES, 2))
def test_results_in_the_store(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    own_session, w = ran(spark, tmp_path, zone, None)
    assert_as_plain_spark(
        {name: w.results(name) for name in QUERIES}, oracle(own_session, tmp_path)
    )
    assert_files_tell_instants_from_local_times(tmp_path)


def assert_files_tell_instants_from_local_times(folder: Path) -> None:
    """Spark's own default would write an instant of a fallback as a type that others read without a
    zone."""
    files = (folder / "checkpoint/results/fallback").rglob("*.parquet")
    schemas = (pq.read_schema(path) for path in files)
    schema = next(schema for schema in schemas if "c3" in schema.names)  # of `alone`
    assert schema.field("c0").type == pa.timestamp("us")
    assert schema.field("c1").type == pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize("zone", AWAY)
def test_results_in_memory(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    own_session, w = ran(spark, tmp_path, zone, weft.sinks.memory())
    assert_as_plain_spark(
        {name: w.results(name) for name in QUERIES}, oracle(own_session, tmp_path)
    )


def test_results_of_lanes(spark: SparkSession, tmp_path: Path) -> None:
    own_session, w = ran(spark, tmp_path, "Asia/Kolkata", None, kernel="lanes")
    assert_as_plain_spark(
        {name: w.results(name) for name in QUERIES}, oracle(own_session, tmp_path)
    )


@pytest.mark.parametrize("zone", AWAY)
def test_the_spark_sink(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    out = str(tmp_path / "out" / "{query}")
    own_session, _ = ran(spark, tmp_path, zone, weft.sinks.spark("parquet", path=out))
    frames = {
        name: own_session.read.parquet(str(tmp_path / "out" / name)).drop(
            "weft_batch", "weft_query", "weft_seq"
        )
        for name in QUERIES
    }
    assert_as_plain_spark(frames, oracle(own_session, tmp_path))


@pytest.mark.parametrize("zone", AWAY)
def test_callbacks_get_the_same_instants_and_local_times(
    spark: SparkSession, tmp_path: Path, zone: str
) -> None:
    given: dict[str, list[tuple[Any, ...]]] = {name: [] for name in QUERIES}
    sink = weft.sinks.callback(lambda name, table, _: given[name].extend(python_rows(table)))
    own_session, _ = ran(spark, tmp_path, zone, sink)
    wanted = oracle(own_session, tmp_path)
    for name, rows in given.items():
        assert by_text(rows) == by_text(python_rows(wanted[name].toArrow())), name


def test_nested_times_keep_their_types(spark: SparkSession) -> None:
    own_session = session(spark)
    own_session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    local, instant = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
    table = pa.table(
        {
            "list": pa.array([[1, 2]], pa.list_(local)),
            "row": pa.array([{"a": 1, "b": 2}], pa.struct([("a", local), ("b", instant)])),
        }
    )
    frame = frame_of(own_session, table)
    assert dict(frame.dtypes) == {
        "list": "array<timestamp_ntz>",
        "row": "struct<a:timestamp_ntz,b:timestamp>",
    }
    texts = frame.selectExpr("cast(list[0] AS string)", "cast(row.a AS string)").first()
    assert texts is not None and [*texts] == ["1970-01-01 00:00:00.000001"] * 2
