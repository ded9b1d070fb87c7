"""Failpoints: named points where a test may end the process, to show that nothing is lost or repeated.

The environment variable WEFT_KILL_AT names a failpoint. After a colon it may say at which visit the
process ends, as in `before_commit:2`. Outside tests it is never set, and a failpoint costs one look-up.
"""

from __future__ import annotations

import os
import signal

FAILPOINTS = (
    "after_plan",  # a new plan version is in the log
    "after_intent",
    "after_read",  # the engine has turned the rows into files
    "after_published",  # the rows for followers are written
    "after_staged",
    "after_results",  # the sink has the results
    "before_commit",
    "after_commit",
    "after_cleanup",  # files that the commit no longer names are deleted
    "after_base",
    "after_prune",
)
"""All of them, in the order of a step."""

_visits: dict[str, int] = {}


def reach(failpoint: str) -> None:
    """Visit a failpoint; the process ends here if WEFT_KILL_AT says so."""
    wanted = os.environ.get("WEFT_KILL_AT")
    if not wanted:
        return
    name, _, times = wanted.partition(":")
    if name == failpoint:
        _visits[failpoint] = _visits.get(failpoint, 0) + 1
        if _visits[failpoint] >= int(times or 1):
            os.kill(os.getpid(), signal.SIGKILL)
