"""How a stream's steppers are put together: its loom, that of its row windows, and what runs both.

Nothing here starts: `Weft.start` and its supervision decide when a stream runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql.types import StructField, StructType

from weft.algebra.numbered import numbered
from weft.algebra.plan import SharedPlan, query_columns
from weft.algebra.query import NUMBER, Query
from weft.catalog.store import Catalog
from weft.runtime.api.registry import Registry
from weft.runtime.planning.sampling import Sampling
from weft.runtime.protocol.checkpoint import Identity
from weft.runtime.protocol.lease import Lease
from weft.runtime.protocol.log import StreamLog
from weft.runtime.protocol.step import Hooks
from weft.runtime.rows.numbering import Numbering
from weft.runtime.rows.rowloom import RowLoom, row_settings
from weft.runtime.run.run import Run, StreamRun
from weft.runtime.settings import Settings
from weft.runtime.sinks.sinks import Sink
from weft.runtime.windows.loom import Loom
from weft.stats import StreamStatistics


class Assembly:
    """Makes the looms of streams, and the runs of these looms."""

    def __init__(
        self,
        registry: Registry,
        catalog: Catalog,
        settings: Settings,
        identity: Identity,
        log: Callable[[str], StreamLog],
        planned: Callable[[SharedPlan, dict[str, int]], None],
    ) -> None:
        self._registry, self._catalog = registry, catalog
        self._settings, self._identity = settings, identity
        self._log, self._planned = log, planned
        self._columns: dict[str, set[str]] = {}

    def looms(self, name: str, lease: Lease, sink: Sink, run: Run) -> tuple[Loom, RowLoom]:
        """The loom of a stream, and that of its row windows, which follows it."""
        added = self._registry.sources[name]
        lanes, owner = self._identity.lanes, self._identity.owner

        def hooks(queries: Callable[[], list[Query]], sampling: Sampling | None = None) -> Hooks:
            sampling = sampling or Sampling(every=0)
            return Hooks(queries, self._registry.quarantine, self._planned, run.report, sampling)

        def queries() -> list[Query]:
            return self._registry.shared(name, self._columns[name])

        log, schema = self._log(name), added.schema
        own = hooks(queries, self._sampling(name))
        loom = Loom(log, lease, schema, sink, self._settings, lanes, owner, own)
        rows = numbered(schema)
        stored = {field.name for field in rows.fields}
        whole = StructType(
            [StructField(f.name, f.dataType) for f in added.frame.schema if f.name in stored]
        )

        def row_queries() -> list[Query]:
            """None until the stream is read with all its columns."""
            read = self._columns[name]
            return self._registry.shared(rows.name, read) if set(whole.names) <= read else []

        log, settings = self._log(rows.name), row_settings(self._settings)
        numbering = Numbering(log, schema, whole, lanes)
        follower = RowLoom(
            loom, numbering, log, lease, rows, sink, settings, lanes, owner, hooks(row_queries)
        )
        return loom, follower

    def _sampling(self, stream: str) -> Sampling:
        def keep(statistics: StreamStatistics) -> None:
            self._catalog.put_statistics(stream, statistics)

        known = self._catalog.statistics(stream)
        return Sampling(self._settings.statistics_every, known, keep)

    def stream_run(self, loom: Loom, rows: RowLoom, trigger: dict[str, Any]) -> StreamRun:
        name = loom.stream.name
        added = self._registry.sources[name]

        order = [field.name for field in added.schema.fields]
        known: dict[str, Any] = {}

        def columns_in_use() -> tuple[str, ...]:
            live = self._registry.live()
            if known.get("live") is not live:
                known["live"] = live
                wanted = self._wanted_columns(loom, rows)
                known["columns"] = tuple(sorted(wanted, key=order.index))
            columns: tuple[str, ...] = known["columns"]
            return columns

        def projected(columns: tuple[str, ...]) -> None:
            self._columns[name] = set(columns)

        return StreamRun(
            loom, added.frame, trigger, columns_in_use, projected, self._settings.idle_seconds
        )

    def _wanted_columns(self, loom: Loom, rows: RowLoom) -> set[str]:
        """The columns that registered queries read, and the plan that a replay would use. The
        order of rows takes all columns, and a row that waits for its number keeps them."""
        wanted = {loom.stream.time}
        if rows.needs_rows or self._registry.shared(rows.stream.name):
            wanted |= {field.name for field in rows.stream.fields} - {NUMBER}
        for query in self._registry.shared(loom.stream.name):
            wanted |= query_columns(query)
        for intent in loom.log.intents_after(loom.last):
            wanted |= set(loom.log.plan(intent.plan_version).columns)
        return wanted
