"""Programs do not depend on which queries have parts that are the same objects."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from weft.algebra import codec
from weft.algebra.aggregate import Aggregate
from weft.algebra.nodes.reads import one_of_each
from weft.algebra.plan import Retired, columns_by_query, query_columns
from weft.algebra.query import Field, OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Call, Expression, Literal, Ref
from weft.algebra.window import Window
from weft.kernel.windows.program import Program, compile_program
from weft.optimizer.gtweave import share

STREAM = StreamSchema(
    "s",
    (
        Field("ts", "timestamp"),
        Field("k", "string"),
        Field("v", "bigint"),
        Field("w", "bigint"),
    ),
    "ts",
    0,
)
V = Expression("`v`", "bigint", ("v",))
KEYS = ((), (Expression("`k`", "string", ("k",)),), (Expression("`w`", "bigint", ("w",)),))
PREDICATES = (
    None,
    Expression("(`w` = 1)", "boolean", ("w",)),
    Expression("(`v` = 2)", "boolean", ("v",)),
)
AGGREGATES = (
    (Aggregate("count", (), "bigint"),),
    (Aggregate("sum", (V,), "bigint"),),
    (Aggregate("approx_count_distinct", (V,), "bigint"),),
    (Aggregate("count", (V,), "bigint", distinct=True),),
)
FIRST = Ref("a0", "bigint")
HAVING = (None, Call(">", (FIRST, Literal(5, "int")), "boolean"))
COLUMNS = (
    (OutputColumn("n", "bigint", FIRST),),
    (OutputColumn("start", "timestamp", Ref("window_start", "timestamp")),),
)


def queries(chance: Random, count: int = 60) -> list[Query]:
    return [
        Query(
            f"q{number}@{number}",
            f"q{number}",
            "",
            "s",
            chance.choice((Window(60, 10), Window(40, 20), Window(30, 30))),
            chance.choice(KEYS),
            chance.choice(PREDICATES),
            chance.choice(AGGREGATES),
            chance.choice(HAVING),
            chance.choice(COLUMNS),
        )
        for number in range(count)
    ]


def computed(program: Program) -> list[tuple[object, ...]]:
    """What the groups read and compute; indexes are made of the members."""
    return [
        (group.node, group.pools, group.members, group.several, group.shapes)
        for group in program.groups
    ]


def test_queries_of_the_same_parts_are_compiled_as_queries_of_equal_ones(chance: Random) -> None:
    shared = queries(chance)
    apart = [codec.decode(codec.encode(query)) for query in shared]
    assert apart == shared and len(one_of_each(apart)) == len(apart) > len(one_of_each(shared))
    programs = [compile_program(share(1, STREAM, listed, {})) for listed in (shared, apart)]
    assert computed(programs[0]) == computed(programs[1])
    assert programs[0].pools == programs[1].pools
    assert programs[0].readers == programs[1].readers


def test_parts_of_queries_that_retired_nodes_serve_are_told_apart_by_query(chance: Random) -> None:
    """A query that still reads a retired node has a pool more than another one of the same parts."""
    shared = queries(chance)
    plan = share(1, STREAM, shared, {})
    old = next(node for node in plan.nodes if not node.intermediate)
    readers = tuple(query.id for query in shared if not query.aggregates[0].distinct)[::2]
    finer = replace(old, id=f"{old.id}.older")
    again = replace(plan, retired=(Retired(finer, readers),))
    apart = replace(again, queries=tuple(codec.decode(codec.encode(q)) for q in shared))
    programs = [compile_program(again), compile_program(apart)]
    assert computed(programs[0]) == computed(programs[1])
    assert {len(group.pools) for group in programs[0].groups} == {1, 2}


def test_columns_of_many_queries_are_those_of_each(chance: Random) -> None:
    listed = queries(chance)
    assert list(columns_by_query(listed)) == [query_columns(query) for query in listed]
