"""Boolean expressions as predicate sets (ARGUS, sections 5.2 and 6.1).

An expression may be true, false or NULL; a row passes only where it is true. `_formula` says for which
rows an expression has one of some outcomes, as a two-valued formula of literals: NOT exchanges true and
false, AND is true where all parts are, false where one is, not true where one is not. So NOT is pushed
down to the comparisons with SQL's three-valued logic kept, and disappears there into sets of values.

| expression | becomes |
|---|---|
| comparison of exact types | a `Linear` and integers (`linear`) |
| any other expression compared with a constant | the expression and values of its type |
| two other sides | `compare(left, right)`: never moved, because rounding would change results |
| `<=>` of two sides | a subject of its own, never merged with `=` |
| `IN` with constants, `BETWEEN`, `LIKE 'ab%'` | a set of values |
| `IS NULL` | NULL in one of the columns that make the expression NULL |
| AND, OR, NOT, CASE, coalesce | formulas of their parts, then conjunctive normal form |
| everything else, and `Opaque` | a boolean subject that must be true |

Nothing is refused. Time: quadratic in the number of conditions.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from weft.algebra.condition.values import ALL, NOT_NULL, Values, union
from weft.algebra.predicates.comparison import COMPARISONS, Comparison, compared, matched, one_of
from weft.algebra.predicates.formula import (
    ALWAYS,
    AllOf,
    AnyOf,
    Formula,
    Outcomes,
    conjunctive,
    truth_values,
)
from weft.algebra.predicates.literal import LiteralPredicate, is_strict
from weft.algebra.predicates.predicate_set import PredicateSet
from weft.algebra.predicates.subject import Linear, Subject, ordered, subject_of
from weft.algebra.scalar import Call, Literal, Scalar
from weft.algebra.types import BOOLEAN

_TRUE: Final[Outcomes] = frozenset({True})
_FALSE: Final[Outcomes] = frozenset({False})
_NULL: Final[Outcomes] = frozenset({None})
_NOT_NULL: Final[Outcomes] = _TRUE | _FALSE
_ANY: Final[Outcomes] = _NOT_NULL | _NULL
_REMEMBERED: Final = 1 << 16
"""How many comparisons are kept. Queries of one application share most of theirs."""


def predicate_set(scalar: Scalar) -> PredicateSet:
    """The canonical form of a boolean expression of which only `true` counts.

    >>> from weft.algebra.scalar import Ref
    >>> a, b = Ref("0.a", "int"), Ref("1.b", "int")
    >>> predicate_set(Call("not", (Call(">", (a, b), "boolean"),), "boolean")).sql
    '`0.a` - `1.b` <= 0'
    """
    return conjunctive(_formula(scalar, _TRUE))


def _formula(scalar: Scalar, outcomes: Outcomes) -> Formula:
    """Where a boolean expression has one of the outcomes."""
    if outcomes == _ANY:
        return ALWAYS
    if not outcomes:
        return AnyOf((), scalar, outcomes)
    if isinstance(scalar, Literal):
        value = bool(scalar.value) if scalar.value is not None else None
        return ALWAYS if value in outcomes else AnyOf((), scalar, outcomes)
    if isinstance(scalar, Call):
        return _call_formula(scalar, outcomes)
    return _plain(scalar, outcomes)


def _call_formula(call: Call, outcomes: Outcomes) -> Formula:
    operator, arguments = call.operator, call.arguments
    if operator == "not":
        return _formula(arguments[0], _swapped(outcomes))
    if operator in ("and", "or"):
        return _junction(call, outcomes)
    if operator == "is_null":
        if outcomes == _NULL:
            return AnyOf((), call, outcomes)
        if outcomes >= _NOT_NULL:
            return ALWAYS
        return _null_test(arguments[0], True in outcomes)
    if operator == "in":
        return _membership(call, outcomes)
    if operator == "<=>" and len(arguments) == 2:
        return _null_safe(call, outcomes)
    if operator in COMPARISONS and len(arguments) == 2:
        return _comparison(call, outcomes)
    if operator == "like" and len(arguments) == 2:
        test = matched(*arguments)
        return _plain(call, outcomes) if test is None else _decided(call, test, outcomes)
    if operator == "coalesce":
        return _coalesce(call, outcomes)
    if operator == "case":
        return _case(call, outcomes)
    return _plain(call, outcomes)


def _swapped(outcomes: Outcomes) -> Outcomes:
    return frozenset(None if outcome is None else not outcome for outcome in outcomes)


def _plain(scalar: Scalar, outcomes: Outcomes) -> Formula:
    """A boolean expression that is not looked into."""
    subject = ordered(scalar)
    if isinstance(subject, Call) and is_strict(subject):
        return _with_null_parts(subject, truth_values(outcomes), subject, outcomes)
    return LiteralPredicate(subject, truth_values(outcomes))


def _junction(call: Call, outcomes: Outcomes) -> Formula:
    """AND and OR. An AND is NULL where it is neither true nor false."""
    if outcomes == _NULL:
        return AllOf((_junction(call, _TRUE | _NULL), _junction(call, _FALSE | _NULL)))
    if outcomes == _NOT_NULL:
        return AnyOf((_junction(call, _TRUE), _junction(call, _FALSE)), call, outcomes)
    parts = tuple(_formula(argument, outcomes) for argument in call.arguments)
    for_all = (True in outcomes) == (call.operator == "and")
    return AllOf(parts) if for_all else AnyOf(parts, call, outcomes)


def _null_test(scalar: Scalar, is_null: bool) -> Formula:
    """Where an expression is NULL, or where it is not, by the parts that make it NULL."""
    if isinstance(scalar, Literal):
        matches = (scalar.value is None) == is_null
        return ALWAYS if matches else AnyOf((), scalar, frozenset())
    test = Call("is_null", (scalar,), BOOLEAN)
    outcomes = _TRUE if is_null else _FALSE
    if isinstance(scalar, Call):
        if is_strict(scalar):
            parts = tuple(_null_test(argument, is_null) for argument in scalar.arguments)
            return AnyOf(parts, test, outcomes) if is_null else AllOf(parts)
        if scalar.operator == "coalesce":
            parts = tuple(_null_test(argument, is_null) for argument in scalar.arguments)
            return AllOf(parts) if is_null else AnyOf(parts, test, outcomes)
        if scalar.type == BOOLEAN:
            return _formula(scalar, _NULL if is_null else _NOT_NULL)
    return LiteralPredicate(subject_of(scalar), Values(null=True) if is_null else NOT_NULL)


def _null_safe(call: Call, outcomes: Outcomes) -> Formula:
    """`<=>`: with a constant it is `=` that takes NULL for false."""
    for operand, other in (call.arguments, call.arguments[::-1]):
        if isinstance(other, Literal):
            if other.value is None:
                test = Call("is_null", (operand,), BOOLEAN)
                return _formula(test, outcomes)
            equal = Call("=", (operand, other), BOOLEAN)
            wider = outcomes | _NULL if False in outcomes else outcomes - _NULL
            return _formula(equal, wider)
    if outcomes == _NULL:
        return AnyOf((), call, outcomes)
    if outcomes >= _NOT_NULL:
        return ALWAYS
    return LiteralPredicate(ordered(call), truth_values(outcomes - _NULL))


def _coalesce(call: Call, outcomes: Outcomes) -> Formula:
    """The first part that is not NULL: it has the outcome, or it is NULL and the rest has it."""
    first, *rest = call.arguments
    if not rest:
        return _formula(first, outcomes)
    remaining = Call("coalesce", tuple(rest), call.type)
    otherwise = (_formula(first, _NOT_NULL), _formula(remaining, outcomes))
    return AllOf((_formula(first, outcomes | _NULL), AnyOf(otherwise, call, outcomes)))


def _case(call: Call, outcomes: Outcomes) -> Formula:
    """The first branch whose condition is true."""
    if len(call.arguments) == 1:
        return _formula(call.arguments[0], outcomes)
    condition, value, *rest = call.arguments
    remaining = Call("case", tuple(rest), call.type)
    chosen = (_formula(condition, _FALSE | _NULL), _formula(value, outcomes))
    otherwise = (_formula(condition, _TRUE), _formula(remaining, outcomes))
    return AllOf((AnyOf(chosen, call, outcomes), AnyOf(otherwise, call, outcomes)))


@lru_cache(maxsize=_REMEMBERED)
def _comparison(call: Call, outcomes: Outcomes) -> Formula:
    left, right = call.arguments
    for operand, other in ((left, right), (right, left)):
        if operand.type == BOOLEAN and isinstance(other, Literal):
            if call.operator in ("=", "<>") and isinstance(other.value, bool):
                same = (call.operator == "=") == other.value
                return _formula(operand, outcomes if same else _swapped(outcomes))
    return _decided(call, compared(call.operator, left, right), outcomes)


@lru_cache(maxsize=_REMEMBERED)
def _membership(call: Call, outcomes: Outcomes) -> Formula:
    """IN: equal to one of the items; NULL if it is none of them and one of them is NULL."""
    operand, *items = call.arguments
    constants = [item for item in items if isinstance(item, Literal)]
    if len(constants) == len(items) and operand.type != BOOLEAN:
        test = one_of(operand, constants)
        if test is not None:
            return _decided(call, test, outcomes)
    alternatives = tuple(Call("=", (operand, item), BOOLEAN) for item in items)
    return _formula(Call("or", alternatives, BOOLEAN), outcomes)


def _decided(call: Call, test: Comparison, outcomes: Outcomes) -> Formula:
    """Where a comparison has one of the outcomes."""
    neither = ~(test.true | test.false)
    sets = {True: test.true, False: test.false, None: neither}
    values = union([sets[outcome] for outcome in outcomes])
    wants_null = None in outcomes
    others = tuple(_null_test(other, wants_null) for other in test.others)
    if test.subject is None:
        decided: Formula = ALWAYS if values.intervals else AnyOf((), call, outcomes)
    else:
        decided = _with_null_parts(test.subject, values, call, outcomes)
    if not others:
        return decided
    parts = (decided, *others)
    return AnyOf(parts, call, outcomes) if wants_null else AllOf(parts)


def _with_null_parts(
    subject: Subject, values: Values, scalar: Scalar, outcomes: Outcomes
) -> Formula:
    """Where the subject's value is in the set. That it is NULL is said of its parts instead."""
    if isinstance(subject, Linear):
        columns: tuple[Scalar, ...] = tuple(ref for _, ref in subject.terms)
        is_split = len(columns) > 1
    else:
        columns = subject.arguments if isinstance(subject, Call) else ()
        is_split = isinstance(subject, Call) and is_strict(subject)
    if not is_split:
        return LiteralPredicate(subject, values)
    if values == ALL:
        return ALWAYS
    if values == NOT_NULL:
        return AllOf(tuple(_null_test(column, False) for column in columns))
    if not values.null:
        return LiteralPredicate(subject, values)
    nulls = tuple(_null_test(column, True) for column in columns)
    literal = LiteralPredicate(subject, Values(values.intervals))
    return AnyOf((literal, *nulls), scalar, outcomes)
