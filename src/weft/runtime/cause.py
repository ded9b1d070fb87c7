"""What an error of Spark is about, without the layers that passed it on."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

from weft.errors import WeftError

_CLASS = re.compile(r"\[[A-Z][A-Z0-9_.]+\]")
_JAVA = re.compile(r"^(?:Caused by: |: )?(?P<type>(?:[a-z]\w*\.)+[A-Z][\w$]*): (?P<text>.*)$")
_PYTHON = re.compile(r"^[A-Z]\w*(?:Error|Exception|Failure|Exit|Interrupt): .+$")
"""The last line of a Python traceback, such as that of a task."""
_WRAPPERS = ("An error occurred while calling", "Job aborted", "[STREAM_FAILED]")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


def cause_of(error: BaseException) -> str:
    """One line for people: the error itself, and below it what caused it, if that says more."""
    if isinstance(error, WeftError):
        return str(error)
    if not isinstance(error, PySparkException) and not _from_java(error):
        return f"{type(error).__name__}: {error}".rstrip(": ")
    return cause_in(str(error)) or type(error).__name__


def _from_java(error: BaseException) -> bool:
    return type(error).__module__.startswith("py4j")


def cause_in(text: str) -> str:
    """The telling lines of an error's text with its Java stack.

    >>> cause_in("An error occurred while calling o120.parquet.\\n"
    ...          ": org.apache.spark.SparkException: Job aborted.\\n"
    ...          "\\tat org.apache.spark.A.b(A.scala:1)\\n"
    ...          "Caused by: java.io.IOException: No space left on device\\n")
    'java.io.IOException: No space left on device'
    >>> cause_in("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\\n== SQL ==\\nSELECT")
    '[DIVIDE_BY_ZERO] Division by zero.'
    >>> cause_in("[QUERY_FAILED] An exception was thrown from the Python worker:\\n"
    ...          "Traceback (most recent call last):\\n  File 'a.py', line 1\\nFileNotFoundError: no file a\\n")
    '[QUERY_FAILED] An exception was thrown from the Python worker: FileNotFoundError: no file a'
    """
    told: list[str] = []
    for number, line in enumerate(text.splitlines()):
        if number and _PYTHON.match(line):
            told.append(line.strip())
            continue
        java = _JAVA.match(line.strip())
        if java is None and number:
            continue
        message = java["text"] if java is not None else line.strip()
        if not message or message.startswith(_WRAPPERS):
            continue
        if java is not None and not _CLASS.match(message):
            message = f"{java['type']}: {message}"
        told.append(_SQLSTATE.sub("", message))
    if not told:
        return ""
    first, last = told[0], told[-1]
    return first if last in first else f"{first.rstrip('.: ')}: {last}"
