"""The engine of a derived stream: rows that the network has published in, windows over them out.

It follows the network's log. A step reads the files of the network's steps that it consumes, and an engine of
windows runs on their rows; nothing of them is needed after the step. Files from before a query's
registration may lack columns that it reads: these are NULL, and lie before the query's first complete window.

A query is taken up when the network has: then it is known which rows of which streams it has not seen, and
so from when on its windows are complete. If a query misses rows later, for example because it was
quarantined for a while, its windows begin anew behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from weft.algebra.network.derived import DerivedQuery
from weft.algebra.query import Query, quote
from weft.runtime.checkpoint.commits import Commit, Entry, Intent, Staged
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.protocol.engine import Engine, OutcomeT
from weft.runtime.protocol.follower import consumed
from weft.runtime.protocol.preparing import Preparing
from weft.runtime.protocol.step import StepWork


@dataclass(frozen=True)
class Membership:
    """The queries over one derived stream as the network knows them."""

    registered: Callable[[], Sequence[Query]]
    unseen: Callable[[], Mapping[str, Mapping[str, int]]]
    """By query that the network has taken up, and by stream: the latest event time of the rows that it has
    not seen."""

    def queries(self) -> list[Query]:
        """The registered queries that the network has taken up."""
        unseen = self.unseen()
        return [query for query in self.registered() if query.id in unseen]

    def complete_from(self, query: Query) -> int:
        """The event time from which on the stream has all rows for a query."""
        assert isinstance(query, DerivedQuery)
        bound = query.derived.complete_from(self.unseen().get(query.id, {}))
        return ALWAYS if bound is None else bound


class DerivedEngine(Preparing[OutcomeT]):
    """Lets an engine of windows run on the rows of a join."""

    def __init__(
        self, windows: Engine[OutcomeT], members: Membership, log: StreamLog, network: StreamLog
    ) -> None:
        super().__init__(windows)
        self._members, self._log, self._network = members, log, network

    def serves(self, head: Commit | Staged) -> bool:
        """Whether the plan is for the queries of now, and none of them has missed rows since."""
        if not self._inner.serves(head):
            return False
        plan = self._log.plan(head.plan_version)
        return all(
            plan.complete_from[query.id] >= self._members.complete_from(query)
            for query in plan.queries
        )

    def read(self, work: StepWork, intent: Intent, last: Commit | None) -> None:
        """Let the engine of windows read the rows that the network has published."""
        queries = self._log.plan(intent.plan_version).queries
        files = self._published(intent, last) if queries else []
        work.rows = self._rows(work.spark, files, queries) if files else None
        self._inner.read(work, intent, last)

    def _published(self, intent: Intent, last: Commit | None) -> list[Entry]:
        files: list[Entry] = []
        for step in consumed(intent, last, lambda _: self._network, self._log.stream):
            step.require_files(self._network.storage)
            files += step.files
        return files

    def _rows(
        self, spark: SparkSession, files: Sequence[Entry], queries: Sequence[Query]
    ) -> DataFrame:
        types = {
            field.name: field.type
            for query in queries
            if isinstance(query, DerivedQuery)
            for field in query.fields
        }
        schema = ", ".join(f"{quote(name)} {type_}" for name, type_ in sorted(types.items()))
        paths = [self._network.storage.spark_path(entry["name"]) for entry in files]
        return spark.read.schema(schema).parquet(*paths)
