"""A query under its name: what a benchmark registers."""

from __future__ import annotations

from typing import Protocol


class NamedSql(Protocol):
    """Any workload's query."""

    @property
    def name(self) -> str: ...

    @property
    def sql(self) -> str: ...
