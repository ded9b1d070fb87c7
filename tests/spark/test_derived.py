"""Windowed aggregates over joins of streams, through the whole runtime: what they emit is what DuckDB says of
the admitted rows, window by window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.harness import session
from tests.support.input_files import put_file

import weft

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
DELAY = 2
SCHEMA = "id bigint, k int, v bigint, m decimal(10,2), ts timestamp"
MONEY = pa.decimal128(10, 2)
PEOPLE = pa.table({"k": pa.array([0, 1, 2, 2, None], pa.int32()), "name": list("abcdn")})


def some_rows(seconds: Sequence[int], shift: int = 0) -> pa.Table:
    """Rows with these times, keys that meet often, a few NULLs, also among the event times."""
    times = [None if i % 19 == 18 else START + i * SECOND for i in seconds]
    return pa.table(
        {
            "id": pa.array(seconds, pa.int64()),
            "k": pa.array([None if i % 11 == 0 else (i + shift) % 4 for i in seconds], pa.int32()),
            "v": pa.array([None if i % 7 == 0 else i * 3 + shift for i in seconds], pa.int64()),
            "m": pa.array([f"{i % 23}.{i % 4}5" for i in seconds], pa.string()).cast(MONEY),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )


@dataclass(frozen=True)
class Asked:
    """A windowed aggregate over a join. `delay` is how many seconds its watermark is behind."""

    select: str
    source: str
    where: str
    time: str
    range: int
    slide: int
    keys: str
    delay: int
    having: str = "true"
    more_keys: str = ""

    @property
    def _groups(self) -> str:
        return f"{self.keys}, {self.more_keys}" if self.more_keys else self.keys

    @property
    def sql(self) -> str:
        return (
            f"SELECT window.start AS start, {self.keys}, {self.select} FROM {self.source} "
            f"WHERE {self.where} GROUP BY "
            f"window({self.time}, '{self.range} seconds', '{self.slide} seconds'), {self._groups} "
            f"HAVING {self.having}"
        )

    def oracle(self, first: int, watermark: int) -> str:
        """The same for DuckDB: the windows that start at a time or later, and are closed by a watermark."""
        slide, range_ = self.slide * SECOND, self.range * SECOND
        start = f"((epoch_us({self.time}) // {slide} - back) * {slide})"
        return (
            f"SELECT make_timestamptz({start}), {self.keys}, {self.select} "
            f"FROM (SELECT unnest(range({-(-range_ // slide)})) AS back), {self.source} "
            f"WHERE {self.where} AND {start} + {range_} > epoch_us({self.time}) "
            f"AND {start} >= {first} AND {start} + {range_} <= {watermark - self.delay * SECOND} "
            f"GROUP BY {start}, {self._groups} HAVING {self.having}"
        )


SOON = "t JOIN u ON t.k = u.k AND u.ts BETWEEN t.ts AND t.ts + INTERVAL 5 SECONDS"
QUERIES = {
    "tumbling": Asked("count(*) AS n, sum(u.v) AS v", SOON, "true", "t.ts", 10, 10, "t.k", 5),
    "sliding": Asked(
        "count(u.v) AS n, max(t.m) AS m, count(DISTINCT u.id) AS d, sum(t.v) FILTER (WHERE u.v > 9) AS f",
        SOON, "true", "t.ts", 12, 4, "u.k", 5, "count(*) > 1",
    ),
    "self": Asked(
        "count(*) AS n, sum(b.m) AS m", "t a, t b",
        "a.k = b.k AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 8 SECONDS", "a.ts", 7, 7, "b.k", 8,
    ),
    "chain": Asked(
        "o.name AS other, count(*) AS n, sum(z.v - t.v) AS v",
        "t JOIN u ON t.k = u.k JOIN people p ON p.k = t.k JOIN t z ON z.k = u.k "
        "LEFT JOIN people o ON o.k = z.k AND o.name <> 'a'",
        "u.ts BETWEEN t.ts AND t.ts + INTERVAL 4 SECONDS AND z.ts BETWEEN u.ts AND u.ts + INTERVAL 3 SECONDS",
        "u.ts", 9, 3, "p.name", 3, more_keys="o.name",
    ),
}  # fmt: skip


class Streams:
    """Two streams of files, the rows that joins admit of each, and the watermark of both together."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.admitted: dict[str, list[pa.Table]] = {"t": [], "u": []}
        self.latest = dict.fromkeys(self.admitted, 0)
        self._files = dict.fromkeys(self.admitted, 0)
        for name in self.admitted:
            (folder / name).mkdir()

    def open(self, **settings: Any) -> weft.Weft:
        w = weft.Weft(self.spark, self.folder / "checkpoint", statistics_every=0, **settings)
        for name in self.admitted:
            w.add_stream(name, self.source(name), time="ts", watermark=f"{DELAY} seconds")
        w.add_table("people", self.spark.createDataFrame(PEOPLE))
        return w

    def source(self, name: str) -> Any:
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder / name))

    @property
    def watermark(self) -> int:
        return min(self.latest.values()) - DELAY * SECOND

    def add(self, seconds: Sequence[int], late: Sequence[int] = ()) -> None:
        """A file for each stream. Late rows come too late for joins."""
        for number, name in enumerate(self.admitted):
            rows = some_rows([*seconds], number)
            everything = pa.concat_tables([rows, some_rows([*late], number)])
            put_file(everything, self.folder / name, self._files[name])
            self._files[name] += 1
            self.admitted[name].append(rows)
            times = [time for time in rows.column("ts").cast(pa.int64()).to_pylist() if time]
            self.latest[name] = max(self.latest[name], *times)

    def expected(self, asked: Asked, first: int = 0) -> Counter[tuple[Any, ...]]:
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            for stream, tables in self.admitted.items():
                database.register(stream, pa.concat_tables(tables))
            database.register("people", PEOPLE)
            return Counter(database.execute(asked.oracle(first, self.watermark)).fetchall())

    def check(self, w: weft.Weft, queries: Mapping[str, Asked], first: int = 0) -> None:
        for name, asked in queries.items():
            expected = self.expected(asked, first)
            assert expected, name
            assert results(w, name) == expected, name


