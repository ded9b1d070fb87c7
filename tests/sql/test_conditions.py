"""Canonical conditions: they select the rows of the WHERE they were read from, by Spark's own word.

Texts are bound as users write them; scalars reach the constants that no text has a literal for (NaN,
infinities, floats). Many expressions are one projection over a local relation, which needs no job.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sql.support import COLUMNS, grouped, query
from tests.support.seeds import chance_for

from weft.algebra.condition import NEVER, condition
from weft.algebra.scalar import Call, Literal, Ref, Scalar, quoted_sql
from weft.algebra.types import INTEGRAL_LIMITS

TINY, INT, BIG = INTEGRAL_LIMITS["tinyint"], INTEGRAL_LIMITS["int"], INTEGRAL_LIMITS["bigint"]
NAN, INF = float("nan"), float("inf")

VALUES: dict[str, list[Any]] = {
    "auction": [*BIG, BIG[0] + 1, BIG[1] - 1, -1, 0, 1, 2, 3, 4, 5, 7],
    "price": [*INT, INT[0] + 1, INT[1] - 1, -5, -1, 0, 1, 2, 3, 4, 10],
    "tiny": [*TINY, TINY[0] + 1, TINY[1] - 1, -1, 0, 1, 2, 3],
    "channel": ["", "A", "a", "aa", "ab", "b", "é", "\uffff", "𝄞", "it's", "a\\b", "x%"],
    "d": [-INF, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.5, 2.0, 1e300, INF, NAN],
    "f": [-INF, -1.5, -0.0, 0.0, 0.1, 0.5, 1.5, 3.0, INF, NAN],
    "dec": [Decimal(t) for t in ("-99999999.99", "-0.01", "0", "0.01", "3", "3.5", "99999999.99")],
    "ok": [True, False],
    "day": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2020, 2, 29), dt.date(9999, 12, 31)],
}
CONSTANTS: dict[str, list[str]] = {
    "auction": [
        *("0", "3", "4L", "-1", "5Y", "2.5", "3.0", "1e0", "9223372036854775807"),
        *("-9223372036854775807", "99999999999999999999", "-99999999999999999999"),
    ],
    "price": [
        *("0", "3", "4", "-5", "10S", "1.5", "3.0", "2e0", "2147483647", "-2147483647"),
        *("2147483648", "-2147483648", "3000000000", "-3000000000", "99999999999999999999"),
    ],
    "tiny": ["0", "1Y", "3", "-1", "126", "127", "128", "-127", "-128", "-129", "300", "1.5"],
    "channel": ["''", "'a'", "'ab'", "'é'", "'𝄞'", "'\uffff'", r"'it\'s'", r"'a\\b'", "'x%'"],
    "d": ["0.0", "-0.0", "-0.0D", "1.5", "1", "-1", "1e300", "-1e300", "5e-324D", "2.0D"],
    "f": ["0.1", "0.1F", "0.1D", "1.5", "1.5D", "-0.0D", "3"],
    "dec": ["0", "3", "3.5", "3.50", "3.555", "-0.01", "99999999.99", "99999999999.0", "1e0"],
    "ok": ["true", "false"],
    "day": ["DATE '0001-01-01'", "DATE '1969-12-31'", "DATE '2020-02-29'", "DATE '9999-12-31'"],
}
OPERATORS = ["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"]
DERIVED = {"(auction % 5)": ["0", "3", "-1", "4"], "upper(channel)": ["'A'", "'AB'", "'a'"]}


def sides() -> st.SearchStrategy[tuple[str, list[str]]]:
    return st.sampled_from([*CONSTANTS.items(), *CONSTANTS.items(), *DERIVED.items()])


@st.composite
def atoms(draw: st.DrawFn) -> str:
    side, constants = draw(sides())
    one = st.sampled_from([*constants, *constants, "NULL"])
    kind = draw(st.sampled_from(["compare", "compare", "flipped", "in", "between", "null", "bare"]))
    if kind == "compare":
        return f"{side} {draw(st.sampled_from(OPERATORS))} {draw(one)}"
    if kind == "flipped":
        return f"{draw(one)} {draw(st.sampled_from(OPERATORS))} {side}"
    negated = draw(st.sampled_from(["", "NOT "]))
    if kind == "in":
        items = draw(st.lists(one, min_size=1, max_size=4))
        return f"{side} {negated}IN ({', '.join(items)})"
    if kind == "between":
        return f"{side} {negated}BETWEEN {draw(one)} AND {draw(one)}"
    if kind == "null":
        return f"{side} IS {negated}NULL"
    return draw(st.sampled_from(["ok", "NOT ok", "ok IS TRUE", "ok IS NOT FALSE", "true", "false"]))


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    both = st.tuples(inner, st.sampled_from(["AND", "OR"]), inner)
    return both.map(lambda parts: f"({' '.join(parts)})") | inner.map(
        lambda text: f"(NOT ({text}))"
    )


WHERES = st.recursive(atoms(), combined, max_leaves=6)


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own_session = spark.newSession()
    chance = chance_for(__name__)
    names = [name for name in COLUMNS if name in VALUES]
    rows = [tuple(chance.choice([*VALUES[name], None]) for name in names) for _ in range(80)]
    rows += [tuple(VALUES[name][i % len(VALUES[name])] for name in names) for i in range(13)]
    rows.append((None,) * len(names))
    ddl = ", ".join(f"{name} {COLUMNS[name]}" for name in names)
    frame = own_session.createDataFrame(
        own_session.createDataFrame(rows, ddl).coalesce(1).toArrow(), ddl
    )
    frame.createOrReplaceTempView("edges")
    return own_session


def assert_select_the_same(session: Any, pairs: Sequence[tuple[str, str]]) -> None:
    columns = [
        f"coalesce({text}, false) = coalesce({canonical}, false) AS c{number}"
        for number, (text, canonical) in enumerate(pairs)
    ]
    found = session.sql(f"SELECT {', '.join(columns)} FROM edges").toArrow()
    assert found.num_rows == 94
    for column, pair in zip(found.columns, pairs, strict=True):
        assert all(column.to_pylist()), pair


def canonical(where: str) -> str:
    predicate = query(grouped("count(*) AS n", where=where)).predicate
    return "true" if predicate is None else predicate.sql


@settings(max_examples=8)
@given(st.lists(WHERES, min_size=25, max_size=25, unique=True))
def test_a_canonical_condition_selects_the_rows_of_its_text(
    session: Any, wheres: list[str]
) -> None:
    assert_select_the_same(session, [(f"({text})", canonical(text)) for text in wheres])


SCALAR_COLUMNS = {name: type_ for name, type_ in COLUMNS.items() if name in VALUES}
SPECIAL = {
    "d": [NAN, "NaN", INF, "-Infinity", -0.0, 0.0, 1.5, -5e-324],
    "f": [NAN, "Infinity", -INF, -0.0, 0.5, 1.5],
    "dec": ["3.50", "0.00", "-99999999.99", "99999999.99"],
    "day": ["0001-01-01", "2020-02-29", "9999-12-31"],
}


def constants(name: str) -> st.SearchStrategy[Literal]:
    values = SPECIAL.get(name) or VALUES[name]
    return st.sampled_from([*values, None]).map(lambda value: Literal(value, SCALAR_COLUMNS[name]))


@st.composite
def comparisons(draw: st.DrawFn) -> Scalar:
    name = draw(st.sampled_from(list(SCALAR_COLUMNS)))
    side: Scalar = Ref(name, SCALAR_COLUMNS[name])
    kind = draw(st.sampled_from(["compare", "flipped", "in", "null"]))
    if kind == "null":
        return Call("is_null", (side,), "boolean")
    if kind == "in":
        items = draw(st.lists(constants(name), min_size=1, max_size=3))
        return Call("in", (side, *items), "boolean")
    operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
    pair = (side, draw(constants(name)))
    return Call(operator, pair if kind == "compare" else pair[::-1], "boolean")


def joined(inner: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    both = st.builds(Call, st.sampled_from(["and", "or"]), several, st.just("boolean"))
    return both | inner.map(lambda each: Call("not", (each,), "boolean"))


@settings(max_examples=8)
@given(st.lists(st.recursive(comparisons(), joined, max_leaves=6), min_size=25, max_size=25))
def test_a_canonical_condition_selects_the_rows_of_its_scalar(
    session: Any, scalars: list[Scalar]
) -> None:
    pairs = [(quoted_sql(scalar), condition(scalar).sql) for scalar in scalars]
    assert_select_the_same(session, pairs)


@pytest.mark.parametrize(
    "spellings",
    [
        ["price > 3", "3 < price", "price >= 4", "NOT price <= 3", "NOT (price < 4)"],
        ["price = 5", "price IN (5)", "price BETWEEN 5 AND 5", "price > 4 AND price < 6", "5 == price"],
        ["price IN (1, 2)", "price = 2 OR price = 1", "price BETWEEN 1 AND 2", "price IN (2, 1, 2)"],
        ["price <> 5", "NOT price = 5", "price < 5 OR price > 5", "price NOT IN (5)"],
        ["tiny < 300", "tiny <= 127", "tiny IS NOT NULL", "NOT tiny IS NULL", "tiny > -129"],
        ["channel = 'a'", "'a' = channel", "channel IN ('a', NULL)", "channel <=> 'a'"],
        ["price IS NULL", "price <=> NULL", "NOT (price IS NOT NULL)"],
        ["ok", "ok = true", "NOT NOT ok", "ok IS TRUE", "ok > false", "true = ok"],
        ["d = 0.0D", "d = -0.0D", "d BETWEEN -0.0D AND 0.0D"],
        ["dec = 3", "dec = 3.0", "dec = 3.00"],
        ["price > 3 AND channel = 'a'", "channel = 'a' AND 4 <= price"],
        ["price > 3 AND auction = tiny", "auction = tiny AND price > 3 AND auction = tiny"],
    ],
    ids=lambda spellings: spellings[0],
)  # fmt: skip
def test_equal_conditions_have_equal_text(spellings: list[str]) -> None:
    assert {canonical(text) for text in spellings} == {canonical(spellings[0])}


@pytest.mark.parametrize(
    "where",
    [
        "price = 3 AND price = 4",
        "price > 5 AND channel = 'a' AND price < 6",
        "price = NULL",
        "NOT price = NULL",
        "price NOT IN (1, NULL)",
        "price BETWEEN 5 AND 4",
        "tiny > 127",
        "price = 3000000000",
        "price IS NULL AND price > 0",
        "ok AND NOT ok",
        "price > 3 AND false",
        "price > 3 AND auction = tiny AND NULL",
    ],
)
def test_what_no_row_satisfies_is_false(where: str) -> None:
    predicate = query(grouped("count(*) AS n", where=where)).predicate
    assert predicate is not None
    assert predicate.sql == "false"
    assert predicate.condition == NEVER
    assert predicate.condition.never


@pytest.mark.parametrize("where", ["price > 3 OR price <= 3", "price >= -2147483648", "d > 1e300"])
def test_what_some_row_satisfies_is_not_false(where: str) -> None:
    predicate = query(grouped("count(*) AS n", where=where)).predicate
    assert predicate is not None and predicate.condition is not None
    assert not predicate.condition.never
    assert predicate.sql != "false"
