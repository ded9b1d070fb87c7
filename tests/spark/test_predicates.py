"""Predicate sets as Spark SQL: true in Spark for the rows that pass, and what Spark itself says of the
expressions they were made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.predicates import COLUMNS, Expressions, call, passes, random_row
from tests.support.seeds import chance_for

from weft.algebra.predicates import (
    NEVER,
    TRUE,
    PredicateSet,
    predicate_set,
    spark_sql,
    widened,
)
from weft.algebra.predicates.slots import names_in, plain_name, renamed, slots_in
from weft.algebra.scalar import Literal, Ref, Scalar, quoted_sql

pytestmark = pytest.mark.spark
ROWS = 120
TYPES = {plain_name(name): type_ for name, type_ in COLUMNS.items()}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    chance = chance_for("predicates: rows in Spark")
    drawn = [random_row(chance) for _ in range(ROWS)]
    return [{name: value for name, value in row.items() if name.startswith("0.")} for row in drawn]


@pytest.fixture(scope="module")
def table(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    """The rows of slot 0, under the relation's own column names, in their order."""
    schema = "row int, " + ", ".join(f"`{name}` {type_}" for name, type_ in TYPES.items())
    data = [
        (index, *(_in_utc(row[f"0.{name}"]) for name in TYPES)) for index, row in enumerate(rows)
    ]
    return spark.createDataFrame(data, schema).coalesce(1).cache()


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def truths(table: DataFrame, conditions: Sequence[str]) -> list[list[bool]]:
    """For every condition whether it is true, row by row."""
    columns = [f"({condition}) <=> true AS c{at}" for at, condition in enumerate(conditions)]
    collected = table.selectExpr("row", *columns).orderBy("row").collect()
    return [[row[at + 1] for row in collected] for at in range(len(conditions))]


def of_one_slot(expressions: Expressions) -> Scalar:
    """A random expression over columns of slot 0."""
    scalar = expressions.boolean(expressions.chance.choice((0, 1, 2)))
    return renamed(scalar, {name: f"0.{plain_name(name)}" for name in names_in(scalar)})


def test_random_predicates_are_true_in_spark_for_the_rows_that_pass(
    table: DataFrame, rows: list[dict[str, Any]]
) -> None:
    expressions = Expressions(chance_for("predicates: Spark SQL"))
    scalars = [of_one_slot(expressions) for _ in range(120)]
    sets = [predicate_set(scalar) for scalar in scalars]
    assert sum(not predicates.never for predicates in sets) > 60
    plain = [
        quoted_sql(renamed(scalar, {name: plain_name(name) for name in names_in(scalar)}))
        for scalar in scalars
    ]
    by_set = truths(table, [spark_sql(predicates) for predicates in sets])
    by_spark = truths(table, plain)
    for scalar, predicates, answer, original in zip(scalars, sets, by_set, by_spark, strict=True):
        expected = [passes(predicates, row) for row in rows]
        assert answer == expected, spark_sql(predicates)
        assert original == expected, quoted_sql(scalar)


SUM = Ref("0.b", "bigint")
EXTREMES: list[tuple[Scalar, list[Any]]] = [
    (
        call("<", SUM, call("+", Ref("0.c", "bigint"), Literal(1, "bigint"), type_="bigint")),
        [(2**63 - 1, 2**63 - 1), (-(2**63), 2**63 - 1), (2**63 - 1, -(2**63)), (None, 1)],
    ),
]


def test_sums_do_not_overflow(spark: SparkSession) -> None:
    for scalar, values in EXTREMES:
        data = spark.createDataFrame(
            [(n, *pair) for n, pair in enumerate(values)], "row int, b bigint, c bigint"
        )
        predicates = predicate_set(scalar)
        expected = [passes(predicates, {"0.b": b, "0.c": c}) for b, c in values]
        assert truths(data, [spark_sql(predicates)])[0] == expected
        assert expected == [True, True, False, False]


