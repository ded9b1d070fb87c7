"""What the parts of a run cost on this machine: the constants of weft's own cost model.

`weft bench calibrate` measures them and keeps them in a file of the user's, which later plans read;
without it they are those of the machine in docs/benchmarks.md. They only choose between plans with
equal results, so a wrong constant costs time, never a row.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds for one row at level 1, one fragment of one key at level 2, one that level 3 scans,
    and one result."""

    row: float = 1.5e-7
    coalesce: float = 4.0e-7
    scan: float = 6.0e-8
    result: float = 1.5e-7

    def __post_init__(self) -> None:
        for cost in (self.row, self.coalesce, self.scan, self.result):
            if not 0 < cost < math.inf:
                raise ValueError(f"a cost must be positive: {self}")


def calibration_file() -> Path:
    """`WEFT_CALIBRATION`, or a file in the user's cache folder."""
    chosen = os.environ.get("WEFT_CALIBRATION")
    if chosen:
        return Path(chosen)
    cache_folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache_folder) / "weft" / "calibration.json"


def save(constants: Constants) -> Path:
    """Keep measured constants for later plans."""
    path = calibration_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(constants), indent=2) + "\n", encoding="utf-8")
    calibrated.cache_clear()
    return path


@cache
def calibrated() -> Constants:
    """The measured constants, or the defaults where there are none or the file makes no sense."""
    try:
        stored = json.loads(calibration_file().read_text(encoding="utf-8"))
        return Constants(**{field.name: float(stored[field.name]) for field in fields(Constants)})
    except (OSError, ValueError, KeyError, TypeError):
        return Constants()
