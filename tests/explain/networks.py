"""Networks to explain, made by hand: the paper's example, and many selections of one join."""

from __future__ import annotations

from collections.abc import Sequence

from weft.algebra.condition import Bound, Values
from weft.algebra.network.plan import Feed, NetworkNode, NetworkPlan
from weft.algebra.network.query import JoinInput, JoinQuery
from weft.algebra.predicates import Linear, LiteralPredicate, PredicateSet
from weft.algebra.predicates.predicate_set import all_of, any_of
from weft.algebra.query import Field, OutputColumn, StreamSchema
from weft.algebra.scalar import Ref

DAY = 86_400_000_000
COLUMNS = {
    "tranid": "bigint",
    "type_code": "int",
    "amount": "bigint",
    "sbank": "int",
    "rbank": "int",
    "ts": "timestamp",
}
FED = StreamSchema("fed", tuple(Field(n, t) for n, t in COLUMNS.items()), "ts", 10_000_000)


def ref(name: str) -> Ref:
    return Ref(name, COLUMNS[name.split(".", 1)[1]])


def between(low: int | None, high: int | None, *, null: bool = False) -> Values:
    """The integers from `low` to `high`, both included."""
    return Values(
        ((None if low is None else Bound(low), None if high is None else Bound(high + 1)),), null
    )


def column(name: str, low: int | None, high: int | None) -> LiteralPredicate:
    return LiteralPredicate(Linear(((1, ref(name)),)), between(low, high))


def difference(
    first: str, second: str, low: int | None, high: int | None, factors: tuple[int, int] = (1, -1)
) -> LiteralPredicate:
    """`factors[0] * first + factors[1] * second` between two numbers."""
    subject = Linear(((factors[0], ref(first)), (factors[1], ref(second))))
    return LiteralPredicate(subject, between(low, high))


def every(*literals: LiteralPredicate) -> PredicateSet:
    return all_of(any_of([literal]) for literal in literals)


LARGE = every(column("0.type_code", 1000, 1000), column("0.amount", 1_000_001, None))
HALF = every(column("0.type_code", 1000, 1000), column("0.amount", 500_001, None))


def onward(days: int) -> PredicateSet:
    """The receiver's bank sends at least half of the money on, within some days."""
    return every(
        difference("0.rbank", "1.sbank", 0, 0),
        difference("0.amount", "1.amount", None, -1, (1, -2)),
        difference("0.ts", "1.ts", -days * DAY, 0),
    )


def query(name: str, days: int | None = 20, inputs: Sequence[str] = ("r1", "r2")) -> JoinQuery:
    moved = HALF.moved({0: 1})
    on = onward(days) if days is not None else every(difference("0.rbank", "1.sbank", 0, 0))
    outputs = tuple(OutputColumn(f"id{slot}", "bigint", ref(f"{slot}.tranid")) for slot in range(2))
    return JoinQuery(
        f"{name}@1",
        name,
        "",
        tuple(JoinInput("fed", alias) for alias in inputs),
        LARGE & moved & on,
        outputs,
    )


def plan_of_two() -> NetworkPlan:
    """Transfers that go on within 20 days; a second query with 10 days selects from the first's join."""
    nodes = (
        NetworkNode("n0", "source", (), ("fed",), columns=("0.amount", "0.rbank", "0.ts")),
        NetworkNode("n1", "selection", ("n0",), ("fed",), HALF, 0, 1000, ("0.amount", "0.rbank")),
        NetworkNode("n2", "selection", ("n1",), ("fed",), LARGE, 0, 2000, ("0.amount", "0.rbank")),
        NetworkNode(
            "n3",
            "join",
            ("n2", "n1"),
            ("fed", "fed"),
            onward(20),
            1,
            1000,
            ("0.tranid", "1.tranid"),
        ),
        NetworkNode(
            "n4",
            "selection",
            ("n3",),
            ("fed", "fed"),
            every(difference("0.ts", "1.ts", -10 * DAY, None)),
            1,
            2000,
            ("0.tranid", "1.tranid"),
        ),
    )
    feeds = (Feed("within_20@1", "n3", (0, 1)), Feed("within_10@1", "n4", (0, 1)))
    queries = (query("within_20"), query("within_10", 10))
    return NetworkPlan(7, (FED,), queries, nodes, feeds, 5)


def plan_of_many(count: int) -> NetworkPlan:
    """One join, and a selection of it for every query; half of the queries have a join of their own."""
    plan = plan_of_two()
    nodes = list(plan.nodes[:4])
    queries, feeds = [], []
    for number in range(count):
        name = f"q{number:04d}"
        days = number + 21
        queries.append(query(name, days))
        if number % 2:
            join_id = f"j{number}"
            nodes.append(
                NetworkNode(join_id, "join", ("n2", "n1"), ("fed", "fed"), onward(days), 1, number)
            )
            feeds.append(Feed(f"{name}@1", join_id, (0, 1)))
        else:
            bound = every(difference("0.ts", "1.ts", -days * DAY, None))
            nodes.append(
                NetworkNode(f"s{number}", "selection", ("n3",), ("fed", "fed"), bound, 1, number)
            )
            feeds.append(Feed(f"{name}@1", f"s{number}", (0, 1)))
    return NetworkPlan(1, (FED,), tuple(queries), tuple(nodes), tuple(feeds), 9)
