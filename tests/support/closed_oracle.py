"""What DuckDB says of queries with EXISTS, EXCEPT and the like over streams, step by step.

The oracle asks for the whole query over all rows admitted so far; of anti-joins, over the rows that are
closed. Nothing may ever be taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st
from tests.explain.support import NoAnalyzer
from tests.support.closed_queries import Closing, texts
from tests.support.lookup_queries import COLUMNS, STREAMS, TABLES
from tests.support.network_steps import SECOND, counted, rows_of, table

from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Query
from weft.sql import Fallback, bind

Contents = Mapping[str, pa.Table]


def bound(sql: str, number: int = 0, change: int = 1) -> NetworkQuery:
    query = bind(
        f"q{number}", sql, STREAMS, NoAnalyzer(), query_id=f"q{number}@{change}", tables=TABLES, time_zone="UTC"
    )  # fmt: skip
    assert not isinstance(query, Query | Fallback), query
    return query


def second_of(step: int, *, flush: bool = False) -> int:
    """The watermark after a step: two seconds behind it. A flush goes far ahead."""
    return 100 if flush else max(0, step - 2)


@st.composite
def steps(draw: st.DrawFn, count: int = 4) -> list[dict[str, pa.Table]]:
    """Both streams have the columns of `a`. The last step has no rows: the watermark alone moves."""
    rows = [{name: draw(rows_of("a", step)) for name in STREAMS} for step in range(1, count + 1)]
    return [*rows, {}]


class Oracle:
    """The rows of texts over all rows so far."""

    def __init__(self, tables: Contents) -> None:
        self._database = duckdb.connect()
        self._database.execute("SET TimeZone = 'UTC'; SET threads = 1")
        self._rows: dict[str, list[pa.Table]] = {name: [] for name in STREAMS}
        for name, rows in tables.items():
            self._database.register(name, rows.select(list(COLUMNS)))
        self._before: dict[Closing, Counter[Any]] = {}

    def add(self, deltas: Contents, second_before: int) -> None:
        for name, rows in deltas.items():
            above = pc.greater(rows.column("#time"), second_before * SECOND)
            self._rows[name].append(rows.filter(above))

    def new(self, text: Closing, first: int, second: int) -> Counter[Any]:
        """The rows that the text has since the last time, over rows that came with a step or later."""
        for name, parts in self._rows.items():
            rows = pa.concat_tables([table("a", []), *parts])
            rows = rows.filter(pc.greater_equal(rows.column("#step"), first))
            self._database.register(name, rows.select(["ts", *COLUMNS]))
        now = counted(self._database.sql(text.over_closed(second)).to_arrow_table())
        before = self._before.get(text, Counter())
        assert not before - now, "a row would have to be taken back"
        self._before[text] = now
        return now - before


def contents() -> st.SearchStrategy[dict[str, pa.Table]]:
    return st.fixed_dictionaries({name: rows_of("t", 1) for name in TABLES})


def waiting_texts() -> st.SearchStrategy[Closing]:
    """Texts whose rows do depend on others: conditions that contradict each other ask for nothing."""
    return texts().filter(lambda text: all(one.partner for one in bound(text.sql).branches))
