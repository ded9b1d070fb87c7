"""Results in this process: the latest rows, up to a limit."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa

from weft.errors import RunError
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.sinks.delivery import StepResults

ROWS_KEPT = 1_000_000

_Step = tuple[str, str]


class MemorySink:
    """Results kept in this process, for tests and notebooks.

    It holds the results of whole steps, at most `rows` rows of them all together; before a new
    step would make them more, the oldest steps go. The latest step is always held.
    """

    name = "memory"

    def __init__(self, rows: int = ROWS_KEPT) -> None:
        if type(rows) is not int or rows < 1:
            raise RunError("BAD_SETTING", name="rows", value=rows, detail="give a number of rows")
        self._most = rows
        self._steps: OrderedDict[_Step, dict[str, list[pa.Table]]] = OrderedDict()
        self._rows: dict[_Step, int] = {}
        self._lock = threading.Lock()

    def write(self, results: StepResults) -> list[Entry]:
        held: dict[str, list[pa.Table]] = {}
        for query, table in results.by_query():
            held.setdefault(query.id, []).append(table)
        step = (results.stream, results.step)
        with self._lock:
            if held or step in self._steps:
                self._steps[step] = held
                self._rows[step] = sum(t.num_rows for tables in held.values() for t in tables)
                self._forget()
        return []

    def _forget(self) -> None:
        """Let the oldest steps go until the rest is few enough."""
        total = sum(self._rows.values())
        while total > self._most and len(self._steps) > 1:
            step, _ = self._steps.popitem(last=False)
            total -= self._rows.pop(step)

    def tables(self, query_id: str) -> list[pa.Table]:
        with self._lock:
            return [table for step in self._steps.values() for table in step.get(query_id, [])]
