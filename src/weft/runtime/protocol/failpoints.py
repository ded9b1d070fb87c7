"""Named places where a test may end the process, to show that nothing is lost or repeated.

The environment variable WEFT_KILL_AT names a place and which passing of it is the last, as
in `before_commit:2`. Unset, which is always so outside tests, passing costs one look-up.
"""

from __future__ import annotations

import os
import signal

PLACES = (
    "after_plan",  # a new plan version is in the log
    "after_intent",
    "after_read",  # the engine has written what it made of the rows
    "after_published",  # the rows for followers are written
    "after_staged",
    "after_results",  # the sink has the results
    "before_commit",
    "after_commit",
    "after_cleanup",  # files that the commit no longer names are gone
    "after_base",
    "after_prune",
)
"""All of them, in the order of a step."""

_passed: dict[str, int] = {}


def reach(place: str) -> None:
    """Pass a place; the process ends here if WEFT_KILL_AT says so."""
    wanted = os.environ.get("WEFT_KILL_AT")
    if not wanted:
        return
    name, _, times = wanted.partition(":")
    if name == place:
        _passed[place] = _passed.get(place, 0) + 1
        if _passed[place] >= int(times or 1):
            os.kill(os.getpid(), signal.SIGKILL)
