"""Random boolean expressions over two slots, and their truth in plain Python.

`value` evaluates an expression with SQL's three-valued logic and exact numbers, `passes` a predicate
set. They share no code with the canonicalization that they check.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from weft.algebra.condition import Bound
from weft.algebra.predicates import Linear, LiteralPredicate, PredicateSet
from weft.algebra.scalar import Call, Literal, Ref, Scalar
from weft.algebra.types import SqlType, decimal_parameters

Row = Mapping[str, Any]
EPOCH = dt.date(1970, 1, 1)
START = dt.datetime(1970, 1, 1)
MICRO = dt.timedelta(microseconds=1)
NAN, INF = math.nan, math.inf

DOMAINS: dict[SqlType, list[Any]] = {
    "int": [None, -2, -1, 0, 1, 2, 3, 5],
    "bigint": [None, -3, 0, 1, 2, 4],
    "tinyint": [None, -128, -1, 0, 3, 127],
    "decimal(6,2)": [None, *map(Decimal, ("-1.50", "0.00", "0.01", "1.00", "2.50", "3.00"))],
    "decimal(4,1)": [None, *map(Decimal, ("-1.0", "0.0", "0.5", "2.5"))],
    "date": [None, *(EPOCH + dt.timedelta(days) for days in (-1, 0, 1, 2, 4))],
    "timestamp": [None, *(START + days * MICRO for days in (-3, 0, 1, 2, 5))],
    "double": [None, -INF, -1.5, -0.0, 0.0, 0.1, 1.0, 2.0, 1e300, INF, NAN],
    "string": [None, "", "a", "ab", "b", "é"],
    "boolean": [None, False, True],
}
"""The values that random rows have."""

COLUMNS = {
    f"{slot}.{name}": type_
    for slot in (0, 1)
    for name, type_ in (
        ("a", "int"),
        ("b", "bigint"),
        ("c", "tinyint"),
        ("m", "decimal(6,2)"),
        ("n", "decimal(4,1)"),
        ("d", "date"),
        ("t", "timestamp"),
        ("x", "double"),
        ("y", "double"),
        ("s", "string"),
        ("u", "string"),
        ("o", "boolean"),
    )
}


def order(item: Any) -> Any:
    """What Python orders as Spark orders the value."""
    if isinstance(item, float):
        return (1, 0.0) if math.isnan(item) else (0, item)
    return item.encode() if isinstance(item, str) else item


def literal_value(literal: Literal) -> Any:
    raw = literal.value
    if raw is None or isinstance(raw, bool):
        return raw
    if literal.type == "date":
        assert isinstance(raw, str)
        return dt.date.fromisoformat(raw)
    if literal.type == "timestamp":
        assert isinstance(raw, int)
        return START + raw * MICRO
    if literal.type == "interval":
        assert isinstance(raw, int)
        return raw * MICRO
    if decimal_parameters(literal.type):
        return Decimal(str(raw))
    return raw


def value(scalar: Scalar, row: Row) -> Any:
    """The value of an expression on a row; None is NULL."""
    if isinstance(scalar, Ref):
        return row[scalar.name]
    if isinstance(scalar, Literal):
        return literal_value(scalar)
    assert isinstance(scalar, Call)
    operator = scalar.operator
    if operator == "case":
        *branches, otherwise = scalar.arguments
        for condition, then in zip(branches[::2], branches[1::2], strict=True):
            if value(condition, row) is True:
                return value(then, row)
        return value(otherwise, row)
    values = [value(argument, row) for argument in scalar.arguments]
    if operator == "coalesce":
        return next((one for one in values if one is not None), None)
    if operator == "is_null":
        return values[0] is None
    if operator in ("and", "or"):
        decisive = operator == "or"
        return decisive if decisive in values else (None if None in values else not decisive)
    if operator == "in":
        same = [None if None in (values[0], item) else order(values[0]) == order(item)
                for item in values[1:]]  # fmt: skip
        return True if True in same else (None if None in same else False)
    if operator == "<=>" and None in values:
        return values == [None, None]
    if None in values:
        return None
    return _strict(operator, values, scalar.type)


def _strict(operator: str, values: list[Any], type_: SqlType) -> Any:
    """An operator whose operands are not NULL."""
    if operator == "not":
        return not values[0]
    if operator == "negate":
        return -values[0]
    if operator == "cast_double":
        return float(values[0])
    if operator.startswith("cast_"):
        return Decimal(values[0]) if "decimal" in operator else values[0]
    left, right = values
    if operator in ("+", "-", "*"):
        result = {"+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right}
        return result[operator]()
    if operator == "/":
        return left / right
    if operator == "date_add":
        return left + dt.timedelta(right)
    if operator == "date_sub":
        return left - dt.timedelta(right)
    if operator == "datediff":
        return (left - right).days
    if operator == "like":
        pattern = "".join({"%": ".*", "_": "."}.get(one, re.escape(one)) for one in right)
        return re.fullmatch(pattern, left, re.DOTALL) is not None
    one, other = order(left), order(right)
    if operator == "compare":
        return (one > other) - (one < other)
    return {
        "=": one == other,
        "<=>": one == other,
        "<>": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }[operator]


def _unscaled(item: Any, type_: SqlType) -> int:
    """The integer behind a value of an exact type."""
    parameters = decimal_parameters(type_)
    if parameters:
        whole = Fraction(item) * 10 ** parameters[1]
        assert whole.denominator == 1
        return int(whole)
    if type_ == "date":
        return int((item - EPOCH).days)
    return int((item - START) / MICRO) if type_ == "timestamp" else int(item)


def is_true(literal: LiteralPredicate, row: Row) -> bool:
    """Whether a literal holds for a row."""
    subject = literal.subject
    item: Any
    if isinstance(subject, Linear):
        parts = [(factor, ref, row[ref.name]) for factor, ref in subject.terms]
        missing = any(part is None for _, _, part in parts)
        item = None if missing else sum(
            factor * _unscaled(part, ref.type) for factor, ref, part in parts
        )  # fmt: skip
    else:
        item = value(subject, row)
        if isinstance(item, float):
            item = None if math.isnan(item) else item
            position = (1, 0.0) if item is None else (0, item + 0.0)
            return value(subject, row) is not None and _inside(literal, position)
        if item is not None and not isinstance(item, str):
            item = _unscaled(item, subject.type)
    if item is None:
        return literal.values.null
    return _inside(literal, order(item))


def _inside(literal: LiteralPredicate, position: Any) -> bool:
    def place(bound: Bound) -> Any:
        if literal.subject.type in ("float", "double"):
            assert bound.value is None or isinstance(bound.value, float)
            return (1, 0.0) if bound.value is None else (0, bound.value)
        return order(bound.value)

    for low, high in literal.values.intervals:
        above = low is None or (place(low) < position if low.after else place(low) <= position)
        below = high is None or (position <= place(high) if high.after else position < place(high))
        if above and below:
            return True
    return False


def passes(predicates: PredicateSet, row: Row) -> bool:
    """Whether a row passes a predicate set."""
    return all(
        any(is_true(literal, row) for literal in predicate.literals)
        for predicate in predicates.predicates
    )


def call(operator: str, *arguments: Scalar, type_: SqlType = "boolean") -> Call:
    return Call(operator, arguments, type_)


def random_row(chance: random.Random) -> dict[str, Any]:
    return {name: chance.choice(DOMAINS[type_]) for name, type_ in COLUMNS.items()}


class Expressions:
    """Random expressions of all kinds that the binder makes."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def boolean(self, depth: int = 3) -> Scalar:
        chance = self.chance
        if depth == 0 or chance.random() < 0.25:
            return self.atom()
        kind = chance.choice(["and", "or", "and", "or", "not", "not", "is", "case", "coalesce"])
        if kind in ("and", "or"):
            parts = [self.boolean(depth - 1) for _ in range(chance.choice((2, 2, 3)))]
            return call(kind, *parts)
        if kind == "not":
            return call("not", self.boolean(depth - 1))
        if kind == "is":
            truth = Literal(chance.choice((True, False, None)), "boolean")
            operator = chance.choice(("<=>", "=", "<>", "<", "is_null"))
            inner = self.boolean(depth - 1)
            return call("is_null", inner) if operator == "is_null" else call(operator, inner, truth)
        if kind == "case":
            return call("case", *(self.boolean(depth - 1) for _ in range(3)))
        return call("coalesce", self.boolean(depth - 1), self.boolean(depth - 1))

    def atom(self) -> Scalar:
        chance = self.chance
        kind = chance.choice(
            ["compare"] * 8 + ["in", "in", "between", "null", "like", "boolean", "constant"]
        )
        if kind == "boolean":
            return self.column("boolean")
        if kind == "constant":
            return Literal(chance.choice((True, False, None)), "boolean")
        if kind == "like":
            pattern = chance.choice(["a%", "%b", "_", "ab", "%", "a_%"])
            return call("like", self.of_type("string"), Literal(pattern, "string"))
        type_ = chance.choice(["int", "int", "bigint", "decimal", "date", "timestamp", "double",
                               "string", "boolean", "mixed"])  # fmt: skip
        if kind == "null":
            return call("is_null", self.of_type(type_))
        if kind == "in":
            operand = self.of_type(type_)
            items = [self.constant(operand.type) for _ in range(chance.choice((1, 2, 3)))]
            return call("in", operand, *items)
        if kind == "between":
            operand, low, high = self.triple(type_)
            return call("and", call(">=", operand, low), call("<=", operand, high))
        operator = chance.choice(["=", "<>", "<", "<=", ">", ">=", "<=>", "="])
        left, right, _ = self.triple(type_)
        return call(operator, left, right)

    def triple(self, type_: str) -> tuple[Scalar, Scalar, Scalar]:
        """Three operands of one type, some of them constants."""
        if type_ == "mixed":
            return (self._wide(), self._wide(), self._wide())
        if type_ == "decimal":
            type_ = self.chance.choice(["decimal(6,2)", "decimal(4,1)"])
        first = self.of_type(type_)
        others = [
            self.constant(first.type) if self.chance.random() < 0.5 else self.same(first.type)
            for _ in range(2)
        ]
        return first, others[0], others[1]

    def same(self, type_: SqlType) -> Scalar:
        """An expression of exactly this type."""
        for _ in range(20):
            candidate = self.of_type("decimal" if type_.startswith("decimal") else type_)
            if candidate.type == type_:
                return candidate
        return self.constant(type_)

    def column(self, type_: SqlType) -> Ref:
        return Ref(self.chance.choice([n for n, t in COLUMNS.items() if t == type_]), type_)

    def constant(self, type_: SqlType) -> Literal:
        chance = self.chance
        if chance.random() < 0.08:
            return Literal(None, type_)
        parameters = decimal_parameters(type_)
        if parameters:
            scale = parameters[1]
            number = Decimal(chance.choice((-150, -1, 0, 1, 50, 100, 250, 300))).scaleb(-scale)
            return Literal(f"{number:f}", type_)
        if type_ in ("int", "bigint", "tinyint"):
            return Literal(chance.choice((-2, -1, 0, 1, 2, 3, 4)), type_)
        if type_ == "date":
            return Literal((EPOCH + dt.timedelta(chance.randint(-2, 4))).isoformat(), type_)
        if type_ in ("timestamp", "interval"):
            return Literal(chance.randint(-3, 4), type_)
        return Literal(chance.choice([one for one in DOMAINS[type_] if one is not None]), type_)

    def of_type(self, type_: str, depth: int = 2) -> Scalar:
        chance = self.chance
        if type_ == "mixed":
            return self._wide()
        if type_ == "decimal":
            type_ = chance.choice(["decimal(6,2)", "decimal(4,1)"])
        if depth == 0 or chance.random() < 0.4:
            return self.column(type_)
        if type_ in ("int", "bigint"):
            return self._integer(type_, depth)
        if type_ == "double":
            return self._double(depth)
        if type_ == "date":
            operator = chance.choice(["date_add", "date_sub"])
            days = self.constant("int") if chance.random() < 0.7 else self.of_type("int", 0)
            return call(operator, self.of_type("date", depth - 1), days, type_="date")
        if type_ == "timestamp":
            inner = self.of_type("timestamp", depth - 1)
            operator = chance.choice(["+", "-"])
            return call(operator, inner, self.constant("interval"), type_="timestamp")
        if type_.startswith("decimal"):
            return self._decimal(depth)
        if type_ == "string":
            return call("coalesce", self.column("string"), self.column("string"), type_="string")
        return self.column(type_)

    def _integer(self, type_: str, depth: int) -> Scalar:
        chance = self.chance
        kind = chance.choice(["+", "-", "*", "negate", "cast", "datediff", "product"])
        inner = self.of_type(type_, depth - 1)
        if kind in ("+", "-"):
            other = self.constant(type_) if chance.random() < 0.4 else self.same(type_)
            return call(kind, inner, other, type_=type_)
        if kind == "*":
            sides = [inner, self.constant(type_)]
            chance.shuffle(sides)
            return call("*", *sides, type_=type_)
        if kind == "product":
            return call("*", inner, self.column(type_), type_=type_)
        if kind == "negate":
            return call("negate", inner, type_=type_)
        if kind == "datediff" and type_ == "int":
            return call("datediff", self.of_type("date", 1), self.of_type("date", 1), type_="int")
        source = self.column("int") if type_ == "bigint" else self.column("tinyint")
        return call(f"cast_{type_}", source, type_=type_)

    def _decimal(self, depth: int) -> Scalar:
        """Sums and products in the type that Spark gives them."""
        chance = self.chance
        left = self.of_type("decimal", depth - 1)
        constant = chance.random() < 0.6
        right = self.constant("decimal(2,1)") if constant else self.of_type("decimal", depth - 1)
        if isinstance(right, Literal) and right.value is not None:
            right = Literal(chance.choice(["0.5", "2.0", "-1.5"]), "decimal(2,1)")
        operator = chance.choice("+-*" if constant else "+-")
        one, other = decimal_parameters(left.type), decimal_parameters(right.type)
        assert one and other
        if operator == "*":
            precision, scale = one[0] + other[0] + 1, one[1] + other[1]
        else:
            scale = max(one[1], other[1])
            precision = max(one[0] - one[1], other[0] - other[1]) + scale + 1
        return call(operator, left, right, type_=f"decimal({precision},{scale})")

    def _wide(self) -> Scalar:
        """An integer or a decimal as a wide decimal."""
        type_ = self.chance.choice(["int", "bigint", "decimal"])
        inner = self.of_type(type_, 1)
        return call("cast_decimal(38,6)", inner, type_="decimal(38,6)")

    def _double(self, depth: int) -> Scalar:
        chance = self.chance
        kind = chance.choice(["+", "-", "*", "/", "negate", "cast"])
        inner = self.of_type("double", depth - 1)
        factor = Literal(chance.choice([0.5, -2.0, 3.0, 0.1]), "double")
        if kind in ("+", "-"):
            other = factor if chance.random() < 0.4 else self.of_type("double", depth - 1)
            return call(kind, inner, other, type_="double")
        if kind == "negate":
            return call("negate", inner, type_="double")
        if kind == "cast":
            return call("cast_double", self.of_type("int", 1), type_="double")
        sides = [inner, factor]
        if kind == "*":
            chance.shuffle(sides)
        return call(kind, *sides, type_="double")
