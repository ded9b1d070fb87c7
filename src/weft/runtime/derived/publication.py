"""What the network publishes of a join: the rows of a derived stream, which its engine writes as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class DerivedPublication:
    """The rows of one derived stream, under its name."""

    name: str
    asked: Callable[[], bool]
    """Whether there are queries over it."""

    @property
    def wanted(self) -> bool:
        return self.asked()
