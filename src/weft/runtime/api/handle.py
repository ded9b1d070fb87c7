"""What a user holds of a registered query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from weft.catalog.store import Catalog, QueryRecord
from weft.errors import WeftError
from weft.explain import Explanation
from weft.runtime.planning.versions import ALWAYS

if TYPE_CHECKING:
    from weft.runtime.api.weft import Weft


@dataclass(frozen=True, repr=False)
class QueryHandle:
    """A registered query."""

    _weft: Weft
    _catalog: Catalog
    _record: QueryRecord

    @property
    def name(self) -> str:
        return self._record.name

    @property
    def sql(self) -> str:
        return self._record.sql

    @property
    def emit(self) -> str | None:
        """What an aggregation join emits, as it was registered: full, changes, or None if nothing was said."""
        return self._record.emit

    @property
    def backfill(self) -> bool:
        """Whether it sees the rows that history held when it was added."""
        return self._record.backfill

    @property
    def status(self) -> str:
        """active, fallback, quarantined or rejected."""
        return self._now().status

    @property
    def detail(self) -> str:
        """Why a query fell back, or the error that quarantined it."""
        return self._now().detail

    @property
    def late_pairs(self) -> int:
        """How many (row, window) pairs came too late for it. A late row counts for every window
        that it missed; with row windows once, since it has no number and so is in no window."""
        return self._now().late

    @property
    def complete_from(self) -> int | None:
        """Microseconds since 1970, or the row number, from which on its windows are complete;
        None before it has run or if it has seen all of its stream."""
        time = self._now().complete_from
        return None if time is None or time == ALWAYS else time

    def results(self) -> DataFrame:
        return self._weft.results(self.name)

    def explain(self) -> Explanation:
        return self._weft.explain(self.name)

    def drop(self) -> None:
        self._weft.drop(self.name)

    def resume(self) -> None:
        """Bring it back after it was quarantined or rejected."""
        self._weft.resume(self.name)

    def __repr__(self) -> str:
        try:
            state = self.status
        except WeftError as error:
            state = "closed" if error.error_class == "CLOSED" else "dropped"
        return f"<QueryHandle {self.name!r}: {state}>"

    def _now(self) -> QueryRecord:
        return self._catalog.find(self.name)
