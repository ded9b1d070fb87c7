"""EXISTS, IN, LEFT SEMI and ANTI JOIN, INTERSECT and EXCEPT over streams: what they are bound to, and what is
refused or left to Spark."""

from __future__ import annotations

import pytest
from tests.explain.support import NoAnalyzer, network_of
from tests.support.lookup_queries import STREAMS, TABLES

from weft.algebra.network.bounds import closings, unbounded_inputs, warning
from weft.algebra.network.query import JoinQuery, Partner
from weft.errors import SqlError
from weft.sql import Fallback, bind

SECOND = 1_000_000
WINDOW = "b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts + INTERVAL 10 MINUTES"


def query(sql: str, name: str = "q", zone: str = "UTC") -> JoinQuery:
    options = {"query_id": f"{name}@1", "tables": TABLES, "time_zone": zone}
    bound = bind(name, sql, STREAMS, NoAnalyzer(), **options)
    assert isinstance(bound, JoinQuery), bound
    return bound


def partner(sql: str) -> Partner:
    found = query(sql).partner
    assert found is not None
    return found


def test_forms_of_one_anti_join_are_one_node() -> None:
    forms = [
        f"SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND {WINDOW} AND b.g > 3)",
        f"SELECT a.s FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.g >= 4 AND {WINDOW}",
        f"SELECT s FROM a WHERE NOT EXISTS (SELECT * FROM (SELECT k, ts FROM b WHERE g > 3) b "
        f"WHERE a.k = b.k AND {WINDOW})",
    ]
    queries = [query(sql, f"q{number}") for number, sql in enumerate(forms)]
    assert len({one.partner for one in queries}) == 1
    plan = network_of(queries, tuple(STREAMS.values()))
    assert [node.kind for node in plan.nodes] == ["source", "source", "selection", "anti-join"]
    assert len({feed.node for feed in plan.feeds}) == 1


@pytest.mark.parametrize(
    ("sql", "kind", "predicates", "matching"),
    [
        (
            "SELECT k FROM a WHERE k IN (SELECT g FROM b WHERE s = 'x')",
            "semi-join",
            "`0.s` = 'x'",
            "`0.k` - `1.g` = 0",
        ),
        (
            "SELECT k FROM a WHERE a.k NOT IN (SELECT k FROM b WHERE b.ts <= a.ts)",
            "anti-join",
            "true",
            "(`0.k` - `1.k` = 0 OR `0.k` IS NULL OR `1.k` IS NULL) AND `0.ts` - `1.ts` >= 0",
        ),
        (
            "SELECT k FROM a WHERE a.k NOT IN (SELECT k FROM b WHERE b.ts <= a.ts AND b.k > 1)",
            "anti-join",
            "`0.k` >= 2",
            "(`0.k` - `1.k` = 0 OR `0.k` IS NULL) AND `0.ts` - `1.ts` >= 0",
        ),
        (
            "SELECT ts, s FROM a EXCEPT SELECT ts, s FROM b",
            "anti-join",
            "true",
            "(`0.s` <=> `1.s`) AND `0.ts` - `1.ts` = 0",
        ),
        (
            "SELECT k FROM a WHERE k > 5 INTERSECT SELECT k FROM b",
            "semi-join",
            "true",
            "(`0.k` <=> `1.k`)",
        ),
        (
            "SELECT a.k FROM a LEFT SEMI JOIN b USING (k) WHERE a.k > 5",
            "semi-join",
            "`0.k` >= 6",
            "`0.k` - `1.k` = 0",
        ),
    ],
)
def test_what_a_row_must_match(sql: str, kind: str, predicates: str, matching: str) -> None:
    found = partner(sql)
    assert (found.kind, found.predicates.sql, found.matching.sql) == (kind, predicates, matching)


@pytest.mark.parametrize(
    ("condition", "closing"),
    [
        (WINDOW, 600 * SECOND),
        ("b.ts < a.ts", -1),
        ("b.ts = a.ts", 0),
        ("b.ts <= a.ts - INTERVAL 3 SECONDS", -3 * SECOND),
    ],
)
def test_when_a_row_is_closed(condition: str, closing: int) -> None:
    bound = query(
        f"SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND {condition})"
    )
    assert closings(bound, STREAMS) == (("a.ts", closing),)


