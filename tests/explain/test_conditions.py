"""Conditions are printed as people write them, and mean what they did: DuckDB evaluates the text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.networks import DAY, between, column, difference

from weft.algebra.condition import Bound, Values
from weft.algebra.predicates import NEVER, TRUE, Linear, LiteralPredicate, PredicateSet, Subject
from weft.algebra.predicates.predicate_set import OrPredicate, all_of, any_of
from weft.algebra.scalar import Call, Literal, Opaque, Ref
from weft.explain.network.conditions import conditions, conjunction

NAMES = ("f1", "f2", "f3")


def text(*literals: LiteralPredicate, names: Sequence[str] = NAMES) -> str:
    return conjunction(conditions(PredicateSet((any_of(literals),)), names))


def points(*values: int | str, null: bool = False) -> Values:
    intervals = [
        (Bound(value), Bound(value + 1) if isinstance(value, int) else Bound(value, after=True))
        for value in values
    ]
    return Values(tuple(intervals), null)


def test_a_sum_is_solved_for_the_last_relation() -> None:
    half = difference("0.amount", "1.amount", None, -1, (1, -2))
    assert text(half) == "f2.amount > 0.5 * f1.amount"
    assert text(difference("0.rbank", "1.sbank", 0, 0)) == "f2.sbank = f1.rbank"
    third = difference("0.amount", "1.amount", 0, None, (1, -3))
    assert text(third) == "f1.amount - 3 * f2.amount >= 0"


def test_lengths_of_time_have_their_unit() -> None:
    within = difference("0.ts", "1.ts", -20 * DAY, 0)
    assert text(within) == "f2.ts BETWEEN f1.ts AND f1.ts + 20 d"
    assert text(difference("0.ts", "1.ts", 90_000_000, None)) == "f2.ts <= f1.ts - 90 s"
    days = Linear(((1, Ref("0.d", "date")), (-1, Ref("1.d", "date"))))
    assert text(LiteralPredicate(days, between(-20, None))) == "f2.d <= f1.d + 20 days"


def test_constants_are_written_in_the_type_of_their_column() -> None:
    noon = int(datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000
    assert text(column("0.ts", noon, None)) == "f1.ts >= TIMESTAMP '2024-01-01 12:00:00Z'"
    money = Linear(((1, Ref("0.m", "decimal(10,2)")),))
    assert text(LiteralPredicate(money, between(10_001, None))) == "f1.m > 100"
    date = Linear(((1, Ref("0.d", "date")),))
    assert text(LiteralPredicate(date, points(1))) == "f1.d = DATE '1970-01-02'"
    name = Ref("0.name", "string")
    assert text(LiteralPredicate(name, points("a", "b'"))) == "f1.name IN ('a', 'b\\'')"
    ratio = Ref("0.ratio", "double")
    above = Values(((Bound(0.5, after=True), None),))
    assert text(LiteralPredicate(ratio, above)) == "f1.ratio > 0.5"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1_000_001, None, "amount > 1000000"),
        (1_000_000, None, "amount >= 1000000"),
        (None, 20, "amount <= 20"),
        (None, 99, "amount < 100"),
        (7, 7, "amount = 7"),
        (1, 99, "amount > 0 AND amount < 100"),
        (10, 20, "amount BETWEEN 10 AND 20"),
    ],
)
def test_the_rounder_of_two_bounds_is_written(
    low: int | None, high: int | None, expected: str
) -> None:
    assert text(column("0.amount", low, high), names=[""]) == expected


def test_sets_and_null() -> None:
    amount = Linear(((1, Ref("0.amount", "bigint")),))
    assert text(LiteralPredicate(amount, ~points(3, 5, null=True))) == "f1.amount NOT IN (3, 5)"
    assert text(LiteralPredicate(amount, ~points(3))) == "f1.amount IS NULL OR f1.amount <> 3"
    assert text(LiteralPredicate(amount, Values(null=True))) == "f1.amount IS NULL"
    assert text(LiteralPredicate(amount, Values(((None, None),)))) == "f1.amount IS NOT NULL"


def test_two_sides_that_are_not_moved() -> None:
    sides = (Ref("0.bank", "string"), Ref("1.bank", "string"))
    order: Subject = Call("compare", sides, "tinyint")
    assert text(LiteralPredicate(order, points(0))) == "f1.bank = f2.bank"
    assert text(LiteralPredicate(order, between(None, 0))) == "f1.bank <= f2.bank"
    assert text(LiteralPredicate(order, points(-1, 1))) == "f1.bank <> f2.bank"
    same = Call("<=>", sides, "boolean")
    assert text(LiteralPredicate(same, points(1))) == "f1.bank <=> f2.bank"
    assert text(LiteralPredicate(same, points(0))) == "NOT (f1.bank <=> f2.bank)"


def test_what_only_spark_evaluates_keeps_its_text() -> None:
    opaque = Opaque("rlike(`0.memo`, '`1.x`')", ("0.memo",), "boolean")
    assert text(LiteralPredicate(opaque, points(1))) == "rlike(f1.memo, '`1.x`')"
    called = Call("+", (Ref("1.two words", "double"), Literal(2.5, "double")), "double")
    above = LiteralPredicate(called, Values(((Bound(1.0, after=True), None),)))
    assert text(above) == "f2.`two words` + 2.5 > 1.0"


def test_no_condition_and_no_row() -> None:
    assert conditions(TRUE, NAMES) == []
    assert conditions(NEVER, NAMES) == ["false"]


COLUMNS = ("a", "b")
TYPES = {"a": "bigint", "b": "decimal(12,2)"}


@st.composite
def literals(draw: st.DrawFn) -> LiteralPredicate:
    names = draw(
        st.lists(
            st.sampled_from([f"{slot}.{name}" for slot in (0, 1) for name in COLUMNS]),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    factors = st.sampled_from([-50, -3, -2, -1, 1, 2, 3, 8])
    terms = [(draw(factors), Ref(name, TYPES[name[2:]])) for name in sorted(names)]
    if len(terms) == 1 or terms[0][0] < 0:
        terms[0] = (1, terms[0][1])
    numbers = sorted(draw(st.lists(st.integers(-300, 300), max_size=4, unique=True)))
    intervals = [
        (Bound(low), Bound(high)) for low, high in zip(numbers[::2], numbers[1::2], strict=False)
    ]
    values = Values(tuple(intervals), draw(st.booleans()))
    return LiteralPredicate(Linear(tuple(terms)), ~values if draw(st.booleans()) else values)


def holds(literal: LiteralPredicate, row: dict[str, int | None]) -> bool:
    """Whether the sum of a row's integers is in the set; decimals are unscaled."""
    assert isinstance(literal.subject, Linear)
    total = 0
    for factor, ref in literal.subject.terms:
        value = row[ref.name]
        if value is None:
            return literal.values.null
        total += factor * value
    return any(
        (low is None or total >= int(str(low.value)))
        and (high is None or total < int(str(high.value)))
        for low, high in literal.values.intervals
    )


