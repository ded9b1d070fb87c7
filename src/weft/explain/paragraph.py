"""Lines of EXPLAIN's text: labels on the left, bodies wrapped beside them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from weft.explain.wording import some

WIDTH = 100
LABEL = 12
_LANES = 30
KEPT = "\u00a0"
"""A space at which no line is broken."""


def item(label: str, body: str) -> Iterator[str]:
    """A labelled body."""
    yield from wrapped(body, f"    {label:<{LABEL}}", 4 + LABEL)


def lane_seconds_item(seconds: Sequence[float]) -> Iterator[str]:
    """What each lane took, if there are lanes."""
    if seconds:
        took = [f"{second:.2f}" for second in seconds]
        yield from item("lanes", f"seconds in each: {some(took, _LANES)}")


def wrapped(body: str, head: str, indent: int) -> Iterator[str]:
    """Text under a heading, broken at spaces that need not be kept."""
    lines = textwrap.wrap(
        body,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (line.rstrip().replace(KEPT, " ") for line in lines or [head])
