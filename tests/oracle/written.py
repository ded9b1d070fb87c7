"""Queries and rows as JSON text, and back: queries as the data that they are, values with their types.

>>> from .expressions import Aggregate
>>> from .spec import Item, Query, Window
>>> query = Query(Window(10_000), (Item(Aggregate("count"), "n"),))
>>> loads(dumps(query)) == query
True
>>> loads(dumps((1, 1.0, Decimal("1.00"), date(2024, 2, 29), None, float("inf"))))
(1, 1.0, Decimal('1.00'), datetime.date(2024, 2, 29), None, inf)
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from . import expressions, sparktypes, spec

_KIND = "is"
_CLASSES = {
    name: kind
    for module in (expressions, spec, sparktypes)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind)
}


def dumps(value: Any) -> str:
    """One line of text; equal values have the same."""
    return json.dumps(_encoded(value), ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> Any:
    """What the text stands for."""
    return _decoded(json.loads(text))


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return {_KIND: "tuple", "of": [_encoded(item) for item in value]}
    if isinstance(value, Decimal | date):
        return {_KIND: type(value).__name__, "of": str(value)}
    if is_dataclass(value):
        given = {field.name: getattr(value, field.name) for field in fields(value)}
        usual = {field.name: field.default for field in fields(value)}
        told = {
            name: _encoded(item)
            for name, item in given.items()
            if usual[name] is MISSING or usual[name] != item
        }
        return {_KIND: type(value).__name__, **told}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    if isinstance(value, dict):
        return {name: _encoded(item) for name, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no written form")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_KIND)
    if kind is None:
        return {name: _decoded(item) for name, item in value.items()}
    if kind == "tuple":
        return tuple(_decoded(item) for item in value["of"])
    if kind == "Decimal":
        return Decimal(value["of"])
    if kind == "date":
        return date.fromisoformat(value["of"])
    told = {name: _decoded(item) for name, item in value.items() if name != _KIND}
    return _CLASSES[kind](**told)
