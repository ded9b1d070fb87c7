"""What immutable values need: a mapping that nobody can change, and hashes that are computed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_HASH: Final = "_hash"


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


def hashed_once(cls: type[T]) -> type[T]:
    """A frozen dataclass without slots whose instances keep their hash: a value that holds a tree of
    values is hashed through the whole tree else, each time that it is looked up. Texts hash differently
    in every process, so the hash does not travel with a pickled value.

    >>> from dataclasses import dataclass
    >>> @hashed_once
    ... @dataclass(frozen=True)
    ... class Pair:
    ...     one: str
    ...     other: str
    >>> hash(Pair("a", "b")) == hash(Pair("a", "b"))
    True
    """
    hash_of_fields = cls.__hash__
    names = tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    def stored_hash(self: Any) -> int:
        kept: dict[str, Any] = self.__dict__
        value = kept.get(_HASH)
        if value is None:
            value = kept[_HASH] = hash_of_fields(self)
        return int(value)

    def fields_alone(self: Any) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    cls.__hash__ = stored_hash  # type: ignore[method-assign]
    cls.__getstate__ = fields_alone  # type: ignore[method-assign]
    return cls
