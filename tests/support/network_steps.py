"""Small networks for tests, made without the optimizer, and what DuckDB says about their queries.

A `Condition` is a predicate together with the same condition in DuckDB's SQL, written independently. A
`Spec` is a query of them. `plan_of` makes a plan: selections below the joins, the joins one after the
other in some order of the inputs, and what is left above. Equal nodes are made once, so queries with
equal parts share them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from weft.algebra.condition.values import Bound, Values, single
from weft.algebra.network.plan import Feed, NetworkNode, NetworkPlan
from weft.algebra.network.query import JoinInput, JoinQuery
from weft.algebra.network.sets import SetQuery
from weft.algebra.predicates import Linear, LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.predicate_set import all_of, any_of
from weft.algebra.query import Field, OutputColumn, StreamSchema
from weft.algebra.scalar import Call, Ref, Scalar
from weft.kernel.columns.arrow import arrow_type
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options

STEP, TIME = "#step", "#time"

FIELDS: Mapping[str, Mapping[str, str]] = {
    "a": {"ts": "timestamp", "k": "int", "g": "bigint", "s": "string", "x": "double",
          "m": "decimal(9,2)", "d": "date"},
    "b": {"ts": "timestamp", "k": "int", "g": "bigint", "s": "string", "x": "double",
          "m": "decimal(25,2)", "d": "date"},
    "t": {"k": "int", "g": "bigint", "s": "string", "x": "double", "m": "decimal(9,2)", "d": "date"},
}  # fmt: skip
STREAMS = ("a", "b")


def stream(name: str) -> StreamSchema:
    fields = tuple(Field(column, type_) for column, type_ in FIELDS[name].items())
    return StreamSchema(name, fields, "ts", 0)


@dataclass(frozen=True)
class Condition:
    """An OR predicate over the query's slots, and the condition in DuckDB's SQL over r0, r1, …"""

    predicate: OrPredicate
    sql: str

    def __or__(self, other: Condition) -> Condition:
        literals = (*self.predicate.literals, *other.predicate.literals)
        return Condition(any_of(literals), f"(({self.sql}) OR ({other.sql}))")


@dataclass(frozen=True)
class Spec:
    """A query for tests: `SELECT shown FROM relations WHERE conditions`."""

    id: str
    relations: tuple[str, ...]
    conditions: tuple[Condition, ...]
    shown: tuple[tuple[int, str], ...]
    distinct: bool = False
    order: tuple[int, ...] = ()
    """The order in which a plan joins the inputs; empty: as they are."""
    above: int = 0
    """How many of the conditions on several inputs a plan tests above the join they belong to."""

    @property
    def join_order(self) -> tuple[int, ...]:
        return self.order or tuple(range(len(self.relations)))

    def query(self) -> JoinQuery:
        columns = tuple(
            OutputColumn(f"c{place}", type_, Ref(f"{slot}.{name}", type_))
            for place, (slot, name) in enumerate(self.shown)
            for type_ in [FIELDS[self.relations[slot]][name]]
        )
        inputs = tuple(JoinInput(name, f"r{slot}") for slot, name in enumerate(self.relations))
        predicates = all_of(condition.predicate for condition in self.conditions)
        return JoinQuery(self.id, self.id, self.sql({}), inputs, predicates, columns, self.distinct)

    def over_rows(self, from_steps: Mapping[str, int]) -> str:
        """The query over the rows that it sees: a join those that were admitted."""
        return self.sql(from_steps, "" if len(self.relations) == 1 else "+")

    def sql(self, from_steps: Mapping[str, int], admitted: str = "") -> str:
        columns = ", ".join(f'r{slot}."{name}"' for slot, name in self.shown)
        tables = ", ".join(f'"{name}{admitted}" r{s}' for s, name in enumerate(self.relations))
        conditions = [condition.sql for condition in self.conditions] + [
            f'r{slot}."{STEP}" >= {from_steps.get(name, 0)}'
            for slot, name in enumerate(self.relations)
        ]
        return (
            f"SELECT {'DISTINCT ' if self.distinct else ''}{columns} FROM {tables} "
            f"WHERE {' AND '.join(conditions)}"
        )


@dataclass(frozen=True)
class UnionSpec:
    """Specs whose rows are put together. `distinct_in` says as in `SetQuery` where equal rows are shown
    once; branches of one set stand side by side."""

    id: str
    branches: tuple[Spec, ...]
    distinct_in: tuple[int | None, ...]

    def query(self) -> SetQuery:
        branches = tuple(branch.query() for branch in self.branches)
        return SetQuery(self.id, self.id, "", branches, self.distinct_in)

    def over_rows(self, from_steps: Mapping[str, int]) -> str:
        parts: list[str] = []
        for within, group in groupby(zip(self.distinct_in, self.branches), lambda pair: pair[0]):
            texts = [branch.over_rows(from_steps) for _, branch in group]
            text = " UNION ALL ".join(f"({text})" for text in texts)
            parts.append(text if within is None else f"(SELECT DISTINCT * FROM ({text}))")
        return " UNION ALL ".join(parts)


def _ref(spec: Sequence[str], slot: int, name: str) -> Ref:
    return Ref(f"{slot}.{name}", FIELDS[spec[slot]][name])


def difference(
    relations: Sequence[str],
    left: tuple[int, str],
    right: tuple[int, str],
    low: int | None,
    high: int | None,
) -> Condition:
    """low <= left - right <= high, of columns of one exact type; the limits are in its own unit."""
    one, other = _ref(relations, *left), _ref(relations, *right)
    values = Values(
        ((None if low is None else Bound(low), None if high is None else Bound(high + 1)),)
    )
    terms = sorted([(1, one), (-1, other)], key=lambda term: term[1].name)
    literal = LiteralPredicate(Linear(tuple(terms)), values)
    if terms[0][0] < 0:
        turned = tuple((-factor, ref) for factor, ref in terms)
        ends = (None if high is None else Bound(-high), None if low is None else Bound(1 - low))
        literal = LiteralPredicate(Linear(turned), Values((ends,)))
    first, second = (_integer_sql(*place, relations) for place in (left, right))
    text = " AND ".join(
        [f"{first} - {second} >= {low}"] * (low is not None)
        + [f"{first} - {second} <= {high}"] * (high is not None)
    )
    return Condition(OrPredicate((literal,)), text)


def _integer_sql(slot: int, name: str, relations: Sequence[str]) -> str:
    type_ = FIELDS[relations[slot]][name]
    column = f'r{slot}."{name}"'
    if type_ == "timestamp":
        return f"epoch_us({column})"
    if type_ == "date":
        return f"date_diff('day', DATE '1970-01-01', {column})"
    if type_.startswith("decimal"):
        return f"CAST({column} * 100 AS HUGEINT)"
    return f"CAST({column} AS HUGEINT)"


def compared(
    relations: Sequence[str], left: tuple[int, str], right: tuple[int, str], signs: set[int]
) -> Condition:
    """The order of two strings or floats is one of some: -1, 0, 1."""
    refs: list[Scalar] = [_ref(relations, *left), _ref(relations, *right)]
    if refs[1].name < refs[0].name:
        refs.reverse()
        signs_here = {-sign for sign in signs}
    else:
        signs_here = signs
    values = Values()
    for sign in signs_here:
        values |= Values((single(sign),))
    literal = LiteralPredicate(Call("compare", tuple(refs), "tinyint"), values)
    one, other = (f'r{slot}."{name}"' for slot, name in (left, right))
    texts = {-1: f"{one} < {other}", 0: f"{one} = {other}", 1: f"{one} > {other}"}
    text = " OR ".join(texts[sign] for sign in sorted(signs)) or "false"
    return Condition(OrPredicate((literal,)), f"({text})")


def constant(
    relations: Sequence[str], place: tuple[int, str], operator: str, value: Any
) -> Condition:
    """A column compared with a constant; of exact types in their own unit. `IS` tests for NULL."""
    ref = _ref(relations, *place)
    exact = ref.type not in ("string", "double")
    column = _integer_sql(*place, relations) if exact else f'r{place[0]}."{place[1]}"'
    subject: Linear | Scalar = Linear(((1, ref),)) if exact else ref
    if operator == "IS":
        return Condition(_alone(subject, Values((), null=True)), f"{column} IS NULL")
    point = None if value != value else value
    before = Bound(point)
    after = Bound(point + 1) if exact else Bound(point, after=True)
    values = {
        "=": Values(((before, after),)),
        "<": Values(((None, before),)),
        ">": Values(((after, None),)),
        "<>": Values(((None, before), (after, None))),
    }[operator]
    text = f"'{value}'::DOUBLE" if isinstance(value, float) else repr(value)
    return Condition(_alone(subject, values), f"{column} {operator} {text}")


def _alone(subject: Linear | Scalar, values: Values) -> OrPredicate:
    return OrPredicate((LiteralPredicate(subject, values),))


def plan_of(specs: Sequence[Spec], version: int = 1) -> NetworkPlan:
    """A network for the queries. Ids of nodes say what they are, so they are stable."""
    nodes: dict[str, NetworkNode] = {}
    feeds: list[Feed] = []

    def add(
        kind: Any, parents: tuple[str, ...], relations: tuple[str, ...], held: PredicateSet
    ) -> str:
        name = f"{kind}({','.join(parents)}|{','.join(relations)}|{held.sql})"
        level = max([nodes[parent].level for parent in parents], default=0) + (kind == "join")
        sequence = max([nodes[parent].sequence for parent in parents], default=0) + 1
        nodes.setdefault(name, NetworkNode(name, kind, parents, relations, held, level, sequence))
        return name

    for spec in specs:
        places = {slot: place for place, slot in enumerate(spec.join_order)}
        open_ = [condition.predicate.moved(places) for condition in spec.conditions]
        relations = tuple(spec.relations[slot] for slot in spec.join_order)
        left = ""
        spared = spec.above
        for place, relation in enumerate(relations):
            mine = [p for p in open_ if p.slots == {place}]
            node = add("source", (), (relation,), PredicateSet())
            if mine:
                node = add("selection", (node,), (relation,), all_of(mine).moved({place: 0}))
            open_ = [p for p in open_ if p not in mine]
            if not place:
                left = node
                continue
            here = [p for p in open_ if max(p.slots) == place]
            open_ = [p for p in open_ if p not in here]
            low = here[: max(0, len(here) - spared)]
            high = [p for p in here if p not in low]
            spared -= len(high)
            left = add("join", (left, node), relations[: place + 1], all_of(low))
            if high:
                left = add("selection", (left,), relations[: place + 1], all_of(high))
        feeds.append(Feed(spec.id, left, tuple(places[slot] for slot in range(len(places)))))
    used = {relation for spec in specs for relation in spec.relations}
    ordered = sorted(nodes.values(), key=lambda node: (node.level, node.sequence))
    return NetworkPlan(
        version,
        tuple(stream(name) for name in STREAMS if name in used),
        tuple(spec.query() for spec in specs),
        tuple(ordered),
        tuple(feeds),
    )


class GeneratedPlans:
    """The networks that the generator makes for queries that come and go."""

    def __init__(self) -> None:
        self._plan, self._index = NetworkPlan(0), ScanIndex()

    def __call__(self, specs: Sequence[Spec | UnionSpec], version: int = 1) -> NetworkPlan:
        queries = [spec.query() for spec in specs]
        live = {query.id for query in queries}
        new = [query for query in queries if query.id not in self._plan.query_by_id]
        gone = [query.id for query in self._plan.queries if query.id not in live]
        streams = [stream(name) for name in STREAMS]
        self._plan = with_queries(
            self._plan, new, gone, streams, self._index, Options(), HeuristicEstimate()
        )
        return self._plan.as_version(version, [query.id for query in queries])


def table(relation: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of a relation as a delta; missing values are NULL."""
    types = {name: arrow_type(type_) for name, type_ in FIELDS[relation].items()}
    types |= {TIME: pa.int64(), STEP: pa.int64()}
    columns = {
        name: pa.array([row.get(name) for row in rows], type_) for name, type_ in types.items()
    }
    return pa.table(columns)


