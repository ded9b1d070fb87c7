"""A mapping that nobody can change: what an immutable value holds instead of a dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMapping(Mapping[K, V]):
    """A copy of a mapping, without any way to change it; hashes and pickles as a value does.

    >>> frozen = FrozenMapping({"a": 1})
    >>> frozen["a"], frozen == {"a": 1}, hash(frozen) == hash(FrozenMapping(frozen))
    (1, True, True)
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._items = dict(items)

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)
