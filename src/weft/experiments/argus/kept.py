"""What a run has measured, in a file: a run that was interrupted goes on where it ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from weft.experiments.argus.execution import Executed
from weft.experiments.argus.parameters import Scale


class Kept:
    """Executed networks by scale and key. Without a file nothing is kept."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._executed: dict[str, Executed] = {}
        if file is not None and file.exists():
            for line in file.read_text().splitlines():
                name, body = json.loads(line)
                self._executed[name] = Executed(**{**body, "seconds": tuple(body["seconds"])})

    def find(self, scale: Scale, key: Sequence[str]) -> Executed | None:
        """What was measured at a scale under a key."""
        return self._executed.get(_name(scale, key))

    def add(self, scale: Scale, key: Sequence[str], executed: Executed) -> None:
        name = _name(scale, key)
        self._executed[name] = executed
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps([name, asdict(executed)]) + "\n")

    def forget(self) -> None:
        """The run has come to its end."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def _name(scale: Scale, key: Sequence[str]) -> str:
    return json.dumps([*key, scale.history, scale.increment, scale.increments])
