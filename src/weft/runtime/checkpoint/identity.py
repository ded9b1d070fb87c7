"""A checkpoint's identity: its format and its project. It also names the lanes of the process that made it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from weft.errors import CheckpointError
from weft.runtime.checkpoint.commits import FORMAT
from weft.runtime.checkpoint.storage import Storage, to_json

FILE = "weft.json"


@dataclass(frozen=True)
class Identity:
    """What `weft.json` says, and how many lanes this process uses: files do not depend on that."""

    project: str
    lanes: int
    owner: str
    """A random name for this very checkpoint: result files begin with it."""


def open_checkpoint(storage: Storage, project: str | None, lanes: int) -> Identity:
    """The identity of a checkpoint. In an empty or absent folder, a new checkpoint is created."""
    if not storage.exists(FILE):
        other_files = [name for name in storage.names("") if not name.startswith(".")]
        # Another process may have created the checkpoint in the meantime.
        if other_files and not storage.exists(FILE):
            raise CheckpointError(
                "FOREIGN_CHECKPOINT",
                path=storage.uri,
                detail=f"it holds {other_files[0]} but no {FILE}",
            )
        new = {"format": FORMAT, "project": project or uuid.uuid4().hex, "lanes": lanes}
        new["owner"] = uuid.uuid4().hex[:8]
        storage.put_new(FILE, to_json(new))
    body = storage.read_json(FILE)
    if not isinstance(body, dict) or not {"format", "project", "lanes", "owner"} <= body.keys():
        raise CheckpointError("DAMAGED", path=FILE, detail="a field is missing")
    if not isinstance(body["format"], int):
        raise CheckpointError("DAMAGED", path=FILE, detail="its format is not a number")
    if body["format"] > FORMAT:
        raise CheckpointError("NEWER_FORMAT", path=storage.uri, found=body["format"], known=FORMAT)
    if body["format"] < FORMAT:
        raise CheckpointError("OLDER_FORMAT", path=storage.uri, found=body["format"], known=FORMAT)
    if project is not None and body["project"] != project:
        raise CheckpointError(
            "FOREIGN_CHECKPOINT",
            path=storage.uri,
            detail=f"it belongs to project '{body['project']}', not to '{project}'",
        )
    return Identity(body["project"], lanes, body["owner"])
