"""Hypothesis strategies for queries that are valid for a schema.

Everything drawn here has one right answer up to rounding: what is summed in floating point
adds up exactly in any order (no quotients, no products of two columns), and HAVING compares
inexact aggregates only with numbers that no small sample hits.

Strategies are slow to build and quick to draw from, so the grammar is written as functions
that draw, not as nested strategies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from .expressions import (
    Aggregate,
    Arithmetic,
    Between,
    Case,
    Coalesce,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Negate,
    Not,
    Style,
    WindowColumn,
)
from .model import Plan
from .sparktypes import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Type
from .spec import Item, Query, Window
from .values import Value

Pools = Mapping[str, Sequence[Value]]
T = TypeVar("T")

PATTERNS = ("a%", "%b", "%a%", "_", "a_%", "%", "")
SMALL = (1, 2, 3, 7, -1, -2)
SIGNS = (">=", "<>", "<", ">", "<=", "=")
MAX_WINDOWS_PER_ROW = 12

EXACT_FUNCTIONS = ("sum", "avg", "min", "max", "count")
SPREADS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
#: Beside an inexact aggregate: no variance of a few round numbers comes near these.
UNLIKELY = (0.7182818, 31.4159265)
PERCENTAGES = (0.5, 0.0, 0.25, 0.9, 1.0)


@dataclass(frozen=True)
class Features:
    """What may be drawn, beyond what every case has."""

    #: count(DISTINCT …) and ranges shorter than the slide, which Spark streaming rejects.
    extensions: bool = True
    #: first and last, which in plain Spark depend on the order of rows.
    order_dependent: bool = True
    #: approx_count_distinct and approx_percentile.
    approximate: bool = True
    #: Division by columns and extreme values, which overflow, or raise in ANSI mode.
    hazards: bool = True


@cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


class Dice:
    """Choices drawn from hypothesis; the first option is the simplest."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        """A number from `low` to `high`."""
        return self._draw(_integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def flag(self, one_in: int = 2) -> bool:
        """True once in so many times."""
        return self.integer(0, one_in - 1) == one_in - 1

    def call(self, options: Sequence[Callable[[], T]]) -> T:
        """The result of one of the functions."""
        return self.pick(options)()


def draw_window(dice: Dice, unit: int, *, extensions: bool) -> Window:
    """A window around `unit` microseconds: tumbling or sliding, with or without a start."""
    quarter = max(unit // 4, 1)
    parts = dice.integer(1, 16)
    shape = dice.pick(("tumbling", "dividing", "any", "short"))
    if shape == "short" and extensions:
        return Window(parts * quarter, (parts + dice.integer(1, 8)) * quarter)
    if shape == "tumbling":
        slide = parts
    elif shape == "dividing":
        slide = dice.pick([size for size in range(parts, 0, -1) if parts % size == 0])
    else:
        slide = dice.integer(-(-parts // MAX_WINDOWS_PER_ROW), parts)
    start = dice.integer(-11, 11) * slide * quarter // 12 if dice.flag() else 0
    return Window(parts * quarter, slide * quarter, start)


class Grammar:
    """Draws expressions over the columns of a schema, with literals near their values."""

    def __init__(
        self, dice: Dice, schema: Mapping[str, Type], pools: Pools, features: Features
    ) -> None:
        self.dice = dice
        self.schema = schema
        self.pools = pools
        self.features = features
        self.names = list(schema)
        self.numbers = [name for name, kind in schema.items() if kind.is_numeric]
        self.integers = [name for name, kind in schema.items() if kind.is_integral]
        self.strings = [name for name, kind in schema.items() if kind == STRING]

    def column(self, names: Sequence[str] | None = None) -> Column:
        """One of some columns, or of all."""
        return Column(self.dice.pick(self.names if names is None else names))

    def literal(self, name: str) -> Literal:
        """One of the column's values."""
        kind = self.schema[name]
        known = [value for value in self.pools[name] if value is not None]
        return Literal(self.dice.pick(known), kind)

    def small(self) -> Literal:
        """A small integer that is not zero."""
        return Literal(self.dice.pick(SMALL), self.dice.pick((INT, BIGINT)))

    def divisor(self) -> Expression:
        """What a number may be divided by: a column that may be zero is a hazard."""
        if self.features.hazards and self.dice.flag():
            return self.column(self.numbers)
        return self.small()

    def number(self, depth: int = 1) -> Expression:
        """A numeric expression whose sums do not depend on the order of rows."""
        dice, below = self.dice, depth - 1
        if depth == 0:
            return self.column(self.numbers)
        options: list[Callable[[], Expression]] = [
            lambda: self.column(self.numbers),
            lambda: Arithmetic(dice.pick("+-"), self.number(below), self.number(below)),
            lambda: Arithmetic(dice.pick("+-*"), self.number(below), self.small()),
            lambda: Negate(self.number(below)),
            lambda: Arithmetic("%", self.number(below), self.divisor()),
            lambda: _case(self.condition(0), self.number(below), self.number(below)),
            lambda: Coalesce((self.number(0), self.number(below))),
        ]
        if self.integers:
            options += [
                lambda: Arithmetic("div", self.column(self.integers), self.small()),
                lambda: Arithmetic("*", self.column(self.integers), self.column(self.integers)),
            ]
        return dice.call(options)

    def condition(self, depth: int = 2) -> Expression:
        """A boolean expression on rows."""
        dice, below = self.dice, depth - 1
        options: list[Callable[[], Expression]] = [self.test, self.test]
        if self.numbers:
            options.append(
                lambda: Comparison(dice.pick((*SIGNS, "<=>")), self.number(0), self.number(0))
            )
        if depth > 0:
            options += [
                lambda: Logical("or", self.condition(below), self.condition(below)),
                lambda: Logical("and", self.condition(below), self.condition(below)),
                lambda: Not(self.condition(below)),
            ]
            if self.numbers:
                options.append(lambda: Comparison(dice.pick(SIGNS), self.ratio(), self.small()))
        return dice.call(options)

    def ratio(self) -> Expression:
        """A number that need not add up exactly, for conditions only."""
        if self.dice.flag():
            return Arithmetic("/", self.number(0), self.divisor())
        return self.number(1)

    def test(self) -> Expression:
        """A test of one column."""
        dice, column = self.dice, self.column()
        name = column.name

        def literals() -> tuple[Expression, ...]:
            return tuple(self.literal(name) for _ in range(dice.integer(1, 3)))

        options: list[Callable[[], Expression]] = [
            lambda: Comparison(dice.pick((*SIGNS, "<=>")), column, self.literal(name)),
            lambda: IsNull(column, not dice.flag()),
            lambda: In(column, literals(), dice.flag()),
            lambda: Between(column, self.literal(name), self.literal(name), dice.flag()),
        ]
        if self.schema[name] == STRING:
            options.append(lambda: Like(column, dice.pick(PATTERNS), dice.flag()))
        if self.schema[name] == BOOLEAN:
            options.append(lambda: column)
        return dice.call(options)

    def key(self) -> Expression:
        """A group-by key: mostly a column."""
        options: list[Callable[[], Expression]] = [
            self.column,
            self.column,
            lambda: self.condition(0),
        ]
        if self.integers:
            modulus = Literal(self.dice.pick((2, 3)), INT)
            options.append(lambda: Arithmetic("%", self.column(self.integers), modulus))
        if self.strings:
            spare = Literal("none", STRING)
            options.append(lambda: Coalesce((self.column(self.strings), spare)))
        return self.dice.call(options)

    def aggregate(self) -> Aggregate:
        """Any aggregate call, sometimes with a FILTER."""
        dice = self.dice
        options: list[Callable[[], Aggregate]] = [
            self.exact_aggregate,
            self.exact_aggregate,
            lambda: Aggregate(dice.pick(("count", "min", "max")), (self.column(),)),
            lambda: Aggregate(dice.pick(("bool_and", "bool_or")), (self.condition(0),)),
            lambda: Aggregate(dice.pick(("min_by", "max_by")), (self.column(), self.column())),
        ]
        if self.numbers:
            options.append(lambda: Aggregate(dice.pick(SPREADS), (self.number(0),)))
        if self.features.order_dependent:
            options.append(self._first)
        if self.features.extensions:
            options.append(self._distinct)
        if self.features.approximate:
            options.append(lambda: Aggregate("approx_count_distinct", (self.column(),)))
            if self.numbers:
                options.append(self._percentile)
        call = dice.call(options)
        return replace(call, where=self.condition(1)) if dice.flag(4) else call

    def exact_aggregate(self) -> Aggregate:
        """An aggregate whose result is the same in any order, to the last bit."""
        if not self.numbers or self.dice.flag(4):
            return Aggregate("count")
        return Aggregate(self.dice.pick(EXACT_FUNCTIONS), (self.number(self.dice.integer(0, 1)),))

    def _first(self) -> Aggregate:
        function = self.dice.pick(("first", "last"))
        return Aggregate(function, (self.column(),), ignore_nulls=self.dice.flag())

    def _distinct(self) -> Aggregate:
        arguments = {self.column(): None for _ in range(self.dice.integer(1, 2))}
        return Aggregate("count", tuple(arguments), distinct=True)

    def _percentile(self) -> Aggregate:
        ranked = [name for name in self.numbers if not self.schema[name].is_decimal]
        if not ranked:
            return Aggregate("count")
        percentage = self.dice.pick(PERCENTAGES)
        return Aggregate("approx_percentile", (self.column(ranked),), parameter=percentage)


