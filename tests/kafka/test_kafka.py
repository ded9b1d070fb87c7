"""Results in Kafka carry what a reader needs to count each of them once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.crash.simulated import dying
from tests.kafka.broker import broker_jars, connector_jars, running_broker
from tests.review.support import put_rows
from tests.support.harness import session

import weft
from weft.runtime.frames import frame_of
from weft.runtime.sinks.spark import with_headers, with_tags

QUERIES = {
    "counts": "SELECT k AS key, concat(k, '=', count(*)) AS value FROM s "
    "GROUP BY window(ts, '10 seconds'), k",
    "plain": "SELECT k AS key, concat(k, ':', transform(array(v), x -> x)[0]) AS value FROM s",
}
TAGS = ("weft_batch", "weft_query", "weft_seq")


def headers_in(row: Any) -> dict[str, str]:
    return {header.key: header.value.decode() for header in row.headers or ()}


def headers_of(frame: Any) -> list[dict[str, str]]:
    return [headers_in(row) for row in frame.collect()]


def test_the_frame_for_kafka_has_the_tags_as_headers(spark: SparkSession) -> None:
    table = pa.table({"key": ["a", "b"], "value": ["1", "2"]})
    frame = with_headers(frame_of(spark, with_tags(table, 7, "hot")))
    assert dict(frame.dtypes) == {
        "key": "string",
        "value": "string",
        "headers": "array<struct<key:string,value:binary>>",
    }
    assert headers_of(frame) == [
        {"weft_batch": "7", "weft_query": "hot", "weft_seq": str(number)} for number in (0, 1)
    ]


def test_headers_of_the_query_stay(spark: SparkSession) -> None:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    own = pa.array([[{"key": "mine", "value": b"x"}], None], pa.list_(header))
    table = pa.table({"value": ["1", "2"], "headers": own})
    first, second = headers_of(with_headers(frame_of(spark, with_tags(table, 0, "hot"))))
    assert first == {"mine": "x", "weft_batch": "0", "weft_query": "hot", "weft_seq": "0"}
    assert second == {"weft_batch": "0", "weft_query": "hot", "weft_seq": "1"}


def with_jars(spark: SparkSession, jars: list[Path]) -> None:
    """Let a session that runs already find the classes of some jars."""
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in jars:
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())


def run(spark: SparkSession, folder: Path, address: str) -> None:
    """Two queries, a shared one and a fallback, each into a topic of its own."""
    own = session(spark)
    source = own.readStream.schema("ts timestamp, k string, v bigint")
    frame = source.option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))
    w = weft.Weft(own, folder / "checkpoint")
    w.add_stream("s", frame, time="ts", watermark="0 seconds")
    for name, sql in QUERIES.items():
        w.register(name, sql)
    options = {"kafka.bootstrap.servers": address, "topic": "weft-{query}"}
    w.start(weft.sinks.spark("kafka", **options), availableNow=True).awaitTermination()


def read(spark: SparkSession, address: str) -> list[dict[str, Any]]:
    """All messages of both topics."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", address)
    reader = reader.option("subscribe", "weft-counts,weft-plain").option("includeHeaders", "true")
    messages = reader.load().selectExpr("topic", "cast(value AS string) AS value", "headers")
    return [
        {"topic": row.topic, "value": row.value, "headers": headers_in(row)}
        for row in messages.collect()
    ]


@pytest.mark.crash
def test_a_reader_counts_every_result_once_though_the_run_crashed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It ends after Kafka has a batch and before the batch's commit: the batch is sent again, with the
    same headers."""
    with_jars(spark, connector_jars())
    for number in range(4):
        rows = [(10 * number + i, f"k{i % 3}", i) for i in range(9)]
        put_rows(tmp_path / "input", number, rows)
    with running_broker(broker_jars(), tmp_path / "kafka") as address:
        with dying("after_results", 3) as crash, pytest.raises(weft.RunError, match="Crash"):
            run(spark, tmp_path, address)
        assert crash.crashed
        run(spark, tmp_path, address)
        messages = read(spark, address)
    by_tags: dict[tuple[str, ...], set[str]] = {}
    for message in messages:
        assert set(message["headers"]) == set(TAGS)
        assert message["topic"] == f"weft-{message['headers']['weft_query']}"
        tags = tuple(message["headers"][tag] for tag in TAGS)
        by_tags.setdefault(tags, set()).add(message["value"])
    assert len(messages) > len(by_tags), "nothing was sent twice: the test shows nothing"
    assert all(len(values) == 1 for values in by_tags.values())
    once = Counter((tags[1], *values) for tags, values in by_tags.items())
    plain = Counter(("plain", f"k{i % 3}:{i}") for _ in range(4) for i in range(9))
    counts = Counter(("counts", f"k{k}=3") for _ in range(3) for k in range(3))
    assert once == plain + counts