def results(w: weft.Weft, name: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in zip(*w.results(name).toArrow().to_pydict().values()))


def run_now(w: weft.Weft) -> list[dict[str, Any]]:
    run = w.start(availableNow=True)
    run.awaitTermination()
    return run.recentProgress


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


def derived_names(w: weft.Weft) -> set[str]:
    return set(w._registry.derived)


def test_windows_over_joins_are_what_duckdb_says(streams: Streams) -> None:
    """Several joins of two streams and tables, in a time zone of its own, over a restart; rows that come too
    late for joins, and rows without event time, count nowhere."""
    streams.spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    streams.add(range(60))
    with streams.open() as w:
        for name, asked in QUERIES.items():
            handle = w.register(name, asked.sql)
            assert handle.status == "active", handle.detail
            assert handle.detail.startswith("over the join of "), handle.detail
        # Queries that differ in what they aggregate have one derived stream.
        assert len(derived_names(w)) == len(QUERIES) - 1
        steps = run_now(w)
        streams.check(w, QUERIES)
        assert all(step["late_rows"] == 0 for step in steps if step["stream"].startswith("@join-"))
        assert all(handle.complete_from is None for handle in w.queries)
    streams.add(range(60, 100), late=range(20, 57))
    with streams.open() as w:
        run_now(w)
        streams.check(w, QUERIES)


def test_windows_over_joins_are_what_plain_spark_emits(streams: Streams) -> None:
    """Where no row is late: the windows that plain Spark emits of the same SQL on the same micro-batches."""
    asked = QUERIES["tumbling"]
    streams.add(range(40))
    streams.add(range(40, 80))
    with streams.open() as w:
        w.register("shared", asked.sql)
        run_now(w)
        shared = results(w, "shared")
    for name in streams.admitted:
        watermarked = streams.source(name).withWatermark("ts", f"{DELAY} seconds")
        watermarked.createOrReplaceTempView(name)
    plain = streams.spark.sql(asked.sql).writeStream.format("memory").queryName("plain")
    place = str(streams.folder / "plain")
    plain.option("checkpointLocation", place).trigger(availableNow=True).start().awaitTermination()
    emitted = Counter(
        tuple(row.values()) for row in streams.spark.table("plain").toArrow().to_pylist()
    )
    assert emitted.total() > 10
    last = max(row[0] for row in emitted)
    assert Counter({row: n for row, n in shared.items() if row[0] <= last}) == emitted


def published(streams: Streams) -> list[str]:
    folder = streams.folder / "checkpoint/streams/@network/published"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_queries_over_a_join_come_and_go(streams: Streams) -> None:
    """A new query shows only windows of which it has seen all rows, also on a join that has run before. One
    that fails is quarantined alone. With the last query the join goes, and what was kept for it."""
    first, second = QUERIES["tumbling"], QUERIES["sliding"]
    failing = first.sql.replace("sum(u.v)", "sum(100 / (t.v - 120))")
    with streams.open() as w:
        with w.changes():
            w.register("first", first.sql)
            w.register("failing", failing)
        (name,) = derived_names(w)
        with running(w) as run:
            streams.add(range(30))
            run.processAllAvailable()
            streams.check(w, {"first": first})
            late = w.register("second", second.sql)
            assert derived_names(w) == {name}
            for start in (30, 60):
                streams.add(range(start, start + 30))
                run.processAllAvailable()
            # A match of the second query may begin 5 seconds before the rows that it has not seen end. It reads other columns than the first:
            # rows that Spark has begun to read before it is started with these are not seen either.
            complete_from = late.complete_from
            assert complete_from in (START + 29 * SECOND + 1, START + 59 * SECOND + 1)
            streams.check(w, {"first": first})
            streams.check(w, {"second": second}, complete_from)
            assert w.query("failing").status == "quarantined"
            assert "DIVIDE_BY_ZERO" in w.query("failing").detail
            with w.changes():
                w.drop("first")
                w.drop("second")
            streams.add(range(90, 95))
            run.processAllAvailable()
            assert published(streams) == []
            assert w._log(name).last().state == ()
            assert w._inspection.network().nodes == ()
            w.register("again", first.sql)
            streams.add(range(95, 120))
            streams.add(range(120, 140))
            run.processAllAvailable()
            again = w.query("again").complete_from
            assert again == START + 93 * SECOND + 1  # the row after it has no time
            streams.check(w, {"again": first}, again)
        w.drop("again")
        assert w._log(name).last().state != ()
        streams.add(range(140, 150))
        run_now(w)
        assert published(streams) == []
        assert w._log(name).last().state == ()
