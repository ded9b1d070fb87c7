"""The front end against Spark itself: types, names, meaning, and what is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from tests.sql.cases import CALLS, EXPRESSIONS, QUERIES, REFUSED
from tests.sql.rebuild import rebuilt
from tests.sql.support import COLUMNS, bound, error, rows_of_bids

from weft.algebra.query import Field, Query
from weft.algebra.scalar import Expression, Scalar, to_sql
from weft.errors import SqlError
from weft.runtime.queries.analyzer import SparkAnalyzer
from weft.sql.reading.cursor import Cursor
from weft.sql.reading.expressions import expression
from weft.sql.reading.functions import (
    AGGREGATES,
    CHANGING,
    NAMING,
    ROW_CHANGING,
    SCALARS,
    UNSHARED_AGGREGATES,
)
from weft.sql.reading.source import read
from weft.sql.typing.analyzer import Remembering
from weft.sql.typing.scalars import Typer

pytestmark = pytest.mark.spark

NOON = dt.datetime(2020, 1, 1, 12, 0, 5)
ROWS = [
    (1, 10, "Google", NOON, 1.5, 2.5, Decimal("3.50"), dt.date(2020, 1, 1), True, 3,
     ("a", 1), ["x", "y"], b"ab"),
    (1, 11, "Google", NOON, 2.5, 0.1, Decimal("7.00"), dt.date(2020, 2, 1), False, 4,
     ("a", 2), ["x"], b"\x1f"),
    (2, -3, "it's a_b%", dt.datetime(1969, 12, 31, 23, 59, 59), float("nan"), -0.0,
     Decimal("-1.00"), dt.date(1970, 1, 1), False, -1, ("b", None), [], b""),
    (3, 7, 'back\\slash "q"', dt.datetime(2021, 6, 1), -0.0, 1.0, Decimal("0.10"),
     dt.date(2021, 6, 1), None, 7, None, None, None),
    (None, None, None, NOON, None, None, None, None, None, None, None, None, None),
]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    """A session for many small queries: projections that need no job, since the rows are a local
    relation."""
    own_session = spark.newSession()
    own_session.conf.set("spark.sql.shuffle.partitions", "1")
    own_session.conf.set("spark.sql.adaptive.enabled", "false")
    ddl = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    frame = own_session.createDataFrame(
        own_session.createDataFrame(ROWS, ddl).coalesce(1).toArrow(), ddl
    )
    frame.createOrReplaceTempView("bids")
    return own_session


@pytest.fixture(params=[True, False], ids=["ansi", "legacy"])
def ansi(session: Any, request: pytest.FixtureRequest) -> Iterator[bool]:
    session.conf.set("spark.sql.ansi.enabled", str(request.param).lower())
    yield request.param
    session.conf.set("spark.sql.ansi.enabled", "true")


def row_level(text: str, session: Any, ansi: bool) -> tuple[Expression, Scalar | None]:
    source = read(text)
    rows = rows_of_bids(source, Remembering(SparkAnalyzer(session)), ansi)
    node = expression(Cursor(source))
    return rows.expression(node, "in WHERE"), Typer(rows, ansi).type(node).scalar


def schema_of(frame: Any) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def values(frame: Any) -> list[str]:
    return sorted(repr(tuple(row)) for row in frame.collect())


def test_expressions_keep_their_type_and_meaning(session: Any, ansi: bool) -> None:
    """Each canonical text, and each scalar, gives the values of the user's own text."""
    from pyspark.errors import PySparkException

    texts: dict[str, list[str]] = {}
    """By expression: what must have the same type and the same values."""
    wanted_types: list[str] = []
    raising: set[str] = set()
    for text in EXPRESSIONS:
        try:
            found, scalar = row_level(text, session, ansi)
        except SqlError:
            with pytest.raises(PySparkException):
                session.sql(f"SELECT {text} AS own FROM bids")
            continue
        equal = [text, found.sql] if scalar is None else [text, found.sql, to_sql(scalar)]
        texts[text] = equal
        wanted_types += [found.type] * len(equal)
        if found.can_raise:
            raising.add(text)
    every_column = [column for equal in texts.values() for column in equal]
    types = [
        type_ for _, type_ in schema_of(session.sql(f"SELECT {', '.join(every_column)} FROM bids"))
    ]
    assert list(zip(every_column, types)) == list(zip(every_column, wanted_types))
    together = [text for text in texts if text not in raising]
    assert len(together) > 50 and raising
    for equal in [[text] for text in raising] + [together]:
        columns = [column for text in equal for column in texts[text]]
        try:
            rows = session.sql(f"SELECT {', '.join(columns)} FROM bids").collect()
        except PySparkException:
            assert equal[0] in raising
            continue
        shown = iter(zip(*rows, strict=True))
        for text in equal:
            values = [[repr(value) for value in next(shown)] for _ in texts[text]]
            assert values == [values[0]] * len(values), text


