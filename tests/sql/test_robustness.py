"""Damaged texts: a query, a fallback, or an error with a place; never anything else."""

from __future__ import annotations

import random

from tests.sql.cases import EXPRESSIONS, QUERIES
from tests.sql.support import FakeAnalyzer, bound

from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Query
from weft.errors import SqlError
from weft.sql import Fallback

TEXT = """( ) , [ ] . :: - * = -> ; ' ` x 1 window FROM AND NOT CASE END FILTER AS INTERVAL
DISTINCT EXTRACT( CAST( OVER [RANGE GROUP BY"""
PIECES = TEXT.split()


JOINS = [
    "SELECT a.price AS p, b.* FROM bids a JOIN packets b ON a.price = b.size AND a.d > 0.5 * a.dec",
    "WITH c(k, t) AS (SELECT auction, ts FROM bids WHERE ok) SELECT x.k FROM c x, c y "
    "WHERE x.k = y.k AND y.t <= x.t + INTERVAL 1 HOUR",
    "SELECT DISTINCT price FROM (SELECT * FROM bids WHERE day > '2020-01-01') s CROSS JOIN packets",
    "SELECT size FROM (packets a JOIN (SELECT size AS n FROM packets) b USING (size)), bids",
    "SELECT count(*) FROM (SELECT ts AS t FROM bids) x GROUP BY window(t, '1 hour')",
]


class Boolean(FakeAnalyzer):
    """Says boolean to everything."""

    def types(self, fields, expressions):  # type: ignore[no-untyped-def]
        return tuple("boolean" for _ in expressions)


def damaged(sql: str, dice: random.Random) -> str:
    by_words = dice.random() < 0.5
    pieces = sql.split(" ") if by_words else list(sql)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(pieces) + 1)
        damage = dice.randrange(4)
        if damage == 0:
            del pieces[at : at + dice.randint(1, 3)]
        elif damage == 1:
            pieces.insert(at, dice.choice(PIECES))
        elif damage == 2:
            pieces = pieces[:at]
        else:
            other = dice.randrange(len(pieces) + 1)
            pieces[at : at + 1], pieces[other : other + 1] = (
                pieces[other : other + 1],
                pieces[at : at + 1],
            )
    return (" " if by_words else "").join(pieces)


def outcome(sql: str) -> Query | NetworkQuery | Fallback | SqlError:
    try:
        return bound(sql, Boolean())
    except SqlError as error:
        return error


def test_damaged_queries_never_crash(chance: random.Random) -> None:
    texts = [
        f"SELECT {each} FROM bids WHERE {each} GROUP BY window(ts, '1 hour'), {each} HAVING {each}"
        for each in EXPRESSIONS
    ]
    for _ in range(3000):
        sql = damaged(chance.choice([*QUERIES, *texts, *JOINS * 20]), chance)
        found = outcome(sql)
        if isinstance(found, SqlError):
            assert found.message, sql
            assert found.line is not None and found.line >= 1, sql
            assert found.column is not None and found.column >= 1, sql
