"""Silence for errors that weft reports itself.

PySpark logs every error that has a place in SQL text, with kilobytes of Java stack, before it
raises it. Where weft catches the error and tells it in one sentence, the log would only hide that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.logger import PySparkLogger

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


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
    """Within it PySpark does not log the errors that it raises."""
    loggers = _loggers()
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
