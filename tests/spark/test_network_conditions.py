"""Conditions in the kernel of networks against Spark: the same rows pass, under ANSI and without."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.kernel_conditions import for_kernel, kernel_truth, rows_of
from tests.support.predicates import COLUMNS, Expressions, random_row
from tests.support.seeds import chance_for

from weft.algebra.condition import Values
from weft.algebra.condition.values import single
from weft.algebra.predicates import (
    LiteralPredicate,
    OrPredicate,
    PredicateSet,
    predicate_set,
)
from weft.algebra.scalar import Call, Literal, Ref, Scalar, quoted_sql

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    chance = chance_for("kernel conditions: rows in Spark")
    return [random_row(chance) for _ in range(150)]


@pytest.fixture(scope="module")
def table(spark: SparkSession, drawn: list[dict[str, Any]]) -> DataFrame:
    schema = "row int, " + ", ".join(f"`{name}` {type_}" for name, type_ in COLUMNS.items())
    data = [(at, *(_in_utc(row[name]) for name in COLUMNS)) for at, row in enumerate(drawn)]
    return spark.createDataFrame(data, schema).coalesce(1).cache()


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def spark_truth(table: DataFrame, scalars: list[Scalar]) -> list[list[bool]]:
    columns = [f"({quoted_sql(scalar)}) <=> true AS c{at}" for at, scalar in enumerate(scalars)]
    collected = table.selectExpr("row", *columns).orderBy("row").collect()
    return [[bool(row[at + 1]) for row in collected] for at in range(len(scalars))]


def test_random_conditions_on_two_relations_pass_the_rows_that_spark_passes(
    table: DataFrame, drawn: list[dict[str, Any]]
) -> None:
    expressions = Expressions(chance_for("kernel conditions: Spark"))
    rows = rows_of(drawn, COLUMNS)
    scalars: list[Scalar] = []
    sets: list[PredicateSet] = []
    while len(scalars) < 150:
        scalar = expressions.boolean(expressions.chance.choice((0, 1, 2)))
        predicates = for_kernel(predicate_set(scalar))
        if predicates is not None:
            scalars.append(scalar)
            sets.append(predicates)
    for scalar, predicates, expected in zip(
        scalars, sets, spark_truth(table, scalars), strict=True
    ):
        assert kernel_truth(predicates, rows) == expected, quoted_sql(scalar)


A, B, X, Y = (
    Ref("0.a", "int"),
    Ref("1.a", "int"),
    Ref("0.x", "double"),
    Ref("1.y", "double"),
)
HUGE = Literal(2**31 - 1, "int")


@pytest.mark.parametrize(
    "subject",
    [
        Call("*", (Call("+", (A, HUGE), "int"), B), "int"),
        Call("-", (Call("negate", (A,), "int"), HUGE), "int"),
    ],
)
def test_without_ansi_integers_wrap(
    spark: SparkSession, table: DataFrame, drawn: list[dict[str, Any]], subject: Call
) -> None:
    zero = Call(">", (subject, Literal(0, "int")), "boolean")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        (expected,) = spark_truth(table, [zero])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    positive = Values((_above(0),))
    predicates = PredicateSet((OrPredicate((LiteralPredicate(subject, positive),)),))
    assert kernel_truth(predicates, rows_of(drawn, COLUMNS), ansi=False) == expected
    assert True in expected and False in expected


def test_without_ansi_a_division_by_zero_is_null(
    spark: SparkSession, table: DataFrame, drawn: list[dict[str, Any]]
) -> None:
    subject = Call("/", (X, Y), "double")
    missing = Call("is_null", (subject,), "boolean")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        (expected,) = spark_truth(table, [missing])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    predicates = PredicateSet((OrPredicate((LiteralPredicate(subject, Values((), True)),)),))
    assert kernel_truth(predicates, rows_of(drawn, COLUMNS), ansi=False) == expected
    assert True in expected and False in expected


def _above(value: int) -> tuple[Any, Any]:
    return single(value)[1], None
