"""What Ctrl-C and a TERM signal do to a run.

The first one asks it to end after the step under way: whatever the step did is committed. The
second one ends the process at once. That loses nothing either, as after a crash: the step is not
committed, and the next start runs it again. Before there is a run, they end the command.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = "ending after the step under way; Ctrl-C once more ends at once"
ENDED_AT_ONCE = "ended at once; the step under way is not committed and will be run again"


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """An event that the first signal sets; the second raises `KeyboardInterrupt`.

    Spark's own handler would cancel the step under way.
    """
    asked = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
