"""WHERE, ON and USING of a block as one predicate set, over the slots of all inputs.

The conditions must not be able to raise: the network evaluates them on rows that the query alone might
not have reached. What only Spark can evaluate must read one input (`evaluation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.algebra.network.bits import opaque_parts
from weft.algebra.network.lookup import FOUND
from weft.algebra.predicates import TRUE, PredicateSet
from weft.algebra.predicates.canonical import predicate_set
from weft.algebra.predicates.slots import plain_name
from weft.algebra.query import quote
from weft.algebra.scalar import Call, Opaque, Ref, Scalar, walk
from weft.algebra.types import BOOLEAN
from weft.sql.fallback import Unshared
from weft.sql.joins.evaluation import evaluable
from weft.sql.reading.source import STRING
from weft.sql.reading.syntax import Binary, String, SyntaxNode
from weft.sql.reading.syntax import walk as walk_syntax
from weft.sql.scopes.block import Block, Pair, found
from weft.sql.scopes.rows import Rows, boolean
from weft.sql.scopes.sources import Sources
from weft.sql.typing.scalars import Typer


def conjuncts(sources: Sources, block: Block, rows: Rows) -> list[Scalar]:
    """The conditions of a block. Subqueries that they hold join the block's tables."""
    parts = list(block.tests)
    with sources.within(block):
        for condition in block.conditions:
            whole, scalar = boolean(condition.rows, condition.node, condition.clause, opaque=True)
            if whole.can_raise or scalar is None:
                what = f"a condition in {condition.clause}"
                raise may_raise(condition.rows, condition.node, what)
            parts.append(with_names(scalar, whole.columns, condition.node))
    parts += [equal(sources, rows, pair) for pair in block.pairs]
    return parts


def equal(sources: Sources, rows: Rows, pair: Pair) -> Scalar:
    """That two values of different places in the text are equal."""
    left, right = pair.left, pair.right
    typer = Typer(rows, rows.ansi, opaque=True, exact=rows.exact)
    typed = typer.equal(left, right, null_safe=pair.null_safe)
    if typed.scalar is None or typed.can_raise:
        raise Unshared(f"{left.type} and {right.type} {pair.words} have no shared form", pair.at)
    return with_all_names(sources, typed.scalar, pair.at)


def canonical(parts: Sequence[Scalar]) -> PredicateSet:
    """Conditions that all must hold, as a predicate set."""
    if not parts:
        return TRUE
    whole = parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN)
    predicates = evaluable(predicate_set(whole))
    for opaque in opaque_parts(predicates):
        if any(plain_name(name) == FOUND for name in opaque.names):
            raise Unshared("a condition on optional tables that only Spark can evaluate")
    return predicates


def may_raise(rows: Rows, node: SyntaxNode, what: str) -> Unshared:
    """Names the innermost part of a condition that may raise, or that weft does not know."""
    typer = Typer(rows, rows.ansi, opaque=True, exact=rows.exact)
    part: SyntaxNode | None = node
    while part is not None:
        node = part
        part = next((child for child in node.children() if typer.type(child).can_raise), None)
    text = rows.source.slice(node.start, node.stop)
    reason = f"{what} may raise an error on some rows: {text}"
    if isinstance(node, Binary) and node.operator in ("=", "<=>", "<>", "<", "<=", ">", ">="):
        types = [typer.type(side).type for side in (node.left, node.right)]
        if None not in types and types[0] != types[1]:
            return Unshared(
                f"{reason}, since it compares {types[0]} with {types[1]}",
                node.start,
                _cast_advice(rows, node, (types[0], types[1])),
            )
    return Unshared(reason, node.start)


def _cast_advice(rows: Rows, node: Binary, types: tuple[str | None, str | None]) -> str:
    """How to compare both sides without an error: a date as the timestamp that it begins with, all else as strings."""
    sides = [rows.source.slice(side.start, side.stop) for side in (node.left, node.right)]
    if set(types) == {"date", "timestamp"}:
        place, wanted = types.index("date"), "TIMESTAMP"
    else:
        place, wanted = (0 if types[1] == "string" else 1), "STRING"
    sides[place] = f"CAST({sides[place]} AS {wanted})"
    return f"compare values of one type, such as {sides[0]} {node.operator} {sides[1]}"


def with_names(scalar: Scalar, columns: Sequence[str], node: SyntaxNode) -> Scalar:
    """The same expression; what only Spark can evaluate names the columns that it reads."""
    if not any(isinstance(part, Opaque) for part in walk(scalar)):
        return scalar
    for part in walk_syntax(node):
        if isinstance(part, String) and "`" in part.raw:
            raise Unshared("a string with a back quote has no shared form here", part.start)
    return _named(scalar, columns)


def with_all_names(sources: Sources, scalar: Scalar, at: int) -> Scalar:
    """The same expression; what only Spark can evaluate names the columns of any input that it reads."""
    if not any(isinstance(part, Opaque) for part in walk(scalar)):
        return scalar
    source = sources.source
    if any(t.kind == STRING and "`" in source.text[t.start : t.stop] for t in source.tokens):
        raise Unshared("a string with a back quote has no shared form here", at)
    names = [base.name for base in sources.base]
    marks = (found(slot).scalar for slot in range(len(sources.read)))
    names += [mark.name for mark in marks if isinstance(mark, Ref)]
    return _named(scalar, names)


def _named(scalar: Scalar, columns: Sequence[str]) -> Scalar:
    if isinstance(scalar, Opaque):
        names = tuple(sorted(name for name in columns if quote(name) in scalar.sql))
        return replace(scalar, names=names)
    if isinstance(scalar, Call):
        arguments = tuple(_named(argument, columns) for argument in scalar.arguments)
        return replace(scalar, arguments=arguments)
    return scalar
