"""What a project's checkpoint holds, read without Spark and without taking its lease.

So commands that only look, or only change the catalog, work at once and beside a process that
runs the project.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.numbered import numbered_name
from weft.algebra.plan import SharedPlan
from weft.algebra.query import Query, StreamSchema
from weft.catalog.store import Catalog, QueryRecord
from weft.cli.project.folder import Project
from weft.explain import (
    AggregationsMeasured,
    AggregationView,
    Measured,
    NetworkMeasured,
    NodeMeasured,
)
from weft.runtime.api.aggregations import aggregation_views
from weft.runtime.checkpoint.commits import Commit
from weft.runtime.checkpoint.identity import open_checkpoint
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.derived.leftovers import derived_logs
from weft.runtime.joinagg.choices import Choices
from weft.runtime.joinagg.engine import LOG as AGGREGATIONS_LOG
from weft.runtime.network.engine import LOG as NETWORK_LOG
from weft.runtime.settings import settings_of
from weft.stats import StreamStatistics

_SQLITE = "sqlite:///"


class Recorded:
    """The checkpoint and the catalog of a project that has been opened before."""

    def __init__(self, project: Project, storage: Storage, catalog: Catalog) -> None:
        self.project, self.storage, self.catalog = project, storage, catalog
        self._logs: dict[str, StreamLog] = {}

    def live(self) -> list[QueryRecord]:
        """The registered queries."""
        return self.catalog.live()

    def schemas(self) -> dict[str, StreamSchema]:
        """The project's streams as they were when last opened."""
        return self.catalog.streams()

    def log(self, stream: str) -> StreamLog:
        if stream not in self._logs:
            self._logs[stream] = StreamLog(self.storage, stream)
        return self._logs[stream]

    def commits(self) -> Iterator[tuple[StreamLog, Commit]]:
        """The last commit of every stream, of its row windows, and of the derived streams, that has one.
        The network of join queries is apart."""
        names = [name for s in self.project.streams for name in (s.name, numbered_name(s.name))]
        for name in (*names, *derived_logs(self.storage)):
            last = self.log(name).last()
            if last is not None:
                yield self.log(name), last

    def plans(self) -> list[SharedPlan]:
        """The plans of windowed aggregates that ran last."""
        return [log.plan(last.plan_version) for log, last in self.commits()]

    def network(self) -> NetworkPlan | None:
        """The network of join queries that ran last."""
        log = self.log(NETWORK_LOG)
        last = log.last()
        return log.network(last.plan_version) if last is not None else None

    def bound(
        self, record: QueryRecord
    ) -> tuple[StreamLog, Query | NetworkQuery | AggregationJoin] | None:
        """A shared query as the latest plan that has it holds it; None before its first micro-batch.
        A quarantined one is in no new plan, and old plans are deleted some time later."""
        logs = [log for log, _ in self.commits()]
        for log in (*logs, self.log(NETWORK_LOG), self.log(AGGREGATIONS_LOG)):
            for version in reversed(log.plan_versions()):
                query = log.any_plan(version).query_by_id.get(record.id)
                if query is not None:
                    return log, query
        return None

    def measured(self) -> list[Measured]:
        """What the last commits counted."""
        return [_measured(log.stream, last) for log, last in self.commits()]

    def network_measured(self) -> NetworkMeasured | None:
        """What the network's last commit counted."""
        last = self.log(NETWORK_LOG).last()
        return _network_measured(last) if last is not None else None

    def aggregations_measured(self) -> AggregationsMeasured | None:
        """What the last commit of aggregation joins counted."""
        last = self.log(AGGREGATIONS_LOG).last()
        return _aggregations_measured(last) if last is not None else None

    def aggregations(self) -> list[AggregationView]:
        """The aggregation joins that ran last."""
        log = self.log(AGGREGATIONS_LOG)
        last = log.last()
        if last is None:
            return []
        settings = settings_of(dict(self.project.settings))
        choices = Choices(self.storage, settings, self.catalog.statistics, AGGREGATIONS_LOG)
        in_lanes = last.metrics.get("where") == "lanes"
        return aggregation_views(
            log.aggregations(last.plan_version).queries,
            choices,
            [stream.name for stream in self.project.streams],
            last.metrics,
            tuple(last.metrics.get("lane_weights", ())) if in_lanes else (),
            self.network(),
        )

    def lanes(self) -> tuple[dict[str, list[float]], list[float]]:
        """By stream whose steps ran in lanes, the predicted cost of each lane; and the weights of the lanes of the
        network's joins, if these ran in lanes."""
        costs = {log.stream: last.metrics.get("lane_costs", []) for log, last in self.commits()}
        network = self.log(NETWORK_LOG).last()
        in_lanes = network is not None and network.metrics.get("where") == "lanes"
        weights = (
            network.metrics.get("lane_weights", []) if network is not None and in_lanes else []
        )
        return {stream: known for stream, known in costs.items() if known}, weights

    def statistics(self) -> dict[str, StreamStatistics]:
        """What is known of the streams that ran."""
        return {
            log.stream: self.catalog.statistics(log.stream).counted(last.metrics)
            for log, last in self.commits()
        }


