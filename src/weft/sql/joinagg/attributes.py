"""What the join and the groups read of each input: its attributes (AggJoin, rule 1).

While a query is bound, columns are named by slot, `0.price`. An input's own expressions name them plainly, so that the
same expression of another query, of another slot, or of a windowed aggregate on the same stream is equal to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from weft.algebra import codec
from weft.algebra.aggregate import Aggregate
from weft.algebra.joinagg.query import Attribute
from weft.algebra.predicates.slots import column_name, names_in, plain_name, renamed
from weft.algebra.query import quote
from weft.algebra.scalar import Call, Expression, Opaque, Ref, Scalar
from weft.algebra.types import is_key
from weft.sql.fallback import Unshared


@dataclass(slots=True)
class Attributes:
    """Collects the attributes of the inputs."""

    _by_slot: dict[int, dict[str, Attribute]] = field(default_factory=dict)

    def add(self, slot: int, value: Expression, at: int = 0) -> Ref:
        """The attribute of an input that has the value, which reads columns of this input only."""
        if not is_key(value.type):
            raise Unshared(f"joining or grouping by a {value.type} has no shared form", at)
        alone = own_expression(value)
        name = _name(alone)
        self._by_slot.setdefault(slot, {})[name] = Attribute(name, alone)
        return Ref(column_name(slot, name), value.type)

    def of(self, slot: int) -> tuple[Attribute, ...]:
        """The attributes of an input, in an order that does not depend on how the query is written."""
        attributes = self._by_slot.get(slot, {})
        return tuple(attributes[name] for name in sorted(attributes))


def _name(value: Expression) -> str:
    """A column keeps its name; other values have a name that is the same in all queries. Names that begin with # or ? are weft's own."""
    if len(value.columns) == 1 and value.sql == quote(value.columns[0]):
        (name,) = value.columns
        if not name.startswith(("#", "?")):
            return name
    return f"#{codec.digest((value.sql, value.type))}"


def own_expression(expression: Expression) -> Expression:
    """An expression on one input, over the plain names of its columns."""
    text = Opaque(expression.sql, expression.columns, expression.type)
    alone = renamed(text, {name: plain_name(name) for name in expression.columns})
    assert isinstance(alone, Opaque)
    return replace(expression, sql=alone.sql, columns=alone.names)


def own_scalar(scalar: Scalar) -> Scalar:
    """A scalar on one input, over the plain names of its columns."""
    return _unnamed(renamed(scalar, {name: plain_name(name) for name in names_in(scalar)}))


def _unnamed(scalar: Scalar) -> Scalar:
    """The scalar as a windowed aggregate has it: Spark SQL text does not say what it reads."""
    if isinstance(scalar, Opaque):
        return replace(scalar, names=())
    if isinstance(scalar, Call):
        return replace(scalar, arguments=tuple(map(_unnamed, scalar.arguments)))
    return scalar


def own_aggregate(aggregate: Aggregate) -> Aggregate:
    """An aggregate on one input, over the plain names of its columns."""
    return replace(
        aggregate,
        arguments=tuple(map(own_expression, aggregate.arguments)),
        filter=None if aggregate.filter is None else own_expression(aggregate.filter),
    )