def test_a_join_is_closed_by_the_last_partner_that_may_come() -> None:
    bound = query(
        "SELECT a.k FROM a WHERE NOT EXISTS (SELECT 1 FROM b JOIN a z ON z.k = b.k AND z.ts >= b.ts "
        "AND z.ts <= b.ts + INTERVAL 5 SECONDS WHERE b.k = a.k AND b.ts = a.ts)"
    )
    assert closings(bound, STREAMS) == (("a.ts", 5 * SECOND),)
    assert not unbounded_inputs(bound, STREAMS)


def test_unbounded_partners_are_told() -> None:
    bound = query(
        "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.ts < a.ts)"
    )
    assert unbounded_inputs(bound, STREAMS) == ("b",)
    assert "a.ts <= b.ts + INTERVAL 1 HOUR" in warning(bound, STREAMS)


@pytest.mark.parametrize(
    ("sql", "words", "column", "advice"),
    [
        (
            "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.ts > a.ts)",
            "NOT EXISTS (SELECT …)",
            27,
            "b.ts <= a.ts + INTERVAL 1 HOUR",
        ),
        (
            "SELECT k FROM a WHERE k NOT IN (SELECT k FROM b)",
            "NOT IN (SELECT …)",
            23,
            "b.ts <= a.ts",
        ),
        ("SELECT a.k FROM a LEFT ANTI JOIN b z USING (k)", "LEFT ANTI JOIN", 19, "z.ts <= a.ts"),
        (
            "SELECT k FROM a EXCEPT SELECT k FROM b",
            "EXCEPT",
            17,
            "a.ts and b.ts, in the same column",
        ),
    ],
)
def test_rows_that_are_never_closed_are_refused(
    sql: str, words: str, column: int, advice: str
) -> None:
    with pytest.raises(SqlError) as raised:
        query(sql)
    assert (raised.value.error_class, raised.value.column) == ("NEVER_CLOSED", column)
    assert f"{words} would have to take back rows" in str(raised.value)
    assert advice in str(raised.value)


def test_a_bound_in_days_needs_days_of_equal_length() -> None:
    sql = "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.ts <= a.ts + INTERVAL {})"
    assert query(sql.format("1 DAY")).partner
    assert query(sql.format("23 HOURS"), zone="Asia/Kolkata").partner
    with pytest.raises(SqlError, match="NEVER_CLOSED"):
        query(sql.format("1 DAY"), zone="Asia/Kolkata")


def test_conditions_that_never_hold_ask_for_nothing() -> None:
    sql = "SELECT k FROM a WHERE {}EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.k > 3) AND a.k < 2"
    without = query(sql.format("NOT "))
    assert without.partner is None and not without.predicates.never
    assert query(sql.format("")).predicates.never


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) OR k = 1", "below other"),
        (
            "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AND k IN (SELECT k FROM b)",
            "over a stream beside",
        ),
        (
            "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE EXISTS (SELECT 1 FROM a z WHERE z.k = b.k))",
            "inside of another",
        ),
        (
            "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b JOIN t USING (k) WHERE b.k = a.k)",
            "a table",
        ),
        (
            "SELECT a.k FROM a LEFT JOIN t ON t.k = a.k WHERE EXISTS (SELECT 1 FROM b WHERE b.g = t.g)",
            "beside a table",
        ),
        (
            "SELECT ts, k FROM a EXCEPT SELECT ts, k FROM b EXCEPT SELECT ts, g FROM b",
            "beside other set operations",
        ),
        (
            f"SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE {WINDOW} "
            "AND b.s IN (SELECT s FROM t WHERE t.k = a.k))",
            "reads rows outside",
        ),
    ],
)
def test_what_is_left_to_spark(sql: str, reason: str) -> None:
    bound = bind("q", sql, STREAMS, NoAnalyzer(), query_id="q@1", tables=TABLES, time_zone="UTC")
    assert isinstance(bound, Fallback), bound
    assert reason in bound.reason


def test_a_table_on_the_right_needs_no_closing() -> None:
    bound = query("SELECT k, s FROM a EXCEPT SELECT k, s FROM t")
    assert bound.partner is None and bound.inputs[0].lookups and bound.distinct
