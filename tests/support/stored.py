"""Results in the checkpoint, read by Arrow: a look at them costs no Spark job."""

from __future__ import annotations

from tests.oracle.plain_spark import python_rows
from tests.oracle.values import Value

import weft
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Query
from weft.kernel.windows.program import family
from weft.runtime.network.engine import LOG as NETWORK_LOG
from weft.runtime.sinks.reading import QueryResults
from weft.runtime.sinks.store import ResultStore


def stored_rows(w: weft.Weft, name: str) -> list[tuple[Value, ...]]:
    """What a query has given so far: the rows of `w.results`, which tests of their own read, and which is
    asked here for what is not in a store, or comes from a query that runs alone."""
    query = w._registry.of(w.query(name)._record)
    if not isinstance(query, Query | NetworkQuery) or not isinstance(w._sink, ResultStore):
        return python_rows(w.results(name).toArrow())
    log = w._log(NETWORK_LOG if isinstance(query, NetworkQuery) else query.stream)
    files = [file for file in log.result_files() if file["family"] == family(query.output_types)]
    names = [column.name for column in query.columns]
    return python_rows(QueryResults(query.id, w._storage, files).table(names))
