"""Reading the input of `weft tree`: JSON with tuples, queries, groups, alpha and entry_size.

Every bad value is told with its place: a line and column where the text is not JSON, else a path
such as `groups["a,b"]`. Sets may be spelled in any order; the same set twice is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from weft.cli.papers.json_input import JsonInput, JsonObject, kind_of, number
from weft.errors import TreeError
from weft.optimizer.groupby.trees.aggregate_tree import NO_ATTRIBUTES, GroupBySet, node_name
from weft.optimizer.groupby.trees.statistics import GroupStatistics

_KEYS = ("tuples", "queries", "groups", "alpha", "entry_size")
_NEEDED = ("tuples", "queries")


@dataclass(frozen=True)
class TreeInput:
    """Queries and what is known of their groups."""

    queries: tuple[GroupBySet, ...]
    statistics: GroupStatistics


def read_tree_input(path: Path) -> TreeInput:
    """The content of a file; `InvalidProject` with every problem found."""
    file = JsonInput(path, TreeError, "BAD_TREE")
    content = file.object_with(_KEYS, _NEEDED)
    problems: list[str] = []
    tuples = number("tuples", content["tuples"], problems, positive=True)
    queries = _queries(content["queries"], problems)
    attributes = frozenset[str]().union(*queries)
    groups = _sets("groups", content, attributes, problems, positive=True)
    alpha = _sets("alpha", content, attributes, problems, positive=False)
    sizes = _sets("entry_size", content, attributes, problems, positive=True)
    if not problems and tuples is not None:
        problems += _contradictions(groups, tuples)
    if problems or tuples is None:
        raise file.invalid(problems)
    return TreeInput(tuple(queries), GroupStatistics(tuples, groups, alpha, sizes))


def _queries(value: Any, problems: list[str]) -> list[GroupBySet]:
    if not isinstance(value, list):
        problems.append(f"queries: a list of lists of attributes is needed, not {kind_of(value)}")
        return []
    if not value:
        problems.append("queries: there is no query")
    queries = []
    for position, query in enumerate(value):
        place = f"queries[{position}]"
        if not isinstance(query, list):
            problems.append(f"{place}: a list of attributes is needed, not {kind_of(query)}")
            continue
        wrong = [f"{place}: {detail}" for detail in _wrong_attributes(query)]
        problems += wrong
        if not wrong:
            queries.append(frozenset(query))
    return queries


def _wrong_attributes(query: list[Any]) -> Iterator[str]:
    for attribute in query:
        if not isinstance(attribute, str):
            yield f"an attribute is a string, not {kind_of(attribute)}"
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
    value = content.get(key, JsonObject())
    if not isinstance(value, JsonObject):
        problems.append(
            f"{key}: an object from attributes to numbers is needed, not {kind_of(value)}"
        )
        return {}
    problems += [f'{key}["{name}"]: this set is given twice' for name in value.twice]
    numbers: dict[GroupBySet, float] = {}
    for name, given in value.items():
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
        checked = number(place, given, problems, positive=positive)
        if checked is not None:
            numbers[node] = checked
    return numbers


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
