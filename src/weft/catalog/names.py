"""Which names streams, tables and queries may have."""

from __future__ import annotations

import re
from typing import Final

from weft.errors import CatalogError

LONGEST: Final = 128
"""Names are parts of file names, which end at 255 bytes on most file systems."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")


def check_name(name: str, kind: str) -> None:
    """Names stand in paths and result columns, so they are plain words.

    >>> check_name("h" * 300, "query")
    Traceback (most recent call last):
    weft.errors.CatalogError: [BAD_NAME] 'hhhhhhhhhhhhhhhhhhhh…' cannot be the name of a query: \
it has 300 characters, and 128 are allowed
    """
    text = str(name)
    if not _NAME.fullmatch(text):
        detail = "use letters, digits, '_', '-' and '.', beginning with a letter or '_'"
    elif len(text) > LONGEST:
        detail = f"it has {len(text)} characters, and {LONGEST} are allowed"
    else:
        return
    shown = text if len(text) <= LONGEST else f"{text[:20]}…"
    raise CatalogError("BAD_NAME", kind=kind, name=shown, detail=detail)
