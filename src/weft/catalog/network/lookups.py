"""The statements by which nodes are found, compiled once for each number of ranges.

For a range of values of one subject, the nearest literals come first and only so many of them are
looked at: an index scan that ends early, however large the network is. Many ranges are asked in one
statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

from weft.catalog.network import tables
from weft.catalog.network.literals import Range
from weft.catalog.network.statements import Statement, compiled

NEAREST: Final = 12
"""How many literals are looked at for one range."""
_SIZES: Final = (1, 2, 4, 8, 16, 32)
"""The numbers of ranges that statements are compiled for: the rest is filled up with empty ranges."""
_EMPTY: Final = Range("-", 0.0, 0.0, 0)

Kind = Literal["selection", "join"]
Direction = Literal["weaker", "stronger"]


class Asked(NamedTuple):
    """A range in the scope of a probe."""

    probe: int
    scope: str
    range: Range


class Hit(NamedTuple):
    """A predicate set that may be what a probe looks for, and a node that has it."""

    probe: int
    predicate_set: str
    node: str


def hits(
    connection: Connection, kind: Kind, direction: Direction, asked: Sequence[Asked]
) -> Iterator[Hit]:
    """What the relations hold for ranges, the nearest first for each of them."""
    for start in range(0, len(asked), _SIZES[-1]):
        chunk = asked[start : start + _SIZES[-1]]
        size = next(size for size in _SIZES if size >= len(chunk))
        statement = _statement(connection.dialect, kind, direction, size)
        values: dict[str, Any] = {}
        for number in range(size):
            scope = chunk[number].scope if number < len(chunk) else ""
            wanted = chunk[number].range if number < len(chunk) else _EMPTY
            values |= {
                f"scope{number}": scope,
                f"subject{number}": wanted.subject,
                f"low{number}": wanted.low,
                f"high{number}": wanted.high,
                f"null{number}": wanted.null_passes,
            }
        for number, predicate_set, node in statement.rows(connection, values):
            yield Hit(chunk[number].probe, predicate_set, node)


@lru_cache(maxsize=64)
def _statement(dialect: Dialect, kind: Kind, direction: Direction, size: int) -> Statement:
    nearest = [_nearest(number, kind, direction) for number in range(size)]
    return compiled(nearest[0] if size == 1 else sa.union_all(*nearest), dialect)


def _nearest(number: int, kind: Kind, direction: Direction) -> sa.Select[Any]:
    """The nearest literals to one range, and the nodes that they lead to."""
    literals, sets = tables.literals, tables.predicate_sets
    order: tuple[sa.ColumnElement[Any], ...]
    topology = tables.joins if kind == "join" else tables.selections
    node_set = tables.joins.c.jvoa_set if kind == "join" else tables.selections.c.svoa_set
    low = sa.bindparam(f"low{number}", type_=sa.Double)
    high = sa.bindparam(f"high{number}", type_=sa.Double)
    null = sa.bindparam(f"null{number}", type_=sa.Integer)
    if direction == "weaker":
        origin = literals.join(sets, sets.c.access == literals.c.or_predicate)
        set_id = sets.c.id
        bounds = (literals.c.low <= low, literals.c.high >= high, literals.c.null_passes >= null)
        order = (literals.c.low.desc(), literals.c.high)
    else:
        members = tables.set_members
        origin = literals.join(members, members.c.or_predicate == literals.c.or_predicate)
        set_id = members.c.predicate_set
        bounds = (literals.c.low >= low, literals.c.high <= high, literals.c.null_passes <= null)
        order = (literals.c.low, literals.c.high.desc())
    chosen = (
        sa.select(set_id.label("predicate_set"), topology.c.node.label("node"))
        .select_from(origin.join(topology, node_set == set_id))
        .where(
            literals.c.scope == sa.bindparam(f"scope{number}", type_=sa.String),
            literals.c.subject == sa.bindparam(f"subject{number}", type_=sa.String),
            *bounds,
        )
        .order_by(*order)
        .limit(NEAREST)
        .subquery()
    )
    return sa.select(
        sa.literal_column(str(number)).label("number"), chosen.c.predicate_set, chosen.c.node
    )
