"""The typed whitelist: expressions whose meaning weft knows without asking Spark.

`Typer` walks a syntax tree and gives for every node its canonical Spark SQL, its type, whether
evaluating it can raise, and, inside the whitelist, a `Scalar` that the kernel evaluates. A
type of None means that only Spark can tell; a scalar of None that only Spark can evaluate.

Every implicit cast is a node of its own, so both arguments of an operator have one type and
the kernel needs no coercion rules.

| operator | arguments | result | notes |
|---|---|---|---|
| `=` `<>` `<` `<=` `>` `>=` | two of one type | boolean | NULL if either is; NaN = NaN, and NaN is above all; -0.0 = 0.0 |
| `<=>` | two of one type | boolean | NULL equals NULL; never NULL |
| `and` `or` `not` | boolean | boolean | three-valued; `and`, `or` take two or more |
| `is_null` | any | boolean | never NULL |
| `in` | x, then literals of its type | boolean | a NULL literal makes a miss NULL |
| `like` | string, string literal | boolean | `%` and `_`, no escapes in the pattern |
| `+` `-` `*` | int, bigint or double | the same | integers raise on overflow under ANSI, else wrap |
| `/` | double | double | a zero divisor raises under ANSI, else gives NULL |
| `negate` | int, bigint or double | the same | as `0 - x` |
| `case` | condition, value, …, else | type of the values | the else is always there; conditions in order |
| `coalesce` | one type | the same | the first that is not NULL |
| `cast_int` `cast_bigint` `cast_double` | a narrower number | as named | never raises |

A literal has its final type: `17` compared with a bigint is a bigint literal, compared with
a decimal(20,2) it is the text "17.00" of that type, and NULL has the type of its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from weft.algebra.query import quote
from weft.algebra.scalar import Call, Literal, Opaque
from weft.algebra.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FRACTIONAL,
    INTEGRAL,
    STRING,
    decimal_parameters,
    is_numeric,
    is_ordered,
)
from weft.sql.fallback import Unshared
from weft.sql.reading.functions import TOTAL
from weft.sql.reading.syntax import (
    Between,
    Binary,
    Case,
    Cast,
    Constant,
    Exists,
    FieldAccess,
    Function,
    In,
    InSubquery,
    Is,
    Like,
    Number,
    String,
    Subscript,
    SyntaxNode,
    TypedLiteral,
    Unary,
    string_sql,
)
from weft.sql.typing.coercion import (
    ARITHMETIC,
    VOID,
    Typed,
    built,
    call,
    cast_type,
    common_number,
    common_type,
    comparable,
    compared_as,
    divisible,
    membership,
    number,
    promoted,
    widens,
)
from weft.sql.typing.exact import Exact
from weft.sql.typing.moments import is_date

_COMPARISONS: Final = frozenset({"=", "<=>", "<>", "<", "<=", ">", ">="})
_SAFE_CASTS: Final = frozenset(
    {("timestamp", "date"), ("date", "timestamp")}
    | {(BOOLEAN, number_type) for number_type in (*INTEGRAL, *FRACTIONAL)}
)
"""Casts that never raise."""
_PARSED: Final = frozenset({BOOLEAN, "date", "timestamp"})
"""What TRY_CAST reads from a string, besides numbers."""
_NULL: Final = Typed("NULL", VOID, False, Literal(None, VOID))


class Scope(Protocol):
    """What names mean, and which larger expressions are values by themselves."""

    def leaf(self, node: SyntaxNode) -> Typed | None:
        """The meaning of a node that is a value of the scope, None to look inside it."""
        ...

    def call(self, node: Function) -> None:
        """Raises if a function may not stand here."""
        ...


class Typer:
    """Types expressions of one scope."""

    __slots__ = ("_ansi", "_exact", "_opaque", "_scope", "doubt")

    def __init__(
        self, scope: Scope, ansi: bool, opaque: bool = False, exact: Exact | None = None
    ) -> None:
        self._scope = scope
        self._ansi = ansi
        self._opaque = opaque
        """Whether a value that only Spark can evaluate has a scalar, too, if it has a type."""
        self._exact = exact
        """The rules of exact arithmetic, in joins."""
        self.doubt: SyntaxNode | None = None
        """The innermost node, read first, whose type only Spark can tell."""

    def type(self, node: SyntaxNode) -> Typed:
        typed = self._scope.leaf(node)
        if typed is None:
            typed = _RULES[type(node)](self, node)
        if typed.type is None and self.doubt is None:
            self.doubt = node
        if self._opaque and typed.scalar is None and typed.type and not typed.can_raise:
            typed = replace(typed, scalar=Opaque(typed.sql, (), typed.type))
        return typed

    def equal(self, left: Typed, right: Typed, *, null_safe: bool = False) -> Typed:
        """The comparison of two values that stand in no common expression."""
        operator = "<=>" if null_safe else "="
        return self._comparison(f"({left.sql} {operator} {right.sql})", operator, left, right)

    @property
    def _raises(self) -> bool:
        """Whether an integer that is too large raises."""
        return self._ansi and (self._exact is None or self._exact.overflow_raises)

    def types(self, nodes: Sequence[SyntaxNode]) -> list[Typed]:
        return [self.type(node) for node in nodes]

    def _number(self, node: Number) -> Typed:
        type_, value = number(node.text)
        scalar = None if type_ is None or value is None else Literal(value, type_)
        return Typed(node.text, type_, False, scalar)

    def _string(self, node: String) -> Typed:
        scalar = None if node.value is None else Literal(node.value, STRING)
        return Typed(string_sql(node.raw, node.value), STRING, False, scalar)

    def _constant(self, node: Constant) -> Typed:
        if node.value is None:
            return _NULL
        return Typed(str(node.value).lower(), BOOLEAN, False, Literal(node.value, BOOLEAN))

    def _typed_literal(self, node: TypedLiteral) -> Typed:
        if self._exact is not None:
            moment = _exact_moment(self._exact, node)
            if moment is not None:
                return moment
        is_plain = node.kind == "binary" and node.text.startswith("X'")
        if node.kind == "date" and is_date(node.text[len("DATE '") : -1]):
            is_plain = True
            if self._opaque:
                date = Literal(node.text[len("DATE '") : -1], "date")
                return Typed(node.text, "date", False, date)
        return Typed(node.text, node.kind if is_plain else None, not is_plain)

    def _unary(self, node: Unary) -> Typed:
        operand = self.type(node.operand)
        if node.operator == "not":
            sql = f"(NOT {operand.sql})"
            return self._logical(sql, "not", [operand])
        sql = f"({node.operator} {operand.sql})"
        type_ = operand.type
        if self._exact is not None and node.operator == "-":
            exact = self._exact.negated(sql, operand)
            if exact is not None:
                return exact
        if type_ is None or not is_numeric(type_):
            return Typed(sql, None, True)
        if node.operator == "+":
            return Typed(sql, type_, operand.can_raise, operand.scalar)
        if node.operator == "~":
            return Typed(sql, type_ if type_ in INTEGRAL else None, operand.can_raise)
        can_raise = operand.can_raise or (self._raises and type_ in INTEGRAL)
        scalar = None
        if operand.scalar is not None and type_ in ARITHMETIC:
            scalar = Call("negate", (operand.scalar,), type_)
        return Typed(sql, type_, can_raise, scalar)

    def _binary(self, node: Binary) -> Typed:
        operator = node.operator
        if operator in ("and", "or"):
            return self._junction(node)
        left, right = self.type(node.left), self.type(node.right)
        sql = f"({left.sql} {operator.upper()} {right.sql})"
        if operator in _COMPARISONS:
            return self._comparison(sql, operator, left, right)
        if left.type is None or right.type is None:
            return Typed(sql, None, True)
        return self._arithmetic(sql, operator, left, right)

    def _junction(self, node: Binary) -> Typed:
        """A chain of one connective is one node with all operands."""
        operator, operands = node.operator, [self.type(node.right)]
        rest = node.left
        while isinstance(rest, Binary) and rest.operator == operator:
            if self._scope.leaf(rest) is not None:
                break
            operands.append(self.type(rest.right))
            rest = rest.left
        operands.append(self.type(rest))
        operands.reverse()
        sql = "(" + f" {operator.upper()} ".join(operand.sql for operand in operands) + ")"
        return self._logical(sql, operator, operands)

    def _logical(self, sql: str, operator: str, operands: list[Typed]) -> Typed:
        boolean = all(operand.type in (BOOLEAN, VOID) for operand in operands)
        can_raise = any(operand.can_raise for operand in operands)
        if not boolean:
            return Typed(sql, None, True)
        return Typed(sql, BOOLEAN, can_raise, call(operator, operands, BOOLEAN, BOOLEAN))

    def _comparison(self, sql: str, operator: str, left: Typed, right: Typed) -> Typed:
        can_raise = left.can_raise or right.can_raise
        if left.type is None or right.type is None:
            return Typed(sql, None, True)
        exact = None if self._exact is None else self._exact.comparison(sql, operator, left, right)
        if exact is not None:
            return exact
        if not comparable(left.type, right.type):
            return Typed(sql, None, True)
        common = compared_as(left, right)
        scalar = None if common is None else call(operator, [left, right], common, BOOLEAN)
        return Typed(sql, BOOLEAN, can_raise, scalar)

    def _arithmetic(self, sql: str, operator: str, left: Typed, right: Typed) -> Typed:
        assert left.type is not None and right.type is not None
        can_raise = left.can_raise or right.can_raise
        exact = None if self._exact is None else self._exact.arithmetic(sql, operator, left, right)
        if exact is not None:
            return exact
        if operator == "||":
            strings = left.type == right.type == STRING
            return Typed(sql, STRING if strings else None, can_raise or not strings)
        common = common_number(left.type, right.type)
        integral = common in INTEGRAL
        if operator == "/":
            if not divisible(left.type, right.type):
                return Typed(sql, None, True)
            scalar = call("/", [left, right], DOUBLE, DOUBLE)
            return Typed(sql, DOUBLE, can_raise or (self._ansi and not _is_nonzero(right)), scalar)
        if common is None:
            return Typed(sql, None, True)
        if operator in ("+", "-", "*"):
            scalar = None
            if common in ARITHMETIC or (integral and self._exact is not None):
                scalar = call(operator, [left, right], common, common)
            return Typed(sql, common, can_raise or (self._raises and integral), scalar)
        if operator == "%":
            return Typed(sql, common, can_raise or (self._ansi and not _is_nonzero(right)))
        if operator == "div":
            return Typed(sql, BIGINT if integral else None, can_raise or self._ansi or not integral)
        if operator in ("&", "|", "^"):
            return Typed(sql, common if integral else None, can_raise or not integral)
        return Typed(sql, None, True)

    def _is(self, node: Is) -> Typed:
        operand = self.type(node.operand)
        word = "NULL" if node.what is None else str(node.what).upper()
        sql = f"({operand.sql} IS {word})"
        if operand.type is None:
            return Typed(sql, None, True)
        if node.what is None:
            scalar = None if operand.scalar is None else Call("is_null", (operand.scalar,), BOOLEAN)
            return Typed(sql, BOOLEAN, operand.can_raise, scalar)
        if operand.type != BOOLEAN:
            return Typed(sql, None, True)
        truth = Typed("", BOOLEAN, False, Literal(node.what, BOOLEAN))
        return Typed(
            sql, BOOLEAN, operand.can_raise, call("<=>", [operand, truth], BOOLEAN, BOOLEAN)
        )

    def _between(self, node: Between) -> Typed:
        operand, low, high = self.types((node.operand, node.low, node.high))
        sql = f"({operand.sql} BETWEEN {low.sql} AND {high.sql})"
        above = self._comparison(sql, ">=", operand, low)
        below = self._comparison(sql, "<=", operand, high)
        return self._logical(sql, "and", [above, below])

    def _in(self, node: In) -> Typed:
        operand, *items = self.types((node.operand, *node.items))
        sql = f"({operand.sql} IN ({', '.join(item.sql for item in items)}))"
        exact = None if self._exact is None else self._exact.membership(operand, items)
        if exact is not None:
            return Typed(sql, BOOLEAN, operand.can_raise, exact)
        all_comparable = operand.type is not None and all(
            item.type is not None and comparable(operand.type, item.type) for item in items
        )
        if not all_comparable:
            return Typed(sql, None, True)
        can_raise = any(item.can_raise for item in (operand, *items))
        return Typed(sql, BOOLEAN, can_raise, membership(operand, items))

    def _subquery(self, node: InSubquery | Exists) -> Typed:
        raise Unshared("a subquery has no shared form", node.start)

    def _like(self, node: Like) -> Typed:
        operand, pattern = self.type(node.operand), self.type(node.pattern)
        escape = f" ESCAPE {node.escape}" if node.escape else ""
        sql = f"({operand.sql} {node.operator.upper()} {pattern.sql}{escape})"
        if operand.type != STRING or pattern.type != STRING:
            return Typed(sql, None, True)
        plain = isinstance(node.pattern, String) and node.pattern.value is not None
        if escape or not plain or node.operator == "rlike":
            return Typed(sql, BOOLEAN if plain and not escape else None, True)
        scalar = None
        if node.operator == "like":
            scalar = call("like", [operand, pattern], STRING, BOOLEAN)
        return Typed(sql, BOOLEAN, operand.can_raise, scalar)

    def _case(self, node: Case) -> Typed:
        compared = None if node.operand is None else self.type(node.operand)
        conditions, values = [], []
        text = "CASE" if compared is None else f"CASE {compared.sql}"
        for when, then in node.branches:
            condition, value = self.type(when), self.type(then)
            text += f" WHEN {condition.sql} THEN {value.sql}"
            if compared is not None:
                condition = self._comparison("", "=", compared, condition)
            conditions.append(condition)
            values.append(value)
        if node.otherwise is not None:
            values.append(self.type(node.otherwise))
            text += f" ELSE {values[-1].sql}"
        else:
            values.append(_NULL)
        return self._choice(f"({text} END)", conditions, values)

    def _choice(self, sql: str, conditions: list[Typed], values: list[Typed]) -> Typed:
        type_ = common_type([value.type for value in values])
        if type_ is None or any(condition.type not in (BOOLEAN, VOID) for condition in conditions):
            return Typed(sql, None, True)
        can_raise = any(part.can_raise for part in (*conditions, *values))
        tests = [promoted(condition, BOOLEAN) for condition in conditions]
        results = [promoted(value, type_) for value in values]
        parts = [part for pair in zip(tests, results) for part in pair] + [results[-1]]
        return Typed(sql, type_, can_raise, built("case", parts, type_))

    def _cast(self, node: Cast) -> Typed:
        operand = self.type(node.operand)
        target = cast_type(node.type)
        word = "TRY_CAST" if node.is_try else "CAST"
        sql = f"{word}({operand.sql} AS {(target or node.type).upper()})"
        if operand.type is None or target is None:
            return Typed(sql, None, True)
        if target == operand.type:
            return Typed(sql, target, operand.can_raise, operand.scalar)
        exact = None if self._exact is None else self._exact.cast(sql, operand, target)
        if exact is not None and not node.is_try:
            return exact
        if widens(operand.type, target):
            return Typed(sql, target, operand.can_raise, promoted(operand, target))
        if (operand.type, target) in _SAFE_CASTS or (target == STRING and is_ordered(operand.type)):
            return Typed(sql, target, operand.can_raise)
        if target in FRACTIONAL and decimal_parameters(operand.type):
            return Typed(sql, target, operand.can_raise)
        if node.is_try and operand.type == STRING and (is_numeric(target) or target in _PARSED):
            return Typed(sql, target, operand.can_raise)
        return Typed(sql, None, True)

    def _function(self, node: Function) -> Typed:
        self._scope.call(node)
        arguments = self.types(node.arguments)
        name = node.name
        sql = f"{name}({', '.join(argument.sql for argument in arguments)})"
        exact = None if self._exact is None else self._exact.function(sql, name, arguments)
        if exact is not None:
            return exact
        if name in ("coalesce", "nvl", "ifnull") and arguments:
            return self._coalesce(sql, arguments)
        if name == "if" and len(arguments) == 3:
            return self._choice(sql, arguments[:1], arguments[1:])
        if name in ("isnull", "isnotnull") and len(arguments) == 1 and arguments[0].type:
            test = call("is_null", arguments, arguments[0].type, BOOLEAN)
            if name == "isnotnull" and test is not None:
                test = Call("not", (test,), BOOLEAN)
            return Typed(sql, BOOLEAN, arguments[0].can_raise, test)
        rule = TOTAL.get(name)
        types = tuple(argument.type or "" for argument in arguments)
        type_ = rule(types) if rule is not None else None
        can_raise = type_ is None or any(argument.can_raise for argument in arguments)
        return Typed(sql, type_, can_raise)

    def _coalesce(self, sql: str, arguments: list[Typed]) -> Typed:
        type_ = common_type([argument.type for argument in arguments])
        if type_ is None:
            return Typed(sql, None, True)
        can_raise = any(argument.can_raise for argument in arguments)
        return Typed(sql, type_, can_raise, call("coalesce", arguments, type_, type_))

    def _field(self, node: FieldAccess) -> Typed:
        return Typed(f"{self.type(node.base).sql}.{quote(node.name.lower())}", None, True)

    def _subscript(self, node: Subscript) -> Typed:
        return Typed(f"{self.type(node.base).sql}[{self.type(node.index).sql}]", None, True)


def _is_nonzero(divisor: Typed) -> bool:
    """Whether a divisor is a number other than zero."""
    literal = divisor.scalar
    return isinstance(literal, Literal) and literal.value is not None and float(literal.value) != 0


def _exact_moment(exact: Exact, node: TypedLiteral) -> Typed | None:
    if node.kind == "interval":
        return exact.interval(node.text)
    if node.kind in ("timestamp", "timestamp_ltz"):
        return exact.timestamp(node.text, node.text.partition("'")[2].removesuffix("'"))
    return None


_RULES: Final[dict[type[SyntaxNode], Callable[[Typer, Any], Typed]]] = {
    Number: Typer._number,
    String: Typer._string,
    Constant: Typer._constant,
    TypedLiteral: Typer._typed_literal,
    Unary: Typer._unary,
    Binary: Typer._binary,
    Is: Typer._is,
    Between: Typer._between,
    In: Typer._in,
    InSubquery: Typer._subquery,
    Exists: Typer._subquery,
    Like: Typer._like,
    Case: Typer._case,
    Cast: Typer._cast,
    Function: Typer._function,
    FieldAccess: Typer._field,
    Subscript: Typer._subscript,
}
