"""A Python for workers, without weft."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import weft

_PACKAGES = ("numpy", "pandas", "pyarrow", "datasketches", "dateutil", "pytz", "six", "tzdata")


def bare_python(folder: Path) -> Path:
    """A Python that has what docs/cluster.md asks for, and no weft."""
    packages = folder / "packages"
    packages.mkdir()
    installed = Path(sysconfig.get_path("purelib"))
    for entry in installed.iterdir():
        if entry.name.split(".")[0].split("-")[0] in (*_PACKAGES, "_datasketches"):
            (packages / entry.name).symlink_to(entry)
    source = Path(weft.__file__).parents[1]
    script = folder / "bare-python"
    script.write_text(
        f"""#!/bin/sh
others=$(printf %s "$PYTHONPATH" | tr : '\\n' | grep -v -x -F '{source}' | paste -s -d : -)
PYTHONPATH="$others:{packages}" exec {sys.executable} -S "$@"
"""
    )
    script.chmod(0o755)
    return script
