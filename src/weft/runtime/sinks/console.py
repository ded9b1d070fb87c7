"""Results on standard output."""

from __future__ import annotations

import sys
from typing import TextIO

from weft.runtime.checkpoint.commits import Entry
from weft.runtime.sinks.delivery import StepResults


class ConsoleSink:
    """A few rows of every query with results, per step."""

    name = "console"

    def __init__(self, rows: int = 5, stream: TextIO | None = None) -> None:
        self._rows, self._stream = rows, stream

    def write(self, results: StepResults) -> list[Entry]:
        from rich.console import Console
        from rich.table import Table

        console = Console(file=self._stream or sys.stdout)
        for query, table in results.by_query():
            shown = Table(title=f"{query.name}, batch {results.batch}: {table.num_rows} rows")
            for column in table.column_names:
                shown.add_column(column)
            for row in table.slice(0, self._rows).to_pylist():
                shown.add_row(*(str(value) for value in row.values()))
            console.print(shown)
        return []
