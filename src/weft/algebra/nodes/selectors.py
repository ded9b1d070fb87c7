"""The attributes by which a query selects rows, apart from those that a node's keys determine.

Queries with the same keys and the same selectors read the same node: its signature tells their
rows apart, and no query pays for conditions on attributes that it does not name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from weft.algebra.scalar import Expression

OTHER = "?"
"""The selector that stands for all conditions that compare no attribute with constants."""

_NAME = re.compile(r"`(?:[^`]|``)+`")
_LITERALS = re.compile(r"['\"].*['\"]", re.DOTALL)


def selectors(predicate: Expression | None, keys: tuple[Expression, ...]) -> tuple[str, ...]:
    """The attributes that a predicate names, apart from the keys and from what is computed of key
    columns alone."""
    if predicate is None:
        return ()
    if predicate.condition is None:
        return (OTHER,)
    key_names = {key.sql for key in keys}
    attributes = {
        selection.attribute
        for selection in predicate.condition.selections
        if not determined(selection.attribute, key_names)
    }
    if any(not determined(clause, key_names) for clause in predicate.condition.clauses):
        attributes.add(OTHER)
    return tuple(sorted(attributes))


def determined(sql: str, keys: Collection[str]) -> bool:
    """Whether an attribute or a clause is a key, or is computed from columns that are all keys.

    What looks like a name between the first and the last quotation mark may be part of a text. Then
    the answer is no.

    >>> determined("(`a` % 7)", {"`a`", "`b`"}), determined("(`a` % `c`)", {"`a`"})
    (True, False)
    """
    if sql in keys:
        return True
    names = _NAME.findall(sql)
    between = _LITERALS.search(sql)
    if between is not None and "`" in between.group():
        return False
    return bool(names) and set(names) <= set(keys)


def over_columns(sql: str, column_of: Mapping[str, str]) -> str:
    """An attribute that keys determine, written over the columns that hold these keys.

    >>> over_columns("(`a` % 7)", {"`a`": "k0"})
    '(k0 % 7)'
    """
    return column_of.get(sql) or _NAME.sub(lambda name: column_of[name.group()], sql)
