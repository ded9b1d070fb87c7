"""Join queries through the whole runtime: what they emit is what DuckDB says of the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.harness import session
from tests.support.input_files import put_file

import weft

START = 1_700_000_000
MONEY = pa.decimal128(10, 2)
SCHEMA = "id bigint, a int, b bigint, s string, x double, d date, m decimal(10,2), ts timestamp"


def some_rows(first: int, end: int, *, shift: int = 0) -> pa.Table:
    """Rows with a second between them, a few NULLs and values that meet often."""
    ids = list(range(first, end))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "a": pa.array([None if i % 11 == 0 else (i + shift) % 7 for i in ids], pa.int32()),
            "b": pa.array([(i * 3 + shift) % 7 for i in ids], pa.int64()),
            "s": pa.array([None if i % 13 == 0 else f"x{i % 5}" for i in ids], pa.string()),
            "x": pa.array([float("nan") if i % 17 == 0 else i % 9 / 2 for i in ids], pa.float64()),
            "d": pa.array([19_000 + i % 30 for i in ids], pa.int32()).cast(pa.date32()),
            "m": pa.array([f"{i % 23}.{i % 4}5" for i in ids], pa.string()).cast(MONEY),
            "ts": pa.array([(START + i) * 1_000_000 for i in ids], pa.timestamp("us", tz="UTC")),
        }
    )


class Streams:
    """Two streams of files, the rows that each has had, and where a query's rows begin."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.rows: dict[str, list[pa.Table]] = {"t": [], "u": []}
        self.since: dict[str, dict[str, int]] = {}
        for name in self.rows:
            (folder / name).mkdir()

    def open(self, **settings: Any) -> weft.Weft:
        w = weft.Weft(self.spark, self.folder / "checkpoint", statistics_every=0, **settings)
        for name in self.rows:
            source = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
            frame = source.parquet(str(self.folder / name))
            w.add_stream(name, frame, time="ts", watermark="1 hour")
        return w

    def add(self, name: str, table: pa.Table) -> None:
        number = len(self.rows[name])
        put_file(table, self.folder / name, number)
        self.rows[name].append(table)

    def register(self, w: weft.Weft, queries: Mapping[str, str]) -> None:
        with w.changes():
            for name, sql in queries.items():
                handle = w.register(name, sql)
                assert handle.status == "active", handle.detail
                self.since[name] = {stream: len(rows) for stream, rows in self.rows.items()}

    def expected(self, name: str, sql: str) -> Counter[tuple[Any, ...]]:
        """The rows of the SQL over what has come since the query was registered."""
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            for stream, tables in self.rows.items():
                empty = some_rows(0, 0)
                chosen = pa.concat_tables([empty, *tables[self.since[name][stream] :]])
                database.register(stream, chosen)
            return Counter(map(_comparable, database.execute(sql).fetchall()))

    def check(self, w: weft.Weft, queries: Mapping[str, str]) -> int:
        """Compare all results; how many rows they have."""
        total = 0
        for name, sql in queries.items():
            emitted = w.results(name).toArrow().to_pydict().values()
            results = Counter(map(_comparable, zip(*emitted, strict=True)))
            assert results == self.expected(name, sql), name
            total += results.total()
        return total


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple("NaN" if value != value else value for value in row)


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Streams:
    return Streams(session(spark), tmp_path)


@contextmanager
def running(w: weft.Weft) -> Iterator[Any]:
    run = w.start()
    try:
        yield run
    finally:
        run.stop()


