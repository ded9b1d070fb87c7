"""A process to be killed, whose checkpoint is in object storage.

Called as `python -m tests.objectstore.child INPUT CHECKPOINT CATALOG`; WEFT_KILL_AT ends it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.objectstore.server import connector_jars
from tests.objectstore.test_runs import s3a_settings
from tests.support import steady
from tests.support.quick import quick_settings


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.config(map=quick_settings(shuffle_partitions=1))
    builder = builder.config("spark.jars", ",".join(map(str, connector_jars())))
    spark = builder.config(map=s3a_settings(os.environ["AWS_ENDPOINT_URL"])).getOrCreate()
    folder, checkpoint, catalog = sys.argv[1:]
    w = steady.opened(spark, Path(folder), checkpoint, catalog=catalog)
    w.start(availableNow=True).awaitTermination()


if __name__ == "__main__":
    main()
