"""Keeps the network up to date with the registered queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.query import StreamSchema
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import NetworkIndex
from weft.optimizer.network.options import Options
from weft.runtime.checkpoint.commits import Commit
from weft.runtime.checkpoint.log import StreamLog


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

    def new_plan(self, queries: Sequence[JoinQuery], last: Commit | None) -> int:
        """A plan for exactly these queries, made from the last one; its version."""
        plan = self._log.network(last.plan_version) if last else NetworkPlan(-1)
        version = max(self._log.plan_versions(), default=plan.version) + 1
        self._log.put_plan(self.planned(plan, queries, version))
        return version

    def planned(self, plan: NetworkPlan, queries: Sequence[JoinQuery], version: int) -> NetworkPlan:
        """The plan for exactly these queries, as a new version."""
        registered = {query.id for query in queries}
        read = {relation for query in queries for relation in query.relations}
        schemas = self._schemas()
        streams = [schema for name, schema in schemas.items() if name in read]
        changed = with_queries(
            plan,
            [query for query in queries if query.id not in plan.query_by_id],
            [query.id for query in plan.queries if query.id not in registered],
            streams,
            self._index,
            self._options,
            HeuristicEstimate(),
        )
        return changed.as_version(version, [query.id for query in queries])
