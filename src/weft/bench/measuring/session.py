"""The Spark session of a benchmark, and the machine it runs on."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from pyspark.sql import SparkSession

from weft.runtime.api.class_archive import java_options


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def session(name: str, heap: str = "8g", tasks: int | None = None) -> SparkSession:
    """A local session on all cores, or with a given number of tasks at a time; shuffle partitions equal to the
    cores for everyone."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master(f"local[{tasks or cores()}]")
        .appName(name)
        .config("spark.driver.memory", heap)
        .config("spark.driver.extraJavaOptions", java_options())
        .config("spark.sql.shuffle.partitions", cores())
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.streaming.numRecentProgressUpdates", 10_000)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def machine(spark: SparkSession | None = None) -> dict[str, str]:
    """Cores, memory and versions, as they go beside the figures; Java and Spark if they run."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    facts = {
        "cores": str(cores()),
        "processor": _processor(),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    if spark is not None:
        facts["java"] = str(spark._jvm.System.getProperty("java.version"))  # type: ignore[union-attr]
        facts["spark"] = spark.version
    return facts | {"weft": _version("weft")}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
