"""The window of a query: Spark's `window(time, range[, slide[, start]])` or the bracket form."""

from __future__ import annotations

from weft.algebra.query import quote
from weft.algebra.window import Window
from weft.errors import SqlError
from weft.sql.fallback import Unshared
from weft.sql.reading.brackets import interval, window_length
from weft.sql.reading.syntax import BracketWindow, Function, Name, Number, String, SyntaxNode
from weft.sql.scopes.rows import Rows
from weft.sql.typing.coercion import number


def window_of(call: Function, rows: Rows) -> Window:
    """The window that a call of `window` means."""
    source = rows.source
    if not 2 <= len(call.arguments) <= 4 or call.star or call.distinct:
        raise source.error(
            "BAD_WINDOW",
            call.start,
            detail="window takes the event time, a range, and optionally a slide and a start",
        )
    time, *lengths = call.arguments
    _check_time(time, rows)
    range_ = _positive(lengths[0], rows, "range")
    slide = _positive(lengths[1], rows, "slide") if len(lengths) > 1 else range_
    start = _micros(lengths[2], rows) if len(lengths) > 2 else 0
    if slide > range_:
        raise source.error(
            "BAD_WINDOW",
            lengths[1].start,
            detail="Spark's window has no slide above its range; "
            "write FROM stream [RANGE … SLIDE …] for windows with gaps",
        )
    if abs(start) >= slide:
        raise source.error(
            "BAD_WINDOW", lengths[2].start, detail="a window's start must be shorter than its slide"
        )
    return Window(range_, slide, start)


def bracket_window(bracket: BracketWindow) -> Window:
    return Window(bracket.range, bracket.slide)


def _check_time(node: SyntaxNode, rows: Rows) -> None:
    described = "an expression"
    if isinstance(node, Name):
        meaning = rows.find(node)
        if meaning is None:
            raise rows.unknown(node)
        if meaning.column.value.sql == quote(rows.time) and not meaning.path:
            return
        described = f"'{'.'.join(node.parts)}'"
    raise rows.source.error("BAD_TIME", node.start, time=rows.time, found=described)


def _positive(node: SyntaxNode, rows: Rows, what: str) -> int:
    if isinstance(node, String) and node.value is not None:
        return window_length(rows.source, node.start, node.value, what)
    micros = _micros(node, rows)
    if micros <= 0:
        raise rows.source.error(
            "BAD_WINDOW", node.start, detail=f"a window's {what} must be positive, not {micros}"
        )
    return micros


def _micros(node: SyntaxNode, rows: Rows) -> int:
    """A length: a string such as '1 hour', or a whole number of microseconds."""
    if isinstance(node, String):
        if node.value is None:
            raise Unshared("an interval with escapes has no shared form", node.start)
        return interval(rows.source, node.start, node.value)
    if isinstance(node, Number):
        type_, value = number(node.text)
        if type_ in ("int", "bigint") and isinstance(value, int):
            return value
    raise _no_length(node, rows)


def _no_length(node: SyntaxNode, rows: Rows) -> SqlError:
    return rows.source.error(
        "BAD_WINDOW",
        node.start,
        detail="a window's lengths are strings such as '1 hour', or microseconds",
    )
