"""One writer per checkpoint: a lock that ends with its process, and an epoch.

The lock (`flock`) keeps a second process out while the first one lives. It ends with its process, even
if that is killed. The epoch is written in the lease file and rises with every owner. A commit is
refused if the lease file names another epoch than the writer's.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from typing import IO

from weft.errors import CheckpointError, RunError
from weft.runtime.checkpoint.storage import Storage, to_json

_LEASE = "lease.json"


class Lease:
    """The right to write a checkpoint."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock: IO[str] | None = None
        self.epoch = 0

    def acquire(self) -> None:
        """Take the lease, or say who holds it."""
        if self._storage.local:
            with self._storage.writing("lease.lock"):
                os.makedirs(self._storage.root, exist_ok=True)
                lock = open(self._storage.path("lease.lock"), "a")  # noqa: SIM115
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock.close()
                raise RunError("ALREADY_RUNNING", owner=self._owner()) from error
            self._lock = lock
        try:
            self.epoch = self._stored_epoch() + 1
            owner = {"epoch": self.epoch, "process": os.getpid(), "host": socket.gethostname()}
            self._storage.put(_LEASE, to_json(owner))
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Refuse to go on if another owner has taken over."""
        stored = self._stored_epoch()
        if stored != self.epoch:
            raise CheckpointError("LOST_LEASE", found=stored, ours=self.epoch)

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _stored_epoch(self) -> int:
        if not self._storage.exists(_LEASE):
            return 0
        return int(self._storage.read_json(_LEASE)["epoch"])

    def _owner(self) -> str:
        try:
            owner = json.loads(self._storage.read(_LEASE))
            return f"process {owner['process']} on {owner['host']}"
        except (OSError, ValueError, KeyError):
            return "another process"
