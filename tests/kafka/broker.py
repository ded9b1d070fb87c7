"""Kafka's jars by Maven, and a broker of one node started from them."""

from __future__ import annotations

import base64
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.maven import ALONE, JAVA_OPTIONS, jars
from tests.support.servers import PATIENCE, await_port, end, free_port

_WANTED = {
    # Spark publishes its connector for 4.2 and the helper of it for 4.0; they work with Spark 4.3.
    "connector": (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0", ALONE),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", ALONE),
        ("org.apache.kafka", "kafka-clients", "3.9.2", ALONE),
        ("org.apache.commons", "commons-pool2", "2.12.1", ALONE),
    ),
    "broker": (("org.apache.kafka", "kafka_2.13", "4.1.0", ""),),
}


def connector_jars() -> list[Path]:
    """What Spark needs to read and write Kafka."""
    return jars("kafka", _WANTED, "connector")


def broker_jars() -> list[Path]:
    return jars("kafka", _WANTED, "broker")


@contextmanager
def running_broker(classes: list[Path], folder: Path) -> Iterator[str]:
    """A broker and its controller in one process; the address to reach it by."""
    folder.mkdir()
    port, controller = free_port(), free_port()
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
    java = [str(shutil.which("java")), "-Xmx256m", *JAVA_OPTIONS.split()]
    java += ["-cp", ":".join(map(str, classes))]
    # A first bit of 0, so that the name does not begin with "-", which would be an option.
    number = uuid.UUID(int=uuid.uuid4().int & ~(1 << 127))
    cluster = base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(file)]
    subprocess.run(formatting, check=True, capture_output=True, timeout=PATIENCE)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*java, "kafka.Kafka", str(file)], stdout=log, stderr=log)
        try:
            await_port(server, port, folder / "log")
            yield address
        finally:
            end(server)
