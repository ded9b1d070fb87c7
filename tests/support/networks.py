"""Join queries made by hand or at random, and a network evaluated row by row: the oracle of networks.

Rows are mappings from a relation's columns to integers or None. A node's rows carry the numbers of
the source rows that they are made of, and only the columns that the node says it has. A row of a union
has a number only for the slots of the parent that it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from weft.algebra.condition import Bound, Values
from weft.algebra.network.plan import PARTNER_KINDS, NetworkNode, NetworkPlan
from weft.algebra.network.query import JoinInput, JoinQuery, Partner
from weft.algebra.network.sets import NetworkQuery, SetQuery, placed
from weft.algebra.predicates import Linear, LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.predicate_set import all_of, any_of
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.algebra.query import Field, OutputColumn, StreamSchema
from weft.algebra.scalar import Ref

Row = Mapping[str, int | None]
ABSENT = -1
"""The number for a slot of a union that a row has no values in."""
COLUMNS = ("a", "b", "c")
STREAMS = tuple(
    StreamSchema(name, tuple(Field(column, "bigint") for column in COLUMNS), "a", 0)
    for name in ("F", "G")
)


def ref(name: str) -> Ref:
    return Ref(name, "bigint")


def linear(**terms: int) -> Linear:
    """`linear(a0=1, b1=-1)` is `0.a - 1.b`."""
    pairs = sorted((column_name(int(key[-1]), key[:-1]), factor) for key, factor in terms.items())
    sign = 1 if pairs[0][1] > 0 else -1
    return Linear(tuple((sign * factor, ref(name)) for name, factor in pairs))


def between(low: int | None, high: int | None, *, null: bool = False) -> Values:
    """The integers from `low` to `high`, both included."""
    return Values(
        ((None if low is None else Bound(low), None if high is None else Bound(high + 1)),), null
    )


def literal(subject: Linear, low: int | None, high: int | None) -> OrPredicate:
    return any_of([LiteralPredicate(subject, between(low, high))])


def join_query(
    query_id: str, relations: Sequence[str], predicates: PredicateSet, outputs: Sequence[str] = ()
) -> JoinQuery:
    inputs = tuple(JoinInput(relation, f"r{slot}") for slot, relation in enumerate(relations))
    names = outputs or [column_name(slot, "a") for slot in range(len(relations))]
    columns = tuple(OutputColumn(name, "bigint", ref(name)) for name in names)
    return JoinQuery(query_id, query_id, "", inputs, predicates, columns)


def subject_value(subject: Any, row: Row) -> int | None:
    assert isinstance(subject, Linear)
    total = 0
    for factor, column in subject.terms:
        value = row[column.name]
        if value is None:
            return None
        total += factor * value
    return total


def contains(values: Values, value: int | None) -> bool:
    if value is None:
        return values.null
    for low, high in values.intervals:
        above = low is None or value >= int(str(low.value))
        below = high is None or value < int(str(high.value))
        if above and below:
            return True
    return False


def passes(predicates: PredicateSet, row: Row) -> bool:
    return all(
        any(contains(lit.values, subject_value(lit.subject, row)) for lit in predicate.literals)
        for predicate in predicates.predicates
    )


def joined_row(rows: Sequence[Row]) -> dict[str, int | None]:
    """Rows side by side, with columns named by slot."""
    return {
        column_name(slot, column): value
        for slot, row in enumerate(rows)
        for column, value in row.items()
    }


def direct_rows(
    query: NetworkQuery, relations: Mapping[str, Sequence[Row]]
) -> list[tuple[int, ...]]:
    """The rows of a query by trying all combinations of the rows of each branch's inputs."""
    rows: list[tuple[int, ...]] = []
    for first, branch in placed(query):
        inputs = [list(enumerate(relations[entry.relation])) for entry in branch.inputs]
        for combination in product(*inputs):
            together = [row for _, row in combination]
            if passes(branch.predicates, joined_row(together)) and _has_its_way(
                branch, together, relations
            ):
                numbers = tuple(number for number, _ in combination)
                rows.append(alone(numbers, first, len(query.inputs)))
    return sorted(rows)


