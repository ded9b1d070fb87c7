"""The second half of a step, beside the first half of the next one.

Level 1 of a step keeps Spark busy; levels 2 and 3 keep one core of the driver busy. A `Finisher` runs what
follows level 1 on a thread of its own, one step at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Finisher:
    """Runs one piece of work at a time beside the caller's; keeps an error for the one who waits."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self.error: BaseException | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Run `work`. Earlier work must have been waited for."""
        assert self._thread is None, "one step at a time"
        self._thread = threading.Thread(
            target=self._run, args=(work,), name=self._name, daemon=True
        )
        self._thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.error = error

    @property
    def begun(self) -> bool:
        """Whether there is work that nobody has waited for yet."""
        return self._thread is not None

    def join(self) -> None:
        """Wait for the end of the work, whether it succeeded or failed."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def wait(self) -> None:
        """Wait for the end of the work. If it raised an error, this call and every later one raise it."""
        self.join()
        if self.error is not None:
            raise self.error
        self._thread = None