class Oracle:
    """The same queries in DuckDB, over all rows so far."""

    def __init__(self) -> None:
        self._database = duckdb.connect()
        self._database.execute("SET TimeZone = 'UTC'; SET threads = 1")
        self._tables: dict[str, pa.Table] = {}
        self._before: dict[str, Counter[Any]] = {}
        for relation in FIELDS:
            self._put(relation, table(relation, []))
            self._put(f"{relation}+", table(relation, []))

    def _put(self, name: str, rows: pa.Table) -> None:
        self._tables[name] = rows
        self._database.register(name, rows)

    def step(
        self,
        specs: Sequence[Spec | UnionSpec],
        deltas: Mapping[str, pa.Table],
        watermark_before: int,
        from_steps: Mapping[str, Mapping[str, int]],
    ) -> dict[str, Counter[Any]]:
        """The new rows of every query."""
        for relation, rows in deltas.items():
            times = rows.column(TIME).to_pylist()
            above = [
                relation not in STREAMS or (time is not None and time > watermark_before)
                for time in times
            ]
            self._put(relation, pa.concat_tables([self._tables[relation], rows]))
            admitted = rows.filter(pa.array(above, pa.bool_()))
            self._put(f"{relation}+", pa.concat_tables([self._tables[f"{relation}+"], admitted]))
        new: dict[str, Counter[Any]] = {}
        for spec in specs:
            sql = spec.over_rows(from_steps.get(spec.id, {}))
            now = counted(self._database.sql(sql).to_arrow_table())
            new[spec.id] = now - self._before.get(spec.id, Counter())
            self._before[spec.id] = now
        return {query: rows for query, rows in new.items() if rows}


