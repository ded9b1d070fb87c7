"""The names of result columns, as Spark gives them.

An alias is the name. Without one, Spark prints the expression: `count(1)`, `(a + 1)`. What is
simple is printed here the same way; for the rest Spark is asked with the user's own text.
"""

from __future__ import annotations

from typing import Final, Protocol

from weft.algebra.query import Field as Column
from weft.algebra.query import quote
from weft.algebra.types import WINDOW, SqlType
from weft.sql.fallback import Unshared
from weft.sql.reading.functions import AGGREGATES
from weft.sql.reading.syntax import (
    Binary,
    Constant,
    FieldAccess,
    Function,
    Item,
    Name,
    Number,
    Star,
    String,
    SyntaxNode,
    Unary,
    walk,
)
from weft.sql.scopes.rows import Rows
from weft.sql.typing.coercion import Typed, number

_PLAIN_OPERATORS: Final = frozenset({"+", "-", "*", "/", "%"})
_COMPARISONS: Final = frozenset({"=", "<=>", "<", "<=", ">", ">="})
_PRINTED_AS_FIRST: Final = {"first_value": "first", "last_value": "last"}


class Outputs(Protocol):
    """A select list: the rows it is over, its aliases so far, and those made from other aliases."""

    @property
    def rows(self) -> Rows: ...

    @property
    def aliases(self) -> dict[str, Typed]: ...

    @property
    def lateral(self) -> set[str]: ...


def output_name(item: Item, outputs: Outputs) -> str:
    """The name of a result column."""
    if item.alias is not None:
        if outputs.aliases and _alias_names(item.node, outputs):
            outputs.lateral.add(item.alias.lower())
        return item.alias
    node = item.node
    if isinstance(node, Name):
        return node.parts[-1]
    if any(name in outputs.lateral for name in _alias_names(node, outputs)):
        raise Unshared("an alias of an alias in an expression without one", node.start)
    printed = _printed(node, outputs)
    return printed if printed is not None else _asked(node, outputs)


def _printed(node: SyntaxNode, outputs: Outputs) -> str | None:
    """What Spark prints for an expression, None where weft does not know."""
    if isinstance(node, Name):
        return _path(node, outputs)
    if isinstance(node, Number):
        return _number(node.text)
    if isinstance(node, String):
        return node.value
    if isinstance(node, Constant):
        return "NULL" if node.value is None else str(node.value).lower()
    if isinstance(node, Star):
        return ".".join((*node.qualifier, "*"))
    if isinstance(node, Function):
        return _function(node, outputs)
    if isinstance(node, Binary):
        return _binary(node, outputs)
    if isinstance(node, FieldAccess):
        base = node.base
        if isinstance(base, Function) and base.name == "window":
            return f"window.{node.name}"
    if isinstance(node, Unary) and node.operator in ("-", "not"):
        operand = _printed(node.operand, outputs)
        sign = "-" if node.operator == "-" else "NOT"
        return None if operand is None else f"({sign} {operand})"
    return None


def _path(node: Name, outputs: Outputs) -> str:
    """A column inside an expression: without the stream's name, with fields."""
    meaning = outputs.rows.find(node)
    if meaning is None:
        return ".".join(node.parts)
    return ".".join(node.parts[len(node.parts) - len(meaning.path) - 1 :])


def _number(text: str) -> str | None:
    type_, value = number(text)
    if type_ is None or value is None or type_ == "double":
        return None
    return str(value)


def _function(node: Function, outputs: Outputs) -> str | None:
    name = node.name
    if name == "window":
        return "window"
    if name not in AGGREGATES and name != "coalesce":
        return None
    if node.nulls:
        name = _PRINTED_AS_FIRST.get(name, name)
    nodes = node.arguments
    canonical = AGGREGATES.get(name)
    if canonical in ("first", "last", "approx_count_distinct"):
        nodes = nodes[:1]
    arguments = ["1"] if node.star else [_printed(argument, outputs) for argument in nodes]
    if canonical == "approx_percentile":
        if isinstance(nodes[1], Function):
            return None
        arguments += ["10000"] if len(nodes) == 2 else []
    printed = [argument for argument in arguments if argument is not None]
    if len(printed) < len(arguments):
        return None
    text = f"{name}({'DISTINCT ' if node.distinct else ''}{', '.join(printed)})"
    if node.filter is None:
        return text
    condition = _printed(node.filter, outputs)
    return None if condition is None else f"{text} FILTER (WHERE {condition})"


def _binary(node: Binary, outputs: Outputs) -> str | None:
    left, right = _printed(node.left, outputs), _printed(node.right, outputs)
    operator = node.operator
    if left is None or right is None:
        return None
    if operator in _PLAIN_OPERATORS:
        if any(_has_moment(side, outputs) for side in (node.left, node.right)):
            return None  # Spark prints the function that it uses in the operator's place
        return f"({left} {operator} {right})"
    if operator in ("and", "or"):
        return f"({left} {operator.upper()} {right})"
    if any(_is_decimal(side) for side in (node.left, node.right)):
        return None  # Spark prints the literal after its own rewriting
    if operator in _COMPARISONS:
        return f"({left} {operator} {right})"
    return f"(NOT ({left} = {right}))" if operator == "<>" else None


def _has_moment(node: SyntaxNode, outputs: Outputs) -> bool:
    """Whether an expression reads a date or a timestamp."""
    for part in walk(node):
        meaning = outputs.rows.find(part) if isinstance(part, Name) else None
        if meaning is not None and meaning.column.type.startswith(("date", "timestamp")):
            return True
    return False


def _is_decimal(node: SyntaxNode) -> bool:
    return isinstance(node, Number) and "." in node.text


def _asked(node: SyntaxNode, outputs: Outputs) -> str:
    types = _types_by_name(node, outputs)
    types.setdefault("window", WINDOW)
    for name in _alias_names(node, outputs):
        type_ = outputs.aliases[name].type
        if type_ is not None:
            types.setdefault(name, type_)
    fields = tuple(Column(name, type_) for name, type_ in types.items())
    return outputs.rows.analyzer.output_name(fields, _unqualified(node, outputs))


def _types_by_name(node: SyntaxNode, outputs: Outputs) -> dict[str, SqlType]:
    """The columns that the node names, by their names in lower case."""
    types: dict[str, SqlType] = {}
    for part in walk(node):
        meaning = outputs.rows.find(part) if isinstance(part, Name) else None
        if meaning is None:
            continue
        column = meaning.column
        if types.setdefault(column.name.lower(), column.type) != column.type:
            raise Unshared(
                f"two columns called {column.name} of different types in an expression without alias",
                node.start,
                "give the expression an alias",
            )
    return types


def _alias_names(node: SyntaxNode, outputs: Outputs) -> list[str]:
    firsts = [part.parts[0].lower() for part in walk(node) if isinstance(part, Name)]
    return [name for name in firsts if name in outputs.aliases]


def _unqualified(node: SyntaxNode, outputs: Outputs) -> str:
    """The user's text without the stream's name before columns."""
    source = outputs.rows.source
    pieces: list[str] = []
    at = node.start
    names = [part for part in walk(node) if isinstance(part, Name)]
    for name in sorted(names, key=lambda part: part.start):
        meaning = outputs.rows.find(name)
        if meaning is None or len(name.parts) == len(meaning.path) + 1:
            continue
        if name.start > at:
            pieces.append(source.slice(at, name.start))
        pieces.append(".".join(quote(part) for part in name.parts[-len(meaning.path) - 1 :]))
        at = name.stop
    if at < node.stop:
        pieces.append(source.slice(at, node.stop))
    return " ".join(pieces)
