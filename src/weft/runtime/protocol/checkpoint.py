"""A checkpoint's identity: its format, its project, its number of lanes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from weft.errors import CheckpointError
from weft.runtime.protocol.commits import FORMAT
from weft.runtime.protocol.storage import Storage, to_json

_FILE = "weft.json"


@dataclass(frozen=True)
class Identity:
    """What `weft.json` says."""

    project: str
    lanes: int
    owner: str
    """A random name for this very checkpoint: result files begin with it."""


def open_checkpoint(storage: Storage, project: str | None, lanes: int) -> Identity:
    """The identity of a checkpoint, which is made if the folder is empty or absent."""
    if not storage.exists(_FILE):
        strangers = [name for name in storage.names("") if not name.startswith(".")]
        # Another process may have made the checkpoint since.
        if strangers and not storage.exists(_FILE):
            raise CheckpointError(
                "FOREIGN_CHECKPOINT",
                path=storage.uri,
                detail=f"it holds {strangers[0]} but no {_FILE}",
            )
        body = {"format": FORMAT, "project": project or uuid.uuid4().hex, "lanes": lanes}
        body["owner"] = uuid.uuid4().hex[:8]
        storage.put_new(_FILE, to_json(body))
    found = storage.read_json(_FILE)
    if not isinstance(found, dict) or not {"format", "project", "lanes", "owner"} <= found.keys():
        raise CheckpointError("DAMAGED", path=_FILE, detail="it lacks a field")
    if not isinstance(found["format"], int):
        raise CheckpointError("DAMAGED", path=_FILE, detail="its format is no number")
    if found["format"] > FORMAT:
        raise CheckpointError("NEWER_FORMAT", path=storage.uri, found=found["format"], known=FORMAT)
    if found["format"] < FORMAT:
        raise CheckpointError("OLDER_FORMAT", path=storage.uri, found=found["format"], known=FORMAT)
    if project is not None and found["project"] != project:
        raise CheckpointError(
            "FOREIGN_CHECKPOINT",
            path=storage.uri,
            detail=f"it is of project '{found['project']}', this is '{project}'",
        )
    return Identity(found["project"], found["lanes"], found["owner"])
