"""A stored stream that arrives piece by piece: files appear in a folder that a stream watches."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from weft.bench.measuring.scratch import fresh
from weft.workloads.stored import StoredStream


class Arrivals:
    """Links the files of a stored stream into a folder, in stream order."""

    def __init__(self, stored: StoredStream, folder: Path) -> None:
        self._stored, self._folder = stored, fresh(folder)
        self._waiting = stored.paths()

    def open(self, spark: SparkSession) -> DataFrame:
        """The folder as a streaming DataFrame: all files that are there are one micro-batch."""
        reader = spark.readStream.schema(self._stored.schema).format("parquet")
        return reader.load(str(self._folder))

    def arrive(self, rows: int) -> int:
        """Let the files of so many rows arrive; how many rows they have."""
        files = rows // self._stored.rows_per_file
        arrived, self._waiting = self._waiting[:files], self._waiting[files:]
        for path in arrived:
            os.link(path, self._folder / path.name)
        return len(arrived) * self._stored.rows_per_file
