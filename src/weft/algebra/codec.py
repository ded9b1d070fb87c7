"""JSON for the frozen dataclasses of the algebra: `{"is": name, field: value, …}`.

A class is written under a name that `register` gave it, never under its Python name: a class can
be renamed or moved and old files are still read. `weft.algebra.stored` holds all these names.

A value in which the same objects occur many times can be written *by parts* (`dumps_by_parts`): such an object is written
once, in a list of parts, and its other places refer to it by number. Read back, they are one object again. Many values
of one class in a row are written field by field. A hundred
thousand queries that consist of few different parts take a quarter of the text so, and what looks at parts by identity
finds them shared after a restart, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from operator import attrgetter
from typing import Any

from weft.errors import CheckpointError

_MAPPING, _FLOAT = "dict", "float"
_PARTS, _PART, _ROWS = "parts", "part", "rows"
_PLAIN = frozenset({str, int, bool, type(None)})
"""Types that JSON has; most of what a plan of many queries consists of is looked at by this alone."""
_OWN_NAMES = frozenset({_MAPPING, _FLOAT, _PARTS, _PART, _ROWS})
_FEWEST_ROWS = 8

_class_by_name: dict[str, type] = {}
_name_by_class: dict[type, str] = {}
_fields_by_class: dict[type, tuple[str, ...]] = {}
_getter_by_class: dict[type, Callable[[Any], tuple[Any, ...]]] = {}


def register(name: str, cls: type) -> None:
    """Write a frozen dataclass under a name from now on. Names are never given twice."""
    if not is_dataclass(cls):
        raise TypeError(f"{cls.__qualname__} is not a dataclass, so it cannot be stored")
    if name in _OWN_NAMES or name in _class_by_name:
        holder = _class_by_name.get(name)
        raise ValueError(
            f"{cls.__qualname__} cannot be stored as '{name}': "
            + (f"{holder.__qualname__} is" if holder else "the codec uses this name itself")
        )
    if cls in _name_by_class:
        raise ValueError(f"{cls.__qualname__} is stored as '{_name_by_class[cls]}' already")
    _class_by_name[name] = cls
    _name_by_class[cls] = name


def stored_names() -> Mapping[str, type]:
    """All names and the classes that are written under them."""
    return dict(_class_by_name)


def encode(value: Any) -> Any:
    """A JSON-ready form of an algebra value. What occurs several times in it is encoded once, and is one
    object in the form, too."""
    return _encoded(value, {})


def _encoded(value: Any, form_by_id: dict[int, Any]) -> Any:
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_encoded(item, form_by_id) for item in value]
    form = form_by_id.get(id(value))
    if form is not None:
        return form
    if is_dataclass(value) and not isinstance(value, type):
        form = {"is": _name_of(type(value))}
        for name in _stored_fields(type(value)):
            form[name] = _encoded(getattr(value, name), form_by_id)
        form_by_id[id(value)] = form
        return form
    if isinstance(value, Mapping):
        items = [[_encoded(k, form_by_id), _encoded(v, form_by_id)] for k, v in value.items()]
        return {"is": _MAPPING, "items": items}
    if isinstance(value, float) and value != value:
        return {"is": _FLOAT, "value": "nan"}
    return value


def encode_by_parts(value: Any) -> Any:
    """A JSON-ready form in which dataclasses and tuples that occur several times are written once, before those that
    refer to them.

    >>> pair = (1, 2)
    >>> encode_by_parts([pair, pair, (1, 2)])
    {'is': 'parts', 'parts': [[1, 2]], 'value': [{'is': 'part', 'n': 0}, {'is': 'part', 'n': 0}, [1, 2]]}
    """
    writer = _ByParts(_occurring_again(value))
    whole = writer.form(value)
    return {"is": _PARTS, "parts": writer.parts, "value": whole}


class _ByParts:
    """Writes values. Those objects that occur again become parts, in the order in which they are complete."""

    def __init__(self, again: set[int]) -> None:
        self._again = again
        self._reference: dict[int, Any] = {}
        self.parts: list[Any] = []

    def form(self, value: Any) -> Any:
        if isinstance(value, (str, int)) or value is None:
            return value
        reference = self._reference.get(id(value))
        if reference is not None:
            return reference
        write = self.form
        form: Any
        if isinstance(value, (list, tuple)):
            if len(value) >= _FEWEST_ROWS and self._are_rows(value):
                form = self._columns(value)
            else:
                form = [item if type(item) in _PLAIN else write(item) for item in value]
        elif isinstance(value, Mapping):
            form = {
                "is": _MAPPING,
                "items": [[write(key), write(item)] for key, item in value.items()],
            }
        elif isinstance(value, float):
            return {"is": _FLOAT, "value": "nan"} if value != value else value
        else:
            form = {"is": _name_of(type(value))}
            for name, item in zip(_stored_fields(type(value)), _values_of(value)):
                form[name] = item if type(item) in _PLAIN else write(item)
        if id(value) not in self._again:
            return form
        reference = self._reference[id(value)] = {"is": _PART, "n": len(self.parts)}
        self.parts.append(form)
        return reference

    def _are_rows(self, values: Sequence[Any]) -> bool:
        """Whether all are of one class that is stored, and none of them occurs again."""
        cls = type(values[0])
        return (
            cls in _name_by_class
            and all(type(value) is cls for value in values)
            and self._again.isdisjoint(map(id, values))
        )

    def _columns(self, values: Sequence[Any]) -> Any:
        """Many values of one class field by field: the names of the fields are written once."""
        write, cls = self.form, type(values[0])
        columns = {
            name: [item if type(item) in _PLAIN else write(item) for item in map(field, values)]
            for name, field in ((name, attrgetter(name)) for name in _stored_fields(cls))
        }
        return {"is": _ROWS, "of": _name_of(cls), "columns": columns}


def _occurring_again(value: Any) -> set[int]:
    """The identities of the dataclasses and of the tuples with something in them that occur more than once."""
    seen: set[int] = set()
    again: set[int] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, (str, int, float)) or item is None:
            continue
        if id(item) in seen:
            again.add(id(item))
            continue
        inner: Iterable[Any]
        if isinstance(item, Mapping):
            inner = chain(item.keys(), item.values())
        elif isinstance(item, (list, tuple)):
            if not item:
                continue
            seen.add(id(item))
            inner = item
        else:
            seen.add(id(item))
            inner = _values_of(item)
        waiting += [value for value in inner if type(value) not in _PLAIN]
    return again


def _name_of(cls: type) -> str:
    name = _name_by_class.get(cls)
    if name is None:
        raise TypeError(f"{cls.__qualname__} has no name in weft.algebra.stored")
    return name


def _stored_fields(cls: type) -> tuple[str, ...]:
    names = _fields_by_class.get(cls)
    if names is None:
        _name_of(cls)
        names = tuple(field.name for field in fields(cls) if field.init)
        _fields_by_class[cls] = names
    return names


def _values_of(value: Any) -> tuple[Any, ...]:
    """The values of the stored fields, in their order."""
    cls = type(value)
    getter = _getter_by_class.get(cls)
    if getter is None:
        names = _stored_fields(cls)
        # attrgetter gives a tuple only for several names
        getter = (
            attrgetter(*names) if len(names) > 1 else lambda v: tuple(getattr(v, n) for n in names)
        )
        _getter_by_class[cls] = getter
    return getter(value)


def decode(value: Any) -> Any:
    """The algebra value that `encode` or `encode_by_parts` gave this form; lists become tuples."""
    parts: list[Any] = []
    if isinstance(value, dict) and value.get("is") == _PARTS:
        for part in value["parts"]:
            parts.append(_decoded(part, parts))
        value = value["value"]
    return _decoded(value, parts)


def _decoded(value: Any, parts: list[Any]) -> Any:
    if isinstance(value, list):
        return tuple([item if type(item) in _PLAIN else _decoded(item, parts) for item in value])
    if isinstance(value, dict):
        name = value["is"]
        if name == _PART:
            return parts[value["n"]]
        if name == _MAPPING:
            return {_decoded(k, parts): _decoded(v, parts) for k, v in value["items"]}
        if name == _FLOAT:
            return float(value["value"])
        if name == _ROWS:
            return _decoded_rows(value, parts)
        cls = _class_of(name)
        return cls(
            **{
                key: item if type(item) in _PLAIN else _decoded(item, parts)
                for key, item in value.items()
                if key != "is"
            }
        )
    return value


def _decoded_rows(value: Any, parts: list[Any]) -> tuple[Any, ...]:
    cls, names = _class_of(value["of"]), tuple(value["columns"])
    columns = [_decoded(column, parts) for column in value["columns"].values()]
    return tuple([cls(**dict(zip(names, row))) for row in zip(*columns, strict=True)])


def _class_of(name: str) -> type:
    cls = _class_by_name.get(name)
    if cls is None:
        raise CheckpointError("UNKNOWN_STORED", name=name)
    return cls


def dumps(value: Any) -> str:
    return json.dumps(encode(value), separators=(",", ":"), sort_keys=True)


def dumps_by_parts(value: Any) -> str:
    """Text in which the same object is written once. `loads` reads it, and `digest` does not know it."""
    return json.dumps(encode_by_parts(value), separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    return decode(json.loads(text))


def digest(value: Any, length: int = 12) -> str:
    """A short name for a value that is equal for equal values in every process."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()[:length]
