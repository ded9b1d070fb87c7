"""Columns of several relations: `slot.column`, where a slot is the place of a relation in a join.

The inputs of a query are its slots in the order of FROM. The slots of a join node are those of its left
parent, then those of its right parent. These are ARGUS' standard table aliases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from weft.algebra.scalar import Call, Literal, Opaque, Ref, Scalar, quote, walk

QUOTED: Final = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?P<name>(?:[^`]|``)*)`""", re.DOTALL
)
"""A string or a quoted name in Spark SQL text."""
Rename = Callable[[str], str]
"""Gives a column another name. No two columns may get the same one."""


def column_name(slot: int, column: str) -> str:
    """The name of a relation's column in a scope of several relations.

    >>> column_name(1, "amount")
    '1.amount'
    """
    return f"{slot}.{column}"


def slot_of(name: str) -> int:
    """The slot that a column's name begins with.

    >>> slot_of("12.amount")
    12
    """
    return int(name.split(".", 1)[0])


def plain_name(name: str) -> str:
    """A column's name within its relation.

    >>> plain_name("1.user.id")
    'user.id'
    """
    return name.split(".", 1)[1]


def names_in(scalar: Scalar) -> frozenset[str]:
    """The columns that an expression reads."""
    names: set[str] = set()
    for node in walk(scalar):
        if isinstance(node, Ref):
            names.add(node.name)
        elif isinstance(node, Opaque):
            names.update(node.names)
    return frozenset(names)


def slots_in(scalar: Scalar) -> frozenset[int]:
    """The slots whose columns an expression reads."""
    return frozenset(slot_of(name) for name in names_in(scalar))


def moved_name(name: str, slots: Mapping[int, int]) -> str:
    """The column's name after its slot has moved.

    >>> moved_name("0.amount", {0: 2})
    '2.amount'
    """
    return column_name(slots[slot_of(name)], plain_name(name))


def moved(scalar: Scalar, slots: Mapping[int, int]) -> Scalar:
    """The same expression after its slots have moved. No two slots may move to the same one."""
    return renamed_by(scalar, lambda name: moved_name(name, slots))


def renamed_by(scalar: Scalar, rename: Rename) -> Scalar:
    """The same expression over columns that a function names."""
    if isinstance(scalar, Literal):
        return scalar
    return renamed(scalar, {name: rename(name) for name in names_in(scalar)})


def renamed(scalar: Scalar, names: Mapping[str, str]) -> Scalar:
    """The same expression over columns of other names. Spark SQL text names columns in back quotes.

    >>> renamed(Opaque("concat(`0.a`, '`0.a`')", ("0.a",), "string"), {"0.a": "1.a"}).sql
    "concat(`1.a`, '`0.a`')"
    """
    if isinstance(scalar, Ref):
        return Ref(names[scalar.name], scalar.type)
    if isinstance(scalar, Call):
        arguments = tuple(renamed(argument, names) for argument in scalar.arguments)
        return Call(scalar.operator, arguments, scalar.type)
    if isinstance(scalar, Opaque):

        def replaced(match: re.Match[str]) -> str:
            name = (match["name"] or "").replace("``", "`")
            return quote(names[name]) if name in scalar.names else match[0]

        sql = QUOTED.sub(replaced, scalar.sql)
        return Opaque(sql, tuple(sorted(names[name] for name in scalar.names)), scalar.type)
    return scalar
