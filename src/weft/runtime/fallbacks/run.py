"""One fallback under way, started again after an error.

An error of the source, or of the query itself, ends Spark's streaming query. It is started again
after a pause, which grows with every try; a batch that succeeds makes the count begin anew. After
`tries` failures one after the other the fallback is quarantined with the cause. A sink has been
tried as often by then with the same rows, so its error is final at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from weft.catalog.store import QueryRecord
from weft.errors import CheckpointError, RunError
from weft.runtime.cause import cause_of
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.fallbacks.batches import Batches
from weft.runtime.fallbacks.log import FallbackLog
from weft.runtime.protocol.step import answering_spark
from weft.runtime.quiet import quiet_sql_errors
from weft.runtime.settings import Settings
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.routes import destination

_POLL_SECONDS = 0.05
_FINAL = ("SINK_FAILED",)
_logger = logging.getLogger("weft")


class FallbackRun:
    """One plain streaming query. `poll` takes it from one state to the next; nothing else does."""

    def __init__(
        self,
        record: QueryRecord,
        frame: DataFrame,
        log: FallbackLog,
        batches: Batches,
        trigger: Mapping[str, Any],
        quarantine: Callable[[str, str], None],
        *,
        tries: int,
        pause_seconds: float,
    ) -> None:
        self.record = record
        self._frame, self._log, self._batches = frame, log, batches
        self._trigger, self._quarantine = trigger, quarantine
        self._tries, self._pause_seconds = tries, pause_seconds
        self._query: StreamingQuery | None = None
        self._failures = 0
        self._cause: BaseException | None = None
        """What ended the batch under way: Spark passes on only its text, within its own."""
        self._again_at: float | None = None
        """When the query is to be started again, on the monotonic clock."""
        self._over = False
        self.quarantined = False
        self._lock = threading.RLock()

    @property
    def is_active(self) -> bool:
        """Whether it runs, or will again."""
        return not self._over

    def start(self) -> None:
        """Start it; raises what Spark has against the query."""
        self._batches.prepare(self._frame.schema.json())
        self._start()

    def _start(self) -> None:
        self._cause = None
        writer = self._frame.writeStream.foreachBatch(self._write).outputMode("append")
        path = self._log.storage.spark_path(self._log.spark_folder)
        writer = writer.option("checkpointLocation", path)
        self._query = writer.trigger(**self._trigger).start()

    def _write(self, rows: DataFrame, batch: int) -> None:
        try:
            with answering_spark(), quiet_sql_errors():
                self._batches.write(rows, batch)
        except Exception as error:
            self._cause = error
            raise
        self._failures = 0

    def poll(self) -> None:
        """Notice that it has ended; start it again when it is time, or give up."""
        with self._lock:
            if self._over:
                return
            if self._again_at is not None:
                if time.monotonic() >= self._again_at:
                    self._again_at = None
                    self._try_to_start()
                return
            assert self._query is not None
            if self._query.isActive:
                return
            error = self._query.exception()
            if error is None:
                self._over = True
            else:
                self._failed(self._cause or error)

    def _try_to_start(self) -> None:
        try:
            self._start()
        except Exception as error:
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        self._failures += 1
        cause = cause_of(error)
        final = isinstance(error, CheckpointError)
        final = final or (isinstance(error, RunError) and error.error_class in _FINAL)
        if final or self._failures >= self._tries:
            self._quarantine(self.record.id, cause)
            self._over = self.quarantined = True
            return
        pause = self._pause_seconds * self._failures
        _logger.warning(
            "query '%s' failed and is started again in %g s: %s", self.record.name, pause, cause
        )
        self._again_at = time.monotonic() + pause

    def process_all_available(self) -> None:
        """Run all data that is there; a fallback that fails for good disturbs nobody."""
        while self.is_active:
            query = self._query
            assert query is not None
            try:
                if self._again_at is None:
                    query.processAllAvailable()
                    if query is self._query and (query.isActive or query.exception() is None):
                        return
            except StreamingQueryException:
                pass  # its cause is taken up by `poll`
            self.poll()
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        with self._lock:
            self._over = True
            if self._query is not None:
                self._query.stop()


def fallback_run(
    record: QueryRecord,
    frame: DataFrame,
    storage: Storage,
    sink: Sink,
    owner: str,
    settings: Settings,
    trigger: Mapping[str, Any],
    quarantine: Callable[[str, str], None],
) -> FallbackRun:
    """A fallback's run, not started yet."""
    log = FallbackLog(storage, record.id)
    tries, pause_seconds = settings.sink_tries, settings.sink_pause_seconds
    batches = Batches(
        record,
        log,
        destination(sink, record.name),
        owner=owner,
        keep=settings.keep_micros,
        tries=tries,
        pause_seconds=pause_seconds,
    )
    return FallbackRun(
        record, frame, log, batches, trigger, quarantine, tries=tries, pause_seconds=pause_seconds
    )
