"""WHERE, ON and USING of an aggregation join: selections of single inputs, and conditions between several.

A condition that AND connects with others and that reads one input is a *selection*: it is bound as in a windowed
aggregate on that input, by Spark's arithmetic, so both are shared. It may raise an error, and is then evaluated only behind the
selections before it. What reads several inputs becomes a predicate set over their attributes, as in a join
without aggregates (`sql.joins`); it must not be able to raise, and what only Spark can evaluate must read one input. That
part is an attribute of the input.

Canonical conditions may fall apart: of `a.x = b.x AND (a.x <> b.x OR a.y = 1)` one part reads one input, and becomes
a selection, too. If no rows can ever be joined, the first input has none that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.algebra.condition import condition
from weft.algebra.predicates import Linear, LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.literal import negated
from weft.algebra.predicates.predicate_set import NEVER, all_of, any_of
from weft.algebra.predicates.slots import plain_name, slot_of, slots_in
from weft.algebra.predicates.spark_sql import spark_sql
from weft.algebra.predicates.subject import COMPARE, comparison_subject
from weft.algebra.query import quote
from weft.algebra.scalar import Call, Expression, Literal, Opaque, Ref, Scalar
from weft.algebra.types import BOOLEAN
from weft.sql.fallback import Unshared
from weft.sql.joinagg.attributes import Attributes, own_expression, own_scalar
from weft.sql.joins.conditions import canonical, conjuncts, with_names
from weft.sql.scopes.block import Block, Condition
from weft.sql.scopes.rows import Rows, boolean, conjunct_nodes
from weft.sql.scopes.sources import Sources

_Part = tuple[Expression, Scalar | None]
_FALSE: _Part = (Expression("false", BOOLEAN), Literal(False, BOOLEAN))


@dataclass(frozen=True, slots=True)
class Conditions:
    """The selection of every input, and the conditions between several, over `slot.attribute`."""

    selections: tuple[Expression | None, ...]
    between: PredicateSet


def bound_conditions(
    plain: Sources, exact: Sources, exact_rows: Rows, attributes: Attributes
) -> Conditions:
    """The conditions of a query that was read twice: with Spark's arithmetic, and with exact arithmetic."""
    selections: list[list[_Part]] = [[] for _ in plain.read]
    joining = conjuncts(exact, Block(pairs=exact.block.pairs), exact_rows)
    for mine, other in zip(plain.block.conditions, exact.block.conditions, strict=True):
        for node in conjunct_nodes(mine.node):
            whole, scalar = boolean(mine.rows, node, mine.clause, opaque=True)
            slots = {slot_of(name) for name in whole.columns}
            if len(slots) > 1:
                joining += _joining(exact, Condition(other.rows, node, other.clause))
                continue
            if scalar is not None:
                scalar = own_scalar(with_names(scalar, whole.columns, node))
            selections[min(slots, default=0)].append((own_expression(whole), scalar))
    predicates = canonical(joining)
    if predicates.never:
        selections[0].append(_FALSE)
    for predicate in predicates.predicates:
        for slot in predicate.slots if len(predicate.slots) == 1 else ():
            selections[slot].append(_selection(predicate))
    between = [predicate for predicate in predicates.predicates if len(predicate.slots) > 1]
    return Conditions(
        tuple(_together(parts) for parts in selections),
        NEVER if predicates.never else _over_attributes(between, attributes),
    )


def _joining(exact: Sources, condition: Condition) -> list[Scalar]:
    """A condition between several inputs."""
    parts = conjuncts(exact, Block(conditions=[condition]), condition.rows)
    try:
        canonical(parts)
    except Unshared as unshared:
        raise Unshared(unshared.reason, condition.node.start, unshared.advice) from None
    return parts


def _selection(predicate: OrPredicate) -> _Part:
    """A canonical condition on one input."""
    sql = spark_sql(PredicateSet((predicate,)))
    columns = tuple(sorted(map(plain_name, predicate.names)))
    return Expression(sql, BOOLEAN, columns), Opaque(sql, (), BOOLEAN)


def _together(parts: Sequence[_Part]) -> Expression | None:
    """Conditions that must all be true, as one; None if all rows count."""
    if not parts:
        return None
    columns = tuple(sorted({name for whole, _ in parts for name in whole.columns}))
    scalars = [scalar for _, scalar in parts if scalar is not None]
    if len(scalars) == len(parts) and not any(whole.can_raise for whole, _ in parts):
        whole_scalar = scalars[0] if len(scalars) == 1 else Call("and", tuple(scalars), BOOLEAN)
        form = condition(whole_scalar)
        always = form.sql == "true"
        return None if always else Expression(form.sql, BOOLEAN, columns, False, form)
    *before, sql = [whole.sql for whole, _ in parts]
    for part in reversed(before):
        sql = f"CASE WHEN {part} THEN {sql} ELSE false END"
    return Expression(sql, BOOLEAN, columns, any(whole.can_raise for whole, _ in parts))


def _over_attributes(predicates: Sequence[OrPredicate], attributes: Attributes) -> PredicateSet:
    """The same predicates, over attributes of the inputs."""
    return all_of(
        any_of(_literal(literal, attributes) for literal in predicate.literals)
        for predicate in predicates
    )


def _literal(literal: LiteralPredicate, attributes: Attributes) -> LiteralPredicate:
    subject = literal.subject
    if isinstance(subject, Linear):
        for _, column in subject.terms:
            _attribute(column, attributes)
        return literal
    if isinstance(subject, Call) and subject.operator == COMPARE:
        left, right = (_attribute(side, attributes) for side in subject.arguments)
        order, sign = comparison_subject(left, right)
        return LiteralPredicate(order, literal.values if sign > 0 else negated(literal.values))
    return LiteralPredicate(_attribute(subject, attributes), literal.values)


def _attribute(scalar: Scalar, attributes: Attributes) -> Scalar:
    """The scalar over attributes: columns, and what only Spark can evaluate."""
    if isinstance(scalar, Ref):
        value = Expression(quote(scalar.name), scalar.type, (scalar.name,))
        return attributes.add(slot_of(scalar.name), value)
    if isinstance(scalar, Opaque):
        value = Expression(scalar.sql, scalar.type, scalar.names)
        return attributes.add(min(slots_in(scalar), default=0), value)
    if isinstance(scalar, Call):
        arguments = tuple(_attribute(argument, attributes) for argument in scalar.arguments)
        return Call(scalar.operator, arguments, scalar.type)
    return scalar
