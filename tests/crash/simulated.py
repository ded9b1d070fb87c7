"""Crashes of a run inside this process: by an exception, and by nothing being written after it."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from weft.runtime.checkpoint.failpoints import Crashing, crashing
from weft.runtime.checkpoint.storage import Storage

#: What does not change a checkpoint. All other methods of `Storage` end when the run has crashed.
READING = {
    *("path", "spark_path", "exists", "names", "read", "read_json", "read_table"),
    *("describe", "verify", "settled", "settle_folder"),
}
JOIN_SECONDS = 30.0


@contextmanager
def dying(
    failpoint: str | None = None, visit: int = 1, when: Callable[[], bool] = lambda: True
) -> Iterator[Crashing]:
    """`crashing` with a fence around storage. All threads of the run must end within the block,
    as those of a killed process do: outside it they could write again."""
    with pytest.MonkeyPatch.context() as patch, crashing(failpoint, visit, when) as crash:
        for name, method in list(vars(Storage).items()):
            if callable(method) and not name.startswith("_") and name not in READING:
                patch.setattr(Storage, name, _fenced(method, crash))
        try:
            yield crash
        finally:
            _await_threads()


def _fenced(method: Callable[..., Any], crash: Crashing) -> Callable[..., Any]:
    @functools.wraps(method)
    def fenced(*arguments: Any, **options: Any) -> Any:
        crash.check()
        return method(*arguments, **options)

    return fenced


def _await_threads() -> None:
    deadline = time.monotonic() + JOIN_SECONDS
    for thread in threading.enumerate():
        if thread.name.startswith("weft"):
            thread.join(max(deadline - time.monotonic(), 0))
            assert not thread.is_alive(), f"thread {thread.name} survives its run"
