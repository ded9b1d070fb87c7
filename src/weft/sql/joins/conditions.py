"""WHERE and ON of a join as one predicate set.

The conditions must not be able to raise: the network evaluates them on rows that the query alone might
not have reached. What only Spark can evaluate must read one input (`evaluation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.algebra.predicates import TRUE, PredicateSet
from weft.algebra.predicates.canonical import predicate_set
from weft.algebra.predicates.transitivity import inferred
from weft.algebra.query import quote
from weft.algebra.scalar import Call, Opaque, Scalar, walk
from weft.algebra.types import BOOLEAN
from weft.sql.fallback import Unshared
from weft.sql.joins.evaluation import evaluable
from weft.sql.reading.syntax import String, SyntaxNode
from weft.sql.reading.syntax import walk as walk_syntax
from weft.sql.scopes.rows import Rows, boolean
from weft.sql.scopes.sources import Sources
from weft.sql.typing.scalars import Typer


def predicates(sources: Sources, rows: Rows) -> PredicateSet:
    """All conditions of a query, and what follows from them."""
    parts: list[Scalar] = []
    for condition in sources.conditions:
        whole, scalar = boolean(condition.rows, condition.node, condition.clause, opaque=True)
        if whole.can_raise or scalar is None:
            raise _may_raise(condition.rows, condition.node, f"a condition in {condition.clause}")
        parts.append(with_names(scalar, whole.columns, condition.node))
    for left, right, at in sources.pairs:
        typed = Typer(rows, rows.ansi, opaque=True, exact=rows.exact).equal(left, right)
        if typed.scalar is None:
            raise Unshared(f"{left.type} and {right.type} joined by USING have no shared form", at)
        parts.append(typed.scalar)
    if not parts:
        return TRUE
    whole_scalar = parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN)
    canonical = evaluable(predicate_set(whole_scalar))
    return inferred(canonical, len(sources.read))


def _may_raise(rows: Rows, node: SyntaxNode, what: str) -> Unshared:
    text = rows.source.slice(node.start, node.stop)
    return Unshared(f"{what} may raise an error on some rows: {text}", node.start)


def with_names(scalar: Scalar, columns: Sequence[str], node: SyntaxNode) -> Scalar:
    """The same expression; what only Spark can evaluate names the columns that it reads."""
    if not any(isinstance(part, Opaque) for part in walk(scalar)):
        return scalar
    for part in walk_syntax(node):
        if isinstance(part, String) and "`" in part.raw:
            raise Unshared("a string with a back quote has no shared form here", part.start)
    return _named(scalar, columns)


def _named(scalar: Scalar, columns: Sequence[str]) -> Scalar:
    if isinstance(scalar, Opaque):
        names = tuple(sorted(name for name in columns if quote(name) in scalar.sql))
        return replace(scalar, names=names)
    if isinstance(scalar, Call):
        arguments = tuple(_named(argument, columns) for argument in scalar.arguments)
        return replace(scalar, arguments=arguments)
    return scalar
