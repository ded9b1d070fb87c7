"""Every canonical predicate set says what the expression says, for every row."""

from __future__ import annotations

import pytest
from tests.support.predicates import Expressions, call, passes, random_row, value
from tests.support.seeds import chance_for

from weft.algebra.condition import Values
from weft.algebra.predicates import NEVER, TRUE, Linear, LiteralPredicate, predicate_set
from weft.algebra.predicates.formula import MOST_CLAUSES
from weft.algebra.scalar import Call, Literal, Opaque, Ref, Scalar
from weft.algebra.types import SqlType

A, B, C = Ref("0.a", "int"), Ref("0.b", "int"), Ref("1.a", "int")
S, T = Ref("0.s", "string"), Ref("1.s", "string")
X, Y = Ref("0.x", "double"), Ref("1.x", "double")
D, E = Ref("0.d", "date"), Ref("1.d", "date")
M = Ref("0.m", "decimal(6,2)")
W, V = Ref("0.w", "decimal(38,10)"), Ref("1.w", "decimal(38,10)")


def number(value: int, type_: SqlType = "int") -> Literal:
    return Literal(value, type_)


def plus(left: Scalar, right: Scalar) -> Call:
    return call("+", left, right, type_="int")


def times(left: Scalar, right: Scalar) -> Call:
    return call("*", left, right, type_="int")


def text(scalar: Scalar) -> str:
    return predicate_set(scalar).sql


def test_random_expressions_pass_the_rows_for_which_they_are_true() -> None:
    chance = chance_for("predicates: canonical")
    expressions = Expressions(chance)
    for _ in range(700):
        expression = expressions.boolean()
        predicates = predicate_set(expression)
        for _ in range(25):
            row = random_row(chance)
            assert passes(predicates, row) == (value(expression, row) is True), (expression, row)


SAME = [
    (call("<", A, C), call(">", C, A)),
    (call("<", A, C), call("not", call(">=", A, C))),
    (call("<", A, C), call("<=", plus(A, number(1)), C)),
    (call("<", S, T), call(">", T, S)),
    (call("<", S, T), call("not", call("<=", T, S))),
    (call("<", X, Y), call("not", call(">=", X, Y))),
    (call(">", times(number(2), A), number(7)), call(">=", A, number(4))),
    (call("=", plus(A, plus(C, B)), number(1)), call("=", plus(plus(B, A), C), number(1))),
    (
        call("<=", E, call("date_add", D, number(20), type_="date")),
        call("<=", call("datediff", E, D, type_="int"), number(20)),
    ),
    (
        call("<=", call("date_sub", E, number(20), type_="date"), D),
        call(">=", D, call("date_add", E, number(-20), type_="date")),
    ),
    (call("in", A, number(1), number(2), number(3)), call("not", call("or",
        call("<", A, number(1)), call(">", A, number(3))))),
    (call("=", A, A), call("not", call("is_null", A))),
    (call("=", X, X), call("not", call("is_null", X))),
    (call("<=>", A, Literal(None, "int")), call("is_null", A)),
    (call("is_null", plus(A, C)), call("or", call("is_null", C), call("is_null", A))),
    (call("<=>", call("<", A, C), Literal(True, "boolean")), call("<", A, C)),
    (call("coalesce", call("<", A, C), Literal(False, "boolean")), call("<", A, C)),
    (call("and", call("<", A, C), call("not", call("is_null", A))), call("<", A, C)),
    (call("or", call("<", A, C), call(">=", A, C)),
     call("and", call("not", call("is_null", A)), call("not", call("is_null", C)))),
    (call("=", times(X, number(2)), Y), call("=", Y, times(number(2), X))),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME, ids=lambda scalar: "")
def test_spellings_of_one_condition_are_equal(one: Scalar, other: Scalar) -> None:
    assert predicate_set(one) == predicate_set(other)


TEXTS = [
    (call("<=", E, call("date_add", D, number(20), type_="date")), "`0.d` - `1.d` >= -20"),
    (call("=", times(number(2), A), number(7)), "false"),
    (call("<>", A, A), "false"),
    (call("<", D, Literal("1970-01-02", "date")), "`0.d` <= DATE '1970-01-01'"),
    (call(">", M, Literal("1.50", "decimal(6,2)")), "`0.m` >= 1.51"),
    (call("<=>", A, C), "(`0.a` <=> `1.a`)"),
    (call("=", A, C), "`0.a` - `1.a` = 0"),
    (call("<", S, Literal("b", "string")), "`0.s` < 'b'"),
    (call("=", X, Literal(float("nan"), "double")), "`0.x` >= NaN"),
    (call(">", X, Literal(float("nan"), "double")), "false"),
    (call("<=", X, Literal(float("nan"), "double")), "`0.x` IS NOT NULL"),
    (call("=", X, Literal(-0.0, "double")), "`0.x` = 0.0"),
    (call("<", Ref("0.t", "timestamp"), Literal(1, "timestamp")),
     "`0.t` <= TIMESTAMP '1970-01-01 00:00:00Z'"),
    (call("<=", Ref("0.c", "tinyint"), number(127, "tinyint")), "`0.c` IS NOT NULL"),
    (call("not", call("like", S, Literal("a%", "string"))), "(`0.s` < 'a' OR `0.s` >= 'b')"),
    (call("like", S, Literal("a_c%", "string")), "(`0.s` LIKE 'a_c%')"),
    (call("like", S, Literal("ab", "string")), "`0.s` = 'ab'"),
    (call("like", S, Literal("é%", "string")), "(`0.s` LIKE 'é%')"),
]  # fmt: skip


