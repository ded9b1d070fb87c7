"""What the whitelist types and turns into scalars, without asking anyone."""

from __future__ import annotations

import pytest
from tests.sql.support import FakeAnalyzer, rows_of_bids

from weft.algebra.scalar import Call, Literal, Ref, Scalar, to_sql
from weft.sql.reading.cursor import Cursor
from weft.sql.reading.expressions import expression
from weft.sql.reading.source import read
from weft.sql.typing.analyzer import Remembering
from weft.sql.typing.coercion import Typed
from weft.sql.typing.scalars import Typer


def typed(text: str, *, ansi: bool = True) -> Typed:
    source = read(text)
    rows = rows_of_bids(source, Remembering(FakeAnalyzer()), ansi)
    return Typer(rows, ansi).type(expression(Cursor(source)))


def scalar(text: str) -> Scalar | None:
    return typed(text).scalar


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("price + 1", "int"),
        ("price + auction", "bigint"),
        ("price * d", "double"),
        ("price / 2", "double"),
        ("price div 2", "bigint"),
        ("price % 3", "int"),
        ("tiny + tiny", "tinyint"),
        ("- auction", "bigint"),
        ("d + dec", "double"),
        ("f + f", "float"),
        ("price > 1.5", "boolean"),
        ("1.5", "decimal(2,1)"),
        ("0.05", "decimal(2,2)"),
        ("1e3", "double"),
        ("3000000000", "bigint"),
        ("-2147483648", "int"),
        ("99999999999999999999", "decimal(20,0)"),
        ("upper(channel)", "string"),
        ("channel || 'x'", "string"),
        ("coalesce(price, auction)", "bigint"),
        ("CASE WHEN ok THEN 1 ELSE d END", "double"),
        ("CAST(price AS string)", "string"),
        ("hour(ts)", "int"),
        ("price IN (1, 2.5)", "boolean"),
        ("date '2020-02-29'", "date"),
    ],
)
def test_types_as_in_spark(text: str, type_: str) -> None:
    assert typed(text).type == type_


@pytest.mark.parametrize(
    "text",
    [
        "price = '10'",
        "ts > '2020-01-01'",
        "f + 1",
        "dec + 1",
        "dec / 2",
        "payload.kind",
        "date '2020-02-30'",
        "timestamp '2020-01-01'",
        "price AND ok",
        "CAST(channel AS int)",
        "round(d)",
        "coalesce(price, 'x')",
    ],
)
def test_what_only_spark_can_type(text: str) -> None:
    found = typed(text)
    assert found.type is None and found.scalar is None


@pytest.mark.parametrize(
    ("text", "ansi", "legacy"),
    [
        ("price + 1", True, False),
        ("price / d", True, False),
        ("price / 2", False, False),
        ("price / 0", True, False),
        ("price % 2", False, False),
        ("price % 0", True, False),
        ("price % auction", True, False),
        ("- price", True, False),
        ("d + 1", False, False),
        ("d > price + 1", True, False),
        ("price > 17 AND channel = 'Google'", False, False),
        ("channel LIKE 'a%'", False, False),
        ("CAST(channel AS int) > 1", True, True),
        ("CAST(dec AS DOUBLE) > 1", False, False),
        ("CAST(d AS decimal(9,2)) > 1", True, True),
        ("round(d) > 1", True, True),
        ("upper(channel) = 'A'", False, False),
    ],
)
def test_what_can_raise(text: str, ansi: bool, legacy: bool) -> None:
    assert typed(text).can_raise == ansi
    assert typed(text, ansi=False).can_raise == legacy


def test_a_literal_takes_the_type_of_its_neighbour() -> None:
    auction = Ref("auction", "bigint")
    assert scalar("auction > 17") == Call(">", (auction, Literal(17, "bigint")), "boolean")
    assert scalar("NULL = auction") == Call("=", (Literal(None, "bigint"), auction), "boolean")
    assert scalar("d > 1.5") == Call(">", (Ref("d", "double"), Literal(1.5, "double")), "boolean")
    price = Ref("dec", "decimal(10,2)")
    assert scalar("dec > 17") == Call(">", (price, Literal("17.00", "decimal(10,2)")), "boolean")


def test_a_literal_that_does_not_fit_a_decimal_is_left_to_spark() -> None:
    assert scalar("dec > 0.001") is None
    assert scalar("dec > 99999999999") is None


def test_implicit_casts_are_nodes() -> None:
    price, double = Ref("price", "int"), Ref("d", "double")
    cast = Call("cast_double", (price,), "double")
    assert scalar("price < d") == Call("<", (cast, double), "boolean")
    assert scalar("price + auction") == Call(
        "+", (Call("cast_bigint", (price,), "bigint"), Ref("auction", "bigint")), "bigint"
    )
    assert scalar("price / 2") == Call("/", (cast, Literal(2.0, "double")), "double")


def test_the_shapes_of_calls() -> None:
    price, ok = Ref("price", "int"), Ref("ok", "boolean")
    one, two = Literal(1, "int"), Literal(2, "int")
    assert scalar("price IS NOT NULL") == Call(
        "not", (Call("is_null", (price,), "boolean"),), "boolean"
    )
    assert scalar("price BETWEEN 1 AND 2") == Call(
        "and",
        (Call(">=", (price, one), "boolean"), Call("<=", (price, two), "boolean")),
        "boolean",
    )
    assert scalar("price IN (1, NULL)") == Call("in", (price, one, Literal(None, "int")), "boolean")
    assert scalar("CASE WHEN ok THEN 1 END") == Call("case", (ok, one, Literal(None, "int")), "int")
    assert scalar("if(ok, 1, price)") == Call("case", (ok, one, price), "int")
    assert scalar("nvl(price, 1)") == Call("coalesce", (price, one), "int")
    assert scalar("ok IS TRUE") == Call("<=>", (ok, Literal(True, "boolean")), "boolean")
    assert scalar("- price") == Call("negate", (price,), "int")
    assert scalar("ok OR ok OR ok") == Call("or", (ok, ok, ok), "boolean")


def test_an_item_that_would_cast_the_operand_is_left_to_spark() -> None:
    assert scalar("price IN (1, 2L)") is None
    assert scalar("price IN (1.5)") is None


@pytest.mark.parametrize("text", ["price % 2", "upper(channel)", "f + f", "day = date'2020-01-01'"])
def test_typed_but_outside_the_kernel(text: str) -> None:
    found = typed(text)
    assert found.type is not None and found.scalar is None


def test_a_scalar_reads_back_as_sql() -> None:
    found = scalar("price > 1 AND (ok OR d < 2)")
    assert found is not None
    assert to_sql(found).startswith("((price > ")
