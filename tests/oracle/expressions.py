"""SQL expressions as data, and their rendering as Spark SQL text.

An `Expression` is an immutable value: equal trees are equal, so a select item that repeats
a group-by key is found by comparing. Aggregates and window columns are expressions too;
they may appear only in the select list and in HAVING.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from .sparktypes import Type

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Style:
    """How the same query is spelled: every style means the same thing to Spark."""

    window_first: bool = True
    upper: bool = True
    quote: bool = False
    shout_columns: bool = False
    alias: str | None = None
    bracket: bool = False

    def word(self, text: str) -> str:
        """A keyword or function name in this style's case."""
        return text.upper() if self.upper else text.lower()

    def name(self, text: str) -> str:
        """An identifier, quoted if the style says so or the text needs it."""
        return f"`{text}`" if self.quote or not text.isidentifier() else text

    def column(self, text: str) -> str:
        """A reference to an input column."""
        name = self.name(text.upper() if self.shout_columns else text)
        return f"{self.name(self.alias)}.{name}" if self.alias else name


@dataclass(frozen=True)
class Expression:
    """A node of an expression tree."""

    def sql(self, style: Style) -> str:
        """This expression as Spark SQL, in parentheses where they could matter."""
        raise NotImplementedError

    def children(self) -> Iterator[Expression]:
        """The direct operands."""
        for field in fields(self):
            yield from _expressions_in(getattr(self, field.name))

    def walk(self) -> Iterator[Expression]:
        """This expression and everything below it, parents first."""
        yield self
        for child in self.children():
            yield from child.walk()


def _expressions_in(value: object) -> Iterator[Expression]:
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from _expressions_in(element)


@dataclass(frozen=True)
class Column(Expression):
    """A column of the stream."""

    name: str

    def sql(self, style: Style) -> str:
        return style.column(self.name)


@dataclass(frozen=True)
class WindowColumn(Expression):
    """`window`, or its `start` or `end`."""

    part: str = "window"

    def sql(self, style: Style) -> str:
        if self.part == "window":
            return style.name("window")
        return f"{style.name('window')}.{style.name(self.part)}"


@dataclass(frozen=True)
class Literal(Expression):
    """A constant of a type; `None` is NULL. A timestamp is an int of microseconds.

    >>> Literal(5, Type("bigint")).sql(Style()), Literal("it's", Type("string")).sql(Style())
    ('5L', "'it\\\\'s'")
    """

    value: object
    type: Type

    def sql(self, style: Style) -> str:
        value = self.value
        if value is None:
            return style.word("null")
        if isinstance(value, bool):
            return style.word(str(value))
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, date):
            return f"{style.word('date')} '{value.isoformat()}'"
        if isinstance(value, Decimal):
            return f"{value:f}" if "." in f"{value:f}" else f"{value:f}BD"
        if isinstance(value, float):
            return self._floating(value, style)
        if self.type.name == "timestamp":
            assert isinstance(value, int)
            moment = EPOCH + timedelta(microseconds=value)
            return f"{style.word('timestamp')} '{moment:%Y-%m-%d %H:%M:%S.%f}'"
        return f"{value}{ {'bigint': 'L', 'smallint': 'S'}.get(self.type.name, '') }"

    def _floating(self, value: float, style: Style) -> str:
        if math.isfinite(value):
            return f"{value!r}{'F' if self.type.name == 'float' else 'D'}"
        text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{style.word('cast')}('{text}' {style.word('as')} {style.word(str(self.type))})"