def test_long_lists_of_doubles_hold_zero_and_nan(spark: SparkSession) -> None:
    """Spark looks up long lists in a hash set, where -0.0 and 0.0 must still be equal."""
    column = Ref("0.x", "double")
    constants = [0.0, math.nan, *(n + 0.5 for n in range(20))]
    listed = call("in", column, *(Literal(value, "double") for value in constants))
    values = [-0.0, 0.0, math.nan, 1.5, 1.25, None]
    data = spark.createDataFrame(
        [(n, value) for n, value in enumerate(values)], "row int, x double"
    )
    condition = spark_sql(predicate_set(listed))
    assert truths(data, [condition])[0] == [True, True, True, True, False, False]


def test_the_widened_condition_is_true_wherever_a_set_is(
    table: DataFrame, rows: list[dict[str, Any]]
) -> None:
    chance = chance_for("predicates: widened")
    expressions = Expressions(chance)
    groups: list[list[PredicateSet]] = []
    for _ in range(40):
        size = chance.choice((1, 2, 5))
        groups.append([predicate_set(of_one_slot(expressions)) for _ in range(size)])
    selective = 0
    for sets, answer in zip(groups, truths(table, [widened(group) for group in groups])):
        for row, passed in zip(rows, answer, strict=True):
            assert passed or not any(passes(predicates, row) for predicates in sets)
        selective += not all(answer)
    assert selective > 5


def test_thousands_of_sets_become_one_list_and_one_range(spark: SparkSession) -> None:
    name, size = Ref("0.s", "string"), Ref("0.a", "int")
    sets = [
        predicate_set(
            call(
                "and",
                call("=", name, Literal(f"user{n}", "string")),
                call(">", size, Literal(n, "int")),
            )
        )
        for n in range(2000)
    ]
    condition = widened([*sets, predicate_set(call(">", size, Literal(5000, "int")))])
    assert condition.startswith("(`a` >= 5001 OR (`s` IN ('user0', ") and "`a` > 1" not in condition
    data = spark.createDataFrame(
        [(0, "user7", 1), (1, "x", 6000), (2, "x", 1)], "row int, s string, a int"
    )
    assert truths(data, [condition])[0] == [True, True, False]
    assert widened([*sets, TRUE]) == "true" and widened([NEVER]) == "false"


def test_many_ranges_become_cells(spark: SparkSession) -> None:
    """They hold all values of the ranges, and few others; values below zero, too."""
    chance = chance_for("predicates: cells")
    for type_, scale in (("int", 0), ("decimal(9,2)", 2)):
        column = Ref("0.a", type_)
        ranges = [(low, low + chance.randrange(20, 400)) for low in range(-50_000, 50_000, 2000)]

        def of(value: int, type_: str = type_, scale: int = scale) -> Literal:
            return Literal(value if not scale else f"{Decimal(value).scaleb(-scale):.2f}", type_)

        sets = [
            predicate_set(call("and", call(">=", column, of(low)), call("<=", column, of(high))))
            for low, high in ranges
        ]
        values = [chance.randrange(-52_000, 52_000) for _ in range(2000)]
        values += [bound for interval in ranges for bound in interval]
        data = spark.createDataFrame(
            [(n, Decimal(value).scaleb(-scale)) for n, value in enumerate(values)],
            f"row int, a decimal(9,{scale})",
        ).selectExpr("row", f"cast(a AS {type_}) AS a")
        condition = widened(sets)
        assert " div " in condition
        inside = [any(low <= value <= high for low, high in ranges) for value in values]
        answers = truths(data, [condition])[0]
        assert all(answer for answer, wanted in zip(answers, inside, strict=True) if wanted)
        assert sum(answers) < 2 * sum(inside)


def test_several_slots_are_refused() -> None:
    joined = predicate_set(call("=", Ref("0.a", "int"), Ref("1.a", "int")))
    assert slots_in(Ref("1.a", "int")) == {1}
    with pytest.raises(ValueError, match="several slots"):
        spark_sql(joined)
