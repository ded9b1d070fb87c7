"""The planner makes the plans of a stream, between two steps: because the queries have changed, or
because the stream has drifted from what its weave groups were chosen for (`replanning`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from weft.algebra.nodes.reads import one_of_each
from weft.algebra.plan import SharedPlan, Sharing
from weft.algebra.query import Query, StreamSchema
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving
from weft.runtime.checkpoint.commits import Commit
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.planning.replanning import (
    drifted,
    group_counts,
    groups_drifted,
    measured_sharing,
    pays,
)
from weft.runtime.planning.sampling import Sampling
from weft.runtime.planning.versions import next_plan
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics


class Planner:
    """Makes the plans of one stream, and remembers what the last one was made for."""

    def __init__(
        self,
        log: StreamLog,
        stream: StreamSchema,
        settings: Settings,
        sampling: Sampling,
        has_all_from: Callable[[Query], int] | None = None,
    ) -> None:
        self._log, self._stream = log, stream
        self._settings, self._sampling = settings, sampling
        self._has_all_from = has_all_from
        """The event time from which on the stream has all rows for a query; None: it always has."""
        self._planned_for: Sharing | None = None
        """The measures for which the weave groups were last chosen, or found to be still right."""
        self._planned_with = StreamStatistics.unknown()
        """The statistics at that time."""

    def look(self, rows: DataFrame, queries: Sequence[Query]) -> None:
        """Sample the first rows of a stream with several nodes, before its first plan: the aggregate
        tree is chosen by this sample."""
        if self._sampling.statistics.known:
            return
        draft = share(0, self._stream, one_of_each(queries), {})
        if len(draft.nodes) > 1:
            self._sampling.look(rows, draft)

    def outgrown(self, plan: SharedPlan, last: Commit | None) -> bool:
        """Whether the stream has drifted so far that other weave groups pay; False before the first
        commit. Each drift is judged once: if new groups do not pay, that is remembered."""
        if last is None:
            return False
        sharing, statistics = measured_sharing(self._settings, last), self._sampling.statistics
        factor = self._settings.replan_drift
        if not self._planned_with.known:
            self._planned_with = statistics
        drifts = drifted(self._planned_for or plan.sharing, sharing, factor)
        if not drifts and not groups_drifted(self._planned_with, statistics, plan, factor):
            return False
        self._planned_for, self._planned_with = sharing, statistics
        return pays(plan, sharing, statistics)

    def new_plan(self, queries: Sequence[Query], last: Commit | None) -> SharedPlan:
        """A new plan version, which is stored in the log."""
        statistics = self._sampling.statistics
        sharing = measured_sharing(self._settings, last)
        if not sharing.measured and statistics.rate.source != "assumed":
            sharing = replace(sharing, rate=statistics.rate.value)
        self._planned_for, self._planned_with = sharing, statistics
        weaving = WindowWeaving(sharing, group_counts(statistics))
        plan = next_plan(self._log, self._stream, queries, last, weaving)
        if self._has_all_from is not None:
            complete = {
                query.id: max(plan.complete_from[query.id], self._has_all_from(query))
                for query in queries
            }
            plan = replace(plan, complete_from=complete)
        self._log.put_plan(plan)
        return plan
