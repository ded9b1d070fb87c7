"""Streams and a table to bind aggregation joins against."""

from __future__ import annotations

from typing import Any

from tests.sql.support import FakeAnalyzer

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.query import Field, StreamSchema
from weft.errors import SqlError
from weft.sql import Analyzer, bind

MINUTE = 60_000_000
HOUR = 60 * MINUTE


def fields(**columns: str) -> tuple[Field, ...]:
    return tuple(Field(name, type_) for name, type_ in columns.items())


STREAMS = {
    "Auction": StreamSchema(
        "Auction",
        fields(ts="timestamp", auctionID="bigint", sellerID="bigint", startPrice="int"),
        "ts",
        0,
    ),
    "Bid": StreamSchema(
        "Bid",
        fields(
            ts="timestamp",
            auctionID="bigint",
            bidderID="int",
            bidPrice="int",
            amount="decimal(10,2)",
            channel="string",
            at="timestamp",
        ),
        "ts",
        0,
    ),
}
TABLES = {"Person": fields(personID="bigint", name="string", state="string")}


def bound(sql: str, analyzer: Analyzer | None = None, **options: Any) -> Any:
    options = {"tables": TABLES, "time_zone": "UTC", **options}
    return bind("q", sql, STREAMS, analyzer or FakeAnalyzer(), query_id="q@1", **options)


def query(sql: str, analyzer: Analyzer | None = None, **options: Any) -> AggregationJoin:
    result = bound(sql, analyzer, **options)
    assert isinstance(result, AggregationJoin), result
    return result


def error(sql: str, **options: Any) -> SqlError:
    try:
        result = bound(sql, **options)
    except SqlError as raised:
        return raised
    raise AssertionError(f"no error, but {result}")
