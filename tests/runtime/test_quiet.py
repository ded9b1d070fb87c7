"""PySpark's log is quiet while some thread is inside, and as before when none is."""

from __future__ import annotations

import logging
import threading

from pyspark.logger import PySparkLogger

from weft.runtime.quiet import quiet_sql_errors


def test_threads_that_overlap_leave_the_levels_as_they_were() -> None:
    """The first thread leaves while the second is inside, which then gives the levels back."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before = logger.level
    second_is_inside, first_has_left = threading.Event(), threading.Event()
    seen: list[int] = []

    def second() -> None:
        with quiet_sql_errors(), quiet_sql_errors():
            second_is_inside.set()
            assert first_has_left.wait(10)
            seen.append(logger.level)

    with quiet_sql_errors():
        thread = threading.Thread(target=second)
        thread.start()
        assert second_is_inside.wait(10)
    first_has_left.set()
    thread.join(10)
    assert seen == [logging.CRITICAL]
    assert logger.level == before != logging.CRITICAL
