"""One folder for all temporary files of a run of the tests: in memory where there is room.

Every step of weft waits for the disk (fsync); in memory it does not. The folder is the temporary
folder of this process and of all that it starts (TMPDIR). It goes with the run, unless a test
failed: then what pytest keeps of it stays for a look, until the next run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
NEEDED_BYTES = 1 << 30
_PREFIX = "weft-tests-"


def parent(memory: Path = MEMORY, needed: int = NEEDED_BYTES) -> Path:
    """Where temporary folders go: into memory, or else where they always go."""
    if memory.is_dir() and os.access(memory, os.W_OK | os.X_OK):
        if shutil.disk_usage(memory).free >= needed:
            return memory
    return Path(tempfile.gettempdir())


def make(folder: Path) -> Path:
    """A new folder for this process, inside `folder`; those of processes that ended go."""
    for other in folder.glob(f"{_PREFIX}*-*"):
        if not _is_alive(other.name.split("-")[2]):
            shutil.rmtree(other, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=folder))


def use(folder: Path) -> None:
    """Make a folder the temporary one, here and in processes that are started from here."""
    os.environ["TMPDIR"] = os.environ["SPARK_LOCAL_DIRS"] = str(folder)
    tempfile.tempdir = str(folder)


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
