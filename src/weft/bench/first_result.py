"""From a new process to the first result, as a user waits for it.

``seconds_to_first_result`` starts this module in a new interpreter and takes the time until that
has printed a result row's count: Python, the JVM, the session, registering, two micro-batches (the
first can emit nothing, its watermark is still at the beginning) and reading the result back.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

from weft.workloads.stored import StoredStream

_MODULE = "weft.bench.first_result"
_READY = "first result:"


def seconds_to_first_result(stream: StoredStream, files_per_batch: int, queries: int) -> float:
    """Seconds from starting a process to its first readable result."""
    command = [sys.executable, "-m", _MODULE]
    arguments = [str(stream.folder), stream.schema, str(files_per_batch), str(queries)]
    started = time.perf_counter()
    child = subprocess.Popen(
        command + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(_READY):
                return time.perf_counter() - started
        _, errors = child.communicate()
        raise RuntimeError(f"the process ended without a result:\n{errors[-2000:]}")
    finally:
        child.kill()
        child.communicate()


def main(folder: str, schema: str, files_per_batch: int, count: int) -> None:
    """What the new process does."""
    import weft
    from weft.bench.loom import register
    from weft.bench.session import session
    from weft.workloads.events import WATERMARK
    from weft.workloads.windows import thousand_sliding

    spark = session("weft bench: first result")
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_batch)
    queries = sorted(thousand_sliding(count), key=lambda query: query.window.slide)
    with tempfile.TemporaryDirectory() as checkpoint:
        w = weft.Weft(spark, checkpoint=checkpoint)
        w.add_stream("events", reader.parquet(folder), time="ts", watermark=WATERMARK)
        register(w, queries)
        running = w.start()
        while not any(step["results"] for step in running.recentProgress):
            time.sleep(0.05)
            if not running.isActive:
                running.awaitTermination()
        found = w.results(queries[0].name).limit(1).count()
        print(_READY, found, flush=True)
        running.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
