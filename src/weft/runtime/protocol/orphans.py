"""Files that nothing names: what an attempt at a step left behind, and folders that became empty."""

from __future__ import annotations

from weft.runtime.checkpoint.commits import Commit
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.protocol.step import StepWork

_OF_STEPS = ("state", "published", "pending", "handoff", "buckets")
"""Folders in which every name begins with the name of its step."""


def remove_attempts(log: StreamLog, work: StepWork) -> None:
    """Delete what earlier attempts at a step wrote, except the files that the step goes on with."""
    kept = tuple(entry["name"] for entry in (*work.files, *work.published))
    for kind in _OF_STEPS:
        folder = log.folder(kind)
        for name in log.storage.names(folder):
            path = f"{folder}/{name}"
            in_use = any(file.startswith(path) for file in kept)
            if name.startswith(f"{work.name}-") and not in_use:
                log.storage.delete(path)


def remove_old_folders(log: StreamLog, commit: Commit) -> None:
    """Delete the folders of earlier steps in which the commit names no file, and what lost tasks of these steps have handed
    to nobody."""
    live = [entry["name"] for entries in commit.live.values() for entry in entries]
    for kind in ("state", "buckets", "handoff"):
        folder = log.folder(kind)
        used = {name.removeprefix(f"{folder}/").split("/")[0] for name in live}
        for name in log.storage.names(folder):
            if name not in used and name < f"{commit.batch:012d}":
                log.storage.delete(f"{folder}/{name}")
