"""Hidden selections follow from the set, and the paper's appear by themselves."""

from __future__ import annotations

import itertools
import random

import pytest
from tests.support.predicates import call, passes, random_row
from tests.support.seeds import chance_for

from weft.algebra.predicates import (
    NEVER,
    Linear,
    PredicateSet,
    inferred,
    predicate_set,
    time_bounds,
)
from weft.algebra.predicates.literal import holds
from weft.algebra.scalar import Call, Literal, Ref, Scalar
from weft.algebra.types import SqlType


def conjunction(chance: random.Random) -> Scalar:
    """Comparisons of columns of the same kind, and of columns with constants."""

    def number(slot: int) -> Scalar:
        return Ref(f"{slot}.{chance.choice('ab')}", "int")

    def double(slot: int) -> Scalar:
        column = Ref(f"{slot}.{chance.choice('xy')}", "double")
        factor = Literal(chance.choice([0.5, -2.0, 3.0, 0.1]), "double")
        kind = chance.randrange(7)
        if kind == 0:
            return call("cast_double", Ref(f"{slot}.a", "int"), type_="double")
        if kind == 1:
            return call("negate", column, type_="double")
        if kind == 2:
            other = Ref(f"{chance.choice((0, 1))}.{chance.choice('xy')}", "double")
            return call(chance.choice("+-"), column, other, type_="double")
        if kind < 5:
            return call(chance.choice("*/"), column, factor, type_="double")
        return column

    def atom() -> Scalar:
        operator = chance.choice(["<", "<=", ">", ">=", "=", "=", "<>"])
        kind = chance.choice(["int", "int", "double", "string", "decimal"])
        slots = chance.sample((0, 1), 2)
        if kind == "string":
            left = Ref(f"{slots[0]}.{chance.choice('su')}", "string")
            other = Ref(f"{slots[1]}.{chance.choice('su')}", "string")
            constant = Literal(chance.choice(["", "a", "ab", "b"]), "string")
            return call(operator, left, chance.choice([other, constant]))
        if kind == "double":
            constant = Literal(chance.choice([-1.5, 0.0, 0.1, 1.0, 2.0, float("nan")]), "double")
            return call(operator, double(slots[0]), chance.choice([double(slots[1]), constant]))
        if kind == "decimal":
            money = Ref(f"{slots[0]}.m", "decimal(6,2)")
            whole = call("cast_decimal(12,2)", number(slots[1]), type_="decimal(12,2)")
            return call(operator, call("cast_decimal(12,2)", money, type_="decimal(12,2)"), whole)
        left = number(slots[0])
        if chance.random() < 0.3:
            left = call("*", left, Literal(chance.choice([2, -1, 3]), "int"), type_="int")
        constant = Literal(chance.randint(-2, 4), "int")
        if chance.random() < 0.5:
            return call(operator, left, constant)
        return call(operator, left, call("+", number(slots[1]), constant, type_="int"))

    return call("and", *(atom() for _ in range(chance.randint(2, 5))))


def test_inferred_selections_change_no_result() -> None:
    chance = chance_for("predicates: transitivity")
    grown = 0
    for _ in range(1000):
        predicates = predicate_set(conjunction(chance))
        wider = inferred(predicates, 2)
        grown += wider != predicates
        for _ in range(25 if wider != predicates else 0):
            row = random_row(chance)
            assert passes(predicates, row) == passes(wider, row), (predicates.sql, wider.sql, row)
    assert grown > 100


def amounts(type_: SqlType) -> tuple[Scalar, SqlType, Scalar]:
    million = {"double": 1e6, "bigint": 1_000_000}.get(type_, "1000000.00")
    if type_ == "double":
        return Literal(million, type_), "double", Literal(0.5, "double")
    product = {"bigint": "decimal(22,1)", "decimal(18,2)": "decimal(20,3)"}[type_]
    return Literal(million, type_), product, Literal("0.5", "decimal(1,1)")


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("bigint", "`{}.amount` >= 500001"),
        ("decimal(18,2)", "`{}.amount` >= 500000.01"),
        ("double", "`{}.amount` > 500000.0"),
    ],
)
def test_the_paper_s_hidden_selections(type_: SqlType, expected: str) -> None:
    first, second, third = (Ref(f"{slot}.amount", type_) for slot in range(3))
    million, product, half = amounts(type_)
    conditions = [
        call(">", first, million),
        call(">", second, call("*", first, half, type_=product)),
        call("=", third, second),
    ]
    for order in itertools.permutations(conditions):
        predicates = inferred(predicate_set(call("and", *order)), 3)
        for slot in (1, 2):
            assert predicates.within({slot}).sql == expected.format(slot)


