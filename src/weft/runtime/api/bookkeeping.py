"""Keeps the catalog up to date after every step, and a copy of it in the checkpoint.

A step is committed whatever becomes of this: if the database does not answer, the next step tries
again. From the copy a catalog that was lost is written anew.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from weft.catalog.store import Catalog, QueryRecord
from weft.errors import CatalogError, CheckpointError
from weft.runtime.checkpoint.log import Plan
from weft.runtime.checkpoint.storage import Storage, to_json
from weft.runtime.queries.registry import change_of, is_hidden

COPY = "catalog.json"
COPY_FORMAT = 1
_logger = logging.getLogger("weft")


class Bookkeeping:
    """What the catalog is told of a stream's steps."""

    def __init__(self, catalog: Catalog, storage: Storage) -> None:
        self._catalog, self._storage = catalog, storage
        self._late: dict[str, Mapping[int, int]] = {}
        """By stream: the late pairs of its queries, by change, as the catalog has them."""
        self._recorded: dict[str, tuple[int, Mapping[str, int]]] = {}
        """By stream: the plan version of which the catalog knows from when on queries are complete, and these times."""

    def planned(self, stream: str, plan: Plan, late: Mapping[str, int]) -> None:
        """Take down what a step has committed."""
        registered = {name: pairs for name, pairs in late.items() if not is_hidden(name)}
        counts = {change_of(query_id): pairs for query_id, pairs in registered.items()}
        noted = self._late.get(stream, {})
        changed = {c: pairs for c, pairs in counts.items() if noted.get(c) != pairs}
        version, times_noted = self._recorded.get(stream, (None, {}))
        new_plan = version != plan.version
        if not changed and not new_plan:
            return
        try:
            with self._catalog.transaction():
                self._catalog.set_late(changed)
                if new_plan:
                    times = {
                        change_of(query_id): time
                        for query_id, time in plan.complete_from.items()
                        if times_noted.get(query_id) != time and not is_hidden(query_id)
                    }
                    self._catalog.set_complete_from(times)
                    self.save_copy()
        except CatalogError as error:
            _logger.info("the step is committed, and the catalog is told later: %s", error)
            self._recorded.pop(
                stream, None
            )  # what it knows is not certain any more: all is told again
            return
        self._late[stream] = counts
        self._recorded[stream] = plan.version, plan.complete_from

    def save_copy(self) -> None:
        """Write a copy of the live queries into the checkpoint."""
        body = {
            "format": COPY_FORMAT,
            "last": self._catalog.last_change(),
            "queries": [vars(record) for record in self._catalog.live()],
        }
        self._storage.put(COPY, to_json(body))

    def restore_if_lost(self) -> None:
        """Fill an empty catalog from the copy in the checkpoint, if there is one."""
        if self._catalog.last_change() or not self._storage.exists(COPY):
            return
        body = self._storage.read_json(COPY)
        try:
            version = int(body["format"])
            if version > COPY_FORMAT:
                raise CheckpointError("NEWER_FORMAT", path=COPY, found=version, known=COPY_FORMAT)
            records = [QueryRecord(**record) for record in body["queries"]]
            last = int(body["last"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError("DAMAGED", path=COPY, detail=repr(error)) from error
        with self._catalog.transaction():
            if not self._catalog.last_change():  # no other process was faster
                self._catalog.restore(records, last)
