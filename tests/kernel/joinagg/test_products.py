"""Groups of two aggregation sets as products of matrices: what the join of their entries gives, or declined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.kernel.joinagg.test_evaluation import result_table, results
from tests.support.joinagg import INSTANTS, Row, cases, expected, query_of

from weft.algebra.aggregate import Aggregate
from weft.algebra.joinagg.query import AggregationJoin, JoinedAggregate
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.scalar import Expression
from weft.kernel.columns.column import column
from weft.kernel.joinagg.entries import Entries, entries_of
from weft.kernel.joinagg.evaluation import Side, evaluated
from weft.kernel.joinagg.groups import grouping, products

SLIDING = InputWindow("sliding", 30)
Answers = list[bool]
"""By call, whether groups were made as a product."""


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Products are made where they pay."""
    answers: Answers = []
    real = products.product

    def counted(*given: Any) -> Any:
        groups = real(*given)
        answers.append(groups is not None)
        return groups

    monkeypatch.setattr(grouping, "product", counted)
    return answers


@pytest.fixture
def asked(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Products are made wherever they can be, whether they pay or not."""
    always(monkeypatch)
    return answers


def always(patched: pytest.MonkeyPatch) -> None:
    for condition in ("_may_multiply", "_multiplies", "_is_full"):
        patched.setattr(products, condition, lambda *given: True)


def joined_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "product", lambda *given: None)


@given(case=cases(inputs=(2,)))
@settings(max_examples=60)
def test_products_equal_duckdb_at_every_instant(
    case: tuple[AggregationJoin, list[list[Row]]],
) -> None:
    """In portions of one or more instants."""
    query, streams = case
    small = [[row for row in rows if row[3] is None or row[3] < 2**62] for rows in streams]
    wanted = expected(query, small)
    for cells in (products._MOST_CELLS, 40):
        with pytest.MonkeyPatch.context() as patched:
            always(patched)
            patched.setattr(products, "_MOST_CELLS", cells)
            assert results(query, small, (True, True), INSTANTS) == wanted, cells


def test_two_aggregation_sets_are_multiplied_and_others_are_joined(asked: Answers) -> None:
    query = query_of([SLIDING, SLIDING], [0, 1, None], ["sum", "max", "count"], {0, 1})
    streams: list[list[Row]] = [
        [(1, 1, "x", 5), (2, 1, "y", -2), (3, 2, "x", 9), (4, None, "x", 9), (5, 7, "x", 1)],
        [(1, 1, "u", 3), (2, 1, "u", 4), (3, 2, "v", None), (4, 8, "v", 2)],
    ]
    made = result_table(query, streams, (True, True), [10])
    assert asked == [True]
    assert sorted(made.drop(["at"]).to_pylist(), key=str) == [
        {"k0": "x", "k1": "u", "a0": 10, "a1": 4, "a2": 2},
        {"k0": "x", "k1": "v", "a0": 9, "a1": None, "a2": 1},
        {"k0": "y", "k1": "u", "a0": -4, "a1": 4, "a2": 2},
    ]
    result_table(query, streams, (True, False), [10])
    result_table(query, streams, (False, True), [10])
    assert asked == [True], "an input that is late is joined row by row"


def test_sums_that_are_no_whole_doubles_are_joined(asked: Answers) -> None:
    query = query_of([SLIDING, SLIDING], [0], ["sum"], set())
    ones: list[Row] = [(1, 1, name, 1) for name in "abc"]
    for value, multiplied in ((2**53 - 3, True), (2**53 - 2, False), (-(2**60), False)):
        streams = [[*ones[:2], (1, 1, "z", value)], [(1, 1, "x", 0)]]
        (row,) = result_table(query, streams, (True, True), [10]).to_pylist()
        assert (row["a0"], asked.pop()) == (value + 2, multiplied)
    copies = [[(1, 1, "z", 2**52)], [(1, 1, "x", 0)] * 3]
    (row,) = result_table(query, copies, (True, True), [10]).to_pylist()
    assert (row["a0"], asked.pop()) == (3 * 2**52, False)


@pytest.mark.parametrize(
    ("values", "multiplied"),
    [
        ([1.5, -2.25, None, 1e300], True),
        ([1e308, 1e308, 1e308], False),
        ([1e308, 1e308], False),
        ([float("inf"), 1.0], False),
        ([float("nan"), 1.0], False),
    ],
)
def test_floats_are_multiplied_if_they_are_finite(
    values: Sequence[float | None],
    multiplied: bool,
    asked: Answers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An infinity times no rows would be a NaN in the groups of others."""
    argument = Expression("`d`", "double", ("d",))
    query = _with(Aggregate("sum", (argument,), "double"))
    rows = [(place % 2, "xy"[place % 2], value) for place, value in enumerate(values)]
    made = _evaluated(query, rows, pa.float64())
    assert asked == [multiplied]
    joined_instead(monkeypatch)
    assert str(made) == str(_evaluated(query, rows, pa.float64()))


@pytest.mark.parametrize("function", ["min", "max"])
def test_extremes_of_strings_are_those_of_the_join_values_that_both_have(
    function: str, asked: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    argument = Expression("`d`", "string", ("d",))
    query = _with(Aggregate(function, (argument,), "string"))
    rows = [(0, "x", "b"), (1, "x", "a"), (9, "x", "0"), (9, "x", "z"), (1, "y", None)]
    made = _evaluated(query, rows, pa.string())
    assert asked == [True]
    joined_instead(monkeypatch)
    assert made == _evaluated(query, rows, pa.string())
    assert {row["k0"]: row["a0"] for row in made} == {
        "x": "a" if function == "min" else "b",
        "y": None,
    }


def test_products_are_made_where_entries_multiply(answers: Answers) -> None:
    """Not where each entry meets few others, and not where most cells would be empty."""
    query = query_of([SLIDING, SLIDING], [0], ["sum"], {0, 1})
    dense = [[(1, j, f"{g}", 1) for j in range(4) for g in range(20)] for _ in range(2)]
    few = [[(1, j, f"{j}", 1) for j in range(40)] for _ in range(2)]
    empty = [[(1, j, f"{j}-{g}", 1) for j in range(40) for g in range(10)] for _ in range(2)]
    for streams in (dense, few, empty):
        result_table(query, streams, (True, True), [10])
    assert answers == [True, False, False]


def _with(aggregate: Aggregate) -> AggregationJoin:
    """Two inputs, grouped by the first one, with an aggregate on the first one."""
    query = query_of([SLIDING, SLIDING], [None], ["count"], {0})
    return replace(query, aggregates=(JoinedAggregate(aggregate, 0),))


def _evaluated(
    query: AggregationJoin, rows: Sequence[tuple[int, str, Any]], type_: pa.DataType
) -> list[dict[str, Any]]:
    """The groups of rows (join value, group, value) joined with three rows of the join values 0, 0 and 1."""
    partials = query.aggregates[0].partials("`t`")
    lifted: dict[str, pa.Array] = {}
    for partial in partials:
        values = [value for _, _, value in rows]
        if partial.combine.name == "add":
            lifted[partial.name] = pa.array([int(v is not None) for v in values], pa.int64())
        elif partial.combine.name == "add_float":
            lifted[partial.name] = pa.array([v or 0.0 for v in values], type_)
        else:
            lifted[partial.name] = pa.array(values, type_)
    own = _entries([row[0] for row in rows], [row[1] for row in rows], pa.table(lifted), partials)
    other = _entries([0, 0, 1], ["u", "u", "v"], pa.table({"": pa.nulls(3)}), ())
    sides = [Side(own, True, tuple(partials)), Side(other, True, ())]
    table = evaluated(query, sides, [tuple(partials)], np.array([10]), ansi=True)
    return sorted(table.to_pylist(), key=str)


def _entries(
    values: Sequence[int], groups: Sequence[str], lifted: pa.Table, partials: Sequence[Any]
) -> Entries:
    columns = {
        "j": column(pa.array(values, pa.int32())),
        "g": column(pa.array(groups, pa.string())),
    }
    instants = np.full(len(values), 10, np.int64)
    ones = np.ones(len(values), np.int64)
    return entries_of(lifted, instants, instants, columns, ones, list(partials))