def _has_its_way(
    branch: JoinQuery, rows: Sequence[Row], relations: Mapping[str, Sequence[Row]]
) -> bool:
    """Whether rows have a match in their query's partner, if they should, or none."""
    partner = branch.partner
    if partner is None:
        return True
    found = any(
        passes(partner.predicates, joined_row(others))
        and passes(partner.matching, joined_row([*rows, *others]))
        for others in product(*(relations[entry.relation] for entry in partner.inputs))
    )
    return found == (partner.kind == "semi-join")


def alone(numbers: tuple[int, ...], first: int, slots: int) -> tuple[int, ...]:
    """The numbers of some slots among all those of a union."""
    behind = slots - first - len(numbers)
    return (ABSENT,) * first + numbers + (ABSENT,) * behind


NodeRow = tuple[tuple[int, ...], dict[str, int | None]]


def node_rows(
    plan: NetworkPlan, relations: Mapping[str, Sequence[Row]]
) -> dict[str, list[NodeRow]]:
    """The rows of every node, each computed from its parents' rows and columns alone."""
    rows: dict[str, list[NodeRow]] = {}
    for node in plan.nodes:
        parents = [rows[parent] for parent in node.parents]
        if node.kind in PARTNER_KINDS:
            rows[node.id] = _with_partner(node, *parents)
            continue
        rows[node.id] = [
            (numbers, {name: values[name] for name in node.columns})
            for numbers, values in _candidates(plan, node, parents, relations)
            if passes(node.predicates, values)
        ]
    return rows


def _candidates(
    plan: NetworkPlan,
    node: NetworkNode,
    parents: Sequence[list[NodeRow]],
    relations: Mapping[str, Sequence[Row]],
) -> list[NodeRow]:
    if node.kind == "source":
        stored = enumerate(relations[node.relations[0]])
        return [((number,), joined_row([row])) for number, row in stored]
    if node.kind == "selection":
        return parents[0]
    if node.kind == "union":
        return _united(node, [plan.node_by_id[parent] for parent in node.parents], parents)
    left, right = parents
    return [_paired(row, other) for row in left for other in right]


def _paired(row: NodeRow, other: NodeRow) -> NodeRow:
    moved = {
        column_name(slot_of(name) + len(row[0]), plain_name(name)): value
        for name, value in other[1].items()
    }
    return row[0] + other[0], row[1] | moved


def _with_partner(
    node: NetworkNode, left: Sequence[NodeRow], right: Sequence[NodeRow]
) -> list[NodeRow]:
    wanted = node.kind == "semi-join"
    return [
        (
            alone(row[0], 0, len(node.relations)),
            {name: row[1][name] for name in node.columns},
        )
        for row in left
        if any(passes(node.predicates, _paired(row, other)[1]) for other in right) == wanted
    ]


def _united(
    union: NetworkNode, above: Sequence[NetworkNode], parents: Sequence[list[NodeRow]]
) -> list[NodeRow]:
    rows: list[NodeRow] = []
    first = 0
    for node, of_parent in zip(above, parents, strict=True):
        for numbers, values in of_parent:
            shifted = {
                column_name(slot_of(name) + first, plain_name(name)): value
                for name, value in values.items()
            }
            absent = dict.fromkeys(union.columns)
            rows.append((alone(numbers, first, len(union.relations)), absent | shifted))
        first += len(node.relations)
    return rows


def network_rows(
    plan: NetworkPlan, relations: Mapping[str, Sequence[Row]]
) -> dict[str, list[tuple[int, ...]]]:
    """The rows of every query, taken from the node that feeds it."""
    rows = node_rows(plan, relations)
    results = {}
    for feed in plan.feeds:
        query = plan.query_by_id[feed.query]
        results[query.id] = sorted(
            tuple(numbers[slot] for slot in feed.slots) for numbers, _ in rows[feed.node]
        )
        for _, values in rows[feed.node]:
            for name in query.output_names:
                values[column_name(feed.slots[slot_of(name)], plain_name(name))]
    return results


def relation_rows() -> st.SearchStrategy[dict[str, list[dict[str, int | None]]]]:
    value = st.none() | st.integers(0, 4)
    row = st.fixed_dictionaries(dict.fromkeys(COLUMNS, value))
    return st.fixed_dictionaries({stream.name: st.lists(row, max_size=5) for stream in STREAMS})


