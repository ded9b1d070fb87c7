"""How much memory fragments need."""

from __future__ import annotations

from collections.abc import Iterable

from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog

_BYTES_PER_ROW = 48
_BYTES_PER_COLUMN = 16


def bytes_in_memory(log: StreamLog, entry: Entry) -> int:
    """The bytes of one fragment of a file, its key's code included."""
    node = log.plan(entry["version"]).node_by_id[entry["node"]]
    return _BYTES_PER_ROW + _BYTES_PER_COLUMN * (len(node.partials) + len(node.keys))


def needed_bytes(log: StreamLog, files: Iterable[Entry]) -> int:
    """The bytes of all fragments of files."""
    return sum(int(entry["rows"]) * bytes_in_memory(log, entry) for entry in files)
