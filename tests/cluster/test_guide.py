"""The commands of docs/cluster.md, as they are there, on a standalone cluster that loses an executor and a worker on the way.

One cluster for all of it: every process of Java costs seconds. Spark's `local-cluster[…]` is the same master and workers inside
the driver's process; `weft bench state --only executors` and `weft reproduce placement/lanes` run on it.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cluster.bare import bare_python
from tests.support import steady
from tests.support.harness import session
from tests.support.quick import JAVA_OPTIONS, cluster_settings, daemon_options
from tests.support.servers import await_port, end, free_port, heard_from_outside
from tests.support.stored import stored_rows

import weft

pytestmark = [pytest.mark.slow, pytest.mark.crash]
GUIDE = Path(__file__).parents[2] / "docs" / "cluster.md"
BATCHES = 2
KILLERS = (
    "weft.runtime.windows.lanes",
    "weft.runtime.network.lanes.computing",
    "weft.runtime.joinagg.lanes.computing",
)
"""Who starts tasks of windows, of joins, and of aggregation joins. In every run one of them loses an executor."""
NAMES = ("counts", "pairs", "bursts")


def blocks(language: str) -> list[str]:
    """The code of the guide."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


@dataclass
class Cluster:
    """A master and two workers, started by the guide's commands."""

    folder: Path
    environment: dict[str, str]
    port: int
    master: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        return [self.master, *self.workers]

    def run(self, command: str) -> subprocess.Popen[str]:
        """Start a command of the guide."""
        with (self.folder / "driver.log").open("wb") as log:
            return subprocess.Popen(
                ["bash", "-c", command.replace("7077", str(self.port))],
                cwd=self.folder,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """The guide's cluster. Its workers have a Python without weft."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYSPARK_PYTHON")
    }
    environment = {
        **clean,
        "PATH": f"{Path(sys.executable).parent}:{clean['PATH']}",
        "PYSPARK_PYTHON": str(bare_python(folder)),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": daemon_options(),
        "SPARK_LAUNCHER_OPTS": JAVA_OPTIONS,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    port = free_port()

    def start(line: str, log: Path) -> subprocess.Popen[bytes]:
        command = line.removesuffix("&").replace("7077", str(port)).replace("8080", "0")
        with log.open("wb") as said:
            return subprocess.Popen(
                ["bash", "-c", f"export SPARK_LOCAL_IP=127.0.0.1; exec {command}"],
                cwd=folder,
                env=environment,
                stdout=said,
                stderr=said,
            )

    servers = [line for block in blocks("sh") for line in block.splitlines() if "deploy." in line]
    master_line, *worker_lines = servers
    with ExitStack() as ending:
        master = start(master_line, folder / "master.log")
        ending.callback(end, master)
        await_port(master, port, folder / "master.log")
        workers = []
        for number, line in enumerate(worker_lines):
            workers.append(start(line, folder / f"worker-{number}.log"))
            ending.callback(end, workers[-1])
        yield Cluster(folder, environment, port, master, workers)


def test_the_guide_runs_and_goes_on_without_a_killed_executor_and_a_lost_worker(
    spark: SparkSession, tmp_path: Path, chance: random.Random
) -> None:
    """The first task of windows, of joins or of aggregation joins kills its executor when it has written what it had to. A worker is lost while
    the second batch is under way."""
    steady.write_input(tmp_path / "input", BATCHES)
    marker = tmp_path / "killed"
    kills = f"with_kills({chance.choice(KILLERS)!r}, {str(marker)!r})"
    deadly = (Path(__file__).parent / "deadly.py").read_text()
    (tmp_path / "app.py").write_text(f"{deadly}\n\n{kills}\n{blocks('python')[0]}")
    package, submit = blocks("sh")[0], blocks("sh")[-1]
    with running_cluster(tmp_path) as cluster:
        (tmp_path / "weft-source").symlink_to(Path(weft.__file__).parents[1])
        command = f"{sys.executable} -m weft.cli.main"
        package = package.replace("weft ", f"{command} ", 1)
        with cluster.run(f"PYTHONPATH=weft-source {package}") as packaged:
            assert packaged.wait(120) == 0
        assert not [found for one in cluster.processes for found in heard_from_outside(one)]
        quick = tmp_path / "quick.conf"
        quick.write_text("".join(f"{name} {value}\n" for name, value in settings().items()))
        submit = submit.replace("spark-submit ", f"spark-submit --properties-file {quick} ")
        with cluster.run(submit) as driver:
            try:
                lost_at = lose_worker(cluster, tmp_path / "checkpoint")
                said, _ = driver.communicate(timeout=200)
            finally:
                if driver.poll() is None:
                    os.killpg(driver.pid, signal.SIGKILL)
        assert driver.returncode == 0, (tmp_path / "driver.log").read_text()[-3000:]
    assert marker.read_text(), "no executor was killed"
    second = tmp_path / "checkpoint/streams/events/commits" / f"{1:012d}.json"
    assert second.stat().st_mtime > lost_at, "the worker was lost after its batch"
    source = session(spark).readStream.schema("ts timestamp, k string, v bigint")
    with weft.Weft(session(spark), tmp_path / "checkpoint") as w:
        frame = source.parquet(str(tmp_path / "input"))
        w.add_stream("events", frame, time="ts", watermark="2 seconds")
        expected = {**steady.expected(BATCHES), "bursts": steady.bursts(BATCHES)}
        for name in NAMES:
            assert Counter(stored_rows(w, name)) == expected[name], name
        counts = [str(len(stored_rows(w, name))) for name in NAMES]
    assert f"results: {' '.join(counts)}" in said


def settings() -> dict[str, str]:
    """What makes the guide's driver and executors quick. The guide's own command names the master."""
    return {name: value for name, value in cluster_settings().items() if name != "spark.master"}


def lose_worker(cluster: Cluster, checkpoint: Path) -> float:
    """Kill a worker while a batch is under way; when that was."""
    intents = checkpoint / "streams/events/intents"
    deadline = time.monotonic() + 240
    while not (intents / f"{1:012d}.json").exists():
        assert time.monotonic() < deadline, (cluster.folder / "driver.log").read_text()[-3000:]
        time.sleep(0.02)
    cluster.workers[0].kill()
    cluster.workers[0].wait()
    return time.time()
