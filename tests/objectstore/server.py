"""S3Proxy's jars by Maven, a server started from them, and Spark's connector for it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.maven import ALONE, JAVA_OPTIONS, jars
from tests.support.servers import await_port, end, free_port

_SDK = "2.35.4"
_WANTED = {
    # What keeps buckets in a folder, without the clients of other clouds.
    "server": (
        ("org.gaul", "s3proxy", "4.1.0", ALONE),
        ("args4j", "args4j", "2.37", ""),
        ("ch.qos.logback", "logback-classic", "1.6.3", ""),
        ("com.google.guava", "guava", "33.7.1-jre", ALONE),
        ("com.google.guava", "failureaccess", "1.0.3", ALONE),
        ("jakarta.servlet", "jakarta.servlet-api", "6.0.0", ""),
        ("tools.jackson.dataformat", "jackson-dataformat-xml", "3.2.2", ""),
        ("software.amazon.awssdk", "s3", _SDK, ""),
    ),
    # Hadoop's connector in the version of pyspark's Hadoop, and the parts of Amazon's library that it
    # uses: the whole library is 600 MB.
    "connector": (
        ("org.apache.hadoop", "hadoop-aws", "3.5.0", ALONE),
        ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1", ALONE),
        ("software.amazon.awssdk", "s3-transfer-manager", _SDK, ""),
        ("software.amazon.awssdk", "sts", _SDK, ""),
        ("software.amazon.awssdk", "apache-client", _SDK, ""),
        ("software.amazon.awssdk", "netty-nio-client", _SDK, ""),
    ),
}
_LOGGING = """<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%msg%n</pattern></encoder></appender>
<root level="warn"><appender-ref ref="out"/></root></configuration>
"""
_WITH_SPARK = ("netty", "slf4j", "commons-logging", "commons-codec")
"""Spark has these itself."""

KEY, SECRET = "an-identity", "a-secret-of-the-tests"


def server_jars() -> list[Path]:
    return jars("s3", _WANTED, "server")


def connector_jars() -> list[Path]:
    """What Spark needs to read and write S3, apart from what it has."""
    found = jars("s3", _WANTED, "connector")
    return [
        jar
        for jar in found
        if jar.name.startswith("netty-nio-client") or not jar.name.startswith(_WITH_SPARK)
    ]


@dataclass
class ObjectServer:
    """A server whose buckets are folders. It may be stopped and started again at the same address."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """What every client of it has in its environment."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }

    def start(self) -> None:
        (self.folder / "data" / "bucket").mkdir(parents=True, exist_ok=True)
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v4",
            "s3proxy.identity": KEY,
            "s3proxy.credential": SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.folder / "data"),
        }
        file = self.folder / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        (self.folder / "logback.xml").write_text(_LOGGING)
        java = [str(shutil.which("java")), "-Xmx128m", *JAVA_OPTIONS.split()]
        java += [f"-Dlogback.configurationFile={self.folder / 'logback.xml'}"]
        java += ["-cp", ":".join(map(str, server_jars())), "org.gaul.s3proxy.Main"]
        with self.log.open("ab") as log:
            command = [*java, "--properties", str(file)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        await_port(self.process, self.port, self.log)

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)
            self.process = None

    @property
    def log(self) -> Path:
        return self.folder / "log"


@contextmanager
def running_server(folder: Path) -> Iterator[ObjectServer]:
    """A server with the bucket `bucket`, on this machine alone."""
    server = ObjectServer(folder)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in server.environment.items():
            environment.setenv(name, value)
        environment.setenv("NO_PROXY", "127.0.0.1,localhost")
        server.start()
        try:
            yield server
        finally:
            server.stop()
