"""The catalog's live queries as a run sees them.

All streams of a run share one look at the catalog per tick, and each step looks for itself. A
change made through this process is seen at once. A database that does not answer ends no run: what
was known holds on, and what could not be written is written later.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from weft.catalog.store import Catalog, QueryRecord
from weft.errors import WeftError

TICK_SECONDS: Final = 0.5
_logger = logging.getLogger("weft")


class LiveQueries:
    """Live records, read again when they changed. No caller waits here for a writer: a thread
    inside a transaction of its own reads for itself, past the lock."""

    def __init__(self, catalog: Catalog, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalog, self._clock = catalog, clock
        self._looking = threading.Lock()
        self._known: Sequence[QueryRecord] | None = None
        self._revision = -1
        self._looked_at = -math.inf
        self._changed_here = False
        self._failing = False
        self._unwritten: dict[int, tuple[str, str]] = {}
        """Statuses that the database did not take, by change."""

    def now(self) -> Sequence[QueryRecord]:
        """The live records as they were at most a tick ago; the same object until they change."""
        if self._catalog.in_transaction:
            return self._with_unwritten(self._catalog.live())
        records = self._known
        if records is None or self._changed_here:
            return self.look()
        if self._clock() - self._looked_at < TICK_SECONDS:
            return records
        if not self._looking.acquire(blocking=False):
            return records
        try:
            return self._read()
        finally:
            self._looking.release()

    def look(self) -> Sequence[QueryRecord]:
        """The live records as they are now."""
        with self._looking:
            return self._read()

    def changed(self) -> None:
        """Look again at the next question: this process changed the catalog."""
        self._changed_here = True

    def set_status(self, change: int, status: str, detail: str) -> None:
        """Change a query's status, here at once and in the database as soon as it answers."""
        self._unwritten[change] = (status, detail)
        self._write_statuses()
        self.changed()

    def _read(self) -> Sequence[QueryRecord]:
        self._changed_here = False
        self._looked_at = self._clock()
        self._write_statuses()  # before reading: what is read must not lack what is written then
        try:
            revision = self._catalog.revision()
            if self._known is None or revision != self._revision:
                self._known = self._catalog.live()
                self._revision = revision
            if self._failing:
                _logger.warning("the catalog answers again")
            self._failing = False
        except WeftError as error:
            if self._known is None:
                raise
            self._report(error)
        self._known = self._with_unwritten(self._known)
        return self._known

    def _write_statuses(self) -> None:
        for change, (status, detail) in list(self._unwritten.items()):
            try:
                self._catalog.set_status(change, status, detail)
            except WeftError as error:
                self._report(error)
                return
            if self._unwritten.get(change) == (status, detail):
                del self._unwritten[change]

    def _with_unwritten(self, records: Sequence[QueryRecord]) -> Sequence[QueryRecord]:
        unwritten = dict(self._unwritten)
        # Nearly always there are none, and a hundred thousand records are looked at every half second.
        if not unwritten or all(
            (r.status, r.detail) == unwritten.get(r.change, (r.status, r.detail)) for r in records
        ):
            return records
        return [
            replace(record, status=unwritten[record.change][0], detail=unwritten[record.change][1])
            if record.change in unwritten
            else record
            for record in records
        ]

    def _report(self, error: WeftError) -> None:
        """Say once that the catalog is out of reach."""
        if not self._failing:
            _logger.warning("%s; the run goes on with the queries it knows", error)
        self._failing = True
