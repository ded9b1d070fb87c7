"""What must hold before a run begins: otherwise it would end hours later, or wait for ever.

Spark's own tasks write into the checkpoint, so they must see the one that the driver sees. Windows and joins
that outgrow the driver run in the workers' Python, so it must have weft. A session is checked once for every
checkpoint. On a local session both cost nothing.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from weft.errors import CheckpointError, RunError
from weft.runtime.cause import cause_of
from weft.runtime.checkpoint.identity import FILE
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.settings import Settings
from weft.runtime.tasks import is_local, missing_in_workers

_logger = logging.getLogger("weft")
_PATIENCE = 20
"""Seconds until a run says that it waits for the cluster."""

_passed: set[tuple[str, str]] = set()


def check_start(spark: SparkSession, storage: Storage, settings: Settings) -> None:
    """Refuse a session that cannot run all of weft on a checkpoint."""
    context = spark.sparkContext
    checked = (str(context.applicationId), f"{storage.uri} {settings.kernel}")
    if checked in _passed:
        return
    with _waiting(str(context.master)):
        if not (storage.local and is_local(spark)):
            _check_shared(spark, storage)
        if settings.kernel != "driver":
            missing = missing_in_workers(spark)
            if missing is not None:
                raise RunError(
                    "WORKERS", master=context.master, detail=missing, python=sys.executable
                )
    _passed.add(checked)


def _check_shared(spark: SparkSession, storage: Storage) -> None:
    """Let a task read a file of the checkpoint."""
    path = storage.spark_path(FILE)
    wanted = storage.read(FILE).decode()
    try:
        lines = [row["value"] for row in spark.read.text(path, wholetext=True).collect()]
    except Exception as error:
        raise CheckpointError("NOT_SHARED", path=path, detail=cause_of(error)) from error
    if "".join(lines) != wanted:
        detail = "what a worker reads there is another checkpoint"
        raise CheckpointError("NOT_SHARED", path=path, detail=detail)


@contextmanager
def _waiting(master: str) -> Iterator[None]:
    """Says so when the cluster lets us wait."""
    text = "no task has ended on %s for %d seconds; does it have workers with free cores?"
    timer = threading.Timer(_PATIENCE, _logger.warning, (text, master, _PATIENCE))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
