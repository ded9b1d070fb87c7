"""Aggregates over several inputs under ANSI: what CASE, AND, OR, coalesce and FILTER keep from a row is not evaluated on it.

The results are those of Spark 4.3 on the same rows.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sql.joinagg_rows import groups_at, load, sides_of
from tests.sql.support import FakeAnalyzer

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.query import Field, StreamSchema
from weft.kernel.failure import QueryFailure
from weft.optimizer.joinagg.possible import fixed_inputs
from weft.sql import bind

TYPES = {"ts": "timestamp", "j": "int", "d": "double", "l": "bigint", "x": "int"}
STREAMS = {
    name: StreamSchema(name, tuple(Field(*c) for c in TYPES.items()), "ts", 0) for name in "ab"
}
A = [(1, 1, 1.0, 1, 1), (2, 1, 2.0, 2**62, 2), (3, 2, 2.0, 5, 2)]
B = [(1, 1, 0.0, 1, 0), (2, 1, 2.0, 2**62, 2), (4, 2, 2.0, 2, 2)]
FROM = "FROM a [WINDOW 10 SECONDS], b [WINDOW 10 SECONDS] WHERE a.j = b.j"


def bound(select: str) -> AggregationJoin:
    query = bind(
        "q",
        f"SELECT {select} AS c {FROM}",
        STREAMS,
        FakeAnalyzer(),
        query_id="q@1",
        ansi=True,
        time_zone="UTC",
    )
    assert isinstance(query, AggregationJoin), query
    return query


def value(query: AggregationJoin) -> Any:
    for name, rows in (("a", A), ("b", B)):
        load(name, TYPES, rows)
    (found,) = groups_at(query, sides_of(query), [10]).column("a0").to_pylist()
    return found


@pytest.mark.parametrize(
    ("select", "wanted"),
    [
        ("sum(CASE WHEN b.d <> 0 THEN a.d / b.d END)", 2.5),
        ("sum(if(b.d = 0, 0, a.d / b.d))", 2.5),
        ("sum(CASE WHEN b.d = 0 THEN 0 WHEN a.d / b.d > 0.5 THEN a.d / b.d ELSE 10 END)", 12.0),
        ("count(*) FILTER (WHERE b.d <> 0 AND a.d / b.d > 0)", 3),
        ("count(*) FILTER (WHERE b.d = 0 OR a.d / b.d > 0.5)", 4),
        ("sum(CASE WHEN a.l < 10 AND b.l < 10 THEN a.l * b.l ELSE 0 END)", 11),
        ("sum(coalesce(a.d, a.d / b.d))", 8.0),
        ("sum(a.d / b.d) FILTER (WHERE b.d <> 0)", 2.5),
        # a part that reads one input is not evaluated before the join, where nothing protects it
        ("sum(a.d * (1 / b.d)) FILTER (WHERE b.d <> 0)", 2.5),
        ("sum(CASE WHEN b.d <> 0 THEN a.d * (1 / b.d) END)", 2.5),
        ("sum(1 / b.d) FILTER (WHERE b.d <> 0 AND a.x > 0)", 1.5),
        ("count(DISTINCT 1 / b.d) FILTER (WHERE b.d <> 0)", 1),
    ],
)
def test_what_is_not_reached_is_not_evaluated(select: str, wanted: Any) -> None:
    query = bound(select)
    assert fixed_inputs(query) == (None, None), (
        "nothing is evaluated before the join that may raise"
    )
    assert value(query) == wanted


@pytest.mark.parametrize(
    ("select", "error_class", "says"),
    [
        ("sum(a.d / b.d)", "DIVIDE_BY_ZERO", "the argument of sum: division by zero"),
        ("count(*) FILTER (WHERE a.d / b.d > 0)", "DIVIDE_BY_ZERO", "the FILTER of count"),
        ("sum(a.l * b.l)", "ARITHMETIC_OVERFLOW", "the argument of sum: overflow"),
        ("sum(CASE WHEN b.d = 0 THEN a.d / b.d END)", "DIVIDE_BY_ZERO", "the argument of sum"),
    ],
)
def test_what_is_reached_and_raises_fails_the_query(
    select: str, error_class: str, says: str
) -> None:
    with pytest.raises(QueryFailure, match=says) as failure:
        value(bound(select))
    assert failure.value.error_class == error_class


@pytest.mark.parametrize("select", ["sum(a.x * b.l)", "sum(a.x / b.x)", "sum(a.x * b.d)"])
def test_a_cast_that_only_widens_does_not_fix_a_plan(select: str) -> None:
    assert fixed_inputs(bound(select)) == (None, None)
