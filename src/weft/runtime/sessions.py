"""Sessions in which weft writes files: copies of the user's, so that weft may change their settings.

Spark copies the session for every streaming query. A follower is not one, so it gets a copy from here.
Functions and views of the user are not copied: a shared query uses none.
"""

from __future__ import annotations

from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

_TIMES = "spark.sql.parquet.outputTimestampType"


def copied(spark: SparkSession) -> SparkSession:
    """A session with the settings that another one has now, except those that would change files."""
    copy = spark.newSession()
    settings = copy.conf.getAll
    for key, value in spark.conf.getAll.items():
        if settings.get(key) != value:
            with suppress(AnalysisException):  # settings of the context, which both sessions share
                copy.conf.set(key, value)
    keep_microseconds(copy)
    return copy


def keep_microseconds(spark: SparkSession) -> None:
    """Let files hold times in microseconds, whatever the user has chosen."""
    if spark.conf.get(_TIMES) == "TIMESTAMP_MILLIS":
        spark.conf.set(_TIMES, "TIMESTAMP_MICROS")
