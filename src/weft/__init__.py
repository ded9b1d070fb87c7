"""weft: thousands of continuous queries on one Spark stream for about the price of one.

What needs Spark's packages is imported when it is first used: `weft --help` and the completion of
a word in the shell do not wait for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.errors import (
    CatalogError,
    CheckpointError,
    ProjectError,
    RunError,
    SqlError,
    WeftError,
)

if TYPE_CHECKING:
    from weft import sinks
    from weft.runtime.api.handle import QueryHandle
    from weft.runtime.api.weft import Weft
    from weft.runtime.run.run import Run

__all__ = [
    "CatalogError",
    "CheckpointError",
    "ProjectError",
    "QueryHandle",
    "Run",
    "RunError",
    "SqlError",
    "Weft",
    "WeftError",
    "sinks",
]
__version__ = "0.1.0"

_DEFINED_IN = {
    "QueryHandle": "weft.runtime.api.handle",
    "Run": "weft.runtime.run.run",
    "Weft": "weft.runtime.api.weft",
}


def __getattr__(name: str) -> Any:
    if name == "sinks":
        return import_module("weft.sinks")
    if name in _DEFINED_IN:
        return getattr(import_module(_DEFINED_IN[name]), name)
    raise AttributeError(f"module 'weft' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