def test_equality_passes_on_whole_sets() -> None:
    one, other = Ref("0.s", "string"), Ref("1.s", "string")
    listed = call("in", other, Literal("x", "string"), Literal("y", "string"))
    predicates = inferred(predicate_set(call("and", call("=", one, other), listed)), 2)
    assert predicates.within({0}).sql == "`0.s` IN ('x', 'y')"
    day, later = Ref("0.d", "date"), Ref("1.d", "date")
    shifted = call("=", later, call("date_add", day, Literal(2, "int"), type_="date"))
    days = call("in", day, *(Literal(f"1970-01-0{n}", "date") for n in (1, 5)))
    predicates = inferred(predicate_set(call("and", shifted, days)), 2)
    assert predicates.within({1}).sql == "`1.d` IN (DATE '1970-01-03', DATE '1970-01-07')"


def test_long_chains_are_followed_and_contradictions_seen() -> None:
    columns = [Ref(f"{slot}.a", "int") for slot in range(15)]
    chain = [call("<", one, other) for one, other in itertools.pairwise(columns)]
    start = call(">", columns[0], Literal(10, "int"))
    predicates = inferred(predicate_set(call("and", *chain, start)), 15)
    assert predicates.within({14}).sql == "`14.a` >= 25"
    end = call("<", columns[14], Literal(24, "int"))
    assert inferred(predicate_set(call("and", *chain, start, end)), 15) == NEVER


def test_bounds_that_creep_are_given_up() -> None:
    """a < b < c < a cannot be, but bounds alone would find it out only at the end of the type."""
    columns = [Ref(f"{slot}.a", "bigint") for slot in range(3)]
    circle = [call("<", columns[slot], columns[(slot + 1) % 3]) for slot in range(3)]
    start = call(">", columns[0], Literal(0, "bigint"))
    predicates = inferred(predicate_set(call("and", *circle, start)), 3)
    assert predicates != NEVER and "`2.a` >= " in predicates.sql


def test_nothing_that_is_implied_is_added() -> None:
    one, other = Ref("0.a", "int"), Ref("1.a", "int")
    equal = predicate_set(call("=", one, other))
    assert inferred(equal, 2) is equal
    both = [call(">", column, Literal(3, "int")) for column in (one, other)]
    bounded = predicate_set(call("and", call("=", one, other), *both))
    assert inferred(bounded, 2) is bounded


def moment(slot: int) -> Ref:
    return Ref(f"{slot}.ts", "timestamp")


def later(ref: Ref, micros: int) -> Call:
    return call("+", ref, Literal(micros, "interval"), type_="timestamp")


def within(first: int, second: int, micros: int) -> list[Scalar]:
    return [
        call("<=", moment(first), moment(second)),
        call("<=", moment(second), later(moment(first), micros)),
    ]


COLUMNS = {0: "ts", 1: "ts", 2: "ts"}


def bounds(*conditions: Scalar) -> dict[tuple[int, int], int]:
    predicates: PredicateSet = predicate_set(call("and", *conditions))
    return dict(time_bounds(predicates, COLUMNS))


def test_time_bounds_are_closed_under_transitivity() -> None:
    found = bounds(*within(0, 1, 3600), *within(1, 2, 60))
    assert found == {(0, 1): 3600, (1, 0): 0, (1, 2): 60, (2, 1): 0, (0, 2): 3660, (2, 0): 0}


def test_time_bounds_go_through_other_columns_but_not_through_other_types() -> None:
    other = Ref("1.sent", "timestamp")
    through = bounds(call("=", moment(0), other), call("<", other, moment(2)))
    assert through == {(2, 0): -1}
    day = Ref("1.day", "date")
    assert bounds(call("=", day, Ref("0.day", "date")), call("<", moment(0), moment(1))) == {
        (1, 0): -1
    }
    either = call("or", call("<", moment(0), moment(1)), call("=", day, Ref("0.day", "date")))
    assert bounds(either) == {}
    assert bounds(either, call("is_null", day)) == {(1, 0): -1}


def test_time_bounds_are_the_least_that_hold() -> None:
    chance = chance_for("predicates: time bounds")
    for _ in range(60):
        conditions: list[Scalar] = []
        for _ in range(chance.randint(2, 4)):
            first, second = chance.sample(range(3), 2)
            operator = chance.choice(["<", "<=", "="])
            conditions.append(
                call(operator, moment(first), later(moment(second), chance.randint(-3, 3)))
            )
        found = bounds(*conditions)
        predicates = predicate_set(call("and", *conditions))
        moments = [
            times
            for times in itertools.product(range(-13, 14), repeat=2)
            if _all_hold(predicates, (0, *times))
        ]
        for (first, second), most in found.items():
            differences = [(0, *times)[second] - (0, *times)[first] for times in moments]
            assert not differences or max(differences) == most, (predicates.sql, found)


def _all_hold(predicates: PredicateSet, times: tuple[int, ...]) -> bool:
    """The set is one of differences only: adding a constant to all times changes nothing."""
    for literal in predicates.single:
        assert isinstance(literal.subject, Linear)
        total = sum(factor * times[int(ref.name[0])] for factor, ref in literal.subject.terms)
        if not holds(literal.values, total):
            return False
    return not predicates.never
