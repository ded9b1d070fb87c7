"""docs/joins.md is true: its examples are shared, and its table says what weft does with each query."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.explain.support import NoAnalyzer, network_of

from weft.algebra.network.derived import DerivedQuery
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Field, Query, StreamSchema
from weft.errors import SqlError
from weft.explain import explain
from weft.sql import bind, statements
from weft.sql.fallback import Fallback

GUIDE = (Path(__file__).parents[2] / "docs" / "joins.md").read_text()
TRANSFERS = {
    "id": "bigint",
    "sender": "bigint",
    "receiver": "bigint",
    "amount": "bigint",
    "country": "string",
    "ts": "timestamp",
}
CALLS = {"account": "bigint", "number": "bigint", "ts": "timestamp"}
STREAMS = {
    name: StreamSchema(name, tuple(Field(*column) for column in columns.items()), "ts", 10_000_000)
    for name, columns in (("transfers", TRANSFERS), ("calls", CALLS))
}
TABLES = {
    "accounts": (
        Field("account", "bigint"),
        Field("owner", "string"),
        Field("opened", "date"),
        Field("bank", "bigint"),
    ),
    "banks": (Field("id", "bigint"), Field("name", "string")),
}
EXAMPLES = [
    statement
    for block in re.findall(r"```sql\n(.*?)```", GUIDE, re.DOTALL)
    for statement in statements(block)
]
WINDOWED = {"by_bank"}
"""Examples that are no part of a network."""
CASES = re.findall(r"^\| `(SELECT .*?)` \| (.*?) \|$", GUIDE, re.MULTILINE)


def bound(sql: str, name: str = "example") -> NetworkQuery | Query | Fallback:
    query = bind(
        name, sql, STREAMS, NoAnalyzer(), query_id=f"{name}@1", tables=TABLES, time_zone="UTC"
    )
    return query.join if isinstance(query, DerivedQuery) else query


def verdict(sql: str) -> str:
    try:
        query = bound(sql)
    except SqlError as error:
        return f"refuses it: {error.error_class}"
    return f"falls back: {query.reason}" if isinstance(query, Fallback) else "shares it"


def shared(name: str) -> NetworkQuery:
    (sql,) = (statement.sql for statement in EXAMPLES if statement.name == name)
    query = bound(sql, name)
    assert isinstance(query, NetworkQuery)
    return query


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(example.name))
def test_every_example_is_shared_and_forgets_its_rows(example: object) -> None:
    name = str(getattr(example, "name", ""))
    if name in WINDOWED:
        query = bound(str(getattr(example, "sql", "")), name)
        assert isinstance(query, Query) and query.lookups
        return
    network = network_of([shared(name)], tuple(STREAMS.values()))
    assert "kept for ever" not in str(explain([], [], network=network))


@pytest.mark.parametrize(("sql", "expected"), CASES)
def test_weft_does_with_a_query_what_the_table_says(sql: str, expected: str) -> None:
    assert verdict(sql) == expected


def test_the_two_queries_share_as_it_says() -> None:
    queries = [shared("passed_on"), shared("passed_on_soon")]
    network = network_of(queries, tuple(STREAMS.values())).as_version(0, [q.id for q in queries])
    (block,) = re.findall(r"```\n(network: .*?)```", GUIDE, re.DOTALL)
    assert str(explain([], [], network=network)).startswith(block.rstrip())
    assert len(EXAMPLES) == 13 and len(CASES) >= 10


def test_an_inferred_condition_is_there() -> None:
    (branch,) = shared("passed_on").branches
    predicates = branch.predicates.within({1}).sql
    assert "`1.amount` >= 500001" in predicates
