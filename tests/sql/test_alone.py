"""Queries that run alone, on Spark: what they read, what Spark refuses, what the session changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.cli.support import YAML, project
from tests.cli.support import weft as weft_command
from tests.oracle.plain_spark import python_rows
from tests.review.support import put, put_rows, read, rows_of
from tests.support.harness import session

import weft
from weft.runtime.level1.signatures import own_name

WINDOW = "GROUP BY window(ts, '10 seconds')"
PRICES = [[(1, "a", 1), (3, "b", 2)], [(12, "a", 7), (14, "a", 9)], [(25, "b", 4)], [(60, "a", 1)]]


def streams(spark: SparkSession, folder: Path, **settings: Any) -> weft.Weft:
    """Three streams and a table; `quiet` has no rows at all."""
    for number, rows in enumerate(PRICES):
        put_rows(folder / "bids", number, rows)
        put_rows(folder / "clicks", number, rows[:1])
    w = weft.Weft(spark, folder / "checkpoint", **settings)
    w.add_stream("Bids", read(spark, folder / "bids"), time="ts", watermark="0 seconds")
    w.add_stream("clicks", read(spark, folder / "clicks"), time="ts", watermark="5 seconds")
    w.add_stream("quiet", read(spark, folder / "quiet"), time="ts", watermark="5 seconds")
    w.add_table(
        "people", spark.createDataFrame([("a", "Ann"), ("b", "Bob")], "k string, name string")
    )
    return w


ALONE = {
    "median": f"SELECT window.start AS at, median(v) AS m FROM bids {WINDOW}",
    "defined": "WITH bids AS (SELECT ts, v + 1 AS w FROM BIDS), people AS (SELECT 1) "
    "SELECT median(clicks.w) AS quiet FROM `bids` AS clicks GROUP BY window(clicks.ts, '10 seconds'); "
    "-- the end",
    "joined": "SELECT name, collect_list(v) AS vs FROM Bids b JOIN people USING (k) "
    "WHERE k IN (SELECT k FROM people) GROUP BY window(b.ts, '10 seconds'), name",
}


def test_a_windowed_fallback_emits_what_it_emits_without_other_streams(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A stream that is defined and not read would freeze the watermark: no rows, no error."""
    own_session = session(spark)
    w = streams(own_session, tmp_path)
    for name, sql in ALONE.items():
        assert w.register(name, sql).status == "fallback"
    w.start(availableNow=True).awaitTermination()
    plain = spark.newSession()
    plain.conf.set("spark.sql.shuffle.partitions", "1")
    bids = read(plain, tmp_path / "bids").withWatermark("ts", "0 seconds")
    bids.createTempView("bids")
    people = plain.createDataFrame([("a", "Ann"), ("b", "Bob")], "k string, name string")
    people.createTempView("people")
    for name, sql in ALONE.items():
        alone = plain.sql(sql.split(";")[0])
        rows = plain_rows(alone, name)
        assert len(rows) >= 3, name
        assert rows_of(w, name) == rows, name


def plain_rows(frame: DataFrame, name: str) -> list[tuple[Any, ...]]:
    frame.writeStream.format("memory").queryName(name).trigger(
        availableNow=True
    ).start().awaitTermination()
    return sorted(python_rows(frame.sparkSession.table(name).toArrow()), key=str)


REFUSED = {
    f"SELECT k, median(v) AS m FROM bids {WINDOW}, k ORDER BY m DESC LIMIT 3": "Sorting is not supported",
    "SELECT k FROM bids ORDER BY k": "Sorting is not supported",
    f"SELECT DISTINCT median(v) FROM bids {WINDOW}, k": "append. This output mode is not supported",
    f"SELECT collect_set(k), count(DISTINCT k) FROM bids {WINDOW}": "Distinct aggregations are not supported",
    "SELECT b.k FROM bids b LEFT JOIN clicks c ON b.k = c.k": "without a watermark in the join keys",
    "SELECT k FROM bids WHERE v > (SELECT max(v) FROM clicks)": "not allowed in subquery",
    "SELECT nope(v) AS n FROM bids": "nope",
}
ACCEPTED = [
    "SELECT DISTINCT window(ts, '10 seconds') AS w FROM bids",
    f"SELECT collect_set(k) AS ks FROM bids {WINDOW}",
    "SELECT b.k FROM bids b LEFT JOIN clicks c ON b.k = c.k AND c.ts BETWEEN b.ts AND "
    "b.ts + INTERVAL 10 SECONDS",
]


