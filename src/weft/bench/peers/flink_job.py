"""The Flink job, run by an interpreter that has ``apache-flink`` and nothing of weft.

Reads a JSON job on standard input, prints one JSON line. One statement set holds all queries, so
Flink reads the CSV once and shares what it shares by itself; each is a HOP window aggregate in
two phases, written to one CSV folder with the query's number.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

SOURCE = """
CREATE TABLE events (
  `key` INT,
  `value` BIGINT,
  ts_ms BIGINT,
  ts AS TO_TIMESTAMP_LTZ(ts_ms, 3),
  WATERMARK FOR ts AS ts - INTERVAL '{watermark}' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
SINK = """
CREATE TABLE results (
  query INT,
  window_start TIMESTAMP(3),
  `key` INT,
  n BIGINT,
  total BIGINT
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')
"""
QUERY = """
INSERT INTO results
SELECT {number}, window_start, `key`, COUNT(*), SUM(`value`)
FROM TABLE(HOP(TABLE events, DESCRIPTOR(ts),
  INTERVAL '{slide}' SECOND({digits}), INTERVAL '{range}' SECOND({digits})))
GROUP BY window_start, window_end, `key`
"""


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run all queries of the job to the end of its input; seconds are from submit to finish."""
    common = importlib.import_module("pyflink.common")
    table = importlib.import_module("pyflink.table")
    settings = common.Configuration()
    for key, value in job["settings"].items():
        settings.set_string(key, value)
    environment = table.TableEnvironment.create(
        table.EnvironmentSettings.new_instance()
        .in_streaming_mode()
        .with_configuration(settings)
        .build()
    )
    environment.execute_sql(SOURCE.format(path=job["source"], watermark=job["watermark"]))
    environment.execute_sql(SINK.format(path=job["sink"]))
    statements = environment.create_statement_set()
    for number, (length, slide) in enumerate(job["windows"]):
        statements.add_insert_sql(
            QUERY.format(number=number, range=length, slide=slide, digits=len(str(length)))
        )
    started = time.time()
    result = statements.execute()
    submitted = time.time()
    result.wait()
    return {"submit_seconds": submitted - started, "run_seconds": time.time() - submitted}


if __name__ == "__main__":
    print(json.dumps(run(json.load(sys.stdin))), flush=True)
