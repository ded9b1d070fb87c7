"""Results to a function of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from weft.runtime.checkpoint.commits import Entry
from weft.runtime.sinks.delivery import StepResults


class CallbackSink:
    """A Python function per query and batch: `function(query name, Arrow table, batch id)`."""

    def __init__(self, function: Callable[[str, pa.Table, int], Any]) -> None:
        self._function = function
        self.name = f"callback({getattr(function, '__name__', 'function')})"

    def write(self, results: StepResults) -> list[Entry]:
        for query, table in results.by_query():
            self._function(query.name, table, results.batch)
        return []
