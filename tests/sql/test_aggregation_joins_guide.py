"""docs/aggregation-joins.md is true: its examples bind, its tables say what weft does and what comes out."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.explain.support import NoAnalyzer
from tests.sql.joinagg_rows import SECOND, groups_at, load, shown, sides_of

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.network.derived import DerivedQuery
from weft.algebra.query import Field, StreamSchema
from weft.errors import SqlError
from weft.kernel.joinagg.changes import REMOVED, changed
from weft.sql import bind, statements

GUIDE = (Path(__file__).parents[2] / "docs" / "aggregation-joins.md").read_text()
AUCTIONS = {
    "ts": "timestamp",
    "id": "bigint",
    "seller": "bigint",
    "category": "string",
    "reserve": "int",
}
BIDS = {"ts": "timestamp", "auction": "bigint", "bidder": "bigint", "price": "int"}
STREAMS = {
    name: StreamSchema(name, tuple(Field(*column) for column in columns.items()), "ts", 10_000_000)
    for name, columns in (("auctions", AUCTIONS), ("bids", BIDS))
}
TABLES = {"people": (Field("id", "bigint"), Field("state", "string"))}
EXAMPLES = {
    str(statement.name): statement.sql
    for block in re.findall(r"```sql\n(.*?)```", GUIDE, re.DOTALL)
    for statement in statements(block)
}
CASES = re.findall(r"^\| `(SELECT .*?)` \| (.*?) \|$", GUIDE, re.MULTILINE)
ROWS = re.findall(
    r"^\| (12:\d\d) \| (.*?) \| (.*?) \| (.*?) \|(?: (.*?) \|)?$", GUIDE, re.MULTILINE
)
NOON = 12 * 3600


def bound(sql: str) -> Any:
    return bind(
        "example", sql, STREAMS, NoAnalyzer(), query_id="e@1", tables=TABLES, time_zone="UTC"
    )


def verdict(sql: str) -> str:
    try:
        query = bound(sql)
    except SqlError as error:
        return f"refuses it: {error.error_class}"
    return "binds it" if isinstance(query, AggregationJoin) else f"{type(query).__name__}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_binds(name: str) -> None:
    form = DerivedQuery if "GROUP BY window(" in EXAMPLES[name] else AggregationJoin
    assert isinstance(bound(EXAMPLES[name]), form)


@pytest.mark.parametrize(("sql", "expected"), CASES)
def test_weft_does_with_a_query_what_the_table_says(sql: str, expected: str) -> None:
    assert verdict(sql) == expected


def categories() -> tuple[AggregationJoin, pa.Table, list[int]]:
    """The first example on the rows of the guide: its groups at the instants."""
    load("auctions", AUCTIONS, [(NOON + 60, 1, 1, "art", 0), (NOON + 420, 2, 1, "toys", 0)])
    bids = [(3, 1, 10), (8, 2, 7), (9, 1, 12), (12, 2, 9)]
    load("bids", BIDS, [(NOON + 60 * minute, auction, 1, price) for minute, auction, price in bids])
    query = bound(EXAMPLES["categories"])
    instants = [NOON + 60 * minute for minute in (5, 10, 15, 20)]
    sides = [replace(side, early=True) for side in sides_of(query)]
    return query, groups_at(query, sides, instants), instants


def written(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Rows as the guide writes them."""
    return sorted(
        (
            f"{at:%H:%M}",
            *(
                "NULL" if v is None else str(v).replace("False", "false").replace("True", "true")
                for v in row
            ),
        )
        for at, *row in rows
    )


def test_the_results_of_the_first_example_are_those_of_the_guide() -> None:
    query, groups, _ = categories()
    full = [row[:4] for row in ROWS if row[4] == "" and row[1] in ("art", "toys")]
    assert len(full) == 6
    assert written(shown(query, groups)) == sorted(full)


def test_the_changes_of_the_first_example_are_those_of_the_guide() -> None:
    _, groups, instants = categories()
    rows, _ = changed(None, groups, np.array(instants) * SECOND, ["k0"])
    changes = [row for row in ROWS if row[4]]
    assert len(changes) == 7
    names = ("at", "k0", "a0", "a1", REMOVED)
    assert written([tuple(row[name] for name in names) for row in rows.to_pylist()]) == sorted(
        changes
    )


def test_the_guide_has_examples_and_cases() -> None:
    assert len(EXAMPLES) == 4 and len(CASES) >= 15
