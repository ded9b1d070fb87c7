"""Failpoints: named points where a test may end a run, to show that nothing is lost or repeated.

The environment variable WEFT_KILL_AT names a failpoint. After a colon it may say at which visit the
process ends, as in `before_commit:2`. `crashing` does the same to the runs of this process, by an
exception, so that the process can go on with a new run. Outside tests neither is used, and a failpoint
costs two look-ups.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FAILPOINTS = (
    "after_plan",  # a new plan version is in the log
    "after_intent",
    "after_read",  # the engine has turned the rows into files
    "after_published",  # the rows for followers are written
    "after_staged",
    "after_stage",  # tasks have written files of a part of the computation
    "after_results",  # the sink has the results
    "before_commit",
    "after_commit",
    "after_cleanup",  # files that the commit no longer names are deleted
    "after_base",
    "after_prune",
)
"""Those of a step, in its order."""

FALLBACK_FAILPOINTS = (
    "fallback_results",  # the result files of a fallback's batch are written
    "fallback_commit",
)

_visits: dict[str, int] = {}


class Crash(BaseException):
    """A run ends here as if its process had been killed. No `except Exception` may stop it."""


class Crashing:
    """The failpoints that the runs of this process visit, and the one at which they end."""

    def __init__(self, failpoint: str | None, visit: int, when: Callable[[], bool]) -> None:
        self._failpoint, self._visit, self._when = failpoint, visit, when
        self._lock = threading.Lock()
        self.visited: list[str] = []
        """Those visited while `when` held."""
        self.crashed = False

    def reach(self, failpoint: str) -> None:
        """Visit a failpoint, or end there. After that every visit ends its run."""
        with self._lock:
            self.check()
            if not self._when():
                return
            self.visited.append(failpoint)
            if failpoint == self._failpoint and self.visited.count(failpoint) == self._visit:
                self.crashed = True
            self.check()

    def check(self) -> None:
        """End whoever goes on after the crash. A test calls this wherever storage is written: a killed
        process has no thread left that writes."""
        if self.crashed:
            raise Crash(f"{self._failpoint}:{self._visit}")


_crashing: Crashing | None = None


@contextmanager
def crashing(
    failpoint: str | None = None, visit: int = 1, when: Callable[[], bool] = lambda: True
) -> Iterator[Crashing]:
    """Inside the block all runs of this process end at the n-th visit of a failpoint; only visits for
    which `when` holds count. Without a failpoint, visits are only counted."""
    global _crashing
    if _crashing is not None:
        raise RuntimeError("one crash at a time")
    if failpoint is not None and failpoint not in (*FAILPOINTS, *FALLBACK_FAILPOINTS):
        raise ValueError(f"there is no failpoint '{failpoint}'")
    _crashing = Crashing(failpoint, visit, when)
    try:
        yield _crashing
    finally:
        _crashing = None


def reach(failpoint: str) -> None:
    """Visit a failpoint; the run, or the process, ends here if a test says so."""
    if _crashing is not None:
        _crashing.reach(failpoint)
    wanted = os.environ.get("WEFT_KILL_AT")
    if not wanted:
        return
    name, _, times = wanted.partition(":")
    if name == failpoint:
        _visits[failpoint] = _visits.get(failpoint, 0) + 1
        if _visits[failpoint] >= int(times or 1):
            os.kill(os.getpid(), signal.SIGKILL)
