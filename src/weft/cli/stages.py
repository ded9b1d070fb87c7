"""What a command is doing before there is anything to show: a line that moves, or plain lines.

It goes to standard error through a descriptor of its own, because standard error itself is lent to
Java while Spark starts.
"""

from __future__ import annotations

import os
import sys
from typing import IO

from rich.console import Console
from rich.status import Status


class Stages:
    """Says each stage as it begins; `quiet` says nothing unless standard error is a terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._file: IO[str] | None = None
        self._status: Status | None = None

    def __enter__(self) -> Stages:
        if sys.stderr.isatty():
            self._file = os.fdopen(os.dup(sys.stderr.fileno()), "w")
            self._status = Status("", console=Console(file=self._file, force_terminal=True))
        return self

    def __exit__(self, *_: object) -> None:
        self.done()
        if self._file is not None:
            self._file.close()

    def at(self, stage: str) -> None:
        """A stage begins."""
        if self._status is not None:
            self._status.update(f"{stage} …")
            self._status.start()
        elif not self._quiet:
            print(f"{stage} …", file=sys.stderr, flush=True)

    def done(self) -> None:
        """There is something else to show from now on."""
        if self._status is not None:
            self._status.stop()
