"""What a fallback has written: one commit per micro-batch, put in place atomically.

A commit names the result files of its batch. Now and then a commit is a base: it lists all
files before it as well, small ones merged and expired ones gone, so that older commits can go.
Files that a base replaced are deleted with the base after it, so that a reader can finish.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from weft.errors import CheckpointError
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage, to_json
from weft.runtime.sinks.store import results_folder

FORMAT = 1
FOLDER = "fallback"


@dataclass(frozen=True)
class BatchCommit:
    """A finished micro-batch of a fallback."""

    batch: int
    previous: int | None
    """The batch of the commit before, None for the first."""
    spark_query: str
    offsets: str
    """A digest of the batch's offsets in Spark's checkpoint."""
    results: tuple[Entry, ...]
    since_base: int = 0
    """How many commits stand between this one and the base before it."""
    base: tuple[Entry, ...] | None = None
    """All files of earlier batches, if this commit is a base."""
    gone: tuple[Entry, ...] = ()
    """Files that the base replaced or that have expired."""
    format: int = FORMAT


class FallbackLog:
    """The commits of one fallback, and the folders that are its own."""

    def __init__(self, storage: Storage, query_id: str) -> None:
        self.storage, self.query_id = storage, query_id
        self.folder = f"{FOLDER}/{folder_name(query_id)}"

    @property
    def spark_folder(self) -> str:
        """Spark's checkpoint of the query."""
        return f"{self.folder}/spark"

    def results_folder(self, owner: str) -> str:
        """The folder of its result files inside a store, which several checkpoints may share."""
        return f"{FOLDER}/{owner}~{folder_name(self.query_id)}"

    def schema(self) -> dict[str, Any] | None:
        """The result's columns as Spark writes a schema down; None before the first start."""
        path = f"{self.folder}/schema.json"
        return dict(self.storage.read_json(path)) if self.storage.exists(path) else None

    def put_schema(self, schema: dict[str, Any]) -> None:
        if self.schema() != schema:
            self.storage.put(f"{self.folder}/schema.json", to_json(schema))

    def last(self) -> BatchCommit | None:
        """The last commit, None before the first."""
        names = self._names()
        return self._read(names[-1]) if names else None

    def put(self, commit: BatchCommit) -> None:
        """Put a commit in place; refused if its batch is committed already."""
        path = f"{self.folder}/commits/{_name(commit.batch)}"
        if not self.storage.put_new(path, to_json(asdict(commit))):
            raise CheckpointError(
                "SPARK_CHECKPOINT",
                detail=f"batch {commit.batch} of '{self.query_id}' is committed already",
            )

    def result_files(self) -> list[Entry]:
        """All committed result files, oldest first."""
        later: list[Entry] = []
        commit = self.last()
        while commit is not None:
            later = [*commit.results, *later]
            if commit.base is not None:
                return [*commit.base, *later]
            commit = self._before(commit)
        return later

    def _before(self, commit: BatchCommit) -> BatchCommit | None:
        return None if commit.previous is None else self._read(_name(commit.previous))

    def waiting_files(self) -> list[Entry]:
        """Files that were replaced or have expired, and wait to be deleted."""
        return [entry for name in self._names() for entry in self._read(name).gone]

    def prune(self) -> None:
        """Delete the commits before the last base, and the files that they replaced."""
        last = self.last()
        if last is None or last.base is None:
            return
        for name in self._names():
            if name < _name(last.batch):
                self.delete_files(self._read(name).gone)
                self.storage.delete(f"{self.folder}/commits/{name}")

    def delete_files(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            Storage(results_folder(self.storage, entry["root"])).delete(entry["name"])

    def _names(self) -> list[str]:
        names = self.storage.names(f"{self.folder}/commits")
        return [name for name in names if name.endswith(".json") and name[0] != "."]

    def _read(self, name: str) -> BatchCommit:
        path = f"{self.folder}/commits/{name}"
        try:
            body = self.storage.read_json(path)
        except FileNotFoundError as error:
            if self._names()[:1] > [name]:
                raise  # it was pruned while we read: the caller reads again
            raise CheckpointError("DAMAGED", path=path, detail="it is missing") from error
        format_ = body.get("format") if isinstance(body, dict) else None
        if not isinstance(format_, int):
            raise CheckpointError("DAMAGED", path=path, detail="it has no format number")
        if format_ > FORMAT:
            raise CheckpointError("NEWER_FORMAT", path=path, found=format_, known=FORMAT)
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in body.items()
        }
        try:
            return BatchCommit(**fields)
        except TypeError as error:
            raise CheckpointError("DAMAGED", path=path, detail=str(error)) from error


def _name(batch: int) -> str:
    """The name of a commit; names sort as their batches."""
    return f"{batch:012d}.json"


def folder_name(query_id: str) -> str:
    """A query's id as part of a path.

    >>> folder_name("hot@7")
    'hot-7'
    """
    return query_id.replace("@", "-")


def remove_dropped(
    storage: Storage, live: set[str], last_change: int, owner: str, roots: set[str]
) -> None:
    """Delete the checkpoints and results of fallbacks that were dropped.

    Only of registrations that the catalog has given (up to `last_change`): from a catalog that
    was lost nothing follows. `roots` are stores in use; what a fallback has written elsewhere is
    named by its own commits.
    """
    kept = {folder_name(query_id) for query_id in live}
    for name in storage.names(FOLDER):
        query, _, change = name.rpartition("-")
        if name in kept or not change.isdigit() or int(change) > last_change:
            continue
        remove_fallback(storage, f"{query}@{change}", owner, roots)


def remove_fallback(storage: Storage, query_id: str, owner: str, roots: set[str]) -> None:
    """Delete all that a fallback has left, its results first: if that fails, its commits still
    say where they are."""
    log = FallbackLog(storage, query_id)
    named = {entry["root"] for entry in [*log.result_files(), *log.waiting_files()]}
    for root in {"", *named, *roots}:
        Storage(results_folder(storage, root)).delete(log.results_folder(owner))
    storage.delete(log.folder)
