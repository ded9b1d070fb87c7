"""A run: the streaming queries of a weft and the thread that watches over each.

`Run` has the surface of Spark's StreamingQuery. A `StreamRun` runs one stream's loom; its
watcher restarts Spark's query when a new registration needs another column, and flushes due
windows when the stream is idle or ends.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from weft.algebra.numbered import source_name
from weft.algebra.query import quote
from weft.errors import RunError, WeftError
from weft.runtime.protocol.step import Halted, Progress, answering_spark
from weft.runtime.run.fallback import FallbackRun
from weft.runtime.windows.loom import Loom

_POLL_SECONDS = 0.05
_TICK_SECONDS = 0.5
_KEPT_PROGRESS = 100
_logger = logging.getLogger("weft")


class StreamRun:
    """Runs one stream until it ends, fails or is stopped."""

    def __init__(
        self,
        loom: Loom,
        frame: DataFrame,
        trigger: dict[str, Any],
        columns_in_use: Callable[[], tuple[str, ...]],
        projected: Callable[[tuple[str, ...]], None],
        idle_seconds: float,
    ) -> None:
        self._loom, self._frame, self._trigger = loom, frame, trigger
        self._columns_in_use, self._projected = columns_in_use, projected
        self._idle_seconds = idle_seconds
        self._stopping = threading.Event()
        self._restarting = threading.Lock()
        """Held while one of Spark's queries is replaced by another."""
        self._query: StreamingQuery | None = None
        self._active_at = time.monotonic()
        self._busy = False
        self._generation = 0
        self.columns: tuple[str, ...] = ()
        self.error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._watch, name=f"weft-{loom.stream.name}", daemon=True
        )

    @property
    def name(self) -> str:
        return self._loom.stream.name

    def start(self) -> None:
        self._start_query()
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float | None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def ask_to_stop(self) -> None:
        """End after the steps under way."""
        self._stopping.set()

    @property
    def inside(self) -> bool:
        """Whether the caller is part of this stream's step, in a sink or callback."""
        return self._loom.inside or threading.get_ident() == self._thread.ident

    def process_all_available(self) -> None:
        """Run all data that is there, and flush."""
        while self.is_active:
            query = self._query
            assert query is not None
            try:
                query.processAllAvailable()
            except StreamingQueryException:
                with self._restarting:
                    ended = self.error is not None or query is self._query
                if ended:
                    raise (self.error or RunError("NOT_RUNNING")) from None
            with self._restarting:
                if query is self._query:
                    break
        if self.error is None and self.is_active:
            try:
                self._loom.flush(self._spark)
            except BaseException as error:
                self.error = error

    @property
    def _spark(self) -> SparkSession:
        return self._frame.sparkSession

    def _start_query(self) -> None:
        self.columns = self._columns_in_use()
        self._projected(self.columns)
        self._active_at = time.monotonic()
        projected = self._frame.select(*(F.col(quote(name)) for name in self.columns))
        generation = self._generation

        def run_batch(rows: DataFrame, batch: int) -> None:
            with answering_spark():
                self._run_batch(rows, batch, generation)

        writer = projected.writeStream.foreachBatch(run_batch)
        path = self._loom.spark_checkpoint.path
        self._query = writer.option("checkpointLocation", path).trigger(**self._trigger).start()

    def _run_batch(self, rows: DataFrame, batch: int, generation: int) -> None:
        self._busy = True
        try:
            self._loom.batch(rows, batch, lambda: generation == self._generation)
        except Halted:
            raise
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._active_at = time.monotonic()
            self._busy = False

    def _watch(self) -> None:
        try:
            while not self._stopping.is_set() and self.error is None:
                assert self._query is not None
                self._loom.raise_failed()
                if self._ended(self._query):
                    if self._trigger.get("availableNow") or self._trigger.get("once"):
                        self._loom.flush(self._spark)
                    self._loom.settle()
                    return
                if not set(self._columns_in_use()) <= set(self.columns):
                    with self._restarting:
                        self._halt()
                        self._start_query()
                    continue
                self._flush_if_idle(self._query)
            self._halt()
            self._loom.settle()
        except BaseException as error:
            if self.error is None:
                self.error = error
            self._halt()

    def _ended(self, query: StreamingQuery) -> bool:
        if query.isActive:
            time.sleep(_POLL_SECONDS)
            return False
        query.awaitTermination()
        return True

    def _halt(self) -> None:
        """Stop Spark's query between two steps."""
        with self._loom.between_steps():
            self._generation += 1
            if self._query is not None:
                self._query.stop()

    def _flush_if_idle(self, query: StreamingQuery) -> None:
        if self._trigger.get("availableNow") or self._busy or not self._loom.flush_pending:
            return
        quiet = time.monotonic() - self._active_at > self._idle_seconds
        if quiet and not query.status["isDataAvailable"]:
            self._loom.flush(self._spark)


