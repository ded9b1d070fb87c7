"""Arithmetic and comparisons that are exact: decimals, dates, timestamps and intervals, for joins.

Conditions of joins are moved to exact sums (`weft.algebra.predicates.linear`), so they need scalars with
the types that Spark gives every step. The rules here are Spark's, and hold where no digit can be lost:

| expression | scalar | result |
|---|---|---|
| decimal or integer `+ - *` decimal | both as decimals, each in its own type | Spark's type, if it has at most 38 digits |
| date `+ -` integer, `date_add`, `date_sub` | `date_add`, `date_sub` | date |
| date `+ -` INTERVAL in days | `date_add`, `date_sub` | date |
| `datediff(date, date)` | `datediff` | int |
| timestamp `+ -` INTERVAL | `+`, `-` with `Literal(micros, "interval")` | timestamp |
| timestamp `-` timestamp | `-` | interval |
| timestamp compared with a constant date | with the timestamp at which the day begins | boolean |

An interval of a day or more, and the difference of two timestamps, follow the calendar of the session's
time zone; they are sums only in zones without daylight saving. Elsewhere Spark evaluates them.

Integers are computed without overflow: where Spark would raise, the comparison is decided instead. Where
Spark evaluates what is bound (`overflow_raises`), they raise as they do in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from weft.algebra.scalar import Call, Literal, Scalar
from weft.algebra.types import (
    BOOLEAN,
    INTEGRAL,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    SqlType,
    decimal_parameters,
)
from weft.sql.typing.coercion import DECIMAL_OF, Typed, built, promoted
from weft.sql.typing.moments import (
    has_fixed_offset,
    interval_literal,
    is_date,
    timestamp_micros,
)

DATE: Final = "date"
INTERVAL: Final = "interval"
_DAYS: Final = INTEGRAL - {"bigint"}


@dataclass(frozen=True, slots=True)
class Exact:
    """The rules of exact arithmetic in a session of this time zone, None if it is not known."""

    time_zone: str | None = None
    overflow_raises: bool = False

    def interval(self, sql: str) -> Typed | None:
        """An INTERVAL literal of fixed length."""
        literal = interval_literal(sql)
        if literal is None:
            return None
        return Typed(sql, INTERVAL, False, Literal(literal.micros, INTERVAL))

    def timestamp(self, sql: str, text: str) -> Typed | None:
        """A TIMESTAMP literal."""
        micros = timestamp_micros(text, self.time_zone)
        return None if micros is None else Typed(sql, TIMESTAMP, False, Literal(micros, TIMESTAMP))

    def arithmetic(self, sql: str, operator: str, left: Typed, right: Typed) -> Typed | None:
        """`left operator right`, None if the rules above do not cover it."""
        if operator not in ("+", "-", "*"):
            return None
        can_raise = left.can_raise or right.can_raise
        if DATE in (left.type, right.type):
            value = _on_date(operator, left, right)
        elif TIMESTAMP in (left.type, right.type):
            value = self._on_timestamp(operator, left, right)
            if value is None and _is_timestamp_arithmetic(operator, left, right):
                return Typed(sql, TIMESTAMP, can_raise)
        else:
            value = _on_decimals(operator, left, right)
        return None if value is None else Typed(sql, value.type, can_raise, value)

    def negated(self, sql: str, operand: Typed) -> Typed | None:
        """`- operand` for a decimal."""
        if operand.type is None or not decimal_parameters(operand.type):
            return None
        return Typed(
            sql, operand.type, operand.can_raise, built("negate", [operand.scalar], operand.type)
        )

    def function(self, sql: str, name: str, arguments: list[Typed]) -> Typed | None:
        """A function of dates, None if it is another one."""
        if len(arguments) != 2:
            return None
        left, right = arguments
        can_raise = left.can_raise or right.can_raise
        scalars = [left.scalar, right.scalar]
        if (
            name in ("date_add", "dateadd", "date_sub")
            and left.type == DATE
            and right.type in _DAYS
        ):
            operator = "date_sub" if name == "date_sub" else "date_add"
            return Typed(sql, DATE, can_raise, built(operator, scalars, DATE))
        if name in ("datediff", "date_diff") and left.type == right.type == DATE:
            return Typed(sql, "int", can_raise, built("datediff", scalars, "int"))
        return None

    def cast(self, sql: str, operand: Typed, target: SqlType) -> Typed | None:
        """A cast of an integer or decimal to a decimal that holds every value."""
        value = widened(operand, target) if decimal_parameters(target) else None
        return None if value is None else Typed(sql, target, operand.can_raise, value)

    def comparison(self, sql: str, operator: str, left: Typed, right: Typed) -> Typed | None:
        """A comparison that needs a cast, or of intervals; None if the rules do not cover it."""
        sides = self._sides(left, right)
        if sides is None:
            return None
        can_raise = left.can_raise or right.can_raise
        return Typed(sql, BOOLEAN, can_raise, Call(operator, sides, BOOLEAN))

    def membership(self, operand: Typed, items: list[Typed]) -> Call | None:
        """`operand IN (items)` for a date, a timestamp or a decimal and constants."""
        type_ = operand.type
        if type_ is None or not (type_ in (DATE, TIMESTAMP) or decimal_parameters(type_)):
            return None
        literals = [
            self._moment(item, type_) if item.type == STRING else promoted(item, type_)
            for item in items
        ]
        if not all(isinstance(literal, Literal) for literal in literals):
            return None
        return built("in", [operand.scalar, *literals], BOOLEAN)

    def _sides(self, left: Typed, right: Typed) -> tuple[Scalar, Scalar] | None:
        if left.type == right.type == INTERVAL:
            sides = left.scalar, right.scalar
        elif left.type in (DATE, TIMESTAMP) and right.type == STRING:
            sides = left.scalar, self._moment(right, left.type)
        elif right.type in (DATE, TIMESTAMP) and left.type == STRING:
            sides = self._moment(left, right.type), right.scalar
        elif (left.type, right.type) == (TIMESTAMP, DATE):
            sides = left.scalar, self._midnight(right)
        elif (left.type, right.type) == (DATE, TIMESTAMP):
            sides = self._midnight(left), right.scalar
        else:
            common = _wider_decimal(left, right)
            if common is None:
                return None
            sides = widened(left, common), widened(right, common)
        return None if sides[0] is None or sides[1] is None else (sides[0], sides[1])

    def _moment(self, value: Typed, type_: SqlType) -> Scalar | None:
        """A string literal as the date or timestamp that Spark makes of it."""
        if not isinstance(value.scalar, Literal) or not isinstance(value.scalar.value, str):
            return None
        text = value.scalar.value
        if type_ == DATE:
            return Literal(text, DATE) if is_date(text) else None
        micros = timestamp_micros(text, self.time_zone)
        return None if micros is None else Literal(micros, TIMESTAMP)

    def _midnight(self, value: Typed) -> Scalar | None:
        """The timestamp at which a constant date begins: Spark compares dates with timestamps so."""
        day = _constant_date(value.scalar)
        micros = None if day is None else timestamp_micros(day, self.time_zone)
        return None if micros is None else Literal(micros, TIMESTAMP)

    def _on_timestamp(self, operator: str, left: Typed, right: Typed) -> Call | None:
        if operator == "-" and left.type == right.type == TIMESTAMP:
            fixed = has_fixed_offset(self.time_zone)
            return built("-", [left.scalar, right.scalar], INTERVAL) if fixed else None
        if not _is_timestamp_arithmetic(operator, left, right):
            return None
        interval = interval_literal((right if right.type == INTERVAL else left).sql)
        if interval is None or (interval.has_whole_days and not has_fixed_offset(self.time_zone)):
            return None
        return built(operator, [left.scalar, right.scalar], TIMESTAMP)


def _constant_date(scalar: Scalar | None) -> str | None:
    """A date literal, or one plus or minus a number of days, as text."""
    if isinstance(scalar, Literal) and isinstance(scalar.value, str):
        return scalar.value
    if not isinstance(scalar, Call) or scalar.operator not in ("date_add", "date_sub"):
        return None
    day, days = _constant_date(scalar.arguments[0]), scalar.arguments[1]
    if day is None or not isinstance(days, Literal) or not isinstance(days.value, int):
        return None
    shift = days.value if scalar.operator == "date_add" else -days.value
    try:
        return (date.fromisoformat(day) + timedelta(days=shift)).isoformat()
    except (OverflowError, ValueError):
        return None


def _is_timestamp_arithmetic(operator: str, left: Typed, right: Typed) -> bool:
    """Whether this is a timestamp plus or minus an interval."""
    if operator == "+" and left.type == INTERVAL:
        return right.type == TIMESTAMP
    return operator in ("+", "-") and left.type == TIMESTAMP and right.type == INTERVAL


def _on_date(operator: str, left: Typed, right: Typed) -> Call | None:
    if operator == "+" and right.type == DATE:
        left, right = right, left
    if left.type != DATE or operator not in ("+", "-"):
        return None
    days: Scalar | None = right.scalar
    if right.type == INTERVAL:
        interval = interval_literal(right.sql)
        if interval is None or interval.days is None:
            return None
        days = Literal(interval.days, "int")
    elif right.type not in _DAYS:
        return None
    return built("date_add" if operator == "+" else "date_sub", [left.scalar, days], DATE)


def _on_decimals(operator: str, left: Typed, right: Typed) -> Call | None:
    """Decimals keep their own types: Spark does not bring them to one before it computes."""
    mine, other = _decimal_type(left, right), _decimal_type(right, left)
    if mine is None or other is None:
        return None
    precision, scale = _result(operator, mine, other)
    if precision > MAX_PRECISION:
        return None
    sides = [
        widened(left, f"decimal({mine[0]},{mine[1]})"),
        widened(right, f"decimal({other[0]},{other[1]})"),
    ]
    return built(operator, sides, f"decimal({precision},{scale})")


def _result(operator: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    if operator == "*":
        return left[0] + right[0] + 1, left[1] + right[1]
    scale = max(left[1], right[1])
    return max(left[0] - left[1], right[0] - right[1]) + scale + 1, scale


def _decimal_type(value: Typed, other: Typed) -> tuple[int, int] | None:
    """Precision and scale of an operand whose neighbour may be a decimal; None if neither is one."""
    if value.type is None or other.type is None:
        return None
    parameters = decimal_parameters(value.type)
    if parameters is not None or not decimal_parameters(other.type):
        return parameters if parameters and _is_exact(other.type) else None
    literal = value.scalar
    if isinstance(literal, Literal) and isinstance(literal.value, int) and value.type in DECIMAL_OF:
        return len(str(abs(literal.value))), 0
    return DECIMAL_OF.get(value.type)


def _is_exact(type_: SqlType) -> bool:
    return type_ in DECIMAL_OF or decimal_parameters(type_) is not None


def _wider_decimal(left: Typed, right: Typed) -> SqlType | None:
    """The decimal in which Spark compares an integer or decimal with a decimal."""
    mine, other = _decimal_type(left, right), _decimal_type(right, left)
    if mine is None or other is None:
        return None
    scale = max(mine[1], other[1])
    digits = max(mine[0] - mine[1], other[0] - other[1])
    return f"decimal({digits + scale},{scale})" if digits + scale <= MAX_PRECISION else None


def widened(value: Typed, type_: SqlType) -> Scalar | None:
    """The value as a decimal that holds it without loss; None if there is no such scalar."""
    if value.scalar is None or value.type is None or value.type == type_:
        return value.scalar
    if isinstance(value.scalar, Literal):
        return promoted(value, type_)
    source = decimal_parameters(value.type) or DECIMAL_OF.get(value.type)
    target = decimal_parameters(type_)
    if source is None or target is None:
        return None
    holds = source[1] <= target[1] and source[0] - source[1] <= target[0] - target[1]
    return Call(f"cast_{type_}", (value.scalar,), type_) if holds else None
