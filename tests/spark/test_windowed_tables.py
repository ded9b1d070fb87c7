"""Windowed aggregates over a stream joined with tables, against plain Spark and DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.crash.simulated import dying
from tests.oracle import compare, plain_spark
from tests.support.harness import Recorder, session
from tests.support.windowed_tables import (
    CHANGED,
    CITIES,
    COLOURS,
    DELAY,
    FIRST,
    SCHEMA,
    SECOND,
    SHOPS,
    WINDOW,
    answer,
    some_batches,
)

import weft

QUERIES = {
    "inner": "SELECT c.name, window.start AS w, sum(s.x) AS total, count(*) AS n FROM s "
    f"JOIN colours c ON s.s = c.code GROUP BY {WINDOW}, c.name",
    "left": "SELECT c.name, c.rank, window.start AS w, sum(s.x) AS total FROM s LEFT JOIN colours c "
    f"ON s.s = c.code AND c.rank > 1 WHERE s.x > 3 GROUP BY {WINDOW}, c.name, c.rank",
    "same_left": "SELECT c.rank, window.start AS w, max(s.x) AS m FROM s LEFT JOIN colours c "
    f"ON c.code = s.s AND 1 < c.rank GROUP BY {WINDOW}, c.rank HAVING count(*) > 1",
    "snowflake": "SELECT h.city, window.start AS w, count(DISTINCT c.name) AS names, "
    "sum(s.x) FILTER (WHERE c.rank > 2) AS high FROM s LEFT JOIN colours c ON s.s = c.code "
    f"LEFT JOIN shops h ON c.shop = h.id GROUP BY {WINDOW}, h.city HAVING sum(s.x) > 10",
    "no_member": "SELECT s.k, window.start AS w, count(*) AS n FROM s WHERE s.s NOT IN "
    f"(SELECT code FROM colours WHERE rank < 5) GROUP BY {WINDOW}, s.k",
    "alone": f"SELECT s.k, window.start AS w, sum(s.x) AS total FROM s GROUP BY {WINDOW}, s.k",
}
PLAIN = ("left",)


def write(folder: Path, batches: Sequence[Sequence[Mapping[str, Any]]]) -> None:
    plain_spark.write_batches(folder / "input", SCHEMA, batches)


def opened(
    spark: SparkSession,
    folder: Path,
    colours: Iterable[tuple[Any, ...]],
    shops: str = SHOPS,
    **settings: Any,
) -> weft.Weft:
    source = spark.readStream.schema(plain_spark.ddl(SCHEMA)).option("maxFilesPerTrigger", 1)
    w = weft.Weft(spark, folder / "checkpoint", **settings)
    w.add_stream("s", source.parquet(str(folder / "input")), time="ts", watermark="5 seconds")
    w.add_table("colours", spark.createDataFrame(list(colours), COLOURS))
    w.add_table("shops", spark.createDataFrame(CITIES, shops))
    return w


def register(w: weft.Weft, queries: Mapping[str, str]) -> None:
    with w.changes():
        for name, sql in queries.items():
            handle = w.register(name, sql)
            assert handle.status == "active", (name, handle.detail)


def test_results_are_those_of_plain_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Inner, left, a mark, a table behind a table, and none; some queries share a lookup."""
    batches = some_batches(2)
    write(tmp_path, batches)
    recorder = Recorder()
    with opened(session(spark), tmp_path, FIRST) as w:
        register(w, QUERIES)
        w.start(sink=recorder, availableNow=True).awaitTermination()
        text = str(w.explain())
        last = w._log("s").last()
    assert last is not None
    assert (last.metrics["rows"], last.metrics["null_times"]) == (30, 2)
    assert last.metrics["late_rows"] == 1, "it has two matches: rows are counted before any lookup"
    assert "tables      left join colours on s = colours.code AND colours.rank >= 2" in text
    assert text.count("left join colours on s = colours.code AND colours.rank >= 2") == 2
    for name, sql in QUERIES.items():
        expected = answer(sql, batches)
        assert expected, name
        compare.assert_same(recorder.rows.get(name, []), expected)
    for name in PLAIN:
        output = plain_spark.run(
            spark,
            QUERIES[name],
            SCHEMA,
            batches,
            DELAY,
            directory=tmp_path / name,
            tables={"colours": (COLOURS, FIRST)},
            settings=plain_spark.INTERPRETED,
        )
        compare.assert_same(recorder.rows[name], output.rows)