def test_spark_s_streaming_rules_are_applied_when_a_query_is_registered(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own_session = session(spark)
    w = streams(own_session, tmp_path)
    capfd.readouterr()
    for sql, sentence in REFUSED.items():
        with pytest.raises(weft.SqlError) as refused:
            w.register("q", sql)
        assert refused.value.error_class == "INVALID_QUERY", sql
        message = str(refused.value)
        assert sentence in message, sql
        assert len(message) < 600 and "\n" not in message, sql
    assert w.queries == []
    for number, sql in enumerate(ACCEPTED):
        assert w.register(f"q{number}", sql).status == "fallback", sql
    assert own_session.streams.active == []
    assert capfd.readouterr().err == ""
    w.start(availableNow=True).awaitTermination()
    assert [query.status for query in w.queries] == ["fallback"] * len(ACCEPTED)


def test_why_what_instead_and_what_it_costs(spark: SparkSession, tmp_path: Path) -> None:
    w = streams(session(spark), tmp_path)
    sql = "SELECT median(v) AS m FROM bids GROUP BY window(ts, '1 minute', '1 second')"
    detail = (
        "median has no partial form; approx_percentile(x, p) is shared. Alone it costs its own scan "
        "of Bids and its own state; Spark copies each row 60 times (range / slide)"
    )
    assert w.register("m", sql).detail == detail
    assert detail in " ".join(str(w.explain()).split())


@contextmanager
def setting(own_session: SparkSession, key: str, value: str) -> Iterator[None]:
    """The session stays the active one of the thread, so others would parse types with it."""
    own_session.conf.set(key, value)
    try:
        yield
    finally:
        own_session.conf.unset(key)


CHANGED = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.groupByAliases": "false",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    "spark.sql.legacy.statisticalAggregate": "true",
    "spark.sql.legacy.ctePrecedencePolicy": "LEGACY",
    "spark.sql.legacy.interval.enabled": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "false",
    "spark.sql.ansi.relationPrecedence": "true",
}


def test_settings_that_change_the_meaning_of_sql_are_refused_by_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark)
    w = streams(own_session, tmp_path)
    w.register("before", f"SELECT count(*) AS n FROM bids {WINDOW}")
    changes = (lambda: w.register("q", "SELECT k FROM bids"), lambda: w.start(availableNow=True))
    for key, value in CHANGED.items():
        for change in changes:
            with setting(own_session, key, value), pytest.raises(weft.WeftError) as refused:
                change()
            assert refused.value.error_class == "SESSION_SETTING"
            assert f"{key}={value}" in refused.value.message
    assert [(query.name, query.status) for query in w.queries] == [("before", "active")]


def test_changes_as_one_are_read_by_one_session(spark: SparkSession, tmp_path: Path) -> None:
    own_session = session(spark)
    w = streams(own_session, tmp_path)
    with setting(own_session, "spark.sql.ansi.enabled", "false"), w.changes():
        w.register("before", "SELECT k FROM bids")

    def changed_amid() -> None:
        with w.changes():
            w.register("one", "SELECT k FROM bids")
            own_session.conf.set("spark.sql.ansi.enabled", "false")

    with pytest.raises(weft.WeftError) as refused:
        changed_amid()
    assert refused.value.error_class == "SESSION_SETTING"
    own_session.conf.set("spark.sql.ansi.enabled", "true")
    assert [query.name for query in w.queries] == ["before"]
    with setting(own_session, "spark.sql.caseSensitive", "true"), w.changes():
        w.drop("before")
    assert w.queries == []


def test_double_quotes_hold_names_where_the_session_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark, spark_settings={"spark.sql.ansi.doubleQuotedIdentifiers": "true"})
    w = streams(own_session, tmp_path)
    w.register(
        "shared", f'SELECT "k", count("v") AS "n" FROM "bids" WHERE "k" = \'a\' {WINDOW}, "k"'
    )
    w.register("alone", f'SELECT "k", median("v") AS "m" FROM "bids" {WINDOW}, "k"')
    assert [query.status for query in w.queries] == ["active", "fallback"]
    w.start(availableNow=True).awaitTermination()
    assert rows_of(w, "shared") == [("a", 1), ("a", 2)]
    assert rows_of(w, "alone") == [("a", 1.0), ("a", 8.0), ("b", 2.0), ("b", 4.0)]


def test_reserved_keywords_may_be_enforced(spark: SparkSession, tmp_path: Path) -> None:
    own_session = session(spark, spark_settings={"spark.sql.ansi.enforceReservedKeywords": "true"})
    w = streams(own_session, tmp_path)
    w.register(
        "q",
        f"SELECT left(k, 1) AS l, stddev(v + 0.5D) AS s FROM bids {WINDOW}, k HAVING count(*) > 1",
    )
    w.start(availableNow=True).awaitTermination()
    assert [row[0] for row in rows_of(w, "q")] == ["a"]


