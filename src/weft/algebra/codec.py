"""JSON for the frozen dataclasses of the algebra: `{"is": class name, field: value, …}`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any


@cache
def _classes() -> dict[str, type]:
    from weft.algebra import aggregate, condition, partial, plan, query, scalar, signature, window

    found: dict[str, type] = {}
    for module in (window, scalar, condition, signature, partial, aggregate, query, plan):
        for value in vars(module).values():
            if isinstance(value, type) and is_dataclass(value):
                found[value.__name__] = value
    return found


def encode(value: Any) -> Any:
    """A JSON-ready form of an algebra value."""
    if is_dataclass(value) and not isinstance(value, type):
        body = {f.name: encode(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"is": type(value).__name__, **body}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {"is": "dict", "items": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, float) and value != value:
        return {"is": "float", "value": "nan"}
    return value


def decode(value: Any) -> Any:
    """The algebra value that `encode` gave this form; lists become tuples."""
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if isinstance(value, dict):
        kind = value["is"]
        if kind == "dict":
            return {decode(k): decode(v) for k, v in value["items"]}
        if kind == "float":
            return float(value["value"])
        body = {name: decode(item) for name, item in value.items() if name != "is"}
        return _classes()[kind](**body)
    return value


def dumps(value: Any) -> str:
    return json.dumps(encode(value), separators=(",", ":"), sort_keys=True)


def loads(text: str | bytes) -> Any:
    return decode(json.loads(text))


def digest(value: Any, length: int = 12) -> str:
    """A short name for a value that is equal for equal values in every process."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()[:length]
