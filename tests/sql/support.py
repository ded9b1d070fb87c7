"""A stream to bind against, and an analyzer that answers from a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery, SetQuery
from weft.algebra.query import Field, Query, StreamSchema
from weft.algebra.types import SqlType
from weft.errors import SqlError
from weft.sql import AnalysisProblem, Analyzer, Fallback, bind
from weft.sql.reading.source import Source
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.scope import Relation, Scope, base_columns
from weft.sql.typing.analyzer import Remembering

COLUMNS = {
    "auction": "bigint",
    "price": "int",
    "channel": "string",
    "ts": "timestamp",
    "d": "double",
    "f": "float",
    "dec": "decimal(10,2)",
    "day": "date",
    "ok": "boolean",
    "tiny": "tinyint",
    "payload": "struct<kind:string,n:int>",
    "tags": "array<string>",
    "raw": "binary",
}
BIDS = StreamSchema(
    "bids", tuple(Field(name, type_) for name, type_ in COLUMNS.items()), "ts", 10_000_000
)
PACKETS = StreamSchema("Packets", (Field("Time", "timestamp"), Field("size", "bigint")), "Time", 0)
STREAMS = {"bids": BIDS, "Packets": PACKETS}


@dataclass(eq=False)
class FakeAnalyzer:
    """Answers from a table, and remembers what it was asked."""

    answers: dict[str, SqlType | AnalysisProblem] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def types(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[SqlType | AnalysisProblem, ...]:
        self.asked.extend(expressions)
        return tuple(self.answers[expression] for expression in expressions)

    def output_names(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[str, ...]:
        self.asked.extend(expressions)
        return tuple(self.names.get(expression, expression) for expression in expressions)


def rows_of_bids(source: Source, analyzer: Remembering, ansi: bool) -> Rows:
    """The rows of bids, as a windowed aggregate reads them."""
    columns = base_columns(BIDS.fields, None)
    return Rows(source, Scope((Relation("bids", columns),), columns, BIDS.fields), analyzer, ansi)


def bound(
    sql: str, analyzer: Analyzer | None = None, **options: Any
) -> Query | NetworkQuery | Fallback:
    return bind("q", sql, STREAMS, analyzer or FakeAnalyzer(), query_id="q@1", **options)


def query(sql: str, analyzer: Analyzer | None = None, **options: Any) -> Query:
    result = bound(sql, analyzer, **options)
    assert isinstance(result, Query), result
    return result


def join(sql: str, analyzer: Analyzer | None = None, **options: Any) -> JoinQuery:
    result = bound(sql, analyzer, **options)
    assert isinstance(result, JoinQuery), result
    return result


def union(sql: str, analyzer: Analyzer | None = None, **options: Any) -> SetQuery:
    result = bound(sql, analyzer, **options)
    assert isinstance(result, SetQuery), result
    return result


def fallback(sql: str, analyzer: Analyzer | None = None, **options: Any) -> Fallback:
    result = bound(sql, analyzer, **options)
    assert isinstance(result, Fallback), result
    return result


def error(sql: str, analyzer: Analyzer | None = None, **options: Any) -> SqlError:
    try:
        result = bound(sql, analyzer, **options)
    except SqlError as raised:
        return raised
    raise AssertionError(f"no error, but {result}")


def grouped(select: str, *, where: str = "", keys: str = "", having: str = "") -> str:
    """A query on bids with a tumbling window."""
    parts = [f"SELECT {select} FROM bids", f"WHERE {where}" if where else ""]
    parts.append("GROUP BY window(ts, '1 hour')" + (f", {keys}" if keys else ""))
    parts.append(f"HAVING {having}" if having else "")
    return " ".join(part for part in parts if part)