@st.composite
def or_predicates(draw: st.DrawFn, slots: int) -> OrPredicate:
    """One or two literals on one slot or on the difference of two."""
    return any_of(draw(st.lists(literals(slots), min_size=1, max_size=2)))


@st.composite
def literals(draw: st.DrawFn, slots: int) -> LiteralPredicate:
    column = st.sampled_from(COLUMNS)
    first = draw(st.integers(0, slots - 1))
    second = draw(st.integers(0, slots - 1))
    one, other = column_name(first, draw(column)), column_name(second, draw(column))
    if one == other or draw(st.integers(0, 3)) == 0:
        subject = Linear(((1, ref(one)),))
    else:
        low_name, high_name = sorted((one, other))
        subject = Linear(((1, ref(low_name)), (-1, ref(high_name))))
    low = draw(st.none() | st.integers(-1, 2))
    width = draw(st.sampled_from([0, 0, 1, 2, None]))
    high = None if width is None else (0 if low is None else low) + width
    values = between(low, high, null=draw(st.integers(0, 5)) == 0)
    if draw(st.integers(0, 6)) == 0:
        values = ~values
    return LiteralPredicate(subject, values)


@st.composite
def join_queries(draw: st.DrawFn, query_id: str, most_inputs: int = 3) -> JoinQuery:
    """Queries that often repeat each other's conditions: constants come from a small set."""
    relations = draw(st.lists(st.sampled_from(["F", "F", "G"]), min_size=1, max_size=most_inputs))
    count = len(relations)
    predicates = list(draw(st.lists(or_predicates(count), max_size=2)))
    for slot in range(count - 1):
        if draw(st.integers(0, 9)):
            names = sorted((f"{slot}.{draw(st.sampled_from('ab'))}", f"{slot + 1}.b"))
            key = Linear(((1, ref(names[0])), (-1, ref(names[1]))))
            predicates.append(any_of([LiteralPredicate(key, between(0, 0))]))
        if draw(st.booleans()):
            span = linear(**{f"c{slot}": 1, f"c{slot + 1}": -1})
            predicates.append(any_of([LiteralPredicate(span, between(0, draw(st.integers(0, 3))))]))
    for slot in range(count):
        if draw(st.booleans()):
            low = draw(st.integers(0, 3))
            predicates.append(literal(linear(**{f"a{slot}": 1}), low, None))
        if draw(st.integers(0, 2)) == 0:
            point = draw(st.integers(1, 2))
            predicates.append(literal(linear(**{f"b{slot}": 1}), point, point))
    outputs = draw(
        st.lists(
            st.builds(column_name, st.integers(0, count - 1), st.sampled_from(COLUMNS)),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    query = join_query(query_id, relations, all_of(predicates), outputs)
    return replace(query, partner=draw(partners(count))) if draw(st.integers(0, 4)) == 0 else query


@st.composite
def partners(draw: st.DrawFn, slots: int) -> Partner:
    """What rows of a query must have a match in, or none. Bounds on time are left out here."""
    names = sorted((f"{draw(st.integers(0, slots - 1))}.a", f"{slots}.a"))
    key = any_of(
        [LiteralPredicate(Linear(((1, ref(names[0])), (-1, ref(names[1])))), between(0, 0))]
    )
    selection = literal(linear(b0=1), draw(st.integers(0, 1)), None)
    return Partner(
        draw(st.sampled_from(["semi-join", "anti-join"])),
        (JoinInput(draw(st.sampled_from(["F", "G"])), "p"),),
        all_of([selection] * draw(st.integers(0, 1))),
        all_of([key]),
    )


@st.composite
def set_queries(draw: st.DrawFn, query_id: str) -> SetQuery:
    """Unions of two to four branches, some of them equal."""
    some = draw(st.lists(join_queries(query_id, most_inputs=2), min_size=1, max_size=3))
    branches = [
        join_query(
            query_id, [entry.relation for entry in branch.inputs], branch.predicates, ["0.a"]
        )
        for branch in draw(st.lists(st.sampled_from(some), min_size=2, max_size=4))
    ]
    return SetQuery(query_id, query_id, "", tuple(branches), (None,) * len(branches))


def network_queries(query_id: str) -> st.SearchStrategy[NetworkQuery]:
    return st.one_of(join_queries(query_id), set_queries(query_id))
