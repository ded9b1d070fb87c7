"""Kafka's jars by Maven, and a broker of one node started from them."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 120
#: These processes are short: the optimizing compiler does not pay off.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>weft</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>
{contents}</project>
"""
_DEPENDENCY = """<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version>{exclusions}</dependency>
"""
_ALONE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)
_WANTED = {
    # Spark publishes its connector for 4.2 and the helper of it for 4.0; they work with Spark 4.3.
    "connector": (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", _ALONE),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", _ALONE),
        ("org.apache.kafka", "kafka-clients", "3.9.2", _ALONE),
        ("org.apache.commons", "commons-pool2", "2.12.1", _ALONE),
    ),
    "broker": (("org.apache.kafka", "kafka_2.13", "4.1.0", ""),),
}


def connector_jars() -> list[Path]:
    """What Spark needs to read and write Kafka."""
    return sorted((_fetched() / "connector" / "jars").glob("*.jar"))


def broker_jars() -> list[Path]:
    return sorted((_fetched() / "broker" / "jars").glob("*.jar"))


def _fetched() -> Path:
    """The folder of the jars. Maven fetches them once, and they stay in this environment."""
    digest = hashlib.sha256(repr(_WANTED).encode()).hexdigest()[:12]
    target = Path(sys.prefix) / "share" / "weft" / f"kafka-{digest}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fetched = Path(folder) / "fetched"
            _fetch(fetched)
            if not target.is_dir():  # another process may have been faster
                fetched.rename(target)
    return target


def _fetch(folder: Path) -> None:
    """Jars from Maven's own store or its registry; the test is skipped without either."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("there is no Maven (`mvn`) to fetch Kafka's jars with")
    modules = "".join(f"<module>{name}</module>" for name in _WANTED)
    _write_pom(folder, "all", f"<modules>{modules}</modules>")
    for name, wanted in _WANTED.items():
        dependencies = "".join(
            _DEPENDENCY.format(group=g, artifact=a, version=v, exclusions=e)
            for g, a, v, e in wanted
        )
        _write_pom(folder / name, name, f"<dependencies>{dependencies}</dependencies>")
    command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    command.append("-DoutputDirectory=jars")
    for where in (["--offline"], []):
        ended = subprocess.run(
            [*command, *where],
            cwd=folder,
            env={**os.environ, "MAVEN_OPTS": _JAVA_OPTIONS},
            capture_output=True,
            text=True,
            timeout=600,
        )
        if not ended.returncode:
            return
    pytest.skip(f"Maven cannot fetch Kafka's jars: {ended.stdout.strip()[:300]}")


def _write_pom(folder: Path, name: str, contents: str) -> None:
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(_POM.format(name=name, contents=contents))


@contextmanager
def running_broker(jars: list[Path], folder: Path) -> Iterator[str]:
    """A broker and its controller in one process; the address to reach it by."""
    folder.mkdir()
    port, controller = _free_port(), _free_port()
    address = f"127.0.0.1:{port}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "log.dirs": str(folder / "data"),
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    java = [str(shutil.which("java")), "-Xmx256m", *_JAVA_OPTIONS.split()]
    java += ["-cp", ":".join(map(str, jars))]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(file)]
    subprocess.run(formatting, check=True, capture_output=True, timeout=PATIENCE)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*java, "kafka.Kafka", str(file)], stdout=log, stderr=log)
        try:
            _await_port(server, port, folder / "log")
            yield address
        finally:
            server.terminate()
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _await_port(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()[-2000:]
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"the broker did not start: {log.read_text()[-2000:]}")
