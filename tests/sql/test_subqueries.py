"""Subqueries in conditions: how they are read."""

from __future__ import annotations

import pytest

from weft.sql.fallback import Unshared
from weft.sql.reading.select import parse
from weft.sql.reading.source import read
from weft.sql.reading.syntax import Exists, In, InSubquery, SyntaxNode, walk


def condition(sql: str) -> list[SyntaxNode]:
    """The nodes of a WHERE clause."""
    where = parse(read(f"SELECT price FROM bids WHERE {sql}")).where
    assert where is not None
    return list(walk(where))


def test_in_and_exists_hold_their_subqueries() -> None:
    nodes = condition(
        "NOT price IN (SELECT age FROM people WHERE city = 'x') AND (channel = 'a' OR "
        "EXISTS (WITH p AS (SELECT 1 FROM people) SELECT * FROM p WHERE name = channel))"
    )
    (within,) = (node for node in nodes if isinstance(node, InSubquery))
    (exists,) = (node for node in nodes if isinstance(node, Exists))
    assert within.query.where is not None and len(within.query.items) == 1
    assert [definition.name for definition in exists.query.definitions] == ["p"]


def test_columns_that_are_called_like_words() -> None:
    (listed,) = (node for node in condition("price IN (select, with)") if isinstance(node, In))
    assert len(listed.items) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "price > (SELECT age FROM people)",
        "price IN (VALUES (1))",
        "price IN (SELECT age FROM people LIMIT 1)",
        "price IN (SELECT age FROM people UNION SELECT 1 FROM people)",
        "(price, price) IN (SELECT age, age FROM people)",
    ],
)
def test_other_subqueries_are_left_to_spark(sql: str) -> None:
    with pytest.raises(Unshared):
        condition(sql)