GROUPING = "FROM bids GROUP BY window(ts, '1 hour', '30 minutes'), auction"


def test_names_and_types_without_an_alias(session: Any) -> None:
    analyzer = SparkAnalyzer(session)
    for call in CALLS:
        sql = f"SELECT {call} {GROUPING}"
        found = bound(sql, analyzer)
        assert isinstance(found, Query), (sql, found)
        by_spark = session.sql(sql)
        assert [(each.name, each.type) for each in found.columns] == schema_of(by_spark), sql


def test_aggregates_keep_their_meaning(session: Any) -> None:
    columns = ", ".join(f"{call} AS c{index}" for index, call in enumerate(CALLS))
    sql = f"SELECT {columns} {GROUPING}"
    found = bound(sql, SparkAnalyzer(session))
    assert isinstance(found, Query)
    assert values(session.sql(rebuilt(found))) == values(session.sql(sql))


def test_queries_keep_their_names_types_and_meaning(session: Any) -> None:
    """A bound query, written as SQL again, gives the rows of the user's own text."""
    analyzer = SparkAnalyzer(session)
    for sql in QUERIES:
        found = bound(sql, analyzer)
        assert isinstance(found, Query), (sql, found)
        by_spark = session.sql(sql)
        assert [(each.name, each.type) for each in found.columns] == schema_of(by_spark), sql
        assert values(session.sql(rebuilt(found))) == values(by_spark), sql


def test_what_is_refused_is_refused_by_spark(session: Any) -> None:
    from pyspark.errors import PySparkException

    analyzer = SparkAnalyzer(session)
    for sql, error_class in REFUSED:
        assert error(sql, analyzer).error_class == error_class, sql
        with pytest.raises(PySparkException):
            session.sql(sql)


def test_aggregates_mix_with_columns_also_beside_a_map(session: Any) -> None:
    fields = (Field("m", "map<string,int>"), Field("price", "int"), Field("d", "double"))
    analyzer = SparkAnalyzer(session)
    expression = "max(price) + greatest(d, 0)"
    assert analyzer.types(fields, (expression, "sum(price)", "1 + 1")) == (
        "double",
        "bigint",
        "int",
    )
    assert analyzer.output_names(fields, (expression,)) == ("(max(price) + greatest(d, 0))",)
    assert analyzer.types((), ("1.5BD",)) == ("decimal(2,1)",)


def test_the_functions_that_weft_knows_exist(session: Any) -> None:
    there = {row[0].lower() for row in session.sql("SHOW SYSTEM FUNCTIONS").collect()}
    known = {*AGGREGATES, *UNSHARED_AGGREGATES, *CHANGING, *NAMING, *ROW_CHANGING, *SCALARS}
    by_grammar = {"position", "cast"}
    assert known - there - by_grammar == set()
    aggregates = {*AGGREGATES, *UNSHARED_AGGREGATES}
    assert not aggregates & (SCALARS | CHANGING)
    assert not SCALARS & (CHANGING | NAMING | ROW_CHANGING)
