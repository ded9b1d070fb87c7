"""Keeps the network up to date with the registered queries."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import StreamSchema
from weft.errors import CatalogError
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import NetworkIndex, ScanIndex
from weft.optimizer.network.options import Options
from weft.runtime.checkpoint.commits import Commit
from weft.runtime.checkpoint.log import StreamLog

_logger = logging.getLogger("weft")


class NetworkPlanner:
    """Adds and drops queries, and keeps every version in the log."""

    def __init__(
        self,
        log: StreamLog,
        schemas: Callable[[], Mapping[str, StreamSchema]],
        index: NetworkIndex,
        options: Options,
    ) -> None:
        self._log, self._schemas = log, schemas
        self._index, self._options = index, options

    def new_plan(self, queries: Sequence[NetworkQuery], last: Commit | None) -> int:
        """A plan for exactly these queries, made from the last one; its version."""
        plan = self._log.network(last.plan_version) if last else NetworkPlan(-1)
        version = max(self._log.plan_versions(), default=plan.version) + 1
        self._log.put_plan(self.planned(plan, queries, version))
        return version

    def planned(
        self, plan: NetworkPlan, queries: Sequence[NetworkQuery], version: int
    ) -> NetworkPlan:
        """The plan for exactly these queries, as a new version."""
        registered = {query.id for query in queries}
        read = {relation for query in queries for relation in query.relations}
        schemas = self._schemas()
        streams = [schema for name, schema in schemas.items() if name in read]
        added = [query for query in queries if query.id not in plan.query_by_id]
        dropped = [query.id for query in plan.queries if query.id not in registered]

        def changed_by(index: NetworkIndex) -> NetworkPlan:
            options, estimate = self._options, HeuristicEstimate()
            return with_queries(plan, added, dropped, streams, index, options, estimate)

        try:
            changed = changed_by(self._index)
        except (
            CatalogError
        ) as error:  # the catalog is an index: it is rebuilt when it answers again
            _logger.warning("%s; the network is planned without it", error)
            changed = changed_by(ScanIndex())
        return changed.as_version(version, [query.id for query in queries])