QUERIES = {
    "filter": "SELECT id, s FROM t WHERE a = 3 AND s LIKE 'x%'",
    "all_columns": "SELECT * FROM t WHERE x > 3.5 OR s IS NULL",
    "computed": "SELECT id + 1 AS next, upper(s) AS big FROM u WHERE b BETWEEN 2 AND 4",
    "pairs": "SELECT x.id AS x, y.id AS y FROM t x, t y WHERE x.b = y.a AND y.id > x.id "
    "AND y.id <= x.id + 10",
    "narrow_pairs": "SELECT x.id AS x, y.id AS y FROM t x, t y WHERE x.b = y.a AND y.id > x.id "
    "AND y.id <= x.id + 5 AND x.s = 'x1'",
    "bounded": "SELECT x.id AS x, y.id AS y FROM t x JOIN t y ON x.s = y.s WHERE y.ts > x.ts "
    "AND y.ts <= x.ts + INTERVAL 10 SECONDS",
    "two_streams": "SELECT t.id AS t, u.id AS u, u.m FROM t, u WHERE t.b = u.b AND t.s = u.s "
    "AND u.m > 0.5 * t.m AND u.d <= t.d + 3",
    "chain": "SELECT x.id AS x, y.id AS y, z.id AS z FROM t x, t y, u z WHERE x.b = y.a "
    "AND y.b = z.a AND y.id > x.id AND y.id <= x.id + 10 AND z.id > y.id AND z.id <= y.id + 8",
    "either": "SELECT x.id AS x, y.id AS y FROM t x, u y WHERE x.b = y.b "
    "AND (x.a = 2 OR y.s = 'x3') AND x.id - y.id BETWEEN -4 AND 4",
    "function": "SELECT x.id AS x, y.id AS y FROM t x, u y WHERE concat(x.s, '!') = concat(y.s, '!') "
    "AND x.b = y.b AND x.id - y.id BETWEEN -4 AND 4",
    "united": "SELECT id, s, m FROM t WHERE a = 3 UNION ALL SELECT b, upper(s), b FROM u WHERE b > 2 "
    "UNION ALL SELECT x.id, y.s, y.m FROM t x, u y WHERE x.b = y.b AND x.id - y.id BETWEEN -4 AND 4",
    "united_once": "SELECT a AS n, s FROM t UNION (SELECT b, s FROM u UNION ALL SELECT b, s FROM t)",
    "over_a_union": "WITH e AS (SELECT id, b, ts FROM t WHERE a = 2 UNION ALL SELECT id, b + 1, ts FROM u) "
    "SELECT p.id AS p, q.id AS q FROM e p JOIN e q ON p.b = q.b AND p.id < q.id "
    "WHERE q.ts <= p.ts + INTERVAL 6 SECONDS",
    "distinct": "SELECT DISTINCT x.a AS xa, y.s AS ys FROM t x, u y WHERE x.b = y.b "
    "AND x.id - y.id BETWEEN -4 AND 4",
}


def test_join_queries_come_and_go_while_running(streams: Streams) -> None:
    """Every query sees the rows since its registration, whatever it shares with older ones."""
    first = ["filter", "computed", "pairs", "two_streams", "function", "distinct", "united_once"]
    w = streams.open()
    early = {name: QUERIES[name] for name in first}
    late = {name: sql for name, sql in QUERIES.items() if name not in first}
    streams.register(w, early)
    with running(w) as run:
        streams.add("t", some_rows(0, 40))
        streams.add("u", some_rows(0, 30, shift=2))
        run.processAllAvailable()
        assert streams.check(w, early) > 50
        streams.register(w, late)
        w.drop("pairs")
        del early["pairs"]
        streams.add("t", some_rows(40, 70))
        streams.add("u", some_rows(30, 75, shift=2))
        run.processAllAvailable()
        streams.add("t", some_rows(70, 90))
        run.processAllAvailable()
        assert streams.check(w, early | late) > 100
    w.close()


def test_a_part_of_a_join_condition_that_only_spark_can_compute(streams: Streams) -> None:
    """Days have no fixed length where the clocks change: Spark adds them, row by row."""
    streams.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    queries = {
        "days": "SELECT x.id AS x, y.id AS y FROM t x, t y WHERE x.b = y.a "
        "AND y.ts > x.ts AND y.ts < x.ts + INTERVAL 1 DAY",
    }
    with streams.open() as w:
        streams.register(w, queries)
        streams.add("t", some_rows(0, 30))
        streams.add("t", some_rows(30, 60))
        w.start(availableNow=True).awaitTermination()
        assert streams.check(w, queries) > 100


def test_history_is_there_after_a_restart(streams: Streams) -> None:
    """Each batch is run by another process, so to speak; matches span all of them."""
    for step in range(3):
        with streams.open() as w:
            if step == 0:
                streams.register(w, QUERIES)
            streams.add("t", some_rows(step * 20, step * 20 + 20))
            streams.add("u", some_rows(step * 15, step * 15 + 15, shift=1))
            w.start(availableNow=True).awaitTermination()
            total = streams.check(w, QUERIES)
    assert total > 150


