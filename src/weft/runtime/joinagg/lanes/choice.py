"""Where the joins of a step run: on the driver while entries are few, else in tasks."""

from __future__ import annotations

from collections.abc import Iterable

from weft.runtime.checkpoint.commits import Entry
from weft.runtime.settings import Settings

_PER_ROW = 96
_GROWTH = 3
"""About how many times larger the values of a file are in memory, if they are texts."""


def use_lanes(settings: Settings, files: Iterable[Entry], in_lanes: bool) -> bool:
    """Whether the entries of these files need too much memory for the driver. Joins that run in tasks come back
    when they need half of what the driver may hold, so they do not go to and fro."""
    if settings.kernel != "auto":
        return settings.kernel == "lanes"
    most = settings.driver_cap_bytes // 2 if in_lanes else settings.driver_cap_bytes
    return sum(map(bytes_in_memory, files)) > most


def bytes_in_memory(entry: Entry) -> int:
    """What the entries of a file need in memory, about.

    >>> bytes_in_memory({"rows": 10, "size": 5000})
    15000
    """
    return max(_PER_ROW * int(entry["rows"]), _GROWTH * int(entry["size"]))
