"""What the shell offers after TAB: project folders and names of queries.

A project is only looked at, not parsed or checked: TAB must answer at once, and an offer too many or
too few does no harm.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

_NAMED = re.compile(r"^\s*--\s*name:\s*(?P<name>\S+)\s*$", re.MULTILINE)


def project_folders(incomplete: str) -> list[str]:
    """Folders that hold a `weft.yaml`, and those on the way to one."""
    parent = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    before = incomplete.rpartition("/")[0] + "/" if "/" in incomplete else ""
    try:
        inside = sorted(entry for entry in parent.iterdir() if entry.is_dir())
    except OSError:
        return []
    offered = []
    for folder in inside:
        text = f"{before}{folder.name}"
        if text.startswith(incomplete) and not folder.name.startswith("."):
            offered.append(text if (folder / "weft.yaml").is_file() else f"{text}/")
    return offered


def query_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The queries in the files of the project that the command names before."""
    # While the value of an option is being typed, the arguments before it are not parsed yet.
    folder = ctx.params.get("folder") or next(iter(ctx.args), None)
    if folder is None:
        return []
    return [name for name in _names(Path(str(folder)) / "queries") if name.startswith(incomplete)]


def _names(queries: Path) -> list[str]:
    names: set[str] = set()
    for path in queries.glob("*.sql"):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        named = [match["name"] for match in _NAMED.finditer(text)]
        names.update(named or [path.stem])
    return sorted(names)


Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A project folder.", autocompletion=project_folders)
]
"""The argument DIR of a command."""
