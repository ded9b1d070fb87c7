"""Streams kept as ordered files: the same micro-batches for everyone who reads them.

Spark's file source takes files by modification time, so the files get strictly increasing ones;
``maxFilesPerTrigger`` then fixes the micro-batches. A second call with the same recipe reuses what
is there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

Format = Literal["parquet", "csv"]
_RECIPE = "_recipe.json"
_FIRST_MODIFIED = 1_700_000_000
_SPARK_TYPES = {
    "int32": "int",
    "int64": "bigint",
    "double": "double",
    "string": "string",
    "bool": "boolean",
    "date32[day]": "date",
}


@dataclass(frozen=True)
class StoredStream:
    """A folder of ordered files with equally many rows each."""

    folder: Path
    format: Format
    schema: str
    rows: int
    files: int

    @property
    def rows_per_file(self) -> int:
        return self.rows // self.files

    def paths(self) -> list[Path]:
        """The files in stream order."""
        return sorted(self.folder.glob(f"*.{self.format}"))

    def open(self, spark: SparkSession, files_per_batch: int) -> DataFrame:
        """The files as a streaming DataFrame, ``files_per_batch`` in every micro-batch."""
        reader = spark.readStream.schema(self.schema).format(self.format)
        return reader.option("maxFilesPerTrigger", files_per_batch).load(str(self.folder))

    def first(self, files: int) -> StoredStream:
        """The stream's beginning, as hard links to the same files in a folder beside it."""
        if files >= self.files:
            return self
        folder = self.folder.with_name(f"{self.folder.name}-first-{files}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in self.paths()[:files]:
            os.link(path, folder / path.name)
        return StoredStream(folder, self.format, self.schema, self.rows_per_file * files, files)


def store(
    spark: SparkSession,
    make: Callable[[DataFrame], DataFrame],
    folder: Path,
    rows: int,
    files: int,
    recipe: str,
    format: Format = "parquet",
) -> StoredStream:
    """Write ``make`` of the row numbers 0 … rows−1 as ``files`` ordered files.

    ``make`` gets a DataFrame with the one column ``id``. ``recipe`` names the generator and its
    parameters: it decides whether files that are already there can be used again.
    """
    if rows % files:
        raise ValueError(f"{rows} rows do not fill {files} files evenly")
    frame = make(spark.range(0, rows, 1, files))
    schema = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in frame.schema.fields)
    stored = StoredStream(folder, format, schema, rows, files)
    wanted = {"recipe": recipe, "rows": rows, "files": files, "format": format, "schema": schema}
    if _recipe_of(folder) == wanted and len(stored.paths()) == files:
        return stored
    shutil.rmtree(folder, ignore_errors=True)
    written = folder.with_name(folder.name + "-writing")
    frame.write.mode("overwrite").format(format).save(str(written))
    folder.mkdir(parents=True)
    for index, part in enumerate(sorted(written.glob(f"part-*.{format}"))):
        target = folder / f"{index:06d}.{format}"
        part.rename(target)
        os.utime(target, (_FIRST_MODIFIED + index, _FIRST_MODIFIED + index))
    shutil.rmtree(written)
    (folder / _RECIPE).write_text(json.dumps(wanted))
    return stored


def store_table(
    make: Callable[[], pa.Table], folder: Path, rows: int, per_file: int, recipe: str
) -> StoredStream:
    """Write an Arrow table of `rows` rows as ordered Parquet files of `per_file` rows each."""
    if rows % per_file:
        raise ValueError(f"{rows} rows do not fill files of {per_file} evenly")
    files = rows // per_file
    wanted = {"recipe": recipe, "rows": rows, "files": files, "format": "parquet"}
    if _recipe_of(folder) != wanted or len(list(folder.glob("*.parquet"))) != files:
        table = make()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for index in range(files):
            target = folder / f"{index:06d}.parquet"
            pq.write_table(table.slice(index * per_file, per_file), target)
            os.utime(target, (_FIRST_MODIFIED + index, _FIRST_MODIFIED + index))
        (folder / _RECIPE).write_text(json.dumps(wanted))
    schema = pq.read_schema(folder / "000000.parquet")
    text = ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in schema)
    return StoredStream(folder, "parquet", text, rows, files)


def spark_type(type_: pa.DataType) -> str:
    """Spark's name of an Arrow type."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    return _SPARK_TYPES[str(type_)]


def _recipe_of(folder: Path) -> object:
    try:
        return json.loads((folder / _RECIPE).read_text())
    except (OSError, ValueError):
        return None
