"""What can be asked of streams without running them: plans, counts, statistics, EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any

from weft.algebra.joinagg.matches import matching
from weft.algebra.joinagg.sets import set_of
from weft.algebra.network.derived import DerivedQuery, schema_of
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.numbered import numbered, numbered_name, source_name
from weft.algebra.plan import SharedPlan, Sharing
from weft.algebra.query import Query, StreamSchema
from weft.catalog.store import Catalog
from weft.errors import CatalogError
from weft.explain import AggregationView, Explanation, FallbackNote, explain
from weft.kernel.windows.program import compile_program
from weft.optimizer.gtweave import share
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options
from weft.optimizer.weaving import WindowWeaving
from weft.runtime.api.aggregations import aggregation_views
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.joinagg.choices import Choices
from weft.runtime.joinagg.engine import LOG as AGGREGATIONS_LOG
from weft.runtime.network.engine import LOG as NETWORK_LOG
from weft.runtime.network.planner import NetworkPlanner
from weft.runtime.planning.replanning import group_counts, measured_sharing
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.queries.registry import Registry
from weft.runtime.rows.engine import row_settings
from weft.runtime.settings import Settings
from weft.runtime.windows.placement import placed
from weft.stats import StreamStatistics


class Inspection:
    """Looks at the streams and queries of one weft."""

    def __init__(
        self,
        registry: Registry,
        catalog: Catalog,
        settings: Settings,
        log: Callable[[str], StreamLog],
        choices: Choices,
        lanes: int,
    ) -> None:
        self._registry, self._catalog = registry, catalog
        self._weights = settings.lane_weights(lanes)
        self._settings, self._log = settings, log
        self._choices = choices
        self._made: dict[str, _Made] = {}
        """By stream: the last plan that was made here without statistics, for who asks again."""

    def plan(self, stream: str) -> SharedPlan:
        """The shared plan of a stream's queries as they are registered now."""
        queries = self._registry.shared(stream)
        log = self._log(stream)
        last = log.last()
        settings = self._settings
        derived = [query for query in queries if isinstance(query, DerivedQuery)]
        if derived:
            schema = schema_of(derived)
        else:
            self._require(source_name(stream))
            schema = self._registry.sources[source_name(stream)].schema
            if stream != schema.name:
                schema, settings = numbered(schema), row_settings(settings)
            else:
                queries = [*queries, *self._sets(schema)]
        if last is not None:
            plan = log.plan(last.plan_version)
            if [query.id for query in plan.queries] == [query.id for query in queries]:
                return plan
        counts = group_counts(self._catalog.statistics(stream))
        sharing = measured_sharing(settings, last)
        made = self._made.get(stream)
        if made is not None and counts is None and made.for_the_same(schema, queries, sharing):
            return made.plan
        weaving = WindowWeaving(sharing, counts)
        always = {query.id: ALWAYS for query in queries}
        plan = share(0, schema, queries, always, weaving)
        if counts is None:
            self._made[stream] = _Made(schema, sharing, plan)
        return plan

    def _sets(self, stream: StreamSchema) -> list[Query]:
        """The aggregation sets of early inputs on a stream."""
        joins = self._registry.aggregations()
        sources = self._choices.sources(joins, stream.name, early=True, fixed=False)
        return [set_of(source, stream) for source in sources]

    def aggregations(self) -> list[AggregationView]:
        """The aggregation joins as they are registered now."""
        queries = self._registry.aggregations()
        return aggregation_views(
            queries,
            self._choices,
            list(self._registry.sources),
            self.counted(AGGREGATIONS_LOG),
            self._lanes_of(AGGREGATIONS_LOG),
            self.network(),
        )

    def network(self) -> NetworkPlan:
        """The network of the join queries, and of matches for aggregation joins, as they are registered now."""
        matches = [
            matching(query, slots, self._registry.schemas)
            for query in self._registry.aggregations()
            if (slots := self._choices.late_join(query).slots)
        ]
        queries = (*self._registry.network(), *matches)
        log = self._log(NETWORK_LOG)
        last = log.last()
        plan = log.network(last.plan_version) if last is not None else NetworkPlan(-1)
        if [query.id for query in plan.queries] == [query.id for query in queries]:
            return plan
        schemas = self._registry.schemas
        planner = NetworkPlanner(log, lambda: schemas, ScanIndex(), Options())
        return planner.planned(plan, queries, 0)

    def counted(self, stream: str) -> dict[str, Any]:
        """What a stream's steps have counted so far; empty before the first."""
        last = self._log(stream).last()
        return dict(last.metrics) if last is not None else {}

    def statistics(self, stream: str) -> StreamStatistics:
        """What is known of a stream; assumed before anything is measured."""
        self._require(stream)
        statistics = self._catalog.statistics(stream)
        last = self._log(stream).last()
        if last is None and not statistics.known:
            return StreamStatistics.unknown(self._settings.assumed_rate)
        return statistics.counted(last.metrics) if last is not None else statistics

    def explain(self, query: str | None) -> Explanation:
        """The shared plans of all streams and the network of the join queries, or one query's part."""
        if query is not None:
            self._catalog.find(query)
        streams = list(self._registry.sources)
        logs = [name for stream in streams for name in (stream, numbered_name(stream))]
        logs += self._registry.derived
        plans = [self.plan(name) for name in logs]
        notes = [
            FallbackNote(record.name, bound.stream, bound.detail)
            for record, bound in self._registry.fallbacks()
        ]
        shared = [plan for plan in plans if plan.queries]
        explanation = explain(shared, notes, only=query, network=self.network())
        explanation = explanation.with_aggregations(self.aggregations())
        explanation = explanation.with_lanes(self._lane_costs(shared), self._lanes_of(NETWORK_LOG))
        return explanation.with_statistics({stream: self.statistics(stream) for stream in streams})

    def _lane_costs(self, plans: Sequence[SharedPlan]) -> dict[str, Sequence[float]]:
        """By stream whose steps run in lanes, or did last, what each lane will cost."""
        return {
            plan.stream.name: placed(compile_program(plan), self._weights).costs
            for plan in plans
            if self._in_lanes("lane_costs" in self.counted(plan.stream.name))
        }

    def _lanes_of(self, log: str) -> tuple[float, ...]:
        """The weights of the lanes, if the steps of a log run in lanes, or did last."""
        in_lanes = self._in_lanes(self.counted(log).get("where") == "lanes")
        return self._weights if in_lanes else ()

    def _in_lanes(self, last: bool) -> bool:
        """Whether steps run in lanes: by the setting, or as the last one did."""
        kernel = self._settings.kernel
        return kernel == "lanes" or (kernel == "auto" and last)

    def _require(self, stream: str) -> None:
        if stream not in self._registry.sources:
            known = ", ".join(self._registry.sources) or "none"
            raise CatalogError("UNKNOWN_STREAM", name=stream, known=known)


@dataclass(frozen=True)
class _Made:
    """A plan, and what it was made for."""

    schema: StreamSchema
    sharing: Sharing
    plan: SharedPlan

    def for_the_same(
        self, schema: StreamSchema, queries: Sequence[Query], sharing: Sharing
    ) -> bool:
        """Whether the plan would come out the same. Queries are compared as objects: they are bound once."""
        same = len(queries) == len(self.plan.queries) and all(map(is_, queries, self.plan.queries))
        return same and schema == self.schema and sharing == self.sharing
