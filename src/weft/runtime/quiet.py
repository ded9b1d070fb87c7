"""Silence for errors that weft reports itself.

PySpark logs every error that has a place in SQL text, with kilobytes of Java stack, before it
raises it. Where weft catches the error and tells it in one sentence, the log would only hide that.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.logger import PySparkLogger

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

_lock = threading.Lock()
_inside: list[int] = []
"""The threads that are within `quiet_sql_errors`, each as often as it is."""
_levels_before: list[tuple[PySparkLogger, int]] = []


def _loggers() -> list[PySparkLogger]:
    # Made by PySpark's own function: it fails on a logger of this name that is not of its class.
    return [PySparkLogger.getLogger(name) for name in _LOGGERS]


def silence_sql_errors() -> None:
    """From now on PySpark does not log the errors that it raises, for programs that tell all errors
    themselves."""
    for logger in _loggers():
        logger.disabled = True


@contextmanager
def quiet_sql_errors() -> Iterator[None]:
    """Within it PySpark does not log the errors that it raises. Threads may be within it at the same time;
    the last one that leaves it gives the loggers their levels back."""
    with _lock:
        for logger in _loggers() if not _levels_before else ():
            _levels_before.append((logger, logger.level))
            logger.setLevel(logging.CRITICAL)
        _inside.append(threading.get_ident())
    try:
        yield
    finally:
        with _lock:
            _inside.remove(threading.get_ident())
            while _levels_before and not _inside:
                logger, level = _levels_before.pop()
                logger.setLevel(level)
