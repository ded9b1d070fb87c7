"""Where the joins of a step run: on the driver while history is small, else in tasks."""

from __future__ import annotations

from collections.abc import Iterable

from weft.kernel.network import Program
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.network.history import kind_of
from weft.runtime.settings import Settings

_PER_ROW, _PER_COLUMN, _PER_INDEX = 16, 16, 24
_PER_HASH = 100
_GROWTH = 3
"""About how many times larger the values of a file are in memory, if they are texts."""


def use_lanes(settings: Settings, program: Program, files: Iterable[Entry], in_lanes: bool) -> bool:
    """Whether the rows of these files need too much memory for the driver. A network whose joins run in
    tasks comes back when it needs half of what the driver may hold, so it does not go to and fro."""
    if settings.kernel != "auto":
        return settings.kernel == "lanes"
    most = settings.driver_cap_bytes // 2 if in_lanes else settings.driver_cap_bytes
    return sum(bytes_in_memory(program, entry) for entry in files) > most


def bytes_in_memory(program: Program, entry: Entry) -> int:
    """What the rows of a file need on the driver, about."""
    kind, name = kind_of(entry)
    rows = int(entry["rows"])
    if kind == "distinct":
        return rows * _PER_HASH
    nodes = [node for node in program.nodes if name in (node.id, node.base)]
    if not nodes:
        return 0
    per_row = sum(
        _PER_ROW + _PER_COLUMN * len(node.stored) + _PER_INDEX * len(node.inputs) for node in nodes
    )
    return max(rows * per_row, _GROWTH * int(entry["size"]))
