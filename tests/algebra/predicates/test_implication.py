"""Whatever is called implied is implied; how many true implications are missed is counted."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from tests.support import z3_predicates
from tests.support.predicates import COLUMNS, Expressions, call, passes, random_row, value
from tests.support.seeds import chance_for

from weft.algebra.predicates import NEVER, TRUE, PredicateSet, inferred, predicate_set
from weft.algebra.scalar import Literal, Ref, Scalar

A, B, C = Ref("0.a", "int"), Ref("0.b", "int"), Ref("1.a", "int")
M = Ref("1.m", "decimal(6,2)")


def comparison(chance: random.Random) -> Scalar:
    """One of few comparisons, so that implications are frequent."""
    operator = chance.choice(["<", "<=", ">", ">=", "=", "<>", "<", ">"])
    constant = Literal(chance.randint(-2, 4), "int")
    kind = chance.randrange(8)
    if kind < 3:
        return call(operator, chance.choice([A, A, B, C]), constant)
    if kind == 3:
        items = [Literal(chance.choice([0, 1, 2, 3, None]), "int") for _ in range(3)]
        return call("in", chance.choice([A, B]), *items)
    if kind == 4:
        return call("is_null", chance.choice([A, B, C]))
    if kind == 5:
        half = call("cast_decimal(12,2)", chance.choice([A, C]), type_="decimal(12,2)")
        return call(operator, call("cast_decimal(12,2)", M, type_="decimal(12,2)"), half)
    left, right = chance.choice([(A, C), (C, A), (B, C)])
    if kind == 6:
        left = call("*", left, Literal(2, "int"), type_="int")
    return call(operator, left, call("+", right, constant, type_="int"))


def condition(chance: random.Random, depth: int = 2) -> Scalar:
    if depth == 0 or chance.random() < 0.3:
        one = comparison(chance)
        return call("not", one) if chance.random() < 0.2 else one
    operator = chance.choice(["and", "and", "or"])
    parts = [condition(chance, depth - 1) for _ in range(chance.choice([2, 2, 3]))]
    return call(operator, *parts)


def weakened(chance: random.Random, scalar: Scalar) -> Scalar:
    """Often something that follows from the expression."""
    kind = chance.randrange(4)
    if kind == 0 and getattr(scalar, "operator", "") == "and":
        return chance.choice(scalar.arguments)
    if kind == 1:
        return call("or", scalar, comparison(chance))
    if kind == 2:
        return call("not", call("not", scalar))
    return condition(chance, 1)


def test_implications_are_confirmed_by_z3(capsys: pytest.CaptureFixture[str]) -> None:
    chance = chance_for("predicates: implication by z3")
    counts: Counter[str] = Counter()
    for _ in range(400):
        premise = condition(chance)
        conclusion = weakened(chance, premise)
        left, right = inferred(predicate_set(premise), 2), predicate_set(conclusion)
        claimed = left.implies(right)
        truth = z3_predicates.implies(premise, conclusion)
        if claimed:
            assert truth is not False, (premise, conclusion)
        counts["true"] += truth is True
        counts["found"] += claimed
    with capsys.disabled():
        print(f"\nimplications: {counts['found']} of {counts['true']} found")
    assert counts["found"] > 0.7 * counts["true"] > 60


def test_implications_hold_for_every_row() -> None:
    chance = chance_for("predicates: implication by rows")
    expressions = Expressions(chance)
    claimed = 0
    for _ in range(600):
        one, other = expressions.boolean(2), expressions.boolean(1)
        if chance.random() < 0.5:
            other = call("or", one, other)
        left, right = predicate_set(one), predicate_set(other)
        if not left.implies(right) or left == NEVER:
            continue
        claimed += 1
        for _ in range(40):
            row = random_row(chance)
            assert not passes(left, row) or passes(right, row), (one, other, row)
    assert claimed > 40


def test_conjunction_and_what_remains_beyond_it() -> None:
    chance = chance_for("predicates: beyond")
    for _ in range(500):
        tested, wanted = predicate_set(condition(chance)), predicate_set(condition(chance))
        both, rest = tested & wanted, wanted.beyond(tested)
        for _ in range(20):
            row = random_row(chance)
            expected = passes(tested, row) and passes(wanted, row)
            assert passes(both, row) == expected
            assert (passes(tested, row) and passes(rest, row)) == expected
        assert both.implies(tested) and both.implies(wanted)


def test_the_same_predicates_after_their_slots_have_moved() -> None:
    chance = chance_for("predicates: moved")
    expressions = Expressions(chance)
    there, back = {0: 1, 1: 0}, {1: 0, 0: 1}
    for _ in range(400):
        predicates = predicate_set(expressions.boolean(2))
        exchanged = predicates.moved(there)
        assert exchanged.moved(back) == predicates
        assert exchanged.moved({0: 2, 1: 10}).moved({2: 1, 10: 0}) == predicates
        for _ in range(10):
            row = random_row(chance)
            other = {f"{there[int(name[0])]}{name[1:]}": one for name, one in row.items()}
            assert passes(predicates, row) == passes(exchanged, other)


def test_texts_are_equal_for_equal_predicates_only() -> None:
    chance = chance_for("predicates: texts")
    expressions = Expressions(chance)
    by_text: dict[str, PredicateSet] = {}
    for _ in range(1500):
        predicates = predicate_set(expressions.boolean(1))
        assert by_text.setdefault(predicates.sql, predicates) == predicates


OPERATORS = ("<", "<=", "=", ">=", ">", "<>")


@pytest.mark.parametrize("first", OPERATORS)
@pytest.mark.parametrize("second", OPERATORS)
def test_table_2_of_the_paper_derived(first: str, second: str) -> None:
    """Literals of one subject: exactly what the integers say, whatever the order of the constants."""
    for one, other in itertools.product(range(3), repeat=2):
        left = predicate_set(call(first, A, Literal(one, "int")))
        right = predicate_set(call(second, A, Literal(other, "int")))
        rows = [dict.fromkeys(COLUMNS) | {"0.a": number} for number in range(-2, 6)]
        expected = all(passes(right, row) for row in rows if passes(left, row))
        assert left.implies(right) == expected


def test_a_correlated_disjunction_is_decided() -> None:
    between = call("and", call(">", A, Literal(2, "int")), call("<", A, Literal(4, "int")))
    apart = call("or", call("<", A, Literal(4, "int")), call(">", A, Literal(5, "int")))
    assert predicate_set(between).implies(predicate_set(apart))
    assert not predicate_set(apart).implies(predicate_set(between))


def test_alternatives_that_cannot_be_are_dropped() -> None:
    alternatives = call("or", call("=", A, Literal(1, "int")), call("=", C, Literal(2, "int")))
    other = call(">", A, Literal(5, "int"))
    both = predicate_set(call("and", alternatives, other))
    assert both == predicate_set(call("and", other, call("=", C, Literal(2, "int"))))


def test_the_ends_of_the_lattice() -> None:
    some = predicate_set(call("=", A, C))
    assert some.implies(TRUE) and NEVER.implies(some) and not TRUE.implies(some)
    assert (some & NEVER) == NEVER and (some & TRUE) == some
    assert NEVER.sql == "false" and TRUE.sql == "true"


def test_a_comparison_implies_that_its_columns_are_not_null() -> None:
    compared = predicate_set(call("<", A, C))
    for column in (A, C):
        assert compared.implies(predicate_set(call("not", call("is_null", column))))
    assert not compared.implies(predicate_set(call("not", call("is_null", B))))
    assert value(call("is_null", A), {"0.a": None}) is True
