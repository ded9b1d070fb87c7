"""The Spark session of a command: local by default, quiet, and then with this Python in its workers."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from weft.cli.output import first_line, is_verbose
from weft.cli.project.folder import Project
from weft.cli.stages import Stages
from weft.cli.stopping import stop_signal
from weft.errors import RunError
from weft.runtime.api.class_archive import java_options
from weft.runtime.quiet import silence_sql_errors

_KEPT_LINES = 15
_CONNECT_SECONDS = 5


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def defaults() -> dict[str, str]:
    """The settings of a session, before those of `weft.yaml`."""
    return {
        "spark.master": "local[*]",
        "spark.driver.memory": "2g",
        "spark.driver.host": "localhost",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(2, cores())),
    }


@contextmanager
def session(name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session that ends with the block; one that is there already is used and left alone."""
    wanted = defaults() | dict(settings or {})
    if not wanted["spark.master"].startswith("local") and "spark.driver.host" not in (
        settings or {}
    ):
        del wanted["spark.driver.host"]
    existing = SparkSession.getActiveSession()
    if existing is not None:
        inner = existing.newSession()
        for key, value in wanted.items():
            if inner.conf.isModifiable(key):
                inner.conf.set(key, value)
        yield inner
        return
    require_cluster(wanted["spark.master"])
    if not is_verbose():
        _quiet_python()
    os.environ["PYSPARK_PYTHON"] = workers_python(wanted["spark.master"])
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(f"weft {name}")
    for key, value in wanted.items():
        builder = builder.config(key, value)
    # A signal waits until Java has started: cut off before, it would never end.
    with _quiet_java(), stop_signal() as interrupted:
        spark = builder.getOrCreate()
    try:
        if interrupted.is_set():
            raise KeyboardInterrupt
        spark.sparkContext.setLogLevel("WARN" if is_verbose() else "ERROR")
        yield spark
    finally:
        spark.stop()


def workers_python(master: str) -> str:
    """The Python of the workers: this one, but on a cluster the one that PYSPARK_PYTHON names, since other machines may
    have theirs elsewhere."""
    if master == "local" or master.startswith("local["):
        return sys.executable
    return os.environ.get("PYSPARK_PYTHON") or sys.executable


def require_cluster(master: str) -> None:
    """Refuse the address of a standalone cluster at which nobody listens. Spark would try for a minute, and
    then say that its context was stopped."""
    if not master.startswith("spark://"):
        return
    refusals = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
            return
        except ValueError:
            refusals.append(f"{address} has no port")
        except OSError as error:
            refusals.append(f"{address}: {error.strerror or error}")
    raise RunError("CLUSTER", master=master, detail="; ".join(refusals))


@contextmanager
def watched_session(project: Project, stage: str) -> Iterator[SparkSession]:
    """A project's session. A terminal shows that Spark starts, and then what the session is for."""
    with Stages(quiet=True) as stages:
        stages.at("starting Spark")
        with session(project.name, project.spark) as spark:
            stages.at(stage)
            yield spark


def _quiet_python() -> None:
    """Keeps the logs of pyspark and py4j off the terminal: what they log, weft says in a line.

    pyspark logs every query that Spark refuses, with plan and stack; py4j a connection that a
    second Ctrl-C cuts. weft's own warnings are a line each, without a traceback.
    """
    silence_sql_errors()
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logging.getLogger("weft").addHandler(handler)


class _OneLine(logging.Formatter):
    """A warning in a line, with what an exception says but without its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        line = f"weft: {record.getMessage()}"
        return f"{line}: {first_line(error)}" if error is not None else line


@contextmanager
def _quiet_java() -> Iterator[None]:
    """Sends what Java says on standard error to a file; if it does not start, shows the end.

    Java inherits the file for its life, so its log does not mix with a command's output.
    `WEFT_SPARK_LOG` names a file to keep; `--verbose` shows the log on the terminal.
    """
    chosen = os.environ.get("WEFT_SPARK_LOG")
    if is_verbose() and not chosen:
        yield
        return
    descriptor, name = (
        (os.open(chosen, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), chosen)
        if chosen
        else tempfile.mkstemp(prefix="weft-spark-", suffix=".log")
    )
    sys.stderr.flush()
    terminal = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    except Exception:
        os.dup2(terminal, 2)
        lines = Path(name).read_text(errors="replace").splitlines()
        print("\n".join(lines[-_KEPT_LINES:]), file=sys.stderr)
        raise
    finally:
        os.dup2(terminal, 2)
        os.close(terminal)
        os.close(descriptor)
        if not chosen:
            os.unlink(name)
