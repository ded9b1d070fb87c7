"""YAML that remembers where its values stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]


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
    """Read one document; raises `yaml.YAMLError`.

    >>> read_yaml("a:\\n  b: 1\\n").place(["a", "b"])
    (2, 3)
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        located = Located()
        if node is not None:
            _walk(node, (), located)
            located.value = loader.construct_document(node)
        return located
    finally:
        loader.dispose()


def _walk(node: yaml.Node, path: Path, located: Located) -> None:
    located.places.setdefault(path, _place(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            if inner in located.places:
                located.repeated.append(inner)
            located.places[inner] = _place(key)
            _walk(value, inner, located)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            _walk(item, (*path, number), located)


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
