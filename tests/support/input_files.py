"""Files of a stream that Spark reads in the order of their numbers."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_FIRST_MODIFIED = 1_700_000_000


def put_file(table: pa.Table, folder: Path, number: int) -> None:
    """One Parquet file, complete when it appears. Spark orders files by their time of modification in
    milliseconds, and files that are written within one millisecond in any order: the time is the number."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / f".{number:05d}"
    pq.write_table(table, hidden)
    os.utime(hidden, (_FIRST_MODIFIED + number,) * 2)
    hidden.rename(folder / f"{number:05d}.parquet")