def test_joins_move_between_driver_and_tasks(streams: Streams) -> None:
    """By restarts, and by themselves: tasks above the cap; nothing is lost, nothing comes twice."""
    places: list[set[str]] = []
    for step, kernel in enumerate(["lanes", "driver", "auto"]):
        with streams.open(kernel=kernel, lanes=2, driver_cap_bytes=1) as w:
            if step == 0:
                streams.register(w, QUERIES)
            streams.add("t", some_rows(step * 20, step * 20 + 20))
            streams.add("u", some_rows(step * 15, step * 15 + 15, shift=1))
            run = w.start(availableNow=True)
            run.awaitTermination()
            progress = [p for p in run.recentProgress if p["stream"] == "@network"]
            places.append({p["where"] for p in progress if p["rows"]})
            total = streams.check(w, QUERIES)
    assert total > 150
    assert places == [{"lanes"}, {"driver"}, {"lanes"}]


def test_history_is_compacted_and_expires(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of history are few, and rows that no admissible row can match are gone."""
    monkeypatch.setattr("weft.runtime.network.history.MOST_FILES", 2)
    queries = {name: QUERIES[name] for name in ("bounded", "distinct")}
    queries["chain"] = (
        "SELECT x.id AS x, y.id AS y, z.id AS z FROM t x, t y, t z WHERE x.b = y.a AND y.b = z.a "
        "AND y.ts BETWEEN x.ts AND x.ts + INTERVAL 9 SECONDS "
        "AND z.ts BETWEEN y.ts AND y.ts + INTERVAL 9 SECONDS"
    )
    w = streams.open()
    streams.register(w, queries)
    with running(w) as run:
        for step in range(6):
            streams.add("t", some_rows(step * 20, step * 20 + 20))
            streams.add("u", some_rows(step * 20, step * 20 + 20))
            run.processAllAvailable()
        assert streams.check(w, queries) > 100
        assert len(list(streams.folder.glob("checkpoint/streams/@network/state/*/*"))) <= 20
        assert len(list(streams.folder.glob("checkpoint/streams/t/published/*"))) <= 4
    w.close()


def test_a_query_without_a_bound_says_what_it_keeps(streams: Streams) -> None:
    with streams.open() as w:
        w.register("bounded", QUERIES["bounded"])
        w.register("pairs", QUERIES["pairs"])
        w.register("never", "SELECT id FROM t WHERE a > 3 AND a < 2")
        details = {handle.name: handle.detail for handle in w.queries}
        statuses = {handle.status for handle in w.queries}
    assert statuses == {"active"}
    assert details["bounded"] == ""
    assert details["pairs"].startswith("the rows of x, y are kept for ever")
    assert "y.ts <= x.ts + INTERVAL" in details["pairs"]
    assert details["never"].startswith("no row can ever match")


def test_tables_are_joined_as_they_were_when_the_run_began(streams: Streams) -> None:
    """A changed table is seen by the next run, for rows that come then."""
    spark = streams.spark
    queries = {
        "enriched": "SELECT t.id, c.name FROM t JOIN colours c ON t.s = c.code WHERE c.rank > 1",
        "paired": "SELECT x.id AS x, y.id AS y, c.name FROM t x, t y, colours c "
        "WHERE x.b = y.a AND y.id > x.id AND y.id <= x.id + 5 AND c.code = y.s",
    }

    def run(colours: list[tuple[str, str, int]], rows: pa.Table) -> dict[str, Counter[Any]]:
        with streams.open() as w:
            frame = spark.createDataFrame(colours, "code string, name string, rank int")
            w.add_table("colours", frame)
            for name, sql in queries.items():
                handle = w.register(name, sql)
                assert handle.status == "active", handle.detail
            streams.add("t", rows)
            w.start(availableNow=True).awaitTermination()
            return {name: Counter(map(tuple, w.results(name).collect())) for name in queries}

    def expected(sql: str, colours: list[tuple[str, str, int]]) -> Counter[Any]:
        with duckdb.connect() as database:
            database.register("t", pa.concat_tables(streams.rows["t"]))
            database.execute("CREATE TABLE colours (code VARCHAR, name VARCHAR, rank INT)")
            database.executemany("INSERT INTO colours VALUES (?, ?, ?)", colours)
            return Counter(database.execute(sql).fetchall())

    before = [("x1", "red", 2), ("x2", "blue", 1), ("x3", "green", 3), ("x3", "lime", 4)]
    after = [("x1", "crimson", 2), ("x2", "blue", 5)]
    first = run(before, some_rows(0, 30))
    for name, sql in queries.items():
        assert first[name] == expected(sql, before)
    assert first["enriched"].total() > 5 and first["paired"].total() > 5
    second = run(after, some_rows(30, 60))
    new = {name: second[name] - first[name] for name in queries}
    assert {name for _, name in new["enriched"]} == {"crimson", "blue"}
    old = expected(queries["enriched"], before)
    assert all(row in second["enriched"] for row in first["enriched"])
    changed = {row for row in expected(queries["enriched"], after) if row[0] >= 30}
    assert set(new["enriched"]) == changed
    assert old != expected(queries["enriched"], after)
    assert set(new["paired"]) == {row for row in expected(queries["paired"], after) if row[1] >= 30}


def test_a_join_of_everything_with_everything_is_quarantined(streams: Streams) -> None:
    """Its queries are named with the reason; the others go on, in the same step."""
    queries = {name: QUERIES[name] for name in ("filter", "pairs")}
    with streams.open(most_matches=500) as w:
        streams.register(w, queries)
        everything = w.register("everything", "SELECT x.id AS x, y.id AS y FROM t x CROSS JOIN t y")
        streams.add("t", some_rows(0, 40))
        w.start(availableNow=True).awaitTermination()
        assert streams.check(w, queries) > 10
        assert everything.status == "quarantined"
        assert "more than 500 matches in one step" in everything.detail
        streams.add("t", some_rows(40, 60))
        w.start(availableNow=True).awaitTermination()
        assert streams.check(w, queries) > 20


@pytest.mark.parametrize("condition", ["a > 2", "a > 2 AND a < 1"])
def test_rows_are_counted_while_they_are_published(streams: Streams, condition: str) -> None:
    """A stream without windowed aggregates is read once, also if no row can pass; its late rows and rows
    without event time count."""
    w = streams.open()
    streams.register(w, {"filtered": f"SELECT id FROM t WHERE {condition}"})
    streams.add("t", some_rows(10_000, 10_020))
    streams.add("t", some_rows(10_020, 10_030))
    late = some_rows(0, 5)
    times = late.column("ts").to_pylist()
    column = pa.array([None, *times[1:]], late.schema.field("ts").type)
    streams.add("t", late.set_column(late.schema.get_field_index("ts"), "ts", column))
    run = w.start(availableNow=True)
    run.awaitTermination()
    steps = [step for step in run.recentProgress if step["stream"] == "t"]
    counts = [(step["rows"], step["late_rows"], step["null_times"]) for step in steps]
    assert counts[:3] == [(20, 0, 0), (10, 0, 0), (5, 4, 1)]
    assert steps[-1]["watermark"] == (START + 10_029 - 3600) * 1_000_000


def test_binary_values_and_times_without_zone_are_keys(streams: Streams) -> None:
    """They are those of other columns here, so DuckDB is asked for these."""
    pairs = "SELECT x.id AS x, y.id AS y FROM t x, u y WHERE {} AND x.id - y.id BETWEEN -9 AND 9"
    conditions = {
        "bytes": ("x.raw = y.raw AND x.b = y.b", "x.s = y.s AND x.b = y.b"),
        "bytes_or_null": ("x.raw <=> y.raw", "x.s IS NOT DISTINCT FROM y.s"),
        "times": ("x.nt = y.nt", "x.ts = y.ts"),
        "later": (
            "x.b = y.b AND x.nt > y.nt AND x.raw <= y.raw",
            "x.b = y.b AND x.ts > y.ts AND x.s <= y.s",
        ),
    }
    with weft.Weft(streams.spark, streams.folder / "checkpoint", statistics_every=0) as w:
        for name in streams.rows:
            frame = streams.spark.readStream.schema(SCHEMA).parquet(str(streams.folder / name))
            more = ("cast(s AS binary) AS raw", "cast(ts AS timestamp_ntz) AS nt")
            w.add_stream(name, frame.selectExpr("*", *more), time="ts", watermark="1 hour")
        streams.register(w, {name: pairs.format(ours) for name, (ours, _) in conditions.items()})
        streams.add("t", some_rows(0, 30))
        streams.add("u", some_rows(0, 30, shift=2))
        w.start(availableNow=True).awaitTermination()
        theirs = {name: pairs.format(sql) for name, (_, sql) in conditions.items()}
        assert streams.check(w, theirs) > 100
