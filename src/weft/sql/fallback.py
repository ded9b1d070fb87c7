"""Queries that weft does not share: why, what to write instead, what they cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fallback:
    """A query on known streams that only Spark can judge and run.

    The runtime lets Spark check the whole text and runs it as a streaming query of its own.
    `reason` names what has no shared form; `advice` says what to write instead, and is empty if
    there is nothing. `streams` and `tables` are what the text reads, by their registered names;
    `stream` is the first of the streams. `copies` is how often Spark copies each row for a sliding
    window.

    >>> alone = Fallback("m", "SELECT …", "bids", "median has no partial form",
    ...                  "approx_percentile(x, 0.5) is shared", ("bids",), copies=60, state=True)
    >>> print(alone.detail)
    median has no partial form; approx_percentile(x, 0.5) is shared. Alone it costs its own scan
    of bids and its own state; Spark copies each row 60 times (range / slide)
    """

    name: str
    sql: str
    stream: str
    reason: str
    advice: str = ""
    streams: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    copies: int = 1
    state: bool = False

    @property
    def cost(self) -> str:
        """What running alone costs, as a sentence."""
        scans = " and ".join(f"its own scan of {stream}" for stream in self.streams)
        text = f"Alone it costs {scans}" + (" and its own state" if self.state else "")
        if self.copies > 1:
            text += f"; Spark copies each row {self.copies:,} times (range / slide)"
        return text

    @property
    def why(self) -> str:
        """Reason and advice for people."""
        return f"{self.reason}; {self.advice}" if self.advice else self.reason

    @property
    def detail(self) -> str:
        """Reason, advice and cost for people."""
        return f"{self.why}. {self.cost}"


class Unshared(Exception):
    """Raised while reading a query at the first construct that weft cannot share.

    `at` is the index of its token. The binder makes a `Fallback` of it.
    """

    def __init__(self, reason: str, at: int = 0, advice: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at
        self.advice = advice
