"""One writer per checkpoint.

On a local file system a lock (`flock`) keeps a second process out while the first one lives. It ends with its
process, even if that is killed. The epoch is written in the lease file and rises with every owner. A commit is
refused if the lease file names another epoch than the writer's. In object storage the lease is an
object that its holder renews (`lease_object`).
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable
from typing import IO

from weft.errors import CheckpointError, RunError
from weft.runtime.checkpoint import objects
from weft.runtime.checkpoint.lease_object import LEASE, LeaseObject, retried
from weft.runtime.checkpoint.storage import Storage, to_json


class Lease:
    """The right to write a checkpoint."""

    def __init__(self, storage: Storage) -> None:
        self._holding: LeaseFile | LeaseObject = (
            LeaseFile(storage) if storage.objects is None else LeaseObject(storage.objects)
        )
        self._patience = 0.0 if storage.objects is None else objects.patience()

    @property
    def epoch(self) -> int:
        return self._holding.epoch

    def acquire(self) -> None:
        """Take the lease, or say who holds it."""
        self._holding.take()

    def check(self) -> None:
        """Refuse to go on if another owner has taken over."""
        retried(self._holding.check, self._patience)

    def guarded(self, put: Callable[[], None]) -> None:
        """Put something in place while the lease holds. Where storage does not answer for a while, the lease is
        checked again before the put is repeated."""

        def checked() -> None:
            self._holding.check()
            put()

        retried(checked, self._patience)

    def release(self) -> None:
        self._holding.let_go()


class LeaseFile:
    """The right to write a checkpoint in a local folder."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock: IO[str] | None = None
        self.epoch = 0

    def take(self) -> None:
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
            self._storage.put(LEASE, to_json(owner))
        except BaseException:
            self.let_go()
            raise

    def check(self) -> None:
        """Refuse to go on if another owner has taken over."""
        stored = self._stored_epoch()
        if stored != self.epoch:
            raise CheckpointError("LOST_LEASE", found=stored, ours=self.epoch)

    def let_go(self) -> None:
        """Give the lease back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _stored_epoch(self) -> int:
        if not self._storage.exists(LEASE):
            return 0
        return int(self._storage.read_json(LEASE)["epoch"])

    def _owner(self) -> str:
        try:
            owner = json.loads(self._storage.read(LEASE))
            return f"process {owner['process']} on {owner['host']}"
        except (OSError, ValueError, KeyError):
            return "another process"
