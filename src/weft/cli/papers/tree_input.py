"""Reading the input of `weft tree`: JSON with tuples, queries, groups, alpha and entry_size.

Every bad value is told with its place: a line and column where the text is not JSON, else a path
such as `groups["a,b"]`. Sets may be spelled in any order; the same set twice is an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from weft.cli.project.problems import InvalidProject, Problem
from weft.errors import TreeError
from weft.optimizer.groupby.trees.aggregate_tree import NO_ATTRIBUTES, GroupBySet, node_name
from weft.optimizer.groupby.trees.statistics import GroupStatistics

_KEYS = ("tuples", "queries", "groups", "alpha", "entry_size")
_NEEDED = ("tuples", "queries")
_MOST_PROBLEMS = 20
_LARGEST = 1e15


@dataclass(frozen=True)
class TreeInput:
    """Queries and what is known of their groups."""

    queries: tuple[GroupBySet, ...]
    statistics: GroupStatistics


class _Twice(dict[str, Any]):
    """An object that remembers keys which it had twice."""

    twice: tuple[str, ...] = ()


def read_tree_input(path: Path) -> TreeInput:
    """The content of a file; `InvalidProject` with every problem found."""
    content = _content(path)
    problems: list[str] = []
    if not isinstance(content, _Twice):
        raise _invalid(path, [f"an object with {', '.join(_KEYS)} is needed, not {_kind(content)}"])
    problems += [f"there is no '{key}'" for key in _NEEDED if key not in content]
    problems += [
        f"unknown key '{key}'; keys are {', '.join(_KEYS)}" for key in content if key not in _KEYS
    ]
    problems += [f"'{key}' is given twice" for key in content.twice]
    if problems:
        raise _invalid(path, problems)
    tuples = _number("tuples", content["tuples"], problems, positive=True)
    queries = _queries(content["queries"], problems)
    attributes = frozenset[str]().union(*queries)
    groups = _sets("groups", content, attributes, problems, positive=True)
    alpha = _sets("alpha", content, attributes, problems, positive=False)
    sizes = _sets("entry_size", content, attributes, problems, positive=True)
    if not problems and tuples is not None:
        problems += _contradictions(groups, tuples)
    if problems or tuples is None:
        raise _invalid(path, problems)
    return TreeInput(tuple(queries), GroupStatistics(tuples, groups, alpha, sizes))


def _content(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise _invalid(path, ["there is no such file"]) from None
    except IsADirectoryError:
        raise _invalid(path, ["this is a folder"]) from None
    except PermissionError:
        raise _invalid(path, ["it cannot be read"]) from None
    except UnicodeDecodeError as error:
        detail = f"this is not UTF-8 text: byte {error.start} cannot be read"
        raise _invalid(path, [detail]) from None
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        problem = TreeError(
            "BAD_TREE",
            detail=f"this is not JSON: {error.msg}",
            line=error.lineno,
            column=error.colno,
        )
        raise InvalidProject([Problem.of(problem, str(path))]) from None
    except RecursionError:
        raise _invalid(path, ["the JSON is nested too deeply"]) from None


def _object(pairs: list[tuple[str, Any]]) -> _Twice:
    object_ = _Twice(pairs)
    keys = [key for key, _ in pairs]
    object_.twice = tuple(sorted({key for key in keys if keys.count(key) > 1}))
    return object_


def _queries(value: Any, problems: list[str]) -> list[GroupBySet]:
    if not isinstance(value, list):
        problems.append(f"queries: a list of lists of attributes is needed, not {_kind(value)}")
        return []
    if not value:
        problems.append("queries: there is no query")
    queries = []
    for number, query in enumerate(value):
        place = f"queries[{number}]"
        if not isinstance(query, list):
            problems.append(f"{place}: a list of attributes is needed, not {_kind(query)}")
            continue
        wrong = [f"{place}: {detail}" for detail in _wrong_attributes(query)]
        problems += wrong
        if not wrong:
            queries.append(frozenset(query))
    return queries


def _wrong_attributes(query: list[Any]) -> Iterator[str]:
    for attribute in query:
        if not isinstance(attribute, str):
            yield f"an attribute is a string, not {_kind(attribute)}"
        elif not attribute.strip() or attribute != attribute.strip():
            yield f"'{attribute}' is not an attribute: it is blank, or has blanks around it"
        elif "," in attribute or attribute == NO_ATTRIBUTES:
            yield f"'{attribute}' is not an attribute: it cannot be written in a list with commas"
    names = [attribute for attribute in query if isinstance(attribute, str)]
    for name in sorted({attribute for attribute in names if names.count(attribute) > 1}):
        yield f"attribute '{name}' is given twice"


def _sets(
    key: str,
    content: Mapping[str, Any],
    attributes: frozenset[str],
    problems: list[str],
    *,
    positive: bool,
) -> dict[GroupBySet, float]:
    """Numbers by attribute set."""
    value = content.get(key, _Twice())
    if not isinstance(value, _Twice):
        problems.append(
            f"{key}: an object from attributes to numbers is needed, not {_kind(value)}"
        )
        return {}
    problems += [f'{key}["{name}"]: this set is given twice' for name in value.twice]
    numbers: dict[GroupBySet, float] = {}
    for name, number in value.items():
        place = f'{key}["{name}"]'
        parts = [] if name in ("", NO_ATTRIBUTES) else [part.strip() for part in name.split(",")]
        node = frozenset(parts)
        unknown = sorted(node - attributes)
        if len(node) < len(parts):
            problems.append(f"{place}: an attribute is given twice")
        elif unknown:
            problems.append(f"{place}: no query has the attribute '{unknown[0]}'")
        elif node in numbers:
            problems.append(f"{place}: this set is given twice")
        checked = _number(place, number, problems, positive=positive)
        if checked is not None:
            numbers[node] = checked
    return numbers


def _number(place: str, value: Any, problems: list[str], *, positive: bool) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        problems.append(f"{place}: a number is needed, not {_kind(value)}")
    elif isinstance(value, float) and not math.isfinite(value):
        problems.append(f"{place}: {value} is not a finite number")
    elif value < 0 or (positive and value == 0):
        problems.append(f"{place}: {value} must {'be positive' if positive else 'not be negative'}")
    elif value > _LARGEST:
        problems.append(f"{place}: {value:g} is too large; {_LARGEST:g} is the most")
    else:
        return float(value)
    return None


def _contradictions(groups: Mapping[GroupBySet, float], tuples: float) -> Iterator[str]:
    for node, count in groups.items():
        if count > tuples:
            yield f'groups["{node_name(node)}"]: {count:g} groups cannot be in {tuples:g} tuples'
        if not node and count > 1:
            yield f'groups["{node_name(node)}"]: without attributes there is one group, not {count:g}'
    for one, other in combinations(groups, 2):
        for small, large in ((one, other), (other, one)):
            if small < large and groups[small] > groups[large]:
                yield (
                    f'groups["{node_name(large)}"]: {groups[large]:g} groups are fewer than the '
                    f"{groups[small]:g} of {node_name(small)}"
                )


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    for kind, name in names.items():
        if isinstance(value, kind):
            return name
    return "null" if value is None else f"{value}"


def _invalid(path: Path, details: list[str]) -> InvalidProject:
    shown = details[:_MOST_PROBLEMS]
    if len(details) > _MOST_PROBLEMS:
        shown.append(f"and {len(details) - _MOST_PROBLEMS} more problems")
    return InvalidProject(
        [Problem.of(TreeError("BAD_TREE", detail=each), str(path)) for each in shown]
    )
