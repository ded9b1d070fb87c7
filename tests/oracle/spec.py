"""A windowed aggregate query over one stream, as data.

>>> from .expressions import Aggregate, Column, Style, WindowColumn
>>> query = Query(
...     window=Window(3_600_000_000, 60_000_000),
...     keys=(Column("auction"),),
...     select=(
...         Item(Column("auction")),
...         Item(WindowColumn("start")),
...         Item(Aggregate("count"), "n"),
...     ),
... )
>>> print(query.sql("bids"))
SELECT auction, window.start, COUNT(*) AS n FROM bids \
GROUP BY WINDOW(ts, '1 hour', '1 minute'), auction
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .expressions import Aggregate, Column, Expression, Style, WindowColumn

UNITS = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


def duration(micros: int) -> str:
    """A length of time in the largest unit that divides it.

    >>> duration(1_500_000), duration(3_600_000_000), duration(-1_000_000), duration(0)
    ('1500 milliseconds', '1 hour', '-1 second', '0 seconds')
    """
    if micros == 0:
        return "0 seconds"
    unit, length = next((unit, length) for unit, length in UNITS if micros % length == 0)
    count = micros // length
    return f"{count} {unit}" if abs(count) == 1 else f"{count} {unit}s"


@dataclass(frozen=True)
class Window:
    """Range, slide and start in microseconds; without a slide it tumbles.

    Spark takes slide ≤ range; a range shorter than the slide is an extension.
    """

    range: int
    slide: int = 0
    start: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "slide", self.slide or self.range)
        if self.range <= 0 or self.slide <= 0 or abs(self.start) >= self.slide:
            raise ValueError(f"not a window: {self}")

    @property
    def needs_bracket(self) -> bool:
        """Whether plain Spark rejects the window."""
        return self.range < self.slide

    def starts(self, time: int) -> Iterator[int]:
        """The starts of the windows that hold `time`, latest first.

        >>> list(Window(10, 4, 1).starts(6)), list(Window(2, 5).starts(-4)), list(Window(2, 5).starts(3))
        ([5, 1, -3], [-5], [])
        """
        start = time - (time - self.start) % self.slide
        while start + self.range > time:
            yield start
            start -= self.slide

    def sql(self, time: str, style: Style) -> str:
        """The `window(…)` call with as few arguments as it needs."""
        arguments = [style.column(time), f"'{duration(self.range)}'"]
        if self.slide != self.range or self.start:
            arguments.append(f"'{duration(self.slide)}'")
        if self.start:
            arguments.append(f"'{duration(self.start)}'")
        return f"{style.word('window')}({', '.join(arguments)})"

    def bracket(self, style: Style) -> str:
        """The bracket form behind the stream's name; it has no start offset."""
        return (
            f"[{style.word('range')} {duration(self.range)} "
            f"{style.word('slide')} {duration(self.slide)}]"
        )


@dataclass(frozen=True)
class Item:
    """A select item; only plain columns and window columns go without an alias."""

    expression: Expression
    alias: str | None = None

    def __post_init__(self) -> None:
        if self.alias is None and not isinstance(self.expression, Column | WindowColumn):
            raise ValueError(f"an alias is needed for {self.expression}")

    @property
    def name(self) -> str:
        """The name of the output column."""
        if self.alias is not None:
            return self.alias
        if isinstance(self.expression, WindowColumn):
            return self.expression.part
        assert isinstance(self.expression, Column)
        return self.expression.name


@dataclass(frozen=True)
class Query:
    """`SELECT … FROM stream [WHERE …] GROUP BY window(…), keys… [HAVING …]`."""

    window: Window
    select: tuple[Item, ...]
    keys: tuple[Expression, ...] = ()
    where: Expression | None = None
    having: Expression | None = None
    time: str = "ts"

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The distinct aggregates of the select list and of HAVING, in order."""
        roots = [item.expression for item in self.select]
        if self.having is not None:
            roots.append(self.having)
        found = (node for root in roots for node in root.walk() if isinstance(node, Aggregate))
        return tuple(dict.fromkeys(found))

    @property
    def needs_extensions(self) -> bool:
        """Whether plain Spark streaming rejects this query."""
        return self.window.needs_bracket or any(item.distinct for item in self.aggregates)

    def sql(self, stream: str, style: Style | None = None) -> str:
        """The query as text; a range shorter than the slide takes the bracket form."""
        style = style or Style()
        word = style.word
        bracket = self.window.needs_bracket or (style.bracket and not self.window.start)
        source = style.name(stream)
        if style.alias:
            source = f"{source} {word('as')} {style.name(style.alias)}"
        if bracket:
            source = f"{source} {self.window.bracket(style)}"
        clauses = [word("select"), ", ".join(_item(item, style) for item in self.select)]
        clauses += [word("from"), source]
        if self.where is not None:
            clauses += [word("where"), self.where.sql(style)]
        grouping = [key.sql(style) for key in self.keys]
        if not bracket:
            grouping.insert(
                0 if style.window_first else len(grouping), self.window.sql(self.time, style)
            )
        if grouping:
            clauses += [word("group by"), ", ".join(grouping)]
        if self.having is not None:
            clauses += [word("having"), self.having.sql(style)]
        return " ".join(clauses)


def _item(item: Item, style: Style) -> str:
    if item.alias is None and isinstance(item.expression, Column):
        exact = Style(upper=style.upper, quote=style.quote, alias=style.alias)
        return item.expression.sql(exact)
    text = item.expression.sql(style)
    if item.alias is None:
        return text
    return f"{text} {style.word('as')} {style.name(item.alias)}"
