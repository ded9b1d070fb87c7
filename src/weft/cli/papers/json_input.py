"""What the inputs in JSON have in common: reading a file, and telling what is wrong with it.

Every bad value is told with its place: a line and column where the text is not JSON, else a path
such as `streams[0].rate`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.cli.project.problems import InvalidProject, Problem
from weft.errors import WeftError

LARGEST = 1e15
_MOST_PROBLEMS = 20


class JsonObject(dict[str, Any]):
    """An object that remembers keys which it had twice."""

    twice: tuple[str, ...] = ()


class JsonInput:
    """A file, and the errors that it gives rise to."""

    def __init__(self, path: Path, error: type[WeftError], error_class: str) -> None:
        self._path = path
        self._error = error
        self._error_class = error_class

    def object_with(self, known: Sequence[str], needed: Sequence[str]) -> JsonObject:
        """The object that the file holds, which has these keys."""
        content = self._content()
        if not isinstance(content, JsonObject):
            detail = f"an object with {', '.join(known)} is needed, not {kind_of(content)}"
            raise self.invalid([detail])
        problems = list(wrong_keys(content, known, needed))
        if problems:
            raise self.invalid(problems)
        return content

    def _content(self) -> Any:
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise self.invalid(["there is no such file"]) from None
        except IsADirectoryError:
            raise self.invalid(["this is a folder"]) from None
        except PermissionError:
            raise self.invalid(["it cannot be read"]) from None
        except UnicodeDecodeError as error:
            detail = f"this is not UTF-8 text: byte {error.start} cannot be read"
            raise self.invalid([detail]) from None
        try:
            return json.loads(text, object_pairs_hook=_object)
        except json.JSONDecodeError as error:
            problem = self._error(
                self._error_class,
                detail=f"this is not JSON: {error.msg}",
                line=error.lineno,
                column=error.colno,
            )
            raise InvalidProject([Problem.of(problem, str(self._path))]) from None
        except ValueError:
            raise self.invalid(["a whole number has too many digits"]) from None
        except RecursionError:
            raise self.invalid(["the JSON is nested too deeply"]) from None

    def invalid(self, details: Sequence[str]) -> InvalidProject:
        """An error for every detail, of the first few."""
        shown = list(details[:_MOST_PROBLEMS])
        if len(details) > _MOST_PROBLEMS:
            shown.append(f"and {len(details) - _MOST_PROBLEMS} more problems")
        return InvalidProject(
            [
                Problem.of(self._error(self._error_class, detail=detail), str(self._path))
                for detail in shown
            ]
        )


def wrong_keys(
    content: JsonObject, known: Sequence[str], needed: Sequence[str], place: str = ""
) -> Iterator[str]:
    """What is wrong with the keys of the object at a place."""
    before = f"{place}: " if place else ""
    for key in needed:
        if key not in content:
            yield f"{before}there is no '{key}'"
    for key in content:
        if key not in known:
            yield f"{before}unknown key '{key}'; keys are {', '.join(known)}"
    for key in content.twice:
        yield f"{before}'{key}' is given twice"


def number(place: str, value: Any, problems: list[str], *, positive: bool) -> float | None:
    """A finite number that is not negative; else a problem."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        problems.append(f"{place}: a number is needed, not {kind_of(value)}")
    elif isinstance(value, float) and not math.isfinite(value):
        problems.append(f"{place}: {value} is not a finite number")
    elif value < 0 or (positive and value == 0):
        problems.append(f"{place}: {value} must {'be positive' if positive else 'not be negative'}")
    elif value > LARGEST:
        shown = f"{value:g}" if isinstance(value, float) else "the number"
        problems.append(f"{place}: {shown} is too large; {LARGEST:g} is the most")
    else:
        return float(value)
    return None


def kind_of(value: Any) -> str:
    """A value as a sentence names it."""
    names: Mapping[type, str] = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "true or false",
    }
    for kind, name in names.items():
        if isinstance(value, kind):
            return name
    return "null" if value is None else f"{value}"


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    object_ = JsonObject(pairs)
    keys = [key for key, _ in pairs]
    object_.twice = tuple(sorted({key for key in keys if keys.count(key) > 1}))
    return object_