integers = st.none() | st.integers(-400, 400)
rows = st.fixed_dictionaries({f"{slot}.{name}": integers for slot in (0, 1) for name in COLUMNS})


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(literals(), max_size=2), max_size=3), st.lists(rows, min_size=1, max_size=6)
)
def test_the_text_means_what_the_predicate_does(
    disjunctions: list[list[LiteralPredicate]], data: list[dict[str, int | None]]
) -> None:
    predicates = PredicateSet(tuple(OrPredicate(tuple(literals)) for literals in disjunctions))
    condition = conjunction(conditions(predicates, ("x", "y"))) or "true"
    cells = ", ".join(f"({number}, {_cells(row)})" for number, row in enumerate(data))
    table = f"(VALUES {cells}) t(id, a0, b0, a1, b1)"
    passing = duckdb.sql(
        f"SELECT x.id FROM (SELECT id, a0 AS a, b0 AS b FROM {table}) x "
        f"JOIN (SELECT id, a1 AS a, b1 AS b FROM {table}) y ON x.id = y.id WHERE {condition}"
    ).fetchall()
    expected = [
        number
        for number, row in enumerate(data)
        if all(any(holds(literal, row) for literal in ors) for ors in disjunctions)
    ]
    assert sorted(number for (number,) in passing) == expected, condition


def _cells(row: dict[str, int | None]) -> str:
    """A row as SQL; the integers of decimals are hundredths."""
    cells = []
    for name in ("0.a", "0.b", "1.a", "1.b"):
        value = "NULL" if row[name] is None else str(row[name])
        is_decimal = name.endswith("b")
        cells.append(f"({value} * 0.01)::decimal(12,2)" if is_decimal else f"{value}::bigint")
    return ", ".join(cells)


def test_all_of_a_set_is_printed() -> None:
    both = all_of([any_of([column("0.amount", 5, None)]), any_of([column("0.sbank", 1, 1)])])
    assert conjunction(conditions(both, [""])) == "amount >= 5 AND sbank = 1"
