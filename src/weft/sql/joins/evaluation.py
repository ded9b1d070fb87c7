"""Who evaluates a scalar of a join: the kernel, or Spark.

Canonical conditions are exact sums where they can be; the kernel evaluates these, and expressions of
the whitelist. Arithmetic on decimals, dates and intervals that is no exact sum (inside a CASE, beside a
function) becomes `Opaque` here: a column that Spark computes of one input's rows.

Declines conditions of which a part that only Spark can evaluate reads several inputs.
"""

from __future__ import annotations

from typing import Final

from weft.algebra.predicates import Linear, LiteralPredicate, PredicateSet
from weft.algebra.predicates.literal import negated
from weft.algebra.predicates.predicate_set import all_of, any_of
from weft.algebra.predicates.slots import names_in, slots_in
from weft.algebra.predicates.subject import COMPARE, comparison_subject
from weft.algebra.scalar import Call, Literal, Opaque, Scalar, quoted_sql, walk
from weft.sql.fallback import Unshared
from weft.sql.typing.coercion import ARITHMETIC

_CASTS: Final = frozenset(f"cast_{type_}" for type_ in ARITHMETIC)
_DATES: Final = frozenset({"date_add", "date_sub", "datediff"})
_SUMS: Final = frozenset({"+", "-", "*", "negate"})
_LITERALS: Final = frozenset({"date", "interval"})


def needs_spark(scalar: Scalar) -> bool:
    """Whether the kernel cannot evaluate a scalar, or a part of it."""
    return any(_is_sparks(part) for part in walk(scalar))


def _is_sparks(part: Scalar) -> bool:
    if isinstance(part, Literal):
        return part.type in _LITERALS
    if not isinstance(part, Call):
        return False
    operator = part.operator
    if operator.startswith("cast_"):
        return operator not in _CASTS
    return operator in _DATES or (operator in _SUMS and part.type not in ARITHMETIC)


def evaluable(predicates: PredicateSet) -> PredicateSet:
    """The same predicates, with every part that only Spark can evaluate over one input."""
    literals = [literal for predicate in predicates.predicates for literal in predicate.literals]
    if all(
        isinstance(literal.subject, Linear) or _is_plain(literal.subject) for literal in literals
    ):
        return predicates
    changed = [
        any_of(_evaluable(literal) for literal in predicate.literals)
        for predicate in predicates.predicates
    ]
    return all_of(changed)


def _is_plain(scalar: Scalar) -> bool:
    """Whether the kernel can evaluate a scalar as it is."""
    return not any(isinstance(part, Opaque) or _is_sparks(part) for part in walk(scalar))


def _evaluable(literal: LiteralPredicate) -> LiteralPredicate:
    subject = literal.subject
    if isinstance(subject, Linear):
        return literal
    if isinstance(subject, Call) and subject.operator == COMPARE:
        left, right = (_for_kernel(side) for side in subject.arguments)
        order, sign = comparison_subject(left, right)
        return LiteralPredicate(order, literal.values if sign > 0 else negated(literal.values))
    return LiteralPredicate(_for_kernel(subject), literal.values)


def _for_kernel(scalar: Scalar) -> Scalar:
    """The scalar with Spark SQL in place of the parts that the kernel cannot evaluate."""
    if isinstance(scalar, Opaque):
        return _of_one_input(scalar)
    if _is_sparks(scalar):
        return _opaque(scalar)
    if not isinstance(scalar, Call):
        return scalar
    if any(isinstance(argument, Literal) and _is_sparks(argument) for argument in scalar.arguments):
        return _opaque(scalar)
    arguments = tuple(_for_kernel(argument) for argument in scalar.arguments)
    return Call(scalar.operator, arguments, scalar.type)


def _opaque(scalar: Scalar) -> Opaque:
    names = tuple(sorted(names_in(scalar)))
    return _of_one_input(Opaque(quoted_sql(scalar), names, scalar.type))


def _of_one_input(opaque: Opaque) -> Opaque:
    if len(slots_in(opaque)) > 1:
        raise Unshared(
            "a condition on several inputs that only Spark can evaluate",
            advice="write it so that such a part reads one input, as in CAST(x AS DOUBLE) = y for a decimal x",
        )
    return opaque
