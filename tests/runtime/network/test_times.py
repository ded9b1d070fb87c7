"""Times in files of history: instants have a zone, and all years that Spark has."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from weft.runtime.checkpoint.commits import RETAINED, Entry
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.network.history import Published, delta, restored, row_pieces

INSTANT, LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
YEARS = [datetime(year, 1, 2, 3, 4, 5, 6, UTC) for year in (1600, 2024, 9999)]


def put(folder: Path, name: str, column: pa.Array, *, as_spark_does: bool) -> Entry:
    """A published file with an event time and another time; Spark's default for TIMESTAMP is INT96."""
    rows = pa.table({"until": column, "#time": pa.array(range(1, len(column) + 1), pa.int64())})
    pq.write_table(rows, folder / name, use_deprecated_int96_timestamps=as_spark_does)
    return {"name": name, "rows": len(column)}


def test_times_that_spark_wrote_are_instants_of_any_year(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    entry = put(tmp_path, "a.parquet", pa.array(YEARS, INSTANT), as_spark_does=True)
    published = Published("s", 3, entry)
    (rows,) = delta(storage, [published]).values()
    pieces = row_pieces(storage, published.with_step, 2)
    for table in (rows, pa.concat_tables(pieces)):
        assert table.column("until").type == INSTANT
        assert table.column("until").to_pylist() == YEARS


def test_times_without_a_zone_stay_so(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    local = [time.replace(tzinfo=None) for time in YEARS]
    entry = put(tmp_path, "a.parquet", pa.array(local, LOCAL), as_spark_does=False)
    (rows,) = delta(storage, [Published("s", 0, entry)]).values()
    assert rows.column("until").type == LOCAL
    assert rows.column("until").to_pylist() == local


def test_files_of_before_and_of_now_are_read_together(tmp_path: Path) -> None:
    """An older weft has written instants without their zone when it put files together."""
    storage = Storage(str(tmp_path))
    old = pa.array([time.replace(tzinfo=None) for time in YEARS[:2]], pa.timestamp("us"))
    files = [
        put(tmp_path, "old.parquet", old, as_spark_does=False),
        put(tmp_path, "new.parquet", pa.array(YEARS, INSTANT), as_spark_does=True),
    ]
    entries = [Published("s", n, entry).retained(0) for n, entry in enumerate(files)]
    parts = restored(storage, {RETAINED: entries}, {}).base["s"]
    assert [part.column("until").type for part in parts] == [INSTANT, INSTANT]
    (together,) = delta(storage, [Published("s", n, file) for n, file in enumerate(files)]).values()
    assert together.column("until").to_pylist() == [*YEARS[:2], *YEARS]
