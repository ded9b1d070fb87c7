"""Which streams hold the others back: instants are evaluated when the slowest stream has passed them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def waits_for(
    watermarks: Mapping[str, int | None], before: Mapping[str, Any], now: float
) -> dict[str, dict[str, Any]]:
    """The slowest streams while others are ahead: their watermark, and since when it has not moved, in seconds since 1970. None
    is the watermark of a stream that has not begun. `before` are the metrics of the step before.

    >>> waits_for({"a": 5, "b": 9}, {}, 100.0)
    {'a': {'watermark': 5, 'since': 100.0}}
    >>> waits_for({"a": 5, "b": 12}, {"waits_for": {"a": {"watermark": 5, "since": 100.0}}}, 130.0)
    {'a': {'watermark': 5, 'since': 100.0}}
    """
    reached = {name: -1 if mark is None else mark for name, mark in watermarks.items()}
    if len(set(reached.values())) < 2:
        return {}
    least = min(reached.values())
    earlier = before.get("waits_for", {})
    return {
        name: {
            "watermark": watermarks[name],
            "since": earlier[name]["since"]
            if name in earlier and earlier[name]["watermark"] == watermarks[name]
            else now,
        }
        for name, mark in reached.items()
        if mark == least
    }


def holding_back(
    streams: Collection[str], held_back: Mapping[str, Mapping[str, Any]]
) -> dict[str, int | None]:
    """Of the slowest streams those that a query over some streams waits for, with their watermarks. All aggregation joins go by one watermark,
    so these may be streams that only others read. A query waits for no other stream than its only one.

    >>> slowest = {"a": {"watermark": 5, "since": 100.0}}
    >>> holding_back({"a", "b"}, slowest), holding_back({"b", "c"}, slowest), holding_back({"a"}, slowest)
    ({'a': 5}, {'a': 5}, {})
    """
    return {
        name: about["watermark"]
        for name, about in held_back.items()
        if any(stream != name for stream in streams)
    }
