"""Makes the registered queries equal to the project's files.

A file's query that is not registered is registered. One whose SQL changed is dropped and
registered anew, so its windows begin afresh; layout and comments are no change. A registered
query without a file is dropped. All of it takes effect at one micro-batch, or none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weft.catalog.store import REJECTED
from weft.cli.project.queries import QueryFile, same_query
from weft.runtime.api.handle import QueryHandle
from weft.runtime.api.weft import Weft


@dataclass
class Changes:
    """What a synchronisation did."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [
            f"{len(names)} {word}"
            for names, word in (
                (self.added, "registered"),
                (self.changed, "changed"),
                (self.dropped, "dropped"),
            )
            if names
        ]
        return ", ".join(parts) or "unchanged"


def synchronise(weft: Weft, files: Sequence[QueryFile]) -> Changes:
    """Register and drop until the queries are those of the files."""
    changes = Changes()
    wanted = {query.name: query for query in files}
    with weft.changes():
        unchanged = set()
        for handle in weft.queries:
            query = wanted.get(handle.name)
            if query is None:
                changes.dropped.append(handle.name)
                handle.drop()
            elif handle.status == REJECTED or not _same(handle, query):
                changes.changed.append(handle.name)
                handle.drop()
            else:
                unchanged.add(handle.name)
        changed = set(changes.changed)
        for name, query in wanted.items():
            if name not in unchanged:
                weft.register(name, query.sql, emit=query.emit, backfill=query.backfill)
                if name not in changed:
                    changes.added.append(name)
    return changes


def _same(handle: QueryHandle, query: QueryFile) -> bool:
    """Whether a registered query is that of a file."""
    same_emit = (handle.emit or "full") == (query.emit or "full")
    same_options = same_emit and handle.backfill == query.backfill
    return same_options and same_query(handle.sql, query.sql)