class GroupGrammar:
    """Draws expressions over aggregates and group-by keys, for SELECT and HAVING."""

    def __init__(self, rows: Grammar, keys: Sequence[Expression]) -> None:
        self.rows = rows
        self.dice = rows.dice
        self.keys = [key for key in keys if isinstance(key, Column) and key.name in rows.numbers]

    def leaf(self) -> Expression:
        """An exact aggregate, or a numeric key."""
        if self.keys and self.dice.flag(3):
            return self.dice.pick(self.keys)
        return self.rows.exact_aggregate()

    def number(self) -> Expression:
        """Arithmetic over a group."""
        dice, leaf, small = self.dice, self.leaf, self.rows.small
        operators = "+-/%" if self.rows.features.hazards else "+-"
        return dice.call(
            (
                leaf,
                lambda: Arithmetic(dice.pick("+-*/%"), leaf(), small()),
                lambda: Arithmetic(dice.pick(operators), leaf(), leaf()),
                lambda: Coalesce((leaf(), small())),
            )
        )

    def condition(self, depth: int = 1) -> Expression:
        """A condition over a group."""
        dice, below = self.dice, depth - 1
        options: list[Callable[[], Expression]] = [
            lambda: Comparison(dice.pick(SIGNS), self.number(), self.rows.small()),
            lambda: Comparison(dice.pick(SIGNS), self.number(), self.number()),
            lambda: IsNull(self.number(), not dice.flag(4)),
        ]
        if self.rows.numbers:
            options.append(self._spread)
        if depth > 0:
            options += [
                lambda: Logical("or", self.condition(below), self.condition(below)),
                lambda: Logical("and", self.condition(below), self.condition(below)),
                lambda: Not(self.condition(below)),
            ]
        return dice.call(options)

    def _spread(self) -> Expression:
        spread = Aggregate(self.dice.pick(SPREADS), (self.rows.number(0),))
        return Comparison(self.dice.pick("<>"), spread, Literal(self.dice.pick(UNLIKELY), DOUBLE))

    def output(self) -> Expression:
        """A select item made of several parts."""
        return self.dice.call(
            (
                self.number,
                lambda: self.condition(0),
                lambda: _case(self.condition(0), self.number(), self.number()),
            )
        )


