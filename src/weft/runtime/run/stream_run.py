"""One stream, run until it ends, fails or is stopped.

A thread watches over Spark's query: it restarts the query when a new registration needs another column,
and flushes due windows when the stream is idle or ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from weft.algebra.query import quote
from weft.errors import RunError
from weft.runtime.protocol.leader import Leader
from weft.runtime.protocol.step import Halted, answering_spark
from weft.runtime.run.idleness import Idleness

_POLL_SECONDS = 0.05


class StreamRun:
    """Runs one stream until it ends, fails or is stopped."""

    def __init__(
        self,
        leader: Leader,
        frame: DataFrame,
        trigger: Mapping[str, Any],
        columns_in_use: Callable[[], tuple[str, ...]],
        projected: Callable[[tuple[str, ...]], None],
        idle_seconds: float,
    ) -> None:
        self._leader, self._frame, self._trigger = leader, frame, trigger
        self._columns_in_use, self._projected = columns_in_use, projected
        self._idle_seconds = idle_seconds
        self._idleness = Idleness(leader.name)
        self._stopping = threading.Event()
        self._restarting = threading.Lock()
        """Held while one of Spark's queries is replaced by another."""
        self._query: StreamingQuery | None = None
        self._active_at = time.monotonic()
        self._busy = False
        self._generation = 0
        self.columns: tuple[str, ...] = ()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._watch, name=f"weft-{leader.name}", daemon=True)

    @property
    def name(self) -> str:
        return self._leader.name

    def start(self) -> None:
        self._start_query()
        self._thread.start()

    @property
    def leader(self) -> Leader:
        return self._leader

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
        return self._leader.stepper.inside or threading.get_ident() == self._thread.ident

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
                self._leader.flush(self._spark)
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
        path = self._leader.spark_checkpoint.path
        self._query = writer.option("checkpointLocation", path).trigger(**self._trigger).start()

    def _run_batch(self, rows: DataFrame, batch: int, generation: int) -> None:
        self._busy = True
        try:
            self._leader.batch(rows, batch, lambda: generation == self._generation)
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
                self._leader.stepper.raise_failed()
                if self._ended(self._query):
                    if self._trigger.get("availableNow") or self._trigger.get("once"):
                        self._leader.flush(self._spark)
                    self._leader.stepper.settle()
                    return
                if not set(self._columns_in_use()) <= set(self.columns):
                    with self._restarting:
                        self._halt()
                        self._start_query()
                    continue
                self._flush_if_idle(self._query)
            self._halt()
            self._leader.stepper.settle()
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
        with self._leader.stepper.between_steps():
            self._generation += 1
            if self._query is not None:
                self._query.stop()

    def _flush_if_idle(self, query: StreamingQuery) -> None:
        if self._trigger.get("availableNow") or self._busy or not self._leader.flush_pending:
            return
        quiet = time.monotonic() - self._active_at > self._idle_seconds
        if quiet and self._idleness.since(query, self._active_at) and not self._busy:
            self._leader.flush(self._spark)
