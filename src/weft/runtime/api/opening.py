"""Opens a checkpoint: its catalog, and what earlier processes left in it."""

from __future__ import annotations

from collections.abc import Callable

from weft.catalog.store import Catalog, QueryRecord
from weft.errors import CheckpointError
from weft.runtime.api.bookkeeping import Bookkeeping
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.queries.registry import Registry


def open_catalog(storage: Storage, url: str | None) -> Catalog:
    """The catalog of a checkpoint: the database that was given, else a file inside."""
    if url is None:
        if not storage.local:
            raise CheckpointError("NEEDS_CATALOG", path=storage.uri)
        url = f"sqlite:///{storage.path('catalog.db')}"
    return Catalog(url)


def take_over(
    storage: Storage,
    catalog: Catalog,
    registry: Registry,
    bookkeeping: Bookkeeping,
    log: Callable[[str], StreamLog],
) -> dict[str, QueryRecord]:
    """Bind the queries as the checkpoint's plans have them, and fill a catalog that was lost; gives
    the live queries by name."""
    for name in storage.names("streams"):
        if name.startswith("."):
            continue
        stream_log = log(name)
        last = stream_log.last()
        step = stream_log.staged(last) or last
        if step is not None:
            registry.remember(stream_log.any_plan(step.plan_version))
    bookkeeping.restore_if_lost()
    return {record.name: record for record in catalog.live()}
