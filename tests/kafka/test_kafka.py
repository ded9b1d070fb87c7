"""Results in Kafka carry what a reader needs to count each of them once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.kafka.broker import broker_jars, connector_jars, running_broker
from tests.review.support import put_rows

from weft.runtime.frames import frame_of
from weft.runtime.sinks.spark import with_headers, with_tags

TAGS = ("weft_batch", "weft_query", "weft_seq")


def headers_of(frame: Any) -> list[dict[str, str]]:
    return [{h.key: h.value.decode() for h in row.headers} for row in frame.collect()]


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


def child(folder: Path, address: str, jars: list[Path], **more: str) -> Any:
    command = [sys.executable, "-m", "tests.kafka.child", str(folder), address]
    command.append(",".join(map(str, jars)))
    return subprocess.run(
        command, env={**os.environ, **more}, capture_output=True, text=True, timeout=240
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_reader_counts_every_result_once_though_the_process_was_killed(tmp_path: Path) -> None:
    """Killed after Kafka has a batch and before its commit: the batch is sent again, with the same
    headers."""
    connector = connector_jars(tmp_path)
    for number in range(4):
        rows = [(10 * number + i, f"k{i % 3}", i) for i in range(9)]
        put_rows(tmp_path / "input", number, rows)
    with running_broker(broker_jars(tmp_path), tmp_path / "kafka") as address:
        killed = child(tmp_path, address, connector, WEFT_KILL_AT="after_results:3")
        assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
        answer = child(tmp_path, address, connector)
        assert answer.returncode == 0, answer.stderr[-2000:]
    messages = json.loads(answer.stdout.splitlines()[-1])
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
