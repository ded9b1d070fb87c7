"""Results read back from the files that commits name: by Spark as a DataFrame, or by Arrow alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from weft.errors import CheckpointError
from weft.kernel.windows.results import QUERY_COLUMN, output_names
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.sinks.store import results_folder

_TRIES = 3
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class QueryResults:
    """A query's rows in the files of its family."""

    query_id: str
    checkpoint: Storage
    files: Sequence[Entry]

    def frame(self, spark: SparkSession, schema: StructType) -> DataFrame:
        """As a DataFrame in the query's own columns."""
        names = output_names(len(schema.fields))
        stored = StructType([StructField(QUERY_COLUMN, StringType())])
        for name, field in zip(names[1:], schema.fields, strict=True):
            stored.add(name, field.dataType)
        paths = []
        for entry in self.files:
            storage = self._storage(entry)
            _check_size(storage, entry)
            paths.append(storage.spark_path(entry["name"]))
        rows = (
            spark.read.schema(stored).parquet(*paths)
            if paths
            else spark.createDataFrame([], stored)
        )
        chosen = rows.where(F.col(QUERY_COLUMN) == self.query_id)
        return chosen.select(
            *(F.col(c).alias(f.name) for c, f in zip(names[1:], schema.fields, strict=True))
        )

    def table(self, names: Sequence[str]) -> pa.Table:
        """As an Arrow table in columns of these names, without Spark."""
        stored = output_names(len(names))
        parts = []
        for entry in self.files:
            rows = self._storage(entry).read_table(entry["name"], stored)
            chosen = rows.filter(pc.equal(rows.column(QUERY_COLUMN), self.query_id))
            parts.append(chosen.select(stored[1:]))
        if not parts:
            return pa.Table.from_arrays([pa.array([]) for _ in names], names=list(names))
        return pa.concat_tables(parts).rename_columns(list(names))

    def _storage(self, entry: Entry) -> Storage:
        return Storage(results_folder(self.checkpoint, entry["root"]))


def read_steadily(read: Callable[[], _Read]) -> _Read:
    """What `read` gives. A run beside us may merge files away while we read them: then it is read
    again from the list. What stays missing is damage."""
    for _ in range(_TRIES - 1):
        try:
            return read()
        except FileNotFoundError:
            continue
    try:
        return read()
    except FileNotFoundError as error:
        path = error.filename or str(error)
        raise CheckpointError(
            "DAMAGED", path=path, detail="a commit names it, but it is missing"
        ) from error


def _check_size(storage: Storage, entry: Entry) -> None:
    """Refuse a file that is not as long as it was written, before Spark reads it."""
    info = storage.info(entry["name"])
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(2, "a result file is missing", storage.path(entry["name"]))
    if info.size != entry["size"]:
        detail = f"it has {info.size} bytes, {entry['size']} were written"
        raise CheckpointError("DAMAGED", path=storage.path(entry["name"]), detail=detail)