def counted(rows: pa.Table) -> Counter[Any]:
    """Rows and how often they come, in a form in which NaN equals itself."""
    columns = [column.to_pylist() for column in rows.columns]
    return Counter(tuple(_plain(value) for value in row) for row in zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if hasattr(value, "timestamp") and hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None)
    return value


SECOND = 1_000_000
"""Event times are whole seconds, so that bounds on them are met exactly."""
_EXACT = ("k", "g", "d", "m")
_ORDERED = ("s", "x")


def _value(relation: str, name: str) -> st.SearchStrategy[Any]:
    """Few different values of a column, so that joins match; NULL among them."""
    some: dict[str, list[Any]] = {
        "k": [1, 2, 3],
        "g": [1, 2, -(2**63), 2**63 - 1],
        "s": ["", "a", "ab", "é", "\U0001f600"],
        "x": [0.0, -0.0, 1.5, -1.0, float("nan"), float("inf")],
        "m": [Decimal("0.10"), Decimal("1.00"), Decimal("-2.50")]
        + [Decimal("99999999999999999999.01")] * (relation == "b"),
        "d": [date(1969, 12, 31), date(2020, 2, 29), date(2020, 3, 1)],
    }
    return st.sampled_from([*some[name], *some[name], None])


@st.composite
def rows_of(draw: st.DrawFn, relation: str, step: int) -> pa.Table:
    """The rows of a relation in a step; those of a stream around second `step`, some of them late,
    some without a time, some twice."""
    rows: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 5))):
        row = {name: draw(_value(relation, name)) for name in FIELDS[relation] if name != "ts"}
        if relation in STREAMS:
            second = draw(st.sampled_from([*range(step - 4, step + 3), None]))
            row[STEP] = step
            if second is not None:
                row["ts"] = datetime.fromtimestamp(second, UTC)
                row[TIME] = second * SECOND
        else:
            row[STEP] = 0
        rows += [row] * draw(st.sampled_from([1, 1, 1, 2]))
    return table(relation, rows)


