"""Whether a stream has no more data, as Spark itself sees it.

The status of a query cannot tell: between two micro-batches it says that no data is available until Spark has
looked, which takes seconds on a busy machine and up to the interval of a trigger. A flush at such a moment
would close windows whose rows are waiting in the source. `processAllAvailable` returns when Spark has looked and
found nothing. It may take as long as data keeps coming, so a thread waits for it, one at a time.
"""

from __future__ import annotations

import threading
import time

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.streaming import StreamingQuery


class Idleness:
    """Asks Spark whether there is new data."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._query: StreamingQuery | None = None
        self._asked_at = 0.0
        self._waiting: threading.Thread | None = None
        self._found_nothing = False

    def since(self, query: StreamingQuery, moment: float) -> bool:
        """Whether Spark has found no new data after a moment of the monotonic clock. Without an answer
        Spark is asked, and the answer is False for now."""
        if self._waiting is not None and self._waiting.is_alive():
            return False
        if self._found_nothing and self._query is query and self._asked_at > moment:
            return True
        self._query, self._asked_at, self._found_nothing = query, time.monotonic(), False
        name = f"weft-idleness-{self._stream}"
        self._waiting = threading.Thread(target=self._wait, args=(query,), name=name, daemon=True)
        self._waiting.start()
        return False

    def _wait(self, query: StreamingQuery) -> None:
        try:
            query.processAllAvailable()
        except (PySparkException, Py4JError):
            return  # the query failed, or Spark is gone; who watches the query finds out
        self._found_nothing = True
