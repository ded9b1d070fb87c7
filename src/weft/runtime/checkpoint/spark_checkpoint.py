"""Spark's own checkpoint of a stream, inside weft's: the planned micro-batches and their offsets."""

from __future__ import annotations

import hashlib

from pyspark.sql import SparkSession

from weft.errors import CheckpointError
from weft.runtime.checkpoint.commits import Commit, Staged
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.settings import session_settings


class SparkCheckpoint:
    """What Spark has stored about its streaming query."""

    def __init__(self, storage: Storage, folder: str, stream: str) -> None:
        self._storage, self._folder, self._stream = storage, folder, stream

    @property
    def path(self) -> str:
        """Its path, as Spark takes it."""
        return self._storage.spark_path(self._folder)

    @property
    def query(self) -> str:
        """The id of Spark's streaming query."""
        return str(self._storage.read_json(f"{self._folder}/metadata")["id"])

    def planned(self, batch: int) -> bool:
        return self._storage.exists(f"{self._folder}/offsets/{batch}")

    def offsets(self, batch: int) -> str:
        """A digest of the offsets of a planned batch; equal digests mean equal rows."""
        data = self._storage.read(f"{self._folder}/offsets/{batch}")
        return hashlib.sha256(data).hexdigest()

    def check_unused(self) -> None:
        """Refuse a checkpoint in which Spark has finished batches, if weft has none of the stream."""
        if self._batches("commits"):
            detail = f"Spark has finished batches of '{self._stream}', weft has none"
            raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
        if not self._batches("offsets"):
            # Spark refuses a checkpoint in which it was killed before its first batch.
            self._storage.delete(self._folder)

    def check(self, step: Commit | Staged) -> None:
        """Refuse a checkpoint that does not belong to the stream's last step."""
        if not self._batches("offsets"):
            detail = f"that of stream '{self._stream}' is gone, weft is at batch {step.batch}"
            raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
        self.check_query(step)

    def check_query(self, step: Commit | Staged) -> None:
        """Refuse a checkpoint of another streaming query than the one that ran the last step."""
        if step.spark_query != self.query:
            detail = "it belongs to another streaming query"
            raise CheckpointError("SPARK_CHECKPOINT", detail=detail)

    def _batches(self, kind: str) -> list[str]:
        return [name for name in self._storage.names(f"{self._folder}/{kind}") if name.isdigit()]


def check_session(step: Commit | Staged, spark: SparkSession) -> None:
    """Refuse a session whose settings would change results."""
    for setting, now in session_settings(spark).items():
        before = step.settings[setting]
        if before != now:
            raise CheckpointError("SETTINGS_CHANGED", setting=setting, found=before, now=now)
