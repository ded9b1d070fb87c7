"""Boolean expressions over integers, decimals, dates and booleans as formulas of z3.

Every expression is a pair: its value, and whether it is NULL. Columns are integers of any size, as
canonicalization takes them; decimals are integers divided by a power of ten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3
from tests.support.predicates import EPOCH, literal_value

from weft.algebra.scalar import Call, Literal, Ref, Scalar
from weft.algebra.types import decimal_parameters


@dataclass(frozen=True)
class Nullable:
    value: Any
    null: Any


def nullable(scalar: Scalar) -> Nullable:
    if isinstance(scalar, Ref):
        return Nullable(_column(scalar), z3.Bool(f"{scalar.name} is null"))
    if isinstance(scalar, Literal):
        return _constant(scalar)
    assert isinstance(scalar, Call)
    parts = [nullable(argument) for argument in scalar.arguments]
    operator = scalar.operator
    if operator in ("and", "or"):
        return _junction(operator, parts)
    if operator == "is_null":
        return Nullable(parts[0].null, z3.BoolVal(False))
    values = [part.value for part in parts]
    null = z3.Or([part.null for part in parts])
    if operator == "in":
        hits = [z3.And(z3.Not(part.null), part.value == values[0]) for part in parts[1:]]
        unknown = z3.Or([part.null for part in parts[1:]])
        hit = z3.And(z3.Not(parts[0].null), z3.Or(hits))
        return Nullable(hit, z3.Or(parts[0].null, z3.And(z3.Not(z3.Or(hits)), unknown)))
    if operator == "<=>":
        left, right = parts
        same = z3.And(z3.Not(null), left.value == right.value)
        return Nullable(z3.Or(z3.And(left.null, right.null), same), z3.BoolVal(False))
    if operator == "not":
        return Nullable(z3.Not(values[0]), null)
    if operator == "negate":
        return Nullable(-values[0], null)
    if operator.startswith("cast_"):
        return Nullable(values[0], null)
    left, right = values
    results = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "date_add": lambda: left + right,
        "date_sub": lambda: left - right,
        "datediff": lambda: left - right,
        "=": lambda: left == right,
        "<>": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return Nullable(results[operator](), null)


def _column(ref: Ref) -> Any:
    if ref.type == "boolean":
        return z3.Bool(ref.name)
    whole = z3.ToReal(z3.Int(ref.name))
    parameters = decimal_parameters(ref.type)
    return whole / 10 ** parameters[1] if parameters else whole


def _constant(literal: Literal) -> Nullable:
    item = literal_value(literal)
    if literal.type == "boolean":
        return Nullable(z3.BoolVal(bool(item)), z3.BoolVal(item is None))
    if item is None:
        return Nullable(z3.RealVal(0), z3.BoolVal(True))
    number = (item - EPOCH).days if literal.type == "date" else item
    return Nullable(z3.RealVal(str(number)), z3.BoolVal(False))


def _junction(operator: str, parts: list[Nullable]) -> Nullable:
    """AND is NULL where no part is false and one is NULL."""
    decisive = [
        z3.And(z3.Not(part.null), part.value if operator == "or" else z3.Not(part.value))
        for part in parts
    ]
    decided = z3.Or(decisive)
    null = z3.And(z3.Not(decided), z3.Or([part.null for part in parts]))
    return Nullable(decided if operator == "or" else z3.Not(decided), null)


def is_true(scalar: Scalar) -> Any:
    """Where a boolean expression is true."""
    pair = nullable(scalar)
    return z3.And(z3.Not(pair.null), pair.value)


def implies(premise: Scalar, conclusion: Scalar) -> bool | None:
    """Whether one expression is true wherever another is; None if z3 cannot tell in time."""
    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(is_true(premise), z3.Not(is_true(conclusion)))
    answer = solver.check()
    return None if answer == z3.unknown else bool(answer == z3.unsat)