def test_columns_that_differ_in_case_only(spark: SparkSession, tmp_path: Path) -> None:
    own_session = session(spark)
    w = weft.Weft(own_session, tmp_path / "checkpoint")
    with setting(own_session, "spark.sql.caseSensitive", "true"):
        frame = read(own_session, tmp_path / "in", "ts timestamp, a int, A int")
        with pytest.raises(weft.CatalogError) as refused:
            w.add_stream("s", frame, "ts", "0 seconds")
    assert refused.value.error_class == "DUPLICATE_COLUMN"
    assert "'a' and 'A'" in refused.value.message


def test_columns_with_a_name_of_weft_s_own(spark: SparkSession, tmp_path: Path) -> None:
    own_session = session(spark)
    frame = read(own_session, tmp_path / "in", f"ts timestamp, {own_name('S0').upper()} int")
    with pytest.raises(weft.CatalogError) as refused:
        weft.Weft(own_session, tmp_path / "checkpoint").add_stream("s", frame, "ts", "0 seconds")
    assert refused.value.error_class == "RESERVED_COLUMN"


def test_result_names_that_stand_twice(spark: SparkSession, tmp_path: Path) -> None:
    w = streams(session(spark), tmp_path)
    for sql in (
        "SELECT k, v AS K FROM bids",
        "SELECT * FROM bids b JOIN people p ON b.k = p.k",
        f"SELECT count(*) AS n, max(v) AS n FROM bids {WINDOW}",
    ):
        with pytest.raises(weft.SqlError) as refused:
            w.register("q", sql)
        assert refused.value.error_class == "DUPLICATE_COLUMN"
        assert "give one of them an alias" in refused.value.message


def test_unsafe_queries_need_the_setting(spark: SparkSession, tmp_path: Path) -> None:
    own_session = session(spark)
    put(tmp_path / "secret", 0, {"k": ["a"]}, pa.schema([("k", pa.string())]))
    unsafe = [
        "SELECT reflect('java.lang.Math', 'abs', v) AS a FROM bids",
        f"SELECT b.k FROM bids b JOIN parquet.`{tmp_path / 'secret'}` f ON b.k = f.k",
    ]
    w = streams(own_session, tmp_path / "strict")
    for sql in unsafe:
        with pytest.raises(weft.SqlError) as refused:
            w.register("q", sql)
        assert refused.value.error_class == "UNSAFE_SQL"
        assert (refused.value.line, refused.value.query) == (1, "q")
    own_session.createDataFrame([("a",)], "k string").createOrReplaceGlobalTempView("weft_known")
    w.register("known", "SELECT b.k FROM bids b JOIN global_temp.weft_known f ON b.k = f.k")
    allowed = streams(own_session, tmp_path / "allowed", allow_unsafe_sql=True)
    for number, sql in enumerate(unsafe):
        assert allowed.register(f"q{number}", sql).status == "fallback"
    allowed.start(availableNow=True).awaitTermination()
    assert rows_of(allowed, "q0") == [("1",), ("1",), ("2",), ("4",), ("7",), ("9",)]
    assert rows_of(allowed, "q1") == [("a",)] * 4


def test_weft_check_tells_what_spark_would_refuse_and_what_runs_alone(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    minute = "FROM bids GROUP BY window(ts, '1 minute')"
    top = f"SELECT auction, median(price) AS m {minute}, auction ORDER BY m LIMIT 3"
    folder = project(tmp_path, good=f"SELECT median(price) AS m {minute}", top=top)
    refused = weft_command("check", folder)
    assert refused.exit_code == 1
    (line,) = refused.stdout.splitlines()
    assert "top.sql" in line and "Sorting is not supported" in line and len(line) < 600
    (folder / "queries" / "top.sql").unlink()
    accepted = weft_command("check", folder)
    assert accepted.exit_code == 0
    assert "0 queries are shared, 1 runs alone" in accepted.stdout
    assert (
        "approx_percentile(x, p) is shared. Alone it costs its own scan of bids" in accepted.stdout
    )
    assert "JVM stacktrace" not in capfd.readouterr().err
    unsafe = folder / "queries" / "unsafe.sql"
    unsafe.write_text("SELECT reflect('java.lang.Math', 'abs', price) AS a FROM bids")
    assert "[UNSAFE_SQL]" in weft_command("check", folder).stdout
    (folder / "weft.yaml").write_text(YAML + "settings: {allow_unsafe_sql: true}\n")
    assert "2 run alone" in weft_command("check", folder).stdout
