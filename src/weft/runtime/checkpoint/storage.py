"""Files of a checkpoint: written whole or not at all.

Names are relative to the root, with '/' between parts. `put_new` puts a file in place atomically, and only
if it does not exist yet: by a link on a local file system, by a conditional put in object storage
(`objects`). Other file systems of `pyarrow.fs` cannot do that: they may hold results, but no checkpoint.
"""

from __future__ import annotations

import json
import os
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from weft.errors import CheckpointError
from weft.runtime.checkpoint import objects
from weft.runtime.checkpoint.objects import Conditional

_CHUNK = 1 << 20
_MOST_FOLDERS = 10_000


class Storage:
    """A folder, local or remote."""

    def __init__(self, root: str | Path) -> None:
        text = str(root)
        scheme = urlparse(text).scheme if "://" in text else "file"
        self.local = scheme == "file"
        self.objects: Conditional | None = None
        """Conditional puts, if this is object storage."""
        if scheme in objects.SCHEMES:
            place = objects.address(text)
            self.filesystem, self.root, self.uri = objects.filesystem(place), place.path, place.uri
            self.objects = Conditional(place)
        elif not self.local:
            self.filesystem, self.root = fs.FileSystem.from_uri(text)
            self.uri = text.rstrip("/")
        else:
            path = os.path.abspath(urlparse(text).path if "://" in text else text)
            self.filesystem, self.root = fs.LocalFileSystem(), path
            self.uri = path
        self._durable: set[str] = set()
        """Folders whose own names are on disk, and those of all folders above them."""

    def path(self, name: str) -> str:
        """The file's path as `pyarrow.fs` takes it."""
        return f"{self.root}/{name}"

    def spark_path(self, name: str) -> str:
        """The file's path as Spark takes it."""
        if self.local:
            return f"file://{self.root}/{name}"
        if self.objects is not None:
            return f"s3a://{self.root}/{name}"  # Hadoop's connector goes by this name
        return f"{self.uri}/{name}"

    def exists(self, name: str) -> bool:
        return bool(self.info(name).type != fs.FileType.NotFound)

    def info(self, name: str) -> fs.FileInfo:
        """What kind of file it is, and its size."""
        with self.reached(name):
            return self.filesystem.get_file_info(self.path(name))

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        return int(self.info(name).size or 0)

    def names(self, folder: str) -> list[str]:
        """The sorted names of the files in a folder; empty if the folder does not exist."""
        selector = fs.FileSelector(self.path(folder), allow_not_found=True)
        try:
            with self.reached(folder):
                infos = self.filesystem.get_file_info(selector)
        except FileNotFoundError:  # Arrow raises if the folder is made while it looks
            return []
        return sorted(info.base_name for info in infos)

    def read(self, name: str) -> bytes:
        with (
            self.reached(name),
            self.filesystem.open_input_stream(self.path(name)) as stream,
        ):
            return bytes(stream.read())

    @contextmanager
    def reached(self, name: str) -> Iterator[None]:
        """Turns a request that object storage does not answer, or refuses, into weft's error."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            if self.objects is None:
                raise
            raise objects.unreachable(f"{self.uri}/{name}", error) from error

    def read_json(self, name: str) -> Any:
        try:
            return json.loads(self.read(name))
        except (ValueError, UnicodeDecodeError) as error:
            raise CheckpointError("DAMAGED", path=name, detail=str(error)) from error

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Turns the failures of a write, such as a full disk or missing rights, into weft's errors."""
        try:
            with self.reached(name):
                yield
        except OSError as error:
            detail = error.strerror or str(error)
            raise CheckpointError("CANNOT_WRITE", path=self.path(name), detail=detail) from error

    def put(self, name: str, data: bytes) -> None:
        """Write a file in one piece, replacing what was there."""
        with self.writing(name):
            self.make_parent(name)
            if not self.local:
                with self.filesystem.open_output_stream(self.path(name)) as stream:
                    stream.write(data)
                return
            temporary = self._write_temporary(name, data)
            os.replace(temporary, self.path(name))
            self._sync_parent(name)

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a file in one piece if it does not exist; whether it was written."""
        if self.objects is not None:
            return self.objects.put(name, data, tag=None) is not None
        if not self.local:
            raise CheckpointError("NO_CONDITIONAL_PUT", path=self.uri)
        with self.writing(name):
            self.make_parent(name)
            temporary = self._write_temporary(name, data)
            try:
                os.link(temporary, self.path(name))
            except FileExistsError:
                return False
            finally:
                os.unlink(temporary)
            self._sync_parent(name)
        return True

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with its contents, if it exists."""
        info = self.info(name)
        with self.reached(name):
            if info.type == fs.FileType.Directory:
                self.filesystem.delete_dir(self.path(name))
            elif info.type == fs.FileType.File:
                self.filesystem.delete_file(self.path(name))

    def describe(self, name: str) -> dict[str, Any]:
        """Size and checksum of a file, read in pieces."""
        size = checksum = 0
        with (
            self.reached(name),
            self.filesystem.open_input_stream(self.path(name)) as stream,
        ):
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                checksum = zlib.crc32(chunk, checksum)
        return {"name": name, "size": size, "checksum": checksum}

    def settled(self, name: str) -> dict[str, Any]:
        """Make a file that another program wrote durable; its size and checksum."""
        if self.local:
            self._sync(self.path(name))
        return self.describe(name)

    def settle_folder(self, folder: str) -> None:
        """Make the names in a folder, and its own name, durable."""
        if self.local:
            self._sync(self.path(folder))
            self._sync_parent(folder)

    def verify(self, entry: dict[str, Any]) -> None:
        """Refuse a file that is not the one a manifest names."""
        name = entry["name"]
        if not self.exists(name):
            raise CheckpointError("DAMAGED", path=name, detail="the file is missing")
        actual = self.describe(name)
        if actual["size"] != entry["size"] or actual["checksum"] != entry["checksum"]:
            raise CheckpointError("DAMAGED", path=name, detail="its checksum differs")

    def read_table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        with self.reading(name) as file:
            return file.read(columns=columns)

    def read_coded(
        self, name: str, coded: Callable[[str], bool], columns: list[str] | None = None
    ) -> pa.Table:
        """The same, with some columns, if they are strings, as dictionaries: those of the file, where it has them."""
        with self.reading(name) as file:
            schema, metadata = file.schema_arrow, file.metadata
        strings = [f.name for f in schema if pa.types.is_string(f.type) and coded(f.name)]
        with self.reading(name, metadata=metadata, read_dictionary=strings) as file:
            return file.read(columns=columns)

    @contextmanager
    def reading(self, name: str, **options: Any) -> Iterator[pq.ParquetFile]:
        """A Parquet file to be read in pieces. One that cannot be read is damaged."""
        try:
            with pq.ParquetFile(self.path(name), filesystem=self.filesystem, **options) as file:
                yield file
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and objects.is_unanswered(error):
                raise objects.unreachable(f"{self.uri}/{name}", error) from error
            detail = str(error).split("\n", 1)[0]
            raise CheckpointError("DAMAGED", path=self.path(name), detail=detail) from error

    def write_table(self, name: str, table: pa.Table) -> dict[str, Any]:
        """Write a Parquet file and describe it."""
        file = TableFile(self, name, table.schema)
        file.add(table)
        return file.close()

    def make_parent(self, name: str) -> None:
        """Create the folder of a file. Object storage has none."""
        if self.objects is not None:
            return
        parent = self.path(name).rsplit("/", 1)[0]
        self.filesystem.create_dir(parent, recursive=True)

    def _write_temporary(self, name: str, data: bytes) -> str:
        folder, _, base = self.path(name).rpartition("/")
        temporary = f"{folder}/.{base}.{uuid.uuid4().hex}"
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        return temporary

    def _sync_parent(self, name: str) -> None:
        """Make the names in a file's folder durable, and those of the folders above it that are new."""
        folder = os.path.dirname(self.path(name))
        self._sync(folder)
        if len(self._durable) > _MOST_FOLDERS:
            self._durable.clear()
        while folder not in self._durable and len(folder) >= len(self.root):
            self._durable.add(folder)
            folder = os.path.dirname(folder)
            self._sync(folder)

    @staticmethod
    def _sync(path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class TableFile:
    """A Parquet file that is written in pieces. Readers see plain types, even for columns that are
    dictionaries in memory. Numbers of eight bytes are mostly all different: they are written without a
    dictionary, which halves the time."""

    def __init__(self, storage: Storage, name: str, schema: pa.Schema) -> None:
        self._storage, self.name, self.schema = storage, name, schema
        self.rows = 0
        with storage.writing(name):
            storage.make_parent(name)
            self._writer = pq.ParquetWriter(
                storage.path(name),
                schema,
                filesystem=storage.filesystem,
                compression="snappy",
                use_dictionary=[f.name for f in schema if f.type not in (pa.int64(), pa.float64())],
                store_schema=False,
            )

    def add(self, table: pa.Table, group_rows: int | None = None) -> None:
        """Add rows. `group_rows`: how many of them at most have statistics of their own."""
        with self._storage.writing(self.name):
            self._writer.write_table(table, row_group_size=group_rows)
        self.rows += table.num_rows

    def close(self) -> dict[str, Any]:
        """Make the file durable, and describe it."""
        with self._storage.writing(self.name):
            self._writer.close()
            self._storage.settle_folder(self.name.rpartition("/")[0])
        return {**self._storage.settled(self.name), "rows": self.rows}


def to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
