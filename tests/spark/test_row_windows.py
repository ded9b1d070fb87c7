"""Windows of rows give what brute force gives, beside windows of time on the same stream."""

from __future__ import annotations

import math
import random
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.oracle import compare, model, rows
from tests.oracle.expressions import Aggregate, Column, Style, WindowColumn
from tests.oracle.generate import Case, Features, pools, queries, schemas, styles
from tests.oracle.generate_queries import binds
from tests.oracle.rows import RowWindow
from tests.oracle.sparktypes import BIGINT, DOUBLE, STRING, TIMESTAMP, decimal
from tests.oracle.spec import Item, Query
from tests.support import seeds
from tests.support.harness import run_weft, session

import weft
from weft.algebra.query import Field, StreamSchema
from weft.runtime.checkpoint.commits import Intent
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.protocol.publishing import Publisher
from weft.runtime.protocol.step import StepWork
from weft.runtime.rows import engine as rows_engine
from weft.runtime.rows.numbering import Numbering
from weft.runtime.rows.publication import RowsPublication

SECOND = 1_000_000
BASE = 1_700_000_000 * SECOND
COMMON = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck)
)


@st.composite
def mixed_cases(draw: st.DrawFn, batch_count: int) -> Case:
    """Two of three queries over windows of rows, the others over windows of time.

    Times lie on a coarse grid, so that many rows have the same; few values, so that ties are left
    to later columns, and rows are equal; some times are NULL, and some rows are late.
    """
    schema = draw(schemas())
    known = draw(pools(schema, hazards=False))
    names = [name for name in schema if name != "ts"]
    row = st.tuples(st.integers(-6, 9), *(st.sampled_from(known[name]) for name in names))
    batches = []
    for index in range(batch_count):
        drawn = draw(st.lists(row, min_size=24, max_size=32))
        times = [None if tick == 9 else BASE + (4 * index + tick) * SECOND for tick, *_ in drawn]
        batches.append(
            [
                {"ts": time} | dict(zip(names, cells, strict=True))
                for time, (_, *cells) in zip(times, drawn, strict=True)
            ]
        )
    columns = {name: kind for name, kind in schema.items() if name != "ts"}
    drawn_query = queries(columns, known, SECOND, Features(hazards=False)).filter(
        lambda query: binds(query, schema)
    )
    wanted = [draw(drawn_query) for _ in range(5)]
    for place in (0, 1, 3, 4):
        range_ = draw(st.integers(1, 30))
        slide = draw(st.integers(max(1, range_ // 6), range_ + 8))
        wanted[place] = replace(wanted[place], window=RowWindow(range_, slide))
    delay = draw(st.sampled_from([SECOND, 0]))
    return Case(schema, batches, delay, tuple(wanted), draw(st.booleans()))


def oracle_of(query: Query) -> Any:
    return rows if isinstance(query.window, RowWindow) else model


def by_oracle(case: Case, query: Query) -> list[tuple[int, tuple[Any, ...]]] | None:
    """What a query emits; None if it raises."""
    try:
        emitted: list[tuple[int, tuple[Any, ...]]] = oracle_of(query).run(
            query, case.schema, case.batches, case.delay, ansi=case.ansi
        )
    except model.ModelError:
        return None
    return emitted


def rows_of_row_windows(case: Case) -> int:
    numbered = (query for query in case.queries if isinstance(query.window, RowWindow))
    return sum(len(by_oracle(case, query) or ()) for query in numbered)


def check(spark: SparkSession, case: Case, style: Style, **settings: Any) -> None:
    """Compare all queries of a case."""
    texts = {f"q{i}": query.sql("s", style) for i, query in enumerate(case.queries)}
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_weft(
            spark,
            texts,
            case.schema,
            case.batches,
            case.delay,
            directory=Path(folder) / "run",
            ansi=case.ansi,
            **settings,
        )
    for name, query in zip(texts, case.queries, strict=True):
        expected = by_oracle(case, query)
        if expected is None:
            assert outcome.status[name] == "quarantined", texts[name]
            continue
        assert outcome.status[name] == "active", (texts[name], outcome.detail[name])
        columns = oracle_of(query).columns(query, case.schema, ansi=case.ansi)
        assert outcome.columns[name] == columns, texts[name]
        # A follower may take several batches in one step, so the ids of its steps are its own.
        difference = compare.difference(
            outcome.rows[name], expected, batch_ids=oracle_of(query) is model
        )
        assert difference is None, f"{texts[name]}\n{difference}"
        if oracle_of(query) is rows:
            assert outcome.late[name] == rows.late(case.batches, case.delay)


@pytest.mark.parametrize("kernel", seeds.some(__name__, ["driver", "lanes"], 1))
@settings(COMMON, max_examples=1)
@given(mixed_cases(3), styles())
def test_windows_of_rows_and_of_time(
    spark: SparkSession, kernel: str, case: Case, style: Style
) -> None:
    assume(rows_of_row_windows(case) > 30)
    assume(len({query.window for query in case.queries}) > 2)
    check(spark, case, style, kernel=kernel, lanes=3)


def test_a_stream_with_row_windows_only_and_odd_batches(
    spark: SparkSession,
) -> None:
    """Without a window of time the stream's own loom still is the clock. One batch is empty, one has
    no event time at all, one begins before 1970, where every row is late."""

    def seconds(*values: int) -> list[dict[str, Any]]:
        return [{"ts": BASE + value * SECOND, "v": value} for value in values]

    batches = [
        seconds(*range(10)),
        [],
        [{"ts": None, "v": 1}],
        [{"ts": -5 * SECOND, "v": 3}, *seconds(2, *range(10, 20))],
        seconds(11),
    ]
    items = (Item(WindowColumn("start")), Item(Aggregate("sum", (Column("v"),)), "total"))
    wanted = tuple(Query(RowWindow(*lengths), items) for lengths in ((3, 2), (2, 1 << 60)))
    case = Case({"ts": TIMESTAMP, "v": BIGINT}, batches, 0, wanted, True)
    assert rows.late(batches, 0) == 2
    assert rows_of_row_windows(case) == 10 + 1
    check(spark, case, Style())


def test_numbers_are_in_order_over_many_files_and_row_groups(
    spark: SparkSession, tmp_path: Path, chance: random.Random
) -> None:
    """Every file and every row group of a file goes on where the one before it ends."""
    own = session(spark)
    own.conf.set("spark.sql.shuffle.partitions", "4")
    own.conf.set("spark.sql.adaptive.enabled", "false")
    spark._jsc.hadoopConfiguration().set("parquet.block.size", "1024")  # type: ignore[union-attr]
    made = [
        {
            "ts": None if chance.random() < 0.05 else BASE + chance.randrange(40) * SECOND,
            "k": chance.choice(["b", "a", "é", "𝄞", "\uffff", None]),
            "x": chance.choice([0.5, math.nan, -math.inf, None]),
            "d": chance.choice([Decimal("1.50"), Decimal("-2.25"), None]),
            "a": chance.choice([[1, None], [1], [], None]),
        }
        for _ in range(900)
    ]
    schema = {"ts": TIMESTAMP, "k": STRING, "x": DOUBLE, "d": decimal(5, 2)}
    ddl = "ts timestamp, m map<string,int>, k string, x double, d decimal(5,2), a array<int>"
    frame = own.createDataFrame(
        [{**row, "ts": _moment(row["ts"]), "m": {"one": 1}} for row in made], ddl
    ).repartition(3)
    fields = tuple(Field(f.name, f.dataType.simpleString()) for f in frame.schema)
    log = StreamLog(Storage(tmp_path), "s@rows")
    numbering = Numbering(log, StreamSchema("s", fields, "ts", 0), frame.schema, 3)
    before, now = BASE + 5 * SECOND, BASE + 30 * SECOND
    source = StreamSchema("s", fields, "ts", 0)
    publication = RowsPublication(source, frame.schema, lambda: True)
    stream = StreamLog(Storage(tmp_path), "s")
    work = StepWork(0, "data", own, frame)
    intent = Intent(0, 1, before, now, {}, publications=(publication.name,))
    try:
        Publisher(stream, rows=[publication], tasks=3).write(work, intent)
        files = work.published
        found, count = numbering.number(own, files, before, now, 100, ["k", "a"], "one")
    finally:
        spark._jsc.hadoopConfiguration().unset("parquet.block.size")  # type: ignore[union-attr]
    assert len(files) == 3
    admitted = [row["ts"] for row in made if row["ts"] is not None and row["ts"] >= before]
    assert len(admitted) < len(made)
    assert sum(entry["rows"] for entry in files) == len(admitted)
    assert min(entry["first"] for entry in files) == min(admitted)
    assert max(entry["last"] for entry in files) == max(admitted)
    due = [row for row in made if row["ts"] is not None and before <= row["ts"] < now]
    due.sort(key=lambda row: (rows._order(row, schema), _array_order(row["a"])))
    assert found is not None
    made_files = [
        pq.ParquetFile(path) for path in tmp_path.glob("streams/*/numbered/one/*.parquet")
    ]
    assert len(made_files) > 2 and max(file.num_row_groups for file in made_files) > 1
    taken = [(row["row#"], row["k"], row["a"]) for row in found.collect()]
    assert sorted(taken, key=lambda row: row[0]) == [
        (100 + place, row["k"], row["a"]) for place, row in enumerate(due)
    ]
    assert count == len(due)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / SECOND, UTC)


def _array_order(values: list[int | None] | None) -> tuple[object, ...]:
    """NULL first, also inside; a shorter array before its continuations."""
    return () if values is None else (1, *((v is not None, v or 0) for v in values))


TOTALS = "SELECT window.start AS start, count(*) AS n, sum(v) AS total FROM s "


def totals(range_: int, starts: range, first: int) -> list[tuple[int, int, int]]:
    """Windows of rows whose values go up by one; number 0 has, or would have, the value `first`."""
    members = ([n for n in range(start, start + range_) if n >= 0] for start in starts)
    return [
        (start, len(own), sum(first + n for n in own))
        for start, own in zip(starts, members, strict=True)
    ]


def wait_for_columns(run: Any, name: str) -> None:
    """Until the stream is read anew, with this column."""
    (stream,) = run._streams
    deadline = time.monotonic() + 60
    while name not in stream.columns or not stream._query.isActive:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_row_windows_that_come_and_go_while_running(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten rows at a time, one a second, and a flush after them, which leaves the last one pending.

    values   0…9    10………18   19………28   29………39   40………48
    numbers  none   0………8     9………18    none        19………27
    queries  time   + a, bad   + b         - a, b      + c
    """
    monkeypatch.setattr(rows_engine, "MOST_FILES", 0)
    own = session(spark)
    (tmp_path / "input").mkdir()
    source = own.readStream.schema("ts timestamp, v bigint").parquet(str(tmp_path / "input"))
    w = weft.Weft(own, tmp_path / "checkpoint")
    w.add_stream("s", source, time="ts", watermark="0 seconds")
    w.register("time", "SELECT count(*) AS n FROM s GROUP BY window(ts, '5 seconds')")
    run = w.start(processingTime="0 seconds")

    def feed(number: int) -> None:
        values = range(10 * number, 10 * number + 10)
        times = pa.array([BASE + v * SECOND for v in values], pa.timestamp("us", tz="UTC"))
        pq.write_table(pa.table({"ts": times, "v": values}), tmp_path / f"input/{number}.parquet")
        run.processAllAvailable()

    def found(name: str) -> list[tuple[int, int, int]]:
        return sorted(tuple(row) for row in w.results(name).collect())

    try:
        feed(0)
        with w.changes():
            a = w.register("a", TOTALS + "[RANGE 4 ROWS SLIDE 2 ROWS]")
            bad = w.register("bad", "SELECT sum(1 div (v - 15)) AS n FROM s [RANGE 2 ROWS]")
        wait_for_columns(run, "v")
        feed(1)
        assert found("a") == totals(4, range(-2, 6, 2), first=10)
        assert (a.complete_from, a.status, bad.status) == (None, "active", "quarantined")
        b = w.register("b", TOTALS + "[RANGE 3 ROWS] WHERE v >= 0")
        feed(2)
        assert found("a") == totals(4, range(-2, 16, 2), first=10)
        assert b.complete_from == 10
        assert found("b") == totals(3, range(12, 16, 3), first=10)
        assert list((tmp_path / "checkpoint/streams/s@rows/pending").iterdir())
        w.drop("a")
        w.drop("b")
        feed(3)
        assert not list((tmp_path / "checkpoint/streams/s@rows/pending").iterdir())
        c = w.register("c", TOTALS + "[RANGE 2 ROWS]")
        feed(4)
        assert c.complete_from == 19
        assert found("c") == totals(2, range(20, 28, 2), first=40 - 19)
        assert w.counted("s@rows")["rows"] == 28
        assert w.results("time").count() == 9
        assert run.status["watermark"] == BASE + 49 * SECOND
    finally:
        run.stop()
