"""The windows of inputs, and the instants at which an aggregation join is evaluated."""

from __future__ import annotations

import math
from typing import Final, get_args

from weft.algebra.joinagg.windows import InputWindow, WindowKind
from weft.sql.reading import syntax
from weft.sql.reading.syntax import QueryExpression, relations
from weft.sql.scopes.sources import Input, Sources

SHORTEST_STEP: Final = 1_000
"""Watermarks have milliseconds: instants between two of them would come together."""
LONGEST: Final = 10_000 * 365 * 24 * 3600 * 1_000_000
"""So that sums of times fit in 64 bits."""
_KINDS: Final[dict[str, WindowKind]] = {kind: kind for kind in get_args(WindowKind)}


def has_windows(query: QueryExpression) -> bool:
    """Whether the query asks for an aggregation join: an input has a window in brackets."""
    return any(relation.window is not None for relation in relations(query))


def check_brackets(sources: Sources, query: QueryExpression) -> None:
    """Raises if a window of a query on one stream stands among those of inputs."""
    for relation in relations(query):
        if relation.bracket is not None:
            detail = (
                "[RANGE …] is the window of a query on one stream; beside [WINDOW …] "
                "write [WINDOW …], and EVERY at the end in place of SLIDE"
            )
            raise sources.source.error("BAD_WINDOW", relation.bracket.at, detail=detail)


def input_windows(sources: Sources) -> tuple[InputWindow | None, ...]:
    """The window of every input: streams have one, tables have none."""
    windows = tuple(_window(sources, entry) for entry in sources.read)
    if len(windows) == 1:
        (entry,) = sources.read
        assert entry.window is not None
        detail = (
            "[WINDOW …] is for joins of streams and tables; the window of a query on one stream is "
            f"{entry.relation} [RANGE 1 HOUR SLIDE 10 SECONDS]"
        )
        raise sources.source.error("UNSUPPORTED", entry.window.at, detail=detail)
    return windows


def _window(sources: Sources, entry: Input) -> InputWindow | None:
    window = entry.window
    if sources.inputs.find_stream(entry.relation) is None:
        if window is None:
            return None
        detail = (
            f"'{entry.relation}' is a table: all its rows count, so it has no window; "
            "leave the brackets out"
        )
        raise sources.source.error("BAD_WINDOW", window.at, detail=detail)
    if window is None:
        raise sources.source.error("NO_INPUT_WINDOW", entry.at, stream=entry.relation)
    if window.length > LONGEST:
        detail = "a window of more than 10,000 years; write [WINDOW UNTIL NOW] for all rows so far"
        raise sources.source.error("BAD_WINDOW", window.at, detail=detail)
    return InputWindow(_KINDS[window.kind], window.length)


def step(
    sources: Sources, windows: tuple[InputWindow | None, ...], every: syntax.Every | None
) -> int:
    """The time between two instants: that of EVERY, or the query's pane."""
    lengths = [window.length for window in windows if window is not None and window.length]
    if every is not None:
        length, at = every.length, every.at + 1
    elif lengths:
        length, at = math.gcd(*lengths), first_window(sources)
    else:
        detail = (
            "a window UNTIL NOW does not say how often the query is evaluated; "
            "add a clause such as EVERY 10 SECONDS at the end"
        )
        raise sources.source.error("BAD_EVERY", first_window(sources), detail=detail)
    if length < SHORTEST_STEP:
        detail = (
            f"the query would be evaluated every {length} microseconds of event time; the least is a "
            "millisecond: add a longer EVERY at the end"
        )
        raise sources.source.error("BAD_EVERY", at, detail=detail)
    return length


def first_window(sources: Sources) -> int:
    """The token of the first window in brackets."""
    return next((entry.window.at for entry in sources.read if entry.window is not None), 0)
