"""A process with Kafka's connector: `python -m tests.kafka.child FOLDER ADDRESS JARS`.

It runs two queries, a shared one and a fallback, into a topic for each, and prints all messages of
both topics as JSON. WEFT_KILL_AT ends it earlier.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.support.quick import quick_settings

import weft

QUERIES = {
    "counts": "SELECT k AS key, concat(k, '=', count(*)) AS value FROM s "
    "GROUP BY window(ts, '10 seconds'), k",
    "plain": "SELECT k AS key, concat(k, ':', transform(array(v), x -> x)[0]) AS value FROM s",
}


def main() -> None:
    folder, address, jars = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = quick_settings(shuffle_partitions=1)
    spark = SparkSession.builder.config(map=settings).config("spark.jars", jars).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    run(spark, folder, address)
    print(json.dumps(read(spark, address)))


def run(spark: SparkSession, folder: Path, address: str) -> None:
    source = spark.readStream.schema("ts timestamp, k string, v bigint")
    frame = source.option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))
    w = weft.Weft(spark, folder / "checkpoint")
    w.add_stream("s", frame, time="ts", watermark="0 seconds")
    for name, sql in QUERIES.items():
        w.register(name, sql)
    options = {"kafka.bootstrap.servers": address, "topic": "weft-{query}"}
    w.start(weft.sinks.spark("kafka", **options), availableNow=True).awaitTermination()


def read(spark: SparkSession, address: str) -> list[dict[str, object]]:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", address)
    reader = reader.option("subscribe", "weft-counts,weft-plain").option("includeHeaders", "true")
    messages = reader.load().selectExpr(
        "topic", "cast(key AS string) AS key", "cast(value AS string) AS value", "headers"
    )
    return [
        {
            "topic": row.topic,
            "key": row.key,
            "value": row.value,
            "headers": {header.key: header.value.decode() for header in row.headers or ()},
        }
        for row in messages.collect()
    ]


if __name__ == "__main__":
    main()
