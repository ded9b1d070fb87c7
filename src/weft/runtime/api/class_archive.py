"""A class data archive, so that Spark starts sooner.

Most of a Spark process's first seconds go into loading and checking some twenty thousand Java
classes. The JVM can map them from an archive instead (class data sharing). `python -m
weft.runtime.api.class_archive` makes one, by running a small stream, for the Java and the packages of
this environment; the sessions of weft's own commands use it if it is there. The JVM itself checks
that an archive fits, and goes on without one that does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_QUIET = "-Xlog:cds*=off -Xlog:class+path=off"
_SECONDS_TO_WRITE = 120


def archive_path() -> Path:
    """Where the archive of this environment is."""
    return Path(sys.prefix) / "share" / "weft" / "spark.jsa"


def java_options() -> str:
    """Options of a JVM that uses the archive; none if there is no archive."""
    path = archive_path()
    return f"-XX:SharedArchiveFile={path} {_QUIET}" if path.is_file() else ""


def make() -> Path:
    """Make the archive anew, in a process of its own."""
    target = archive_path()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        written = Path(folder) / "spark.jsa"
        command = [sys.executable, "-m", "weft.runtime.api.class_archive", str(written)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if not written.is_file():
            raise RuntimeError(f"Java wrote no archive:\n{(done.stderr or done.stdout)[-2000:]}")
        os.replace(written, target)
    return target


def _record(written: Path) -> None:
    """Run a small stream in a JVM that writes its classes when it ends."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    from weft.runtime.api.weft import Weft

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = f"-XX:ArchiveClassesAtExit={written} {_QUIET}"
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", options)
    builder = builder.config("spark.driver.host", "localhost")
    spark = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    process = SparkContext._gateway.proc  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = spark.range(1000).select(F.col("id"), F.timestamp_seconds("id").alias("ts"))
        rows.repartition(2).write.parquet(str(folder / "rows"))
        reader = spark.readStream.schema("id bigint, ts timestamp").option("maxFilesPerTrigger", 1)
        weft = Weft(spark, folder / "checkpoint")
        weft.add_stream("s", reader.parquet(str(folder / "rows")), time="ts", watermark="1 second")
        window = "window(ts, '1 minute', '10 seconds')"
        weft.register("q", f"SELECT id % 7 AS k, sum(id) AS n FROM s GROUP BY {window}, id % 7")
        weft.start(availableNow=True).awaitTermination()
        weft.results("q").collect()
        spark.stop()
    process.stdin.close()
    process.wait(_SECONDS_TO_WRITE)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _record(Path(sys.argv[1]))
    else:
        began = time.perf_counter()
        print(f"{make()}: made in {time.perf_counter() - began:.0f} s")
