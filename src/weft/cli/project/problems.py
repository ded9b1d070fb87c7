"""What is wrong with a project, each with its place in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.errors import ProjectError, WeftError

_LONGEST_NAME = 60


@dataclass(frozen=True, order=True)
class Problem:
    """An error at a place: `queries/hot.sql:2:8: [UNKNOWN_COLUMN] query 'hot': …`."""

    file: str
    line: int | None
    column: int | None
    error_class: str
    message: str
    query: str | None = None

    @classmethod
    def of(cls, error: WeftError, file: str, lines_above: int = 0) -> Problem:
        """An error in a statement that stands below some lines of its file."""
        line = None if error.line is None else error.line + lines_above
        return cls(file, line, error.column, error.error_class, error.message, error.query)

    def __str__(self) -> str:
        place = self.file
        if self.line is not None:
            place += f":{self.line}:{self.column or 1}"
        query = f"query '{_short(self.query)}': " if self.query else ""
        return f"{place}: [{self.error_class}] {query}{self.message}"

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "class": self.error_class,
            "query": self.query,
            "message": self.message,
        }


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


class InvalidProject(ProjectError):
    """A project with problems; each is told on a line of its own."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.file, p.line or 0, p.column or 0)))
        super().__init__("PROJECT", detail=str(self))

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)