def _case(condition: Expression, first: Expression, second: Expression) -> Expression:
    return Case(((condition, first),), second)


def _draw_query(
    dice: Dice, schema: Mapping[str, Type], pools: Pools, unit: int, features: Features
) -> Query:
    grammar = Grammar(dice, schema, pools, features)
    keys = tuple(dict.fromkeys(grammar.key() for _ in range(dice.integer(0, 2))))
    group = GroupGrammar(grammar, keys)
    outputs: list[Expression] = [grammar.aggregate() for _ in range(dice.integer(1, 4))]
    outputs += [key for key in keys if not dice.flag(5)]
    outputs += [WindowColumn(part) for part in ("start", "end", "window") if dice.flag()]
    if dice.flag():
        outputs.append(group.output())
    turn = dice.integer(0, len(outputs) - 1)
    outputs = outputs[turn:] + outputs[:turn]
    return Query(
        window=draw_window(dice, unit, extensions=features.extensions),
        select=_items(outputs),
        keys=keys,
        where=grammar.condition() if dice.flag() else None,
        having=group.condition() if dice.flag(3) else None,
    )


def _items(outputs: Sequence[Expression]) -> tuple[Item, ...]:
    """Some without an alias, no two of one name."""
    items: list[Item] = []
    for position, expression in enumerate(outputs):
        bare = isinstance(expression, Column | WindowColumn) and position % 2
        item = Item(expression) if bare else Item(expression, f"o{position}")
        if item.name in {other.name for other in items}:
            item = Item(expression, f"o{position}")
        items.append(item)
    return tuple(items)


def binds(query: Query, schema: Mapping[str, Type]) -> bool:
    """Whether the query's types fit, with ANSI on and off."""
    try:
        return all(Plan(query, schema, ansi=ansi) is not None for ansi in (True, False))
    except TypeError:
        return False


@st.composite
def queries(
    draw: st.DrawFn,
    schema: Mapping[str, Type],
    pools: Pools,
    unit: int,
    features: Features,
) -> Query:
    """A query over the columns of `schema`, with windows around `unit` microseconds."""
    return _draw_query(Dice(draw), schema, pools, unit, features)


@st.composite
def windows(draw: st.DrawFn, unit: int, *, extensions: bool = False) -> Window:
    """A window around `unit` microseconds."""
    return draw_window(Dice(draw), unit, extensions=extensions)


@st.composite
def styles(draw: st.DrawFn) -> Style:
    """Spellings that plain Spark takes."""
    dice = Dice(draw)
    return Style(
        window_first=not dice.flag(),
        upper=not dice.flag(),
        quote=dice.flag(),
        shout_columns=dice.flag(),
        alias=dice.pick((None, "s")),
    )