class Run:
    """All that `start` started."""

    def __init__(
        self,
        release: Callable[[], None],
        tick: Callable[[], None],
        quarantine: Callable[[str, str], None],
    ) -> None:
        self._tick, self._quarantine = tick, quarantine
        self._streams: list[StreamRun] = []
        self._fallbacks: dict[str, StreamingQuery] = {}
        self._release = release
        self._progress: deque[Progress] = deque(maxlen=_KEPT_PROGRESS)
        self._released = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="weft", daemon=True)

    def add_stream(self, stream: StreamRun) -> None:
        """Start a stream's run as part of this one."""
        stream.start()
        self._streams.append(stream)

    @property
    def stream_names(self) -> set[str]:
        return {stream.name for stream in self._streams}

    @property
    def open(self) -> bool:
        """Whether queries may still join."""
        return not self._ended.is_set()

    def watch(self) -> None:
        """Begin to take up what is registered while running."""
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            if not self.isActive:
                self._finish()
                return
            try:
                self._quarantine_failed()
                self._tick()
            except Exception:
                _logger.exception("taking up changed registrations failed; trying again")

    def start_fallback(self, fallback: FallbackRun, trigger: dict[str, Any]) -> None:
        self._fallbacks[fallback.record.id] = fallback.start(trigger)

    @property
    def fallback_ids(self) -> set[str]:
        return set(self._fallbacks)

    def stop_fallback(self, query_id: str) -> None:
        self._fallbacks.pop(query_id).stop()

    def _quarantine_failed(self) -> None:
        """Plain queries that ended with an error are no longer part of the run."""
        for query_id, query in list(self._fallbacks.items()):
            error = None if query.isActive else query.exception()
            if error is not None:
                self._fallbacks.pop(query_id, None)
                self._quarantine(query_id, str(error).split("\n", 1)[0])

    def finish(self) -> None:
        """Let go of the checkpoint after a run that has ended by itself."""
        if not self.isActive:
            self._finish()

    def report(self, progress: Progress) -> None:
        self._progress.append(progress)

    @property
    def isActive(self) -> bool:  # noqa: N802 - the names of Spark's StreamingQuery
        return any(stream.is_active for stream in self._streams) or any(
            query.isActive for query in list(self._fallbacks.values())
        )

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return asdict(self._progress[-1]) if self._progress else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return [asdict(progress) for progress in list(self._progress)]

    @property
    def status(self) -> dict[str, Any]:
        steps = [step for step in self._progress if step.stream == source_name(step.stream)]
        last = steps[-1] if steps else None
        return {
            "isActive": self.isActive,
            "streams": len(self._streams),
            "fallbacks": len(self._fallbacks),
            "batch": last.batch if last else None,
            "watermark": last.watermark if last else None,
        }

    def exception(self) -> BaseException | None:
        """The error that ended the run, None if there is none."""
        for stream in self._streams:
            if stream.error is not None:
                return stream.error
        return None

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it came. Raises what ended the run, if it failed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.isActive:
            for stream in self._streams:
                stream.join(_POLL_SECONDS)
            if not self._streams:
                time.sleep(_POLL_SECONDS)
            if deadline is not None and time.monotonic() > deadline:
                return False
            if any(stream.error for stream in self._streams):
                self._stop_all()
        self._finish()
        self._raise()
        return True

    def processAllAvailable(self) -> None:
        """Run all data that is there now, and flush what it makes due."""
        for stream in self._streams:
            stream.process_all_available()
        for query in list(self._fallbacks.values()):
            query.processAllAvailable()
        self._raise()

    def stop(self) -> None:
        """End all queries, each after its step under way."""
        inside = any(stream.inside for stream in self._streams)
        if not inside:
            self._ended.set()
        self._stop_all(wait=not inside)
        if not inside:
            self._finish()

    def _stop_all(self, *, wait: bool = True) -> None:
        """Ask all streams to end; a step that asks is not waited for, nor are others by it."""
        for stream in self._streams:
            stream.ask_to_stop()
        for stream in self._streams if wait else ():
            stream.join(None)
        for query in list(self._fallbacks.values()):
            query.stop()

    def _finish(self) -> None:
        self._ended.set()
        self._quarantine_failed()
        with self._lock:
            if not self._released:
                self._released = True
                self._release()

    def _raise(self) -> None:
        error = self.exception()
        if error is None:
            return
        if isinstance(error, (WeftError, StreamingQueryException)):
            raise error
        raise RunError("QUERY_FAILED", detail=f"{type(error).__name__}: {error}") from error