@st.composite
def conditions(draw: st.DrawFn, relations: Sequence[str], *, several: bool) -> Condition:
    """A condition on one input, or on several."""
    places = [(slot, name) for slot, relation in enumerate(relations) for name in FIELDS[relation]]
    if not several:
        slot, name = draw(st.sampled_from([place for place in places if place[1] != "ts"]))
        operator = draw(st.sampled_from(["=", "<", ">", "<>", "IS"]))
        value: Any = draw(_value(relations[slot], name).filter(lambda value: value is not None))
        if isinstance(value, Decimal):
            value = int(value * 100)
        elif isinstance(value, date):
            value = value.toordinal() - date(1970, 1, 1).toordinal()
        condition = constant(relations, (slot, name), operator, value)
    else:
        first, second = draw(st.permutations(range(len(relations))))[:2]
        name = draw(st.sampled_from([*_EXACT, "k", "k", *_ORDERED, "ts", "ts"]))
        if name == "ts" and {relations[first], relations[second]} - set(STREAMS):
            name = "k"
        if name in _ORDERED:
            signs = draw(st.sampled_from([{0}, {0}, {-1}, {0, 1}, {-1, 1}]))
            condition = compared(relations, (first, name), (second, name), signs)
        else:
            unit = SECOND if name == "ts" else 1
            low, high = sorted(draw(st.tuples(st.integers(-3, 3), st.integers(-3, 3))))
            if name == "ts":
                ends = draw(st.sampled_from([(low, high), (None, high), (low, None)]))
            else:
                ends = draw(st.sampled_from([(0, 0), (0, 0), (0, 0), (low, high), (None, high)]))
            scaled = [None if end is None else end * unit for end in ends]
            other = draw(st.sampled_from(["k", "g"])) if name in ("k", "g") else name
            condition = difference(relations, (first, name), (second, other), *scaled)
    if draw(st.integers(0, 5)) == 0:
        condition |= draw(conditions(relations, several=several))
    return condition