def quoted(text: str) -> str:
    """A SQL string literal: Spark escapes with a backslash and joins adjacent literals."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True)
class Negate(Expression):
    """Unary minus."""

    operand: Expression

    def sql(self, style: Style) -> str:
        return f"(- {self.operand.sql(style)})"


@dataclass(frozen=True)
class Arithmetic(Expression):
    """One of `+ - * / %` and integral `div`."""

    operator: str
    left: Expression
    right: Expression

    def sql(self, style: Style) -> str:
        return f"({self.left.sql(style)} {style.word(self.operator)} {self.right.sql(style)})"


@dataclass(frozen=True)
class Comparison(Expression):
    """One of `= <> < <= > >=` and the NULL-safe `<=>`."""

    operator: str
    left: Expression
    right: Expression

    def sql(self, style: Style) -> str:
        return f"({self.left.sql(style)} {self.operator} {self.right.sql(style)})"


@dataclass(frozen=True)
class Logical(Expression):
    """`and` or `or` of two conditions."""

    operator: str
    left: Expression
    right: Expression

    def sql(self, style: Style) -> str:
        return f"({self.left.sql(style)} {style.word(self.operator)} {self.right.sql(style)})"


@dataclass(frozen=True)
class Not(Expression):
    """`NOT operand`."""

    operand: Expression

    def sql(self, style: Style) -> str:
        return f"({style.word('not')} {self.operand.sql(style)})"


@dataclass(frozen=True)
class IsNull(Expression):
    """`operand IS [NOT] NULL`."""

    operand: Expression
    negated: bool = False

    def sql(self, style: Style) -> str:
        return f"({self.operand.sql(style)} {style.word('is not null' if self.negated else 'is null')})"


@dataclass(frozen=True)
class In(Expression):
    """`operand [NOT] IN (options)`."""

    operand: Expression
    options: tuple[Expression, ...]
    negated: bool = False

    def sql(self, style: Style) -> str:
        options = ", ".join(option.sql(style) for option in self.options)
        return f"({self.operand.sql(style)} {_negatable('in', self.negated, style)} ({options}))"


@dataclass(frozen=True)
class Between(Expression):
    """`operand [NOT] BETWEEN low AND high`."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False

    def sql(self, style: Style) -> str:
        return (
            f"({self.operand.sql(style)} {_negatable('between', self.negated, style)} "
            f"{self.low.sql(style)} {style.word('and')} {self.high.sql(style)})"
        )


@dataclass(frozen=True)
class Like(Expression):
    """`operand [NOT] LIKE pattern`."""

    operand: Expression
    pattern: str
    negated: bool = False

    def sql(self, style: Style) -> str:
        return (
            f"({self.operand.sql(style)} {_negatable('like', self.negated, style)} "
            f"{quoted(self.pattern)})"
        )


@dataclass(frozen=True)
class Case(Expression):
    """`CASE WHEN condition THEN value … [ELSE otherwise] END`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None

    def sql(self, style: Style) -> str:
        word = style.word
        parts = [word("case")]
        for condition, value in self.branches:
            parts += [word("when"), condition.sql(style), word("then"), value.sql(style)]
        if self.otherwise is not None:
            parts += [word("else"), self.otherwise.sql(style)]
        return " ".join([*parts, word("end")])


@dataclass(frozen=True)
class Coalesce(Expression):
    """`COALESCE(options…)`."""

    options: tuple[Expression, ...]

    def sql(self, style: Style) -> str:
        options = ", ".join(option.sql(style) for option in self.options)
        return f"{style.word('coalesce')}({options})"


@dataclass(frozen=True)
class Aggregate(Expression):
    """An aggregate call; no arguments means `count(*)`.

    `parameter` is the percentage of `approx_percentile`.
    """

    function: str
    arguments: tuple[Expression, ...] = ()
    where: Expression | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    parameter: float | None = None

    def sql(self, style: Style) -> str:
        arguments = [argument.sql(style) for argument in self.arguments] or ["*"]
        if self.ignore_nulls:
            arguments.append(style.word("true"))
        if self.parameter is not None:
            arguments.append(repr(self.parameter))
        distinct = f"{style.word('distinct')} " if self.distinct else ""
        call = f"{style.word(self.function)}({distinct}{', '.join(arguments)})"
        if self.where is None:
            return call
        return f"{call} {style.word('filter')} ({style.word('where')} {self.where.sql(style)})"


def _negatable(keyword: str, negated: bool, style: Style) -> str:
    return style.word(f"not {keyword}" if negated else keyword)