def recorded(project: Project) -> Recorded | None:
    """The project's record, None if it has never been opened. Refuses a foreign checkpoint."""
    storage = Storage(project.checkpoint)
    if not storage.exists("weft.json"):
        return None
    open_checkpoint(storage, project.name, lanes=1)
    url = project.catalog or _SQLITE + storage.path("catalog.db")
    if url.startswith(_SQLITE) and not Path(url.removeprefix(_SQLITE)).is_file():
        return None
    return Recorded(project, storage, Catalog(url))


def _measured(stream: str, last: Commit) -> Measured:
    metrics = last.metrics
    by_node: dict[str, int] = {}
    for entry in last.state:
        by_node[entry["node"]] = by_node.get(entry["node"], 0) + entry["rows"]
    first, latest = metrics.get("first_event"), last.engine["latest"]
    since = latest - first if first is not None and latest is not None else 0
    rows = metrics.get("rows", 0) - metrics.get("first_rows", 0)
    return Measured(
        stream=stream,
        batches=last.batch + 1,
        rows=metrics.get("rows", 0),
        results=metrics.get("results", 0),
        late_rows=metrics.get("late_rows", 0),
        null_times=metrics.get("null_times", 0),
        state_rows=sum(entry["rows"] for entry in last.state),
        state_bytes=sum(entry["size"] for entry in last.state),
        watermark=last.mark,
        state_rows_by_node=by_node,
        seconds=metrics.get("seconds"),
        event_rate=rows / since * 1e6 if since > 0 else None,
        event_seconds=since / 1e6 if since > 0 else None,
        keys=metrics.get("keys"),
        operations={
            level: metrics[level] for level in ("level1", "level2", "level3") if level in metrics
        },
        lane_costs=tuple(metrics.get("lane_costs", ())),
        lane_seconds=tuple(metrics.get("lane_seconds", ())),
    )


def _network_measured(last: Commit) -> NetworkMeasured:
    metrics = last.metrics
    rows, history = metrics.get("nodes", {}), metrics.get("history", {})
    return NetworkMeasured(
        steps=last.sequence + 1,
        rows=metrics.get("rows", 0),
        results=metrics.get("results", 0),
        late_rows=metrics.get("late_rows", 0),
        watermark=last.mark,
        nodes={
            node: NodeMeasured(rows.get(node, 0), *history.get(node, (0, 0)))
            for node in {**rows, **history}
        },
        seconds=metrics.get("seconds"),
        where=metrics.get("where", "driver"),
        lane_weights=tuple(metrics.get("lane_weights", ())),
        lane_seconds=tuple(metrics.get("lane_seconds", ())),
    )


def _aggregations_measured(last: Commit) -> AggregationsMeasured:
    metrics = last.metrics
    return AggregationsMeasured(
        steps=last.sequence + 1,
        rows=metrics.get("rows", 0),
        results=metrics.get("results", 0),
        instants=metrics.get("instants", 0),
        joins=metrics.get("joins", 0),
        seconds=metrics.get("seconds"),
        where=metrics.get("where", "driver"),
        lane_seconds=tuple(metrics.get("lane_seconds", ())),
    )
