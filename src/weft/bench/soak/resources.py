"""What a run holds: memory of both processes, live memory inside them, files of its checkpoint."""

from __future__ import annotations

import gc
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_PROCESSES = Path("/proc")
_MEGA = 1e6


@dataclass(frozen=True)
class Sample:
    """What was counted at one moment. `python_mb` and `java_mb` are resident memory.

    Java takes memory from the system long before it needs it, so its live memory, counted after a
    collection, is what tells a leak; for Python the number of its objects does.
    """

    minutes: float
    event_hours: float
    batches: int
    queries: int
    python_mb: float
    python_objects: int
    java_mb: float
    java_live_mb: float
    files: int
    result_files: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


SERIES = ("python_mb", "python_objects", "java_mb", "java_live_mb", "files", "result_files")
"""What must not rise; `result_files` may, slowly, since results are kept."""


def resident_mb(process: int) -> float:
    """The resident memory of a process in megabytes."""
    for line in (_PROCESSES / str(process) / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / _MEGA
    raise ValueError(f"process {process} has no resident memory")


def java_process(spark: SparkSession) -> int:
    """The number of the Java process that has Spark."""
    assert spark._jvm is not None
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())


def python_objects() -> int:
    """How many objects Python's collector knows, after a collection."""
    gc.collect()
    return len(gc.get_objects())


def java_live_mb(spark: SparkSession) -> float:
    """The memory in use inside Java after a collection, in megabytes."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    runtime = jvm.java.lang.Runtime.getRuntime()
    runtime.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / _MEGA


def count_files(checkpoint: Path) -> tuple[int, int]:
    """How many files a checkpoint has without results, and how many result files."""
    others = results = 0
    for folder, _, names in os.walk(checkpoint):
        is_results = "results" in Path(folder).relative_to(checkpoint).parts
        results += len(names) if is_results else 0
        others += 0 if is_results else len(names)
    return others, results
