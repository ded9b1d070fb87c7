"""Scratch folders of a benchmark run."""

from __future__ import annotations

import shutil
from pathlib import Path


def fresh(folder: Path) -> Path:
    """The folder, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
