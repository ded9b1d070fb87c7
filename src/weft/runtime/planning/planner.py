"""Who makes the plans of a stream, between two steps: for other queries, or because the stream is no
longer what its weave groups were chosen for (`replanning`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from weft.algebra.plan import SharedPlan, Sharing
from weft.algebra.query import Query, StreamSchema
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving
from weft.runtime.planning.replanning import (
    drifted,
    group_counts,
    groups_drifted,
    measured_sharing,
    pays,
)
from weft.runtime.planning.sampling import Sampling
from weft.runtime.planning.versions import next_plan
from weft.runtime.protocol.commits import Commit
from weft.runtime.protocol.log import StreamLog
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics


class Planner:
    """Makes the plans of one stream, and remembers what the last one was made for."""

    def __init__(
        self, log: StreamLog, stream: StreamSchema, settings: Settings, sampling: Sampling
    ) -> None:
        self._log, self._stream = log, stream
        self._settings, self._sampling = settings, sampling
        self._planned_for: Sharing | None = None
        """What the weave groups were last chosen for, or found to be still right for."""
        self._planned_with = StreamStatistics.unknown()
        """What was known of groups at that time."""

    def look(self, rows: DataFrame, queries: Sequence[Query]) -> None:
        """Before the first plan of a stream with several nodes: a sample of its first rows, so that
        their tree is chosen by what they are."""
        if self._sampling.known.known:
            return
        draft = share(0, self._stream, queries, {})
        if len(draft.nodes) > 1:
            self._sampling.look(rows, draft)

    def outgrown(self, plan: SharedPlan, last: Commit | None) -> bool:
        """Whether the stream has drifted so far from what the weave groups were chosen for that
        others pay; not before it has a commit. Of each drift it is asked once: what does not pay is
        remembered."""
        if last is None:
            return False
        sharing, known = measured_sharing(self._settings, last), self._sampling.known
        factor = self._settings.replan_drift
        if not self._planned_with.known:
            self._planned_with = known
        drifts = drifted(self._planned_for or plan.sharing, sharing, factor)
        if not drifts and not groups_drifted(self._planned_with, known, plan, factor):
            return False
        self._planned_for, self._planned_with = sharing, known
        return pays(plan, sharing, known)

    def new_plan(self, queries: Sequence[Query], last: Commit | None) -> SharedPlan:
        """A new version, kept in the checkpoint."""
        known = self._sampling.known
        sharing = measured_sharing(self._settings, last)
        if not sharing.measured and known.rate.source != "assumed":
            sharing = replace(sharing, rate=known.rate.value)
        self._planned_for, self._planned_with = sharing, known
        weaving = WindowWeaving(sharing, group_counts(known))
        plan = next_plan(self._log, self._stream, queries, last, weaving)
        self._log.put_plan(plan)
        return plan
