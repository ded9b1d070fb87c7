"""A process to be killed: runs the workload on whatever input is there.

Called as `python -m tests.crash.child FOLDER`: registers the windows of the workload and runs to the
end of the input. WEFT_KILL_AT ends it earlier, CHILD_EARLY is the plan of aggregation joins: a 1 for each early input.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.crash.workload import AGGREGATION_JOINS, DDL, JOIN_QUERIES, QUERIES, ROW_QUERIES

import weft


def open_weft(spark: object, folder: Path, **settings: Any) -> weft.Weft:
    """The workload's stream on its checkpoint."""
    source = (
        spark.readStream.schema(DDL)  # type: ignore[attr-defined]
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "input"))
    )
    checkpoint = folder / "checkpoint"
    w = weft.Weft(spark, checkpoint, project="crash", **settings)  # type: ignore[arg-type]
    w.add_stream("s", source, time="ts", watermark="2 seconds")
    return w


def register(w: weft.Weft, names: list[str]) -> None:
    """Make the named queries, and only these, the registered ones."""
    live = {handle.name for handle in w.queries}
    with w.changes():
        for name in sorted(live - set(names)):
            w.drop(name)
        for name in names:
            if name not in live:
                queries = {**QUERIES, **ROW_QUERIES, **JOIN_QUERIES, **AGGREGATION_JOINS}
                w.register(name, queries[name])


def plan_of(bits: str) -> tuple[bool, ...]:
    return tuple(bit == "1" for bit in bits)


def main() -> None:
    folder = Path(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    from tests.support.quick import quick_settings

    builder = SparkSession.builder.config(map=quick_settings(shuffle_partitions=1))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    w = open_weft(spark, folder, early=plan_of(os.environ["CHILD_EARLY"]))
    register(w, [*QUERIES, *ROW_QUERIES, *AGGREGATION_JOINS])
    print("ready", flush=True)
    w.start(availableNow=True).awaitTermination()
    print("done", flush=True)


if __name__ == "__main__":
    main()
