"""One follower, run beside the streams that it follows.

A thread takes a step whenever its inputs have committed something: streams, or another follower. It ends
when they have ended and all that they published is consumed, when a step fails, or when it is asked to; what is left then is consumed
at the next start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import cached_property

from pyspark.sql import SparkSession

from weft.errors import RunError
from weft.runtime.protocol.follower import Follower, InputLog
from weft.runtime.run.stream_run import StreamRun
from weft.runtime.sessions import copied

_POLL_SECONDS = 0.05


class FollowerRun:
    """Runs one follower until its streams end, it fails or is stopped."""

    def __init__(
        self, follower: Follower, streams: Sequence[StreamRun | FollowerRun], spark: SparkSession
    ) -> None:
        self._follower, self._streams, self._spark = follower, tuple(streams), spark
        self._stopping = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._watch, name=f"weft-{follower.name}", daemon=True
        )

    def follow(self, stream: StreamRun, source: InputLog) -> None:
        """Follow one more stream."""
        self._streams = (*self._streams, stream)
        self._follower.add_input(source)

    @property
    def name(self) -> str:
        return self._follower.name

    def start(self) -> None:
        self._thread.start()

    @property
    def started(self) -> bool:
        return self._thread.ident is not None

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float | None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def ask_to_stop(self) -> None:
        """End after the step under way."""
        self._stopping.set()

    @property
    def inside(self) -> bool:
        """Whether the caller is part of this follower's step, in a sink or callback."""
        return self._follower.stepper.inside or threading.get_ident() == self._thread.ident

    @property
    def resting(self) -> bool:
        """Whether it has nothing to do, even if its inputs publish something."""
        return self._follower.resting

    def process_all_available(self) -> None:
        """Consume all that the streams have committed."""
        while self.error is None and (self._advance() or self._waits()):
            pass
        if self.error is not None:
            raise self.error
        if not self.is_active and not self._stopping.is_set() and self._follower.behind:
            raise RunError("NOT_RUNNING")

    def _watch(self) -> None:
        while not self._stopping.is_set() and self.error is None:
            ended = bool(self._streams) and not any(s.is_active for s in self._streams)
            if not self._advance():
                if ended and not self._waiting():
                    return
                self._stopping.wait(_POLL_SECONDS)

    def _waits(self) -> bool:
        """Whether there is more to consume once its own followers have caught up; waits a little."""
        more = self.is_active and not self._stopping.is_set() and self._waiting()
        if more:
            time.sleep(_POLL_SECONDS)
        return more

    def _waiting(self) -> bool:
        """Whether its own followers lag too far behind; an error ends it."""
        try:
            return self._follower.waiting
        except BaseException as error:
            self.error = error
            return False

    @cached_property
    def _session(self) -> SparkSession:
        """The follower's own session, made when it takes its first step of the run."""
        return copied(self._spark)

    def _advance(self) -> bool:
        """Take a step if there is something to consume; an error ends the follower."""
        try:
            return self._follower.advance(lambda: self._session)
        except BaseException as error:
            self.error = error
            return False
