"""Settings of Spark sessions that start soon and run small streams quickly."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.oracle.plain_spark import INTERPRETED

from weft.runtime.api.class_archive import java_options

JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m "
    "-Djdk.lang.Process.launchMechanism=VFORK"
)
"""Tests end before the optimizing compiler and a second thread of the collector pay off. Without the
former Java has room for 48 MB of compiled code, which Spark fills in a few minutes: then Java spends
more time on throwing code away than on anything else. Processes are started without a helper process."""

LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming"
    ".checkpointing.FileSystemBasedCheckpointFileManager",
}
"""Without Hadoop's native library Java starts a process for every file that it gives permissions to,
and for every link that it looks for: some twenty in a micro-batch, a fifth of a small test's time. So
Spark writes no checksum files, and looks for no links, in what it keeps of a stream."""


def quick_settings(shuffle_partitions: int = 2) -> dict[str, str]:
    """A small local session in which Spark interprets expressions: to compile them takes longer than
    to run them on a handful of rows."""
    return {
        **INTERPRETED,
        **LOCAL_FILES,
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {java_options()}",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.session.timeZone": "UTC",
    }


def cluster_settings() -> dict[str, str]:
    """The same for a driver whose executors are processes of their own. They start from the same archive of classes."""
    return {
        **quick_settings(shuffle_partitions=1),
        "spark.executor.extraJavaOptions": f"{JAVA_OPTIONS} {java_options()}",
        "spark.executor.memory": "512m",
        # What a lost executor had is computed again at once, not asked for three times.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
    }


def daemon_options() -> str:
    """Java's options for a master and its workers."""
    return f"{JAVA_OPTIONS} {java_options()}"


def quick_session(warehouse: Path, **settings: str) -> SparkSession:
    """A session for tests, on this machine alone."""
    session = (
        SparkSession.builder.appName("weft tests")
        .config(map=quick_settings())
        .config("spark.driver.memory", "2g")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config(map=settings)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    forget_hadoop_defaults(session)
    return session


def forget_hadoop_defaults(session: SparkSession) -> None:
    """Every task and every scan carries Hadoop's settings along: 1,100 default values of HDFS and YARN,
    a fifteenth of a small micro-batch. Without them the code's own defaults hold, which are the same."""
    java = session.sparkContext._jvm
    assert java is not None
    for name in ("org.apache.hadoop.mapred.JobConf", "org.apache.hadoop.hdfs.HdfsConfiguration"):
        java.java.lang.Class.forName(name)  # adds its defaults, now and not later
    configuration = java.java.lang.Class.forName("org.apache.hadoop.conf.Configuration")
    field = configuration.getDeclaredField("defaultResources")
    field.setAccessible(True)
    resources = field.get(None)
    resources.removeAll(java.java.util.ArrayList(resources))
    session.sparkContext._jsc.hadoopConfiguration().reloadConfiguration()
