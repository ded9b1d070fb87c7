"""Several processes that do the same thing at the same moment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple


class Outcome(NamedTuple):
    """How one of the processes ended."""

    code: int
    output: str
    errors: str


def race(prepare: str, act: str, arguments: Sequence[object], count: int = 4) -> list[Outcome]:
    """Run `act` in so many processes at once, after all of them have run `prepare`.

    Both are Python; `sys.argv[1:]` holds the arguments.
    """
    program = f"import sys\n{prepare}\nprint('ready', flush=True)\ninput()\n{act}\n"
    command = [sys.executable, "-c", program, *(str(argument) for argument in arguments)]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for _ in range(count)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        outcomes = []
        for process in processes:
            output, errors = process.communicate(timeout=240)
            outcomes.append(Outcome(process.returncode, output, errors))
        return outcomes
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
