"""Which streams hold queries back: instants are evaluated when the slowest stream of a query has passed them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from weft.algebra.joinagg.query import AggregationJoin

Watermarks = Mapping[str, int | None]
"""Of streams; None: it has not begun."""


def streams_of(query: AggregationJoin) -> frozenset[str]:
    """The streams that a query reads."""
    return frozenset(entry.relation for entry in query.inputs if entry.window is not None)


def slowest(streams: Collection[str], watermarks: Watermarks) -> dict[str, int | None]:
    """Of some streams those that the others are ahead of, with their watermarks.

    >>> slowest(["a", "b"], {"a": 5, "b": 9, "c": None})
    {'a': 5}
    >>> slowest(["a"], {"a": 5, "b": 9})
    {}
    """
    known = {name: watermarks.get(name) for name in streams}
    reached = {name: -1 if mark is None else mark for name, mark in known.items()}
    if len(set(reached.values())) < 2:
        return {}
    least = min(reached.values())
    return {name: known[name] for name, mark in sorted(reached.items()) if mark == least}


def waits_for(
    watermarks: Watermarks,
    streams: Iterable[Collection[str]],
    before: Mapping[str, Any],
    now: float,
) -> dict[str, dict[str, Any]]:
    """The streams that hold back a query: their watermark, and since when it has not moved, in seconds since 1970. `streams` are those of each
    query, `before` are the metrics of the step before.

    >>> waits_for({"a": 5, "b": 9, "c": 7}, [["a", "b"], ["c"]], {}, 100.0)
    {'a': {'watermark': 5, 'since': 100.0}}
    >>> waits_for({"a": 5, "b": 12}, [["a", "b"]], {"waits_for": {"a": {"watermark": 5, "since": 100.0}}}, 130.0)
    {'a': {'watermark': 5, 'since': 100.0}}
    """
    earlier = before.get("waits_for", {})
    return {
        name: {
            "watermark": mark,
            "since": earlier[name]["since"]
            if name in earlier and earlier[name]["watermark"] == mark
            else now,
        }
        for of_query in streams
        for name, mark in slowest(of_query, watermarks).items()
    }
