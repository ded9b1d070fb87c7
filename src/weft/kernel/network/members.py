"""Which rows of a physical node belong to which of its logical nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark, QueryFailure
from weft.kernel.network.conditions import Evaluation
from weft.kernel.network.joins.candidates import Block
from weft.kernel.network.program import Input, PhysicalJoin, PhysicalNode, Program
from weft.kernel.network.rows import Pairs, Rows

Positions = Mapping[str, Array | None]
"""The positions of each logical node's rows; None: all rows. Nodes without rows are left out."""


def matches(
    program: Program, node: PhysicalNode, block: Block, *, ansi: bool
) -> dict[str, Array | None]:
    """The pairs of a block of candidates that belong to each join node."""
    join = node.join
    assert join is not None
    pairs = Pairs(block.segments, join.left_slots)
    evaluation = Evaluation(node.candidate_conditions, pairs, ansi=ansi)
    with _blamed(program, [member.node for member in join.members]):
        equal = evaluation.filtered(join.key_tests)
    passing: dict[str, Array | None] = {}
    for member in join.members:
        chosen = _with_bits(join, block, member.left_bit, member.right_bit, equal)
        if chosen is not None and not len(chosen):
            continue
        with _blamed(program, [member.node]):
            chosen = evaluation.filtered(member.tests, chosen)
        if chosen is None or len(chosen):
            passing[member.node] = chosen
    return passing


def _with_bits(
    join: PhysicalJoin, block: Block, left: int, right: int, chosen: Array | None
) -> Array | None:
    """The positions, of those chosen, whose rows belong to two members of the inputs."""
    for bits, number in ((block.left_bits, left), (block.right_bits, right)):
        if bits is None:
            continue
        byte = bits[:, number >> 3]
        truth = (byte if chosen is None else byte[chosen]) & np.uint8(1 << (number & 7))
        positions = truth.nonzero()[0]
        chosen = positions if chosen is None else chosen[positions]
    return chosen


def selected(
    program: Program,
    node: PhysicalNode,
    rows: Rows,
    roots: Positions,
    *,
    ansi: bool,
) -> dict[str, Array | None]:
    """The rows of every logical node. `roots` has those of the source or the join nodes."""
    whole = Evaluation(node.conditions, rows, ansi=ansi)
    positions = dict(roots)
    for family in node.families:
        if family.parent not in positions:
            continue
        above = positions[family.parent]
        evaluation = whole.within(above)
        for place, start, tests in family.starts(evaluation):
            with _blamed(program, [family.nodes[place]]):
                chosen = evaluation.filtered(tests, start)
            if (evaluation.rows.count if chosen is None else len(chosen)) == 0:
                continue
            if chosen is None or above is None:
                positions[family.nodes[place]] = above if chosen is None else chosen
            else:
                positions[family.nodes[place]] = above[chosen]
    return positions


def input_bits(entry: Input, positions: Positions, count: int) -> Array:
    """To which members of an input every row belongs, eight to a byte."""
    bits = np.zeros((count, (len(entry.members) + 7) // 8), np.uint8)
    for number, member in enumerate(entry.members):
        if member in positions:
            chosen = positions[member]
            flag = np.uint8(1 << (number & 7))
            if chosen is None:
                bits[:, number >> 3] |= flag
            else:
                bits[chosen, number >> 3] |= flag
    return bits


@contextmanager
def _blamed(program: Program, nodes: list[str]) -> Iterator[None]:
    """An error of a condition names the queries that get rows from the node."""
    try:
        yield
    except NeedsSpark as reason:
        queries = tuple(dict.fromkeys(query for node in nodes for query in program.fed[node]))
        raise QueryFailure("ARITHMETIC", str(reason), queries) from reason