@pytest.mark.parametrize(("scalar", "expected"), TEXTS, ids=[expected for _, expected in TEXTS])
def test_canonical_texts(scalar: Scalar, expected: str) -> None:
    assert text(scalar) == expected


def test_null_safe_equality_is_not_equality() -> None:
    equal, safe = predicate_set(call("=", A, C)), predicate_set(call("<=>", A, C))
    assert equal != safe and not safe.implies(equal) and not equal.implies(safe)


def test_sums_that_no_type_of_spark_could_hold_stay_side_by_side() -> None:
    predicates = predicate_set(call("<", W, V))
    (literal,) = predicates.single
    assert not isinstance(literal.subject, Linear)
    assert predicates == predicate_set(call(">", V, W))


def test_decimal_arithmetic_is_exact_only_where_spark_keeps_every_digit() -> None:
    wide = Ref("0.w", "decimal(38,2)")
    kept = call("+", M, M, type_="decimal(7,2)")
    lost = call("+", wide, wide, type_="decimal(38,2)")
    assert text(call(">", kept, Literal("1.00", "decimal(7,2)"))) == "`0.m` >= 0.51"
    (literal,) = predicate_set(call(">", lost, Literal("1.00", "decimal(38,2)"))).single
    assert literal.subject == lost


def test_disjunctions_that_would_grow_too_large_stay_one_literal() -> None:
    pairs = [call("and", call("=", A, number(3 * n)), call("=", C, number(n))) for n in range(30)]
    scalar = call("or", *pairs)
    predicates = predicate_set(scalar)
    assert len(predicates.predicates) <= MOST_CLAUSES
    (whole,) = [literal for literal in predicates.single if literal.slots == {0, 1}]
    assert whole.subject.type == "boolean"
    for n in range(35):
        for other in (n, 0):
            row = {"0.a": 3 * n, "1.a": other}
            assert passes(predicates, row) == (value(scalar, row) is True)
    in_common = {literal.left: literal for literal in predicates.single if literal != whole}
    assert in_common["`0.a`"].values.intervals == tuple(
        predicate_set(call("in", A, *(number(3 * n) for n in range(30)))).single[0].values.intervals
    )


def test_text_of_spark_is_left_alone() -> None:
    opaque = Opaque("f(`0.a`, `1.a`)", ("0.a", "1.a"), "boolean")
    (literal,) = predicate_set(opaque).single
    assert literal.subject == opaque and literal.slots == {0, 1}
    assert predicate_set(opaque).moved({0: 3, 1: 2}).sql == "(f(`3.a`, `2.a`))"
    measure = Opaque("g(`0.a`)", ("0.a",), "int")
    assert text(call(">", measure, number(5))) == "(g(`0.a`)) >= 6"
    same = call("=", measure, measure)
    assert predicate_set(same).single[0].subject == call(
        "compare", measure, measure, type_="tinyint"
    )


UNKNOWN = [
    call("frobnicate", A, C),
    Literal(None, "boolean"),
    Literal(True, "void"),
    call("=", Ref("0.r", "binary"), Literal("x", "binary")),
    call("<", Ref("0.t", "timestamp"), Literal("2024-01-01", "timestamp")),
    call("<", Ref("0.t", "timestamp_ntz"), Literal("2024-01-01", "timestamp_ntz")),
    call("=", D, Literal("someday", "date")),
    call("=", M, Literal("many", "decimal(6,2)")),
    call("=", X, Literal("Infinity", "double")),
    call("in", A),
    call("=", Ref("0.g", "array<int>"), Ref("1.g", "array<int>")),
    call("and", call("frobnicate", A, C), call("frobnicate", C, A)),
]


@pytest.mark.parametrize("scalar", UNKNOWN, ids=range(len(UNKNOWN)))
def test_nothing_is_refused(scalar: Scalar) -> None:
    predicates = predicate_set(scalar)
    assert predicates.sql
    if scalar == UNKNOWN[0]:
        assert predicates.single == (LiteralPredicate(scalar, TRUTH),)


TRUTH = predicate_set(Ref("0.o", "boolean")).single[0].values


def test_the_truth_of_constants() -> None:
    assert predicate_set(Literal(True, "boolean")) == TRUE
    assert predicate_set(Literal(False, "boolean")) == predicate_set(Literal(None, "boolean"))
    assert predicate_set(Literal(False, "boolean")) == NEVER
    assert predicate_set(call("<", Literal("a", "string"), Literal("b", "string"))) == TRUE
    assert predicate_set(call("<", Literal(2, "int"), Literal(1, "int"))) == NEVER
    assert Values(((TRUTH.intervals[0][0], None),)) == TRUTH
