"""Queries that weft does not share, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fallback:
    """A query on a known stream that only Spark can judge and run.

    The runtime lets Spark analyse the whole text and runs it as a streaming query of its own.
    `reason` is a sentence for EXPLAIN.
    """

    name: str
    sql: str
    stream: str
    reason: str


class Unshared(Exception):
    """Raised while reading a query at the first thing that weft cannot share.

    `at` is the token where it stands. The binder turns it into a `Fallback`.
    """

    def __init__(self, reason: str, at: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at
