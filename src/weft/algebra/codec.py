"""JSON for the frozen dataclasses of the algebra: `{"is": name, field: value, …}`.

A class is written under a name that `register` gave it, never under its Python name: a class can
be renamed or moved and old files are still read. `weft.algebra.stored` holds all these names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from weft.errors import CheckpointError

_MAPPING, _FLOAT = "dict", "float"

_class_by_name: dict[str, type] = {}
_name_by_class: dict[type, str] = {}


def register(name: str, cls: type) -> None:
    """Write a frozen dataclass under a name from now on. Names are never given twice."""
    if not is_dataclass(cls):
        raise TypeError(f"{cls.__qualname__} is not a dataclass, so it cannot be stored")
    if name in (_MAPPING, _FLOAT) or name in _class_by_name:
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


def _name_of(cls: type) -> str:
    name = _name_by_class.get(cls)
    if name is None:
        raise TypeError(f"{cls.__qualname__} has no name in weft.algebra.stored")
    return name


@lru_cache(maxsize=1024)
def _stored_fields(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls) if field.init)


def decode(value: Any) -> Any:
    """The algebra value that `encode` gave this form; lists become tuples."""
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if isinstance(value, dict):
        name = value["is"]
        if name == _MAPPING:
            return {decode(k): decode(v) for k, v in value["items"]}
        if name == _FLOAT:
            return float(value["value"])
        cls = _class_by_name.get(name)
        if cls is None:
            raise CheckpointError("UNKNOWN_STORED", name=name)
        return cls(**{key: decode(item) for key, item in value.items() if key != "is"})
    return value


def dumps(value: Any) -> str:
    return json.dumps(encode(value), separators=(",", ":"), sort_keys=True)


def loads(text: str | bytes) -> Any:
    return decode(json.loads(text))


def digest(value: Any, length: int = 12) -> str:
    """A short name for a value that is equal for equal values in every process."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()[:length]
