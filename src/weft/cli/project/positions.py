"""YAML that remembers where its values stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]
_MOST_NODES = 100_000


@dataclass
class Located:
    """A YAML document: its value, and line and column, from 1, of every key and item."""

    value: Any = None
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    repeated: list[Path] = field(default_factory=list)

    def place(self, path: Iterable[str | int]) -> tuple[int, int]:
        """Where a key or an item stands, or else what is around it."""
        wanted = tuple(path)
        while wanted not in self.places and wanted:
            wanted = wanted[:-1]
        return self.places.get(wanted, (1, 1))


def read_yaml(text: str) -> Located:
    """Read one document; raises `yaml.YAMLError`, also for aliases that contain themselves or
    multiply beyond measure.

    >>> read_yaml("a:\\n  b: 1\\n").place(["a", "b"])
    (2, 3)
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        located = Located()
        if node is not None:
            _Walk(located).visit(node, ())
            located.value = loader.construct_document(node)
        return located
    finally:
        loader.dispose()


class _Walk:
    """Notes where the keys and items of a document stand. An alias is walked wherever it is used."""

    def __init__(self, located: Located) -> None:
        self._located = located
        self._around: list[yaml.Node] = []
        self._visited = 0

    def visit(self, node: yaml.Node, path: Path) -> None:
        self._visited += 1
        if any(node is outer for outer in self._around):
            raise _refused("this alias contains itself", node)
        if self._visited > _MOST_NODES:
            raise _refused(f"with its aliases it has more than {_MOST_NODES:,} values", node)
        self._located.places.setdefault(path, _place(node))
        self._around.append(node)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inner = (*path, str(key.value))
                if inner in self._located.places:
                    self._located.repeated.append(inner)
                self._located.places[inner] = _place(key)
                self.visit(value, inner)
        elif isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self.visit(item, (*path, number))
        self._around.pop()


def _refused(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
