"""The reader's grouping of operators, shown by canonical SQL with all parentheses."""

from __future__ import annotations

import pytest
from tests.sql.support import FakeAnalyzer, query

from weft.algebra.scalar import Expression


class Anything(FakeAnalyzer):
    """Says boolean to everything, so that any text can stand in WHERE."""

    def types(self, fields, expressions):  # type: ignore[no-untyped-def]
        return tuple("boolean" for _ in expressions)


def canonical(condition: str) -> str:
    sql = f"SELECT count(*) FILTER (WHERE {condition}) FROM bids GROUP BY window(ts, '1 hour')"
    condition_ = query(sql, Anything()).aggregates[0].filter
    assert isinstance(condition_, Expression)
    return condition_.sql.replace("`", "")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("price + 1 * 2 > 3", "((price + (1 * 2)) > 3)"),
        ("(price + 1) * 2 > 3", "(((price + 1) * 2) > 3)"),
        ("price - 1 - 2 = 0", "(((price - 1) - 2) = 0)"),
        ("channel || price + 1 = 1", "(((channel || price) + 1) = 1)"),
        ("price | 1 & 2 = 0", "((price | (1 & 2)) = 0)"),
        ("price ^ 1 | 2 = 0", "(((price ^ 1) | 2) = 0)"),
        ("price << 1 + 1 = 0", "((price << (1 + 1)) = 0)"),
        ("price >>> 1 = 0", "((price >>> 1) = 0)"),
        ("NOT ok AND ok OR ok", "(((NOT ok) AND ok) OR ok)"),
        ("! ok", "(NOT ok)"),
        ("not price = 1 is null", "(NOT ((price = 1) IS NULL))"),
        ("price = 1 = ok", "((price = 1) = ok)"),
        ("price BETWEEN 1 AND 2 AND ok", "((price BETWEEN 1 AND 2) AND ok)"),
        ("price not in (1, 2)", "(NOT (price IN (1, 2)))"),
        ("price is distinct from 1", "(NOT (price <=> 1))"),
        ("ok IS NOT TRUE", "(NOT (ok IS TRUE))"),
        ("-price % 3 = -1", "(((- price) % 3) = -1)"),
        ("price - -1 > - 1", "((price - -1) > -1)"),
        ("-1::int = price", "(CAST(-1 AS INT) = price)"),
        ("-price::int = 1", "((- CAST(price AS INT)) = 1)"),
        ("ok AND ok AND ok", "(ok AND ok AND ok)"),
        ("ok AND (ok AND ok)", "(ok AND (ok AND ok))"),
        ("payload.KIND = 'a'", "(payload.kind = 'a')"),
        ("tags[0] = 'a'", "(tags[0] = 'a')"),
        ("extract(YEAR FROM ts) = 2020", "(date_part('year', ts) = 2020)"),
        ("CASE price WHEN 1 THEN ok END", "(CASE price WHEN 1 THEN ok END)"),
        ("channel LIKE 'a%' ESCAPE '!'", "(channel LIKE 'a%' ESCAPE '!')"),
        ("channel NOT RLIKE '\\\\d'", "(NOT (channel RLIKE '\\\\d'))"),
        ('day >= DATE "2020-01-01"', "(day >= DATE '2020-01-01')"),
        ("ts > ts - interval 1 day 2 hours", "(ts > (ts - INTERVAL 1 DAY 2 HOURS))"),
        ("raw = x'1f'", "(raw = X'1F')"),
        ("d > .5 or d > 1e3 or d > 2d", "((d > .5) OR (d > 1E3) OR (d > 2D))"),
    ],
)
def test_operators_group_as_in_spark(text: str, meaning: str) -> None:
    assert canonical(text) == meaning


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("channel = 'Google'", 'CHANNEL="Google"'),
        ("channel = 'it''s'", 'channel = "it\'s"'),
        ("channel = 'ab'", "channel = 'a' 'b'"),
        ("channel = 'ab'", "channel = r'ab'"),
        ("price <> 3", "price != 3"),
        ("price = 3", "price == 3"),
        ("price > 3L", "price > 3l"),
        ("channel rlike 'a'", "channel REGEXP 'a'"),
        ("price > 3", "bids . `PRICE`/* x */>3 -- y\n"),
    ],
)
def test_spellings_of_one_condition_are_one(text: str, same: str) -> None:
    assert canonical(text) == canonical(same)


def test_escapes_stay_as_the_user_wrote_them() -> None:
    assert canonical(r"channel = 'a\tb'") == r"(channel = 'a\tb')"