def test_days_are_those_of_the_sessions_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    """The stream's times are compared with a table's days and times, in lanes. A second query fails on its
    rows and is quarantined, which does not disturb the first."""
    zone = {"spark.sql.session.timeZone": "Asia/Kolkata"}
    own_session = session(spark)
    own_session.conf.set(*next(iter(zone.items())))
    day = 18 * 3600 * SECOND + 29 * 60 * SECOND  # a minute before midnight in Kolkata
    rows = [
        {"ts": day + place * 20 * SECOND, "id": place, "k": place % 2, "s": "x1", "x": place}
        for place in range(8)
    ]
    batches = [rows, [{**rows[0], "ts": day + 3600 * SECOND}]]
    write(tmp_path, batches)
    days = "day string, since string, label string"
    known = [
        ("1970-01-01", "1970-01-01 23:59:30", "old"),
        ("1970-01-02", "1970-01-02 00:00:20", "new"),
    ]
    sql = (
        "SELECT d.label, window.start AS w, count(*) AS n, min(d.since) AS since FROM s JOIN days d "
        "ON cast(s.ts AS date) = d.day AND s.ts >= d.since GROUP BY window(s.ts, '1 minute'), d.label"
    )
    select = "SELECT cast(day AS date) AS day, cast(since AS timestamp) AS since, label FROM"
    recorder = Recorder()
    with weft.Weft(own_session, tmp_path / "checkpoint", kernel="lanes", lanes=2) as w:
        source = own_session.readStream.schema(plain_spark.ddl(SCHEMA)).parquet(f"{tmp_path}/input")
        w.add_stream("s", source, time="ts", watermark="5 seconds")
        own_session.createDataFrame(known, days).createOrReplaceTempView("known")
        w.add_table("days", own_session.sql(f"{select} known"))
        register(
            w,
            {"q": sql, "fails": sql.replace("count(*)", "sum(10 DIV (s.x - length(d.label) - 1))")},
        )
        w.start(sink=recorder, availableNow=True).awaitTermination()
        assert w.query("fails").status == "quarantined"
        assert "DIVIDE_BY_ZERO" in w.query("fails").detail
    text = f"WITH days AS ({select} known) {sql}"
    output = plain_spark.run(
        spark,
        text,
        SCHEMA,
        batches,
        DELAY,
        directory=tmp_path / "plain",
        tables={"known": (days, known)},
        settings={**zone, **plain_spark.INTERPRETED},
    )
    assert {row[0] for _, row in output.rows} == {"old", "new"}
    compare.assert_same(recorder.rows["q"], output.rows, batch_ids=False)


def test_a_changed_table_is_seen_by_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    """The run ends after the second batch's rows are read. The table changes. The next run finishes that batch with
    the old contents, and joins the others with the new ones; what was aggregated before stays. A filter
    reads the table, too: neither engine deletes contents that the other still needs. A query whose column is
    gone from its table is quarantined when the new contents are used."""
    names = ("inner", "left")
    queries = {name: QUERIES[name] for name in names}
    queries["gone"] = (
        f"SELECT h.city, count(*) AS n FROM s JOIN shops h ON s.k = h.id GROUP BY {WINDOW}, h.city"
    )
    queries["filter"] = "SELECT s.id, c.name FROM s JOIN colours c ON s.s = c.code"
    batches = some_batches(2)
    own_session = session(spark)
    checkpoint = tmp_path / "checkpoint"
    write(tmp_path, batches)
    intents = checkpoint / "streams" / "s" / "intents"

    def in_the_second_batch() -> bool:
        return len(list(intents.glob("*.json"))) == 2

    with dying("after_read", when=in_the_second_batch) as crash:
        w = opened(own_session, tmp_path, FIRST, overlap=False)
        register(w, queries)
        with pytest.raises(weft.WeftError):
            w.start(sink=Recorder(), availableNow=True).awaitTermination()
        w.close()
    assert crash.crashed
    assert in_the_second_batch()
    recorder = Recorder()
    later = QUERIES["inner"].replace("sum(s.x) AS total, ", "")
    with opened(own_session, tmp_path, CHANGED, shops="id int, town string") as w:
        register(w, {"later": later})
        w.start(sink=recorder, availableNow=True).awaitTermination()
        complete_from = w.query("later").complete_from
        assert w.query("gone").status == "quarantined"
        assert "city" in w.query("gone").detail
    for name in names:
        expected = answer(queries[name], batches, (FIRST, FIRST, CHANGED))
        assert expected != answer(queries[name], batches, (FIRST, CHANGED)), name
        assert expected != answer(queries[name], batches, (FIRST,)), name
        compare.assert_same(recorder.rows[name], expected)
    assert complete_from == 0, "it uses all fragments that the query with equal lookups has open"
    due = [row for row in answer(later, batches, (FIRST, FIRST, CHANGED)) if row[0] >= 2]
    compare.assert_same(recorder.rows["later"], due)
    kept = [path.name.split("-")[0] for path in (checkpoint / "tables").iterdir()]
    assert kept == ["colours"], "only the contents that the last steps used are kept"


def test_an_empty_table_hides_no_row_from_the_watermark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All queries look up an empty table, so Spark need not read the stream for them. Its rows are counted all
    the same, and a left join keeps them."""
    batches = some_batches(1)
    write(tmp_path, batches)
    queries = {"inner": QUERIES["inner"]}
    recorder = Recorder()
    with opened(session(spark), tmp_path, []) as w:
        register(w, queries)
        w.start(sink=recorder, availableNow=True).awaitTermination()
        last = w._log("s").last()
    assert last is not None
    assert (last.metrics["rows"], last.watermark) == (16, 295 * SECOND)
    assert not recorder.rows.get("inner")
