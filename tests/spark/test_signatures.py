"""Level 1 with signatures: what Spark groups by is what the rows themselves say.

Nodes have random predicates on attributes of every indexable type: as cuts, as bits, on keys and on
what keys determine. Oracles: `kernel.classify` and plain counting on the collected rows.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.oracle.plain_spark import COMPILED, INTERPRETED
from tests.support.conditions import LITERALS, predicate, selections, value_of
from tests.support.seeds import chance_for

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.condition import Selection
from weft.algebra.plan import Fragments, Node
from weft.algebra.query import Field, StreamSchema
from weft.algebra.scalar import Call, Expression, Literal, Opaque, Ref, Scalar
from weft.algebra.signature import WORD_BITS, Signature
from weft.algebra.types import SqlType
from weft.algebra.window import EdgeClass
from weft.kernel.fragments.classify import classes
from weft.kernel.fragments.derive import Parent
from weft.kernel.fragments.members import SignatureIndex
from weft.kernel.fragments.state import Encoders, load
from weft.optimizer.node_tree import below_parent
from weft.optimizer.predicates.index import index
from weft.runtime.level1.fragments import BUCKETS, coarser, fragments
from weft.runtime.level1.signatures import useful

SECOND = 1_000_000
COLUMNS: dict[str, SqlType] = {f"c{place}": type_ for place, type_ in enumerate(LITERALS)}
NAMES = {type_: name for name, type_ in COLUMNS.items()}
STREAM = StreamSchema(
    "s",
    (Field("ts", "timestamp"), *(Field(name, type_) for name, type_ in COLUMNS.items())),
    "ts",
    0,
)
ROWS = 250
EDGES = EdgeClass(10 * SECOND, 0), EdgeClass(7 * SECOND, 3 * SECOND)
FINE, COARSE = Fragments(classes=EDGES), Fragments(classes=EDGES[:1])


def key(type_: SqlType) -> Expression:
    return Expression(f"`{NAMES[type_]}`", type_, (NAMES[type_],))


BIG, TEXT, NUMBER, TRUTH = key("bigint"), key("string"), key("double"), key("boolean")
DATE, SMALL, MONEY = key("date"), key("tinyint"), key("decimal(10,2)")
REMAINDER = Opaque(f"({BIG.sql} % 5)", (), "bigint")
CLAUSE = Call("<", (Opaque(BIG.sql, (), "bigint"), Opaque(SMALL.sql, (), "bigint")), "boolean")
KEY_CLAUSE = Call("=", (REMAINDER, Opaque(BIG.sql, (), "bigint")), "boolean")
PARTIALS = tuple(
    partial
    for aggregate in (
        Aggregate("sum", (key("int"),), "bigint"),
        Aggregate("sum", (BIG,), "bigint"),
        Aggregate("max", (DATE,), "date"),
        Aggregate("min", (TEXT,), "string"),
        Aggregate("count", (NUMBER,), "bigint"),
    )
    for partial in lift(aggregate, STREAM.time_micros, None)
)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """A local relation of values at the limits of their types."""
    own_session = spark.newSession()
    own_session.conf.set("spark.sql.shuffle.partitions", "1")
    own_session.conf.set("spark.sql.adaptive.enabled", "false")
    chance = chance_for(__name__)
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    found = []
    for _ in range(ROWS):
        time = epoch + dt.timedelta(microseconds=chance.randrange(-30 * SECOND, 30 * SECOND))
        values = [value_of(chance.choice([*own_, None]), t) for t, own_ in LITERALS.items()]
        found.append((chance.choice([time] * 9 + [None]), *values))
    ddl = "ts timestamp, " + ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    table = own_session.createDataFrame(found, ddl).coalesce(1).toArrow()
    return own_session.createDataFrame(table, ddl)


@pytest.fixture(params=[INTERPRETED, COMPILED], ids=["interpreted", "compiled"])
def rows_in_both_ways(rows: DataFrame, request: pytest.FixtureRequest) -> Iterator[DataFrame]:
    """The rows in a session that interprets expressions, and in one that compiles them."""
    settings_of_session = rows.sparkSession.conf
    for name, value in request.param.items():
        settings_of_session.set(name, value)
    yield rows
    for name, value in INTERPRETED.items():
        settings_of_session.set(name, value)


@st.composite
def conditions(draw: st.DrawFn) -> Scalar:
    """A conjunction of selections, on one or two attributes, or of one and a clause."""

    def one() -> Scalar:
        kind = draw(st.sampled_from(["column", "column", "column", "remainder", "clause"]))
        if kind == "clause":
            return draw(st.sampled_from([CLAUSE, KEY_CLAUSE]))
        if kind == "remainder":
            literal = Literal(draw(st.integers(-2, 4)), "bigint")
            return Call(draw(st.sampled_from(["=", "<", ">="])), (REMAINDER, literal), "boolean")
        type_ = draw(st.sampled_from(["bigint", "string", "double", *LITERALS]))
        return draw(selections(NAMES[type_], type_))

    parts = tuple(one() for _ in range(draw(st.integers(1, 2))))
    return parts[0] if len(parts) == 1 else Call("and", parts, "boolean")


def predicates_of(scalars: Sequence[Scalar]) -> list[Expression]:
    """Different predicates that some row may satisfy, and none of them all rows."""
    found = {each.sql: each for each in map(predicate, scalars)}
    return [each for sql, each in found.items() if sql not in ("true", "false")]


def node(
    keys: Sequence[Expression], predicates: Sequence[Expression], all_rows: bool, bits: bool
) -> Node:
    whole = Signature(bits=tuple(each.sql for each in predicates))
    return Node(
        "n",
        tuple(keys),
        len(keys),
        tuple(predicates),
        all_rows or not predicates,
        PARTIALS,
        FINE,
        signature=whole if bits else index(predicates, keys),
    )


def shown(value: Any) -> str:
    """A value as Spark groups it."""
    return repr(value + 0.0) if isinstance(value, float) else repr(value)


def counted(table: pa.Table, names: Sequence[str], weight: str | None = None) -> Counter[Any]:
    found: Counter[Any] = Counter()
    columns = [table.column(name).to_pylist() for name in names]
    weights = table.column(weight).to_pylist() if weight else [1] * table.num_rows
    for *values, count in zip(*columns, weights, strict=True):
        found[tuple(map(shown, values))] += count
    return found


def brute_force(rows: DataFrame, planned: Node) -> Counter[Any]:
    """Rows per (end, signature, keys), and that `useful` leaves out no row that is wanted."""
    cuts, bits = planned.signature.cuts, planned.signature.bits
    asked = {
        "time": STREAM.time_micros,
        "useful": f"coalesce(({useful(planned) or 'true'}), false)",
    }
    asked |= {f"k{i}": each.sql for i, each in enumerate(planned.keys)}
    asked |= {f"v{i}": each.attribute for i, each in enumerate(cuts)}
    asked |= {f"b{i}": f"coalesce({sql}, false)" for i, sql in enumerate(bits)}
    asked |= {f"p{i}": f"coalesce({each.sql}, false)" for i, each in enumerate(planned.predicates)}
    table = rows.selectExpr(*(f"{sql} AS {name}" for name, sql in asked.items())).toArrow()
    table = table.combine_chunks()
    lists = {name: table.column(name).to_pylist() for name in table.column_names}
    for place in range(table.num_rows):
        wanted = planned.keeps_all_rows or any(
            lists[f"p{i}"][place] for i in range(len(planned.predicates))
        )
        assert lists["useful"][place] or not wanted
    signature = [
        classes(table.column(f"v{i}").combine_chunks(), each).tolist()
        for i, each in enumerate(cuts)
    ]
    for first in range(0, len(bits), WORD_BITS):
        word = range(first, min(first + WORD_BITS, len(bits)))
        signature.append(
            [sum(lists[f"b{i}"][r] << (i - first) for i in word) for r in range(table.num_rows)]
        )
    found: Counter[Any] = Counter()
    for place, time in enumerate(lists["time"]):
        if time is not None and lists["useful"][place]:
            keys = [lists[f"k{i}"][place] for i in range(len(planned.keys))]
            values = [planned.fragments.end_of(time), *(each[place] for each in signature), *keys]
            found[tuple(map(shown, values))] += 1
    return found


def names_of(planned: Node) -> list[str]:
    signature = [f"s{i}" for i in range(planned.signature.columns)]
    return ["fragment_end", *signature, *(f"k{i}" for i in range(len(planned.keys)))]


@settings(max_examples=10)
@given(
    st.lists(conditions(), min_size=1, max_size=8),
    st.lists(st.sampled_from([BIG, TEXT, NUMBER, TRUTH]), max_size=2, unique=True),
    st.sampled_from([False, False, True]),
    st.sampled_from([False, False, True]),
)
def test_fragments_have_the_signatures_of_their_rows(
    rows: DataFrame, scalars: list[Scalar], keys: list[Expression], all_rows: bool, bits: bool
) -> None:
    planned = node(keys, predicates_of(scalars), all_rows, bits)
    table = fragments(rows, planned, STREAM).toArrow()
    found = counted(table, names_of(planned), "n")
    assert found == brute_force(rows, planned)
    assert len(found) == table.num_rows, "one fragment per end, signature and keys"


def test_many_conditions_of_all_kinds_in_one_node(rows_in_both_ways: DataFrame) -> None:
    """Ranges that `useful` covers by one, two words of bits, cuts with bounds of both kinds."""
    number, big = Ref(NAMES["double"], "double"), Ref(NAMES["bigint"], "bigint")
    scalars: list[Scalar] = []
    for place in range(80):
        low = Call(">=", (big, Literal(4 * place - 3, "bigint")), "boolean")
        high = Call("<", (big, Literal(4 * place - 1, "bigint")), "boolean")
        scalars.append(Call("and", (low, high), "boolean"))
        scalars.append(
            Call("<=" if place % 2 else "<", (number, Literal(place / 8, "double")), "boolean")
        )
    rows = rows_in_both_ways
    for bits in (False, True):
        planned = node([TEXT], predicates_of(scalars), False, bits)
        found = counted(fragments(rows, planned, STREAM).toArrow(), names_of(planned), "n")
        assert found == brute_force(rows, planned)
    assert planned.signature.words > 2


def test_rows_without_event_time_are_counted_on_the_way(rows: DataFrame) -> None:
    planned = node([TEXT], [], True, False)
    table = fragments(rows, planned, STREAM, counting_before=0).toArrow()
    times = [each.time for each in rows.selectExpr("unix_micros(ts) AS time").collect()]
    ends = table.column("fragment_end").to_pylist()
    missing = [n for n, end in zip(table.column("n").to_pylist(), ends, strict=True) if end is None]
    assert sum(missing) == times.count(None) > 0
    late = sum(time < 0 for time in times if time is not None)
    assert sum(table.column("late_rows").to_pylist()) == late > 0
    assert max(filter(None, table.column("max_event").to_pylist())) == max(filter(None, times))


def different(predicates: Sequence[Expression]) -> list[Expression]:
    """Predicates that have no selection in common."""
    found, seen = [], set[Selection]()
    for each in predicates:
        assert each.condition is not None
        if not seen & set(each.condition.selections):
            found.append(each)
            seen |= set(each.condition.selections)
    return found


def wanted(table: pa.Table, planned: Node) -> pa.Table:
    """The fragments that some predicate of a node wants."""
    if planned.keeps_all_rows or not table.num_rows:
        return table
    encoders = Encoders(planned, planned.id)
    index = SignatureIndex(planned, tuple(enumerate(planned.predicates)))

    def is_wanted(row: int) -> bool:
        shards = load([table.slice(row, 1)], planned, encoders)
        return len(index.pairs(shards, encoders.keys)[0]) > 0

    return table.filter(pa.array([is_wanted(row) for row in range(table.num_rows)]))


def lines(table: pa.Table) -> Counter[Any]:
    return counted(table, sorted(table.column_names))


@settings(max_examples=6)
@given(
    st.lists(conditions(), max_size=3),
    st.lists(conditions(), min_size=1, max_size=6),
    st.lists(st.sampled_from([BIG, TEXT, NUMBER, TRUTH]), max_size=2, unique=True),
    st.booleans(),
    st.booleans(),
    st.sampled_from([FINE, COARSE]),
)
def test_a_child_of_fragments_is_the_child_of_the_rows(
    rows: DataFrame,
    others: list[Scalar],
    scalars: list[Scalar],
    keys: list[Expression],
    all_rows: bool,
    bits: bool,
    ends: Fragments,
) -> None:
    """By Spark and on the driver alike, and as if there were no parent."""
    asked = different(predicates_of(scalars))
    carried = {each.sql: each for each in [*predicates_of(others), *asked]}
    whole = all_rows or not asked  # a child of all rows has a parent of all rows
    parent = node([BIG, TEXT, NUMBER, TRUTH], list(carried.values()), whole, bits)
    child = below_parent(replace(node(keys, asked, all_rows, bits), id="c", fragments=ends), parent)
    above = fragments(rows, parent, STREAM).toArrow()
    by_spark = coarser(rows.sparkSession.createDataFrame(above), parent, child).toArrow()
    driver = Parent(parent, [above])
    assert driver.can_derive(child)
    assert lines(driver.derived(child, BUCKETS)) == lines(by_spark)
    alone = fragments(rows, replace(child, parent=None), STREAM).toArrow()
    assert lines(wanted(by_spark, child)) == lines(wanted(alone, child))


def test_what_the_driver_cannot_derive_spark_does(rows: DataFrame) -> None:
    """Decimal sums, and keys whose hash is not known here."""
    total = lift(Aggregate("sum", (MONEY,), "decimal(20,2)"), STREAM.time_micros, None)
    parent = replace(node([MONEY, TEXT], [], True, False), partials=total)
    above = fragments(rows, parent, STREAM).toArrow()
    summed = below_parent(replace(node([TEXT], [], True, False), id="c", partials=total), parent)
    keyed = below_parent(replace(node([MONEY], [], True, False), id="d", partials=()), parent)
    for child in (summed, keyed):
        assert not Parent(parent, [above]).can_derive(child)
        by_spark = coarser(rows.sparkSession.createDataFrame(above), parent, child).toArrow()
        alone = fragments(rows, replace(child, parent=None), STREAM).toArrow()
        assert lines(by_spark) == lines(alone)
