"""weft: thousands of continuous queries on one Spark stream for about the price of one."""

from weft import sinks
from weft.errors import (
    CatalogError,
    CheckpointError,
    ProjectError,
    RunError,
    SqlError,
    WeftError,
)
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
