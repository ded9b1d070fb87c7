"""What GROUP BY names: expressions, places in the select list, aliases of it."""

from __future__ import annotations

from weft.sql.reading.syntax import Name, Number, Select, SyntaxNode
from weft.sql.scopes.projection import first_aggregate
from weft.sql.scopes.rows import Rows
from weft.sql.typing.coercion import number


def group_node(node: SyntaxNode, select: Select, rows: Rows) -> SyntaxNode:
    """The expression that an ordinal or an alias in GROUP BY stands for."""
    if isinstance(node, Number):
        _, position = number(node.text)
        if not isinstance(position, int) or isinstance(position, bool):
            return node
        if not 1 <= position <= len(select.items):
            detail = f"GROUP BY {position}, but the select list has {len(select.items)} columns"
            raise rows.source.error("INVALID_QUERY", node.start, detail=detail)
        item = select.items[position - 1].node
        if first_aggregate(item) is not None:
            detail = f"GROUP BY {position} is an aggregate"
            raise rows.source.error("INVALID_QUERY", node.start, detail=detail)
        return item
    if isinstance(node, Name) and rows.find(node) is None and len(node.parts) == 1:
        alias = node.parts[0].lower()
        for candidate in select.items:
            if candidate.alias is not None and candidate.alias.lower() == alias:
                return candidate.node
    return node
