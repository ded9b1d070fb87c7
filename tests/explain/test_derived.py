"""EXPLAIN of windowed aggregates over joins: it says which join they stand on."""

from __future__ import annotations

from tests.explain.support import NoAnalyzer, network_of

from weft.algebra.network.derived import DerivedQuery, published_join, schema_of
from weft.algebra.query import Field, StreamSchema
from weft.explain import Explanation, explain
from weft.optimizer.gtweave import share
from weft.sql import bind

STREAMS = {
    name: StreamSchema(
        name, (Field("k", "int"), Field("v", "bigint"), Field("ts", "timestamp")), "ts", 10
    )
    for name in ("calls", "transfers")
}
SQL = """SELECT t.k, sum(c.v) AS v FROM transfers t JOIN calls c ON t.k = c.k
AND c.ts BETWEEN t.ts AND t.ts + INTERVAL 1 MINUTE GROUP BY window(t.ts, '1 hour'), t.k"""


def explained(only: str | None = None) -> Explanation:
    query = bind("busy", SQL, STREAMS, NoAnalyzer(), query_id="busy@1", time_zone="UTC")
    assert isinstance(query, DerivedQuery)
    plan = share(0, schema_of([query]), [query], {query.id: 0})
    network = network_of([published_join([query])], tuple(STREAMS.values()))
    return explain([plan], [], only=only, network=network)


def test_text_names_the_join_and_its_columns() -> None:
    text = str(explained())
    name = explained().plans[0].stream.name
    assert f"stream {name}, the join of calls c, transfers t: 1 query" in text
    assert "event time transfers.ts, watermark 1 min behind the network's" in text
    assert "by transfers.k" in text
    assert f"read by     1 query: {name}" in text
    part = str(explained("busy"))
    assert f"{name}, the join of calls c, transfers t" in part
    assert "aggregates  sum(calls.v)" in part


def test_json_and_drawing_name_the_join() -> None:
    (stream,) = explained().to_json()["streams"]
    assert stream["join"] == "the join of calls c, transfers t"
    assert stream["watermark_delay"] == 60_000_000
    assert explained("busy").to_json()["join"] == stream["join"]
    assert "join of calls c" in explained().to_svg()
