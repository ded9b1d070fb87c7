"""The predicate index: cuts refine every condition with as few classes as can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.conditions import LITERALS, class_of, predicate, selections, truth, value_of

from weft.algebra.condition import Selection
from weft.algebra.scalar import Call, Expression, Literal, Ref, Scalar
from weft.algebra.signature import Membership, Signature, cut_by, membership
from weft.algebra.types import SqlType
from weft.optimizer.predicates.index import FEWEST_FOR_A_CUT, index

X, Y = Ref("x", "bigint"), Ref("y", "string")
KEY = Expression("`k`", "bigint", ("k",))
DOMAINS: dict[SqlType, tuple[list[Any], list[Any]]] = {
    "bigint": ([-1, 0, 1, 2, 5], list(range(-3, 8))),
    "string": (["a", "b", "é"], ["", "a", "aa", "b", "bb", "é", "é!"]),
    "double": ([-1.0, -0.0, 2.5], [-9.0, -1.0, -0.5, -0.0, 0.0, 1.0, 2.5, float("inf")]),
    "decimal(10,2)": (["-0.01", "0.00", "3.50"], ["-1.00", "-0.01", "0.00", "0.01", "3.50", "4.00"]),
    "boolean": ([False, True], [False, True]),
    # Days with one between them: that no date lies between two neighbouring ones, a cut does not know.
    "date": (
        ["1970-01-01", "1970-01-03"],
        ["1969-01-01", "1970-01-01", "1970-01-02", "1970-01-03", "1970-02-01"],
    ),
}  # fmt: skip
"""Constants, and values that lie before, on, between and after all of them."""


def different(scalars: Sequence[Scalar]) -> list[tuple[Scalar, Selection]]:
    """Conditions and the selections that they are, each selection once: a cut is made of different
    ones. What passes all rows or none is no selection."""
    by_selection: dict[Selection, Scalar] = {}
    for scalar in scalars:
        condition = predicate(scalar).condition
        assert condition is not None
        assert not condition.clauses
        if not condition.never and condition.selections:
            by_selection.setdefault(condition.selections[0], scalar)
    return [(scalar, selection) for selection, scalar in by_selection.items()]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(sorted(DOMAINS)))
def test_classes_refine_every_selection_and_are_as_few_as_can_be(
    data: st.DataObject, type_: SqlType
) -> None:
    constants, literals = DOMAINS[type_]
    one = selections("x", type_, constants)
    kept = different(data.draw(st.lists(one, min_size=1, max_size=6)))
    if not kept:
        return
    cut = cut_by([selection for _, selection in kept])
    values = [*(value_of(literal, type_) for literal in literals), None]
    vectors = {
        value: tuple(truth(scalar, {"x": value}) is True for scalar, _ in kept) for value in values
    }
    classes = {value: class_of(value, cut) for value in values}
    pairs = {(classes[value], vectors[value]) for value in values}
    assert len(pairs) == len(set(classes.values())) == len(set(vectors.values()))
    assert set(cut.classes) == set(classes.values())

    probe, selection = data.draw(st.sampled_from([*kept, *different([data.draw(one)])]))
    passing = {classes[v] for v in values if truth(probe, {"x": v}) is True}
    others = {classes[v] for v in values if truth(probe, {"x": v}) is not True}
    assert cut.chosen(selection) == (None if passing & others else frozenset(passing))


@settings(max_examples=60)
@given(st.data(), st.sampled_from(sorted(LITERALS)))
def test_classes_refine_selections_at_the_limits_of_every_type(
    data: st.DataObject, type_: SqlType
) -> None:
    drawn = data.draw(st.lists(selections("x", type_), min_size=1, max_size=6))
    kept = different(drawn)
    if not kept:
        return
    cut = cut_by([selection for _, selection in kept])
    for scalar, selection in kept:
        chosen = cut.chosen(selection)
        assert chosen is not None
        for literal in [*LITERALS[type_], None]:
            value = value_of(literal, type_)
            assert (class_of(value, cut) in chosen) == (truth(scalar, {"x": value}) is True)


def equals(side: Ref, value: Any) -> Call:
    return Call("=", (side, Literal(value, side.type)), "boolean")


def both(*parts: Scalar) -> Expression:
    return predicate(Call("and", parts, "boolean"))


CLAUSE = Call("<", (X, Ref("z", "bigint")), "boolean")


def test_many_selections_are_a_cut_and_few_are_bits() -> None:
    few = [predicate(equals(X, n)) for n in range(FEWEST_FOR_A_CUT - 1)]
    assert index(few, ()) == Signature(bits=tuple(predicate_.sql for predicate_ in few))
    many = index([*few, predicate(equals(X, 9))], ())
    assert not many.bits
    assert [cut.attribute for cut in many.cuts] == ["`x`"]
    assert index([*few, predicate(equals(X, 9))], [Expression("`x`", "bigint")]) == Signature()


def test_equal_conditions_are_one_bit() -> None:
    rest = [both(equals(X, n), CLAUSE) for n in range(FEWEST_FOR_A_CUT)]
    signature = index(rest, ())
    assert signature.bits == (predicate(CLAUSE).sql,)
    assert len(signature.cuts) == 1


def test_a_predicate_is_decided_by_cut_key_and_bit_together() -> None:
    on_key = equals(Ref("k", "bigint"), 3)
    wanted = [both(equals(X, n), on_key, CLAUSE) for n in range(FEWEST_FOR_A_CUT)]
    signature = index(wanted, [KEY])
    decided = membership(wanted[0], signature, [KEY])
    assert decided is not None
    assert [position for position, _ in decided.classes] == [0]
    assert decided.bit == 0
    assert [position for position, _ in decided.keys] == [0]


def test_a_bit_for_the_whole_predicate_comes_first() -> None:
    wanted = both(equals(X, 1), CLAUSE)
    assert membership(wanted, Signature(bits=("other", wanted.sql)), ()) == Membership(bit=1)


@pytest.mark.parametrize(
    "unknown",
    [
        predicate(equals(X, 7)),
        predicate(Call("<", (X, Literal(2, "bigint")), "boolean")),
        predicate(equals(Y, "a")),
        both(equals(X, 1), equals(Y, "a")),
        both(equals(X, 1), CLAUSE),
        both(equals(X, 1), equals(Ref("k", "bigint"), 1)),
        Expression("rand() < 0.5", "boolean"),
    ],
    ids=lambda expression: str(expression.sql),
)
def test_what_a_signature_does_not_decide_has_no_membership(unknown: Expression) -> None:
    signature = index([predicate(equals(X, n)) for n in (1, 2, 4)], ())
    assert membership(predicate(equals(X, 1)), signature, ()) is not None
    assert membership(unknown, signature, ()) is None


def test_thousands_of_conditions_are_indexed() -> None:
    points = [predicate(equals(X, 2 * n)) for n in range(1000)]
    names = [both(equals(Y, f"n{n}"), CLAUSE) for n in range(1000)]
    ranges = [
        predicate(Call(">=", (Ref("z", "bigint"), Literal(n, "bigint")), "boolean"))
        for n in range(1000)
    ]
    signature = index([*points, *names, *ranges], ())
    assert [len(set(cut.classes)) for cut in signature.cuts] == [1001, 1001, 1001]
    assert signature.bits == (predicate(CLAUSE).sql,)
    some = [*points[::100], *names[::100], *ranges[::100]]
    assert all(membership(expression, signature, ()) is not None for expression in some)
