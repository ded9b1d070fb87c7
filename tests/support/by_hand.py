"""Followers without Spark: what their engines stand on in tests, and commits of streams that are written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

from weft.runtime.checkpoint.commits import Commit, Edition, Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.protocol.step import Hooks
from weft.runtime.protocol.stepper import Stepper
from weft.runtime.settings import Settings
from weft.runtime.sinks.outlet import SinkOutlet
from weft.runtime.sinks.store import ResultStore
from weft.runtime.tasks import Output

SETTINGS = {"ansi": "false", "time_zone": "UTC"}


class _Lease:
    epoch = 1

    def check(self) -> None:
        pass

    def guarded(self, put: Callable[[], None]) -> None:
        put()


def result_store(storage: Storage) -> ResultStore:
    sink = ResultStore()
    sink.bind(storage, "test")
    return sink


def stepper_over(
    log: StreamLog,
    engine: Any,
    sink: ResultStore,
    settings: Settings,
    failed: MutableMapping[str, str],
) -> Stepper:
    """A stepper that nobody competes with. Queries that fail are written down."""
    lease: Any = _Lease()
    hooks = Hooks(failed.__setitem__, lambda *_: None, lambda _: None)
    return Stepper(log, engine, lease, SinkOutlet(sink, settings, "test"), hooks)


def publish_step(
    log: StreamLog,
    *,
    watermark: int,
    latest: int | None,
    published: Sequence[Entry],
    editions: Mapping[str, Edition],
    engine: Mapping[str, Any] | None = None,
) -> None:
    """The commit of a stream's next step."""
    last = log.last()
    sequence = next_step(log)
    commit = Commit(
        stream=log.stream,
        kind="data",
        batch=sequence,
        sequence=sequence,
        previous=last.name if last else None,
        spark_query="",
        offsets="",
        epoch=1,
        plan_version=0,
        watermark=watermark,
        max_event_time=latest,
        settings=SETTINGS,
        published=tuple(published),
        publications=tuple(editions),
        editions=dict(editions),
        engine=dict(engine or {}),
    )
    log.put_commit(commit, last)


def next_step(log: StreamLog) -> int:
    """The number of a stream's next step."""
    last = log.last()
    return last.sequence + 1 if last else 0


def through_json(outputs: Iterable[Output]) -> list[Output]:
    """What tasks give, as it passes through Spark."""
    return [(kind, json.loads(json.dumps(body))) for kind, body in outputs]
