"""A run: all that `start` started, with the surface of Spark's StreamingQuery.

Streams and followers have a thread each (`stream_run`, `follower_run`); queries that run alone are
Spark's own streaming queries.
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

from weft.errors import RunError, WeftError
from weft.runtime.cause import cause_of
from weft.runtime.fallbacks.run import FallbackRun
from weft.runtime.protocol.step import Progress
from weft.runtime.run.follower_run import FollowerRun
from weft.runtime.run.stream_run import StreamRun

_POLL_SECONDS = 0.05
_TICK_SECONDS = 0.5
_KEPT_PROGRESS = 100
_logger = logging.getLogger("weft")


class Run:
    """All that `start` started."""

    def __init__(self, release: Callable[[], None], tick: Callable[[], None]) -> None:
        self._tick = tick
        self._streams: list[StreamRun] = []
        self._followers: list[FollowerRun] = []
        self._fallbacks: dict[str, FallbackRun] = {}
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

    def add_follower(self, follower: FollowerRun) -> None:
        """Start a follower of streams of this run."""
        follower.start()
        self._followers.append(follower)

    def remove_follower(self, follower: FollowerRun) -> None:
        """End a follower that has nothing left to do."""
        follower.ask_to_stop()
        follower.join(None)
        self._followers.remove(follower)

    @property
    def _members(self) -> list[StreamRun | FollowerRun]:
        return [*self._streams, *self._followers]

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
            try:
                self._poll_fallbacks()
                if not self.isActive:
                    self._finish()
                    return
                if any(follower.error is not None for follower in self._followers):
                    self._stop_all()
                    continue
                self._tick()
            except Exception:
                _logger.exception("taking up changed registrations failed; trying again")

    def start_fallback(self, fallback: FallbackRun) -> None:
        fallback.start()
        self._fallbacks[fallback.record.id] = fallback

    @property
    def fallback_ids(self) -> set[str]:
        return set(self._fallbacks)

    def stop_fallback(self, query_id: str) -> None:
        fallback = self._fallbacks.pop(query_id, None)
        if fallback is not None:
            fallback.stop()

    def _poll_fallbacks(self) -> None:
        """Start fallbacks again that failed; those that are quarantined leave the run."""
        for query_id, fallback in list(self._fallbacks.items()):
            fallback.poll()
            if fallback.quarantined:
                self._fallbacks.pop(query_id, None)

    def finish(self) -> None:
        """Let go of the checkpoint after a run that has ended by itself."""
        if not self.isActive:
            self._finish()

    def report(self, progress: Progress) -> None:
        self._progress.append(progress)

    @property
    def isActive(self) -> bool:  # noqa: N802 - the names of Spark's StreamingQuery
        return any(member.is_active for member in self._members) or any(
            fallback.is_active for fallback in list(self._fallbacks.values())
        )

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return asdict(self._progress[-1]) if self._progress else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return [asdict(progress) for progress in list(self._progress)]

    @property
    def status(self) -> dict[str, Any]:
        steps = [step for step in self._progress if "@" not in step.stream]  # no followers
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
        return next((m.error for m in self._members if m.error is not None), None)

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for the end; whether it came. Raises what ended the run, if it failed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.isActive:
            for member in self._members:
                member.join(_POLL_SECONDS)
            if not self._members:
                time.sleep(_POLL_SECONDS)
            if deadline is not None and time.monotonic() > deadline:
                return False
            if self.exception() is not None:
                self._stop_all()
            self._poll_fallbacks()
        self._finish()
        self._raise()
        return True

    def processAllAvailable(self) -> None:
        """Run all data that is there now, and flush what it makes due."""
        try:
            for stream in self._streams:
                stream.process_all_available()
            for follower in self._followers:
                follower.process_all_available()
        except Exception:
            self._raise()  # what ended the run, rather than that it has ended
            raise
        for fallback in list(self._fallbacks.values()):
            fallback.process_all_available()
        self._poll_fallbacks()
        self._raise()

    def stop(self) -> None:
        """End all queries, each after its step under way."""
        inside = any(member.inside for member in self._members)
        if not inside:
            self._ended.set()
        try:
            self._stop_all(wait=not inside)
        finally:
            if not inside:
                self._finish()

    def _stop_all(self, *, wait: bool = True) -> None:
        """Ask streams and followers to end, and wait for them, unless the caller is part of a step."""
        for member in self._members:
            member.ask_to_stop()
        for member in self._members if wait else ():
            member.join(None)
        for fallback in list(self._fallbacks.values()):
            fallback.stop()

    def _finish(self) -> None:
        """Let go of the checkpoint, whatever else fails on the way."""
        self._ended.set()
        try:
            self._poll_fallbacks()
        finally:
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
        raise RunError("QUERY_FAILED", detail=cause_of(error)) from error
