"""Tasks that kill their executor. The text of this module begins a program of the tests (`test_guide`), so Spark sends its
functions whole: workers know nothing of the tests."""

from __future__ import annotations

import importlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Function = Callable[[str, int], Iterable[tuple[str, Any]]]


def deadly(function: Function, marker: str) -> Function:
    """A function that kills its executor the first time, after its work is done and before anybody hears of it."""

    def run(payload: str, number: int) -> Iterable[tuple[str, Any]]:
        outputs = list(function(payload, number))
        if number == 0 and not os.path.exists(marker):
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
            executor = int(daemon.rpartition(")")[2].split()[1])
            command = Path(f"/proc/{executor}/cmdline").read_text()
            assert "CoarseGrainedExecutorBackend" in command, command[:300]
            written = [body["name"] for _, body in outputs if "name" in body]
            Path(marker).write_text("\n".join([str(executor), *written]))
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)
        return outputs

    return run


def with_kills(name: str, marker: str) -> None:
    """Let the tasks that a module of weft starts kill an executor."""
    module: Any = importlib.import_module(name)
    run_tasks = module.run_tasks

    def run(spark: Any, function: Function, *arguments: Any) -> list[tuple[str, Any]]:
        outputs: list[tuple[str, Any]] = run_tasks(spark, deadly(function, marker), *arguments)
        return outputs

    module.run_tasks = run
