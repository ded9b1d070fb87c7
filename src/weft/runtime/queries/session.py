"""What a session's settings mean for the SQL that weft reads.

weft reads SQL by itself, so a setting that changes how Spark reads or types a text must be honoured
or refused by name: to ignore it would change results silently. docs/sql.md lists them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from weft.errors import SqlError

_ANSI: Final = "spark.sql.ansi.enabled"
_DOUBLE_QUOTES: Final = "spark.sql.ansi.doubleQuotedIdentifiers"
_TIME_ZONE: Final = "spark.sql.session.timeZone"

_LITERALS: Final = "it changes what literals mean"
_REQUIRED: Final = {
    "spark.sql.caseSensitive": ("false", "weft's names of columns do not depend on case"),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "it changes what TIMESTAMP means"),
    "spark.sql.groupByOrdinal": ("true", "it changes what GROUP BY 1 means"),
    "spark.sql.groupByAliases": ("true", "it changes what names in GROUP BY mean"),
    "spark.sql.parser.escapedStringLiterals": ("false", _LITERALS),
    "spark.sql.parser.quotedRegexColumnNames": ("false", "it changes what quoted names mean"),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": ("false", _LITERALS),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("false", _LITERALS),
    "spark.sql.legacy.statisticalAggregate": ("false", "it changes variances of one row"),
    "spark.sql.legacy.interval.enabled": ("false", _LITERALS),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("true", "it changes the types of sums"),
    "spark.sql.ansi.relationPrecedence": ("false", "it changes what ON sees after a comma"),
    "spark.sql.legacy.ctePrecedencePolicy": ("CORRECTED", "it changes what names in WITH mean"),
}
"""The value that weft needs of a setting, and why."""


@dataclass(frozen=True, slots=True)
class SqlSession:
    """How the session reads SQL."""

    ansi: bool
    double_quoted_names: bool
    time_zone: str

    def require_unchanged(self, now: SqlSession) -> None:
        """Raise if the session reads SQL in another way by now."""
        for key, before, value in (
            (_ANSI, self.ansi, now.ansi),
            (_DOUBLE_QUOTES, self.double_quoted_names, now.double_quoted_names),
            (_TIME_ZONE, self.time_zone, now.time_zone),
        ):
            if value != before:
                detail = "it was set to another value amid changes that are made as one"
                raise SqlError(
                    "SESSION_SETTING", key=key, value=value, wanted=before, detail=detail
                )


def sql_session(spark: SparkSession) -> SqlSession:
    """The session's way to read SQL; raises for settings that weft cannot honour."""
    for key, (wanted, detail) in _REQUIRED.items():
        value = str(spark.conf.get(key, wanted))
        if value.lower() != wanted.lower():
            raise SqlError("SESSION_SETTING", key=key, value=value, wanted=wanted, detail=detail)
    ansi = _is_true(spark, _ANSI)
    double_quoted_names = ansi and _is_true(spark, _DOUBLE_QUOTES)
    return SqlSession(ansi, double_quoted_names, str(spark.conf.get(_TIME_ZONE)))


def _is_true(spark: SparkSession, key: str) -> bool:
    # Without a default of ours: Spark would take it in the place of its own where nothing is set.
    return str(spark.conf.get(key)).lower() == "true"


class SqlSessions:
    """A session's way to read SQL, asked for once where many queries are bound as one change: asking
    Spark takes as long as binding a query."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._of_thread = threading.local()

    def now(self) -> SqlSession:
        """How the session reads SQL."""
        if not getattr(self._of_thread, "is_one", False):
            return sql_session(self._spark)
        if self._of_thread.session is None:
            self._of_thread.session = sql_session(self._spark)
        session: SqlSession = self._of_thread.session
        return session

    @contextmanager
    def one(self) -> Iterator[None]:
        """In the block, this thread reads SQL in one way. Raises if the settings change meanwhile."""
        if getattr(self._of_thread, "is_one", False):
            yield
            return
        self._of_thread.is_one, self._of_thread.session = True, None
        try:
            yield
            if self._of_thread.session is not None:
                self._of_thread.session.require_unchanged(sql_session(self._spark))
        finally:
            self._of_thread.is_one = False