@st.composite
def specs(draw: st.DrawFn, id_: str) -> Spec:
    """A query on one to three inputs, one of them a stream."""
    count = draw(st.sampled_from([1, 2, 2, 2, 3, 3]))
    relations = ("t",)
    while not set(relations) & set(STREAMS):
        relations = tuple(draw(st.sampled_from(["a", "a", "b", "t"])) for _ in range(count))
    chosen = draw(st.lists(conditions(relations, several=False), max_size=2))
    if count > 1:
        chosen += draw(st.lists(conditions(relations, several=True), min_size=1, max_size=4))
    places = [(slot, name) for slot, relation in enumerate(relations) for name in FIELDS[relation]]
    shown = draw(st.lists(st.sampled_from(places), min_size=1, max_size=3))
    order = tuple(draw(st.permutations(range(count))))
    above = draw(st.integers(0, 2))
    return Spec(id_, relations, tuple(chosen), tuple(shown), draw(st.booleans()), order, above)


def queries_of(count: int) -> st.SearchStrategy[list[Spec]]:
    return st.tuples(*(specs(f"q{number}") for number in range(count))).map(list)


@st.composite
def histories(draw: st.DrawFn, steps: int = 4) -> list[dict[str, pa.Table]]:
    """The deltas of some steps: tables come with the first one, streams at their own speed."""
    deltas = []
    for step in range(1, steps + 1):
        delta = {name: draw(rows_of(name, step)) for name in STREAMS if draw(st.integers(0, 3))}
        if step == 1:
            delta["t"] = draw(rows_of("t", step))
        deltas.append(delta)
    return deltas


def watermark_of(step: int) -> int:
    """After step s: two seconds behind it."""
    return max(0, (step - 2) * SECOND)


@st.composite
def union_specs(draw: st.DrawFn, query: str) -> UnionSpec:
    """Unions of branches, of which some are equal, and some rows are shown once."""
    some = draw(st.lists(specs(query), min_size=1, max_size=3))
    branches = [
        replace(branch, shown=((0, "k"), (0, "s")), distinct=False)
        for branch in draw(st.lists(st.sampled_from(some), min_size=2, max_size=4))
    ]
    kinds = draw(st.sampled_from(["all", "distinct", "mixed"]))
    within = {"all": (None,) * 4, "distinct": (0,) * 4, "mixed": (0, None, 1, 1)}[kinds]
    return UnionSpec(query, tuple(branches), within[: len(branches)])
