"""One Spark for all workers of a run of the tests.

Spark needs a minute of processor time until its code is compiled and its classes are loaded. Four workers
with a Java process each would spend it four times. So one process, the *host*, has Spark, and every worker
reaches it by a gateway of its own and has a session of its own. The host starts Spark when a worker first
asks for it, and ends with the process that started it.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "WEFT_TEST_SPARK"
"""The variable with the folder in which workers and host find each other."""
_PATIENCE = 180.0
_WANTED, _READY = "wanted", "gateways.json"


def start_host(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start the host; it waits until a worker wants Spark, and ends when its input is closed."""
    os.environ[FOLDER] = str(folder)
    command = [sys.executable, "-m", "tests.support.shared_spark", str(folder), str(workers)]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=Path(__file__).parents[2]
        )


def end_host(host: subprocess.Popen[bytes]) -> None:
    assert host.stdin is not None
    host.stdin.close()
    host.wait(60)


def connect(folder: Path, worker: int) -> SparkSession:
    """A session of the host's Spark, for the worker of this number."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = _gateways(folder)[worker]
    variables = {
        "PYSPARK_GATEWAY_PORT": str(gateway["port"]),
        "PYSPARK_GATEWAY_SECRET": str(gateway["secret"]),
    }
    os.environ.update(variables)
    try:
        java = launch_gateway()
    finally:
        for name in variables:  # processes that tests start have a Spark of their own
            del os.environ[name]
    context = java.jvm.org.apache.spark.SparkContext.getOrCreate()
    settings = SparkConf(_jconf=context.getConf())
    context = SparkContext(gateway=java, jsc=java.jvm.JavaSparkContext(context), conf=settings)
    sessions = java.jvm.org.apache.spark.sql.classic.SparkSession
    return SparkSession(context, sessions.getDefaultSession().get().newSession())


def _gateways(folder: Path) -> list[dict[str, str | int]]:
    """Ask for Spark, and wait until it is there."""
    (folder / _WANTED).touch()
    deadline = time.monotonic() + _PATIENCE
    while not (folder / _READY).exists():
        assert time.monotonic() < deadline, (folder / "log").read_text()[-2000:]
        time.sleep(0.1)
    gateways: list[dict[str, str | int]] = json.loads((folder / _READY).read_text())
    return gateways


def _host(folder: Path, workers: int) -> None:
    while not (folder / _WANTED).exists():
        if _input_closed(0.1):
            return
    from tests.support.quick import quick_session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    own = {
        "spark.master": f"local[{workers}]",
        "spark.default.parallelism": "2",  # as in a run without workers
        "spark.driver.memory": "4g",
    }
    spark = quick_session(folder / "warehouse", **own)
    java = spark.sparkContext._jvm
    assert java is not None
    servers = [
        java.org.apache.spark.api.python.Py4JServer(spark.sparkContext._conf._jconf)
        for _ in range(workers)
    ]
    for server in servers:
        server.start()
    gateways = [{"port": s.getListeningPort(), "secret": s.secret()} for s in servers]
    written = folder / "written"
    written.touch(mode=0o600)
    written.write_text(json.dumps(gateways))
    written.rename(folder / _READY)
    while not _input_closed(60):
        pass
    spark.stop()


def _input_closed(seconds: float) -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(readable) and not os.read(sys.stdin.fileno(), 1)


if __name__ == "__main__":
    _host(Path(sys.argv[1]), int(sys.argv[2]))
