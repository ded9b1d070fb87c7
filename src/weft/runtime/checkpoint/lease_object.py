"""The lease of a checkpoint in object storage: an object that its holder changes now and then.

There is no lock that ends with its process. Instead the holder writes the lease anew every few seconds (a
beat), each time on the condition that nobody else has written it since. Who wants it and sees it change is
refused. Who sees it unchanged for `LASTS` seconds takes it, on the same condition, so of two only one gets it. A
holder that ended on this machine is known to have ended, and is not waited for.

A holder writes commits only within `BEAT` seconds after a beat, else it beats first; a conditional put
is given up after `PUT_SECONDS`, and one request more. These together are less than `LASTS`: so what a holder has
begun ends before another one takes over. Clocks of machines are never compared. A holder's own clock also counts
while its machine sleeps: others do not sleep, and may have taken over. Who waits counts only the time awake, in
which a holder beside it was awake, too.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from weft.errors import CheckpointError, RunError, WeftError
from weft.runtime.checkpoint.objects import Conditional

LEASE = "lease.json"
BEAT = 5.0
LASTS = 30.0
_LOOK_EVERY = 0.5

_let_go: set[str] = set()
"""Holders of this process that have ended. Storage that did not answer may not have heard of it."""


def lived_seconds() -> float:
    """Seconds on a clock that nobody sets, and that counts while the machine sleeps, where there is one."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


class LeaseObject:
    """The right to write a checkpoint in object storage."""

    def __init__(
        self,
        objects: Conditional,
        beat: float = BEAT,
        lasts: float = LASTS,
        clock: Callable[[], float] = lived_seconds,
    ) -> None:
        self._objects, self._beat_seconds, self._lasts = objects, beat, lasts
        self._clock = clock
        self._holder = uuid.uuid4().hex
        self._tag = ""
        self._beats = 0
        self._renewed = 0.0
        self._lost: int | None = None
        """The epoch of who took over."""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.epoch = 0

    def take(self) -> None:
        """Take the lease, or say who holds it."""
        stored = self._objects.get(LEASE)
        if stored is not None and not _is_free(body_of(stored[0])):
            stored = self._awaited(stored)
        before = body_of(stored[0]) if stored is not None else {"epoch": 0}
        self.epoch = int(before["epoch"]) + 1
        began = self._clock()
        try:
            tag = self._objects.put(LEASE, self._body(), stored[1] if stored is not None else None)
        except WeftError:
            _let_go.add(self._holder)  # it may have been written, though nobody holds it
            raise
        if tag is None:
            raise RunError("ALREADY_RUNNING", owner=self.owner())
        self._tag, self._renewed = tag, began
        self._thread = threading.Thread(target=self._beat_on, name="weft-lease", daemon=True)
        self._thread.start()

    def _awaited(self, stored: tuple[bytes, str]) -> tuple[bytes, str]:
        """The lease after nobody has changed it for long enough."""
        deadline = time.monotonic() + self._lasts
        while time.monotonic() < deadline:
            time.sleep(min(_LOOK_EVERY, self._lasts / 10))
            now = self._objects.get(LEASE)
            if now is None:
                raise CheckpointError("DAMAGED", path=LEASE, detail="it was deleted meanwhile")
            if _is_free(body_of(now[0])):
                return now
            if now[1] != stored[1]:
                raise RunError("ALREADY_RUNNING", owner=_owner(body_of(now[0])))
        return stored

    def check(self) -> None:
        """Refuse to go on if another owner has taken over. A lease that was not renewed lately is
        renewed now."""
        with self._lock:
            if self._ended.is_set():  # a beat now would take back what was given
                raise CheckpointError("LOST_LEASE", found=self._lost or self.epoch, ours=self.epoch)
            if self._lost is None and self._clock() - self._renewed > self._beat_seconds:
                self._renew()
            if self._lost is not None:
                raise CheckpointError("LOST_LEASE", found=self._lost, ours=self.epoch)

    def let_go(self) -> None:
        """End the beats, and say that the lease is free, if that can be said."""
        if self._thread is None:
            return
        self._ended.set()
        self._thread.join()
        self._thread = None
        _let_go.add(self._holder)
        with self._lock, suppress(WeftError):
            if self._lost is None:
                self._objects.put(LEASE, self._body(released=True), self._tag)

    def owner(self) -> str:
        """Who holds the lease."""
        stored = self._objects.get(LEASE)
        return _owner(body_of(stored[0])) if stored is not None else "another process"

    def _beat_on(self) -> None:
        while not self._ended.wait(self._beat_seconds / 2):
            with self._lock, suppress(WeftError):  # `check` says it, when it matters
                if self._lost is None:
                    self._renew()

    def _renew(self) -> None:
        self._beats += 1
        began = self._clock()
        tag = self._objects.put(LEASE, self._body(), self._tag)
        if tag is not None:
            self._tag, self._renewed = tag, began
            return
        stored = self._objects.get(LEASE)
        body = body_of(stored[0]) if stored is not None else {}
        if stored is not None and body.get("holder") == self._holder:
            self._tag = stored[1]  # a beat before arrived, though its answer did not
            self._renew()
        else:
            self._lost = int(body.get("epoch", 0))

    def _body(self, *, released: bool = False) -> bytes:
        body = {
            "epoch": self.epoch,
            "holder": self._holder,
            "beat": self._beats,
            "released": released,
            **whoami(),
        }
        return json.dumps(body, sort_keys=True).encode()


def whoami() -> dict[str, Any]:
    """What tells this process from all others."""
    process = os.getpid()
    return {
        "process": process,
        "host": socket.gethostname(),
        "machine": _machine(),
        "started": _started(process),
    }


def _is_free(body: dict[str, Any]) -> bool:
    """Whether the holder has given the lease back, or was a process of this machine that has ended."""
    if body.get("released") or body.get("holder") in _let_go:
        return True
    machine = _machine()
    if not machine or body.get("machine") != machine:
        return False
    process, started = body.get("process"), body.get("started")
    return isinstance(process, int) and bool(started) and _started(process) != started


def body_of(data: bytes) -> dict[str, Any]:
    """What a lease says."""
    try:
        body = json.loads(data)
    except ValueError as error:
        raise CheckpointError("DAMAGED", path=LEASE, detail=str(error)) from error
    if not isinstance(body, dict) or not isinstance(body.get("epoch"), int):
        raise CheckpointError("DAMAGED", path=LEASE, detail="its epoch is missing")
    return body


def _owner(body: dict[str, Any]) -> str:
    return f"process {body.get('process')} on {body.get('host')}"


def _machine() -> str:
    """This start of this machine, and the name space of its process numbers; empty if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(process: int) -> str:
    """When a process of this machine started, in ticks; empty if there is none."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def retried(work: Callable[[], None], seconds: float, pause: float = 0.5) -> None:
    """Do something again while storage does not answer, for some seconds."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return work()
        except CheckpointError as error:
            if error.error_class != "UNREACHABLE" or time.monotonic() > deadline:
                raise
        time.sleep(pause)
