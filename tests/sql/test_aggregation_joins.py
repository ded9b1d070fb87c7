"""Aggregation joins: windows of inputs, instants, selections, attributes, keys, aggregates, result columns."""

from __future__ import annotations

import pytest
from tests.sql.joinagg_support import HOUR, MINUTE, query
from tests.sql.support import FakeAnalyzer, grouped
from tests.sql.support import query as windowed

from weft.algebra.aggregate import Aggregate
from weft.algebra.joinagg.query import AggregationInput, AggregationJoin, Attribute, JoinedAggregate
from weft.algebra.joinagg.sets import aggregates_of
from weft.algebra.joinagg.sources import SIGNATURE
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.query import OutputColumn
from weft.algebra.scalar import Call, Expression, Ref
from weft.kernel.joinagg.panes import COUNT, END
from weft.sql.joinagg.attributes import Attributes

SLIDING = InputWindow("sliding", HOUR)
LANDMARK = InputWindow("landmark")
FROM = "FROM Auction a [WINDOW 2 HOURS], Bid b [WINDOW 1 HOUR]"
PAIR = f"{FROM} WHERE a.auctionID = b.auctionID"


def column(name: str, type_: str) -> Attribute:
    return Attribute(name, Expression(f"`{name}`", type_, (name,)))


def attributes(join: AggregationJoin, slot: int) -> list[str]:
    return [attribute.value.sql for attribute in join.inputs[slot].attributes]


def selections(join: AggregationJoin) -> list[str | None]:
    return [entry.predicate and entry.predicate.sql for entry in join.inputs]


@pytest.mark.parametrize("name", [SIGNATURE, END, COUNT])
def test_a_column_that_is_called_like_one_of_wefts_own_is_another_attribute(name: str) -> None:
    found = Attributes()
    found.add(0, Expression(f"`0.{name}`", "int", (f"0.{name}",)))
    (attribute,) = found.of(0)
    assert attribute.value.columns == (name,) and attribute.text == f"`{name}`"
    assert attribute.name not in {SIGNATURE, END, COUNT}


def test_the_example_of_the_paper_binds_as_it_is_printed() -> None:
    sql = """SELECT A.auctionID, COUNT(B.*)
FROM Auction AS A [WINDOW UNTIL NOW], Bid AS B [WINDOW 1 HOUR],
     Person AS P
WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID AND P.state = "VT"
GROUP BY A.auctionID;
"""
    join = query(sql)
    auctions, bids, people = join.inputs
    assert auctions == AggregationInput(
        "Auction",
        "A",
        LANDMARK,
        None,
        (column("auctionID", "bigint"), column("sellerID", "bigint")),
    )
    assert bids == AggregationInput("Bid", "B", SLIDING, None, (column("auctionID", "bigint"),))
    assert (people.relation, people.window) == ("Person", None)
    assert people.attributes == (column("personID", "bigint"),)
    assert people.predicate is not None and people.predicate.sql == "(`state` = 'VT')"
    assert join.predicates.sql == (
        "`0.auctionID` - `1.auctionID` = 0 AND `0.sellerID` - `2.personID` = 0"
    )
    assert join.keys == (Ref("0.auctionID", "bigint"),)
    assert join.aggregates == (JoinedAggregate(Aggregate("count", (), "bigint"), None),)
    assert join.columns == (
        OutputColumn("at", "timestamp", Ref("at", "timestamp")),
        OutputColumn("auctionID", "bigint", Ref("k0", "bigint")),
        OutputColumn("count(B.*)", "bigint", Ref("a0", "bigint")),
    )
    assert (join.step, join.changes, join.having, join.sql) == (HOUR, False, None, sql)


@pytest.mark.parametrize(
    ("bracket", "window"),
    [
        ("[WINDOW 1 HOUR]", SLIDING),
        ("[window 60 minutes]", SLIDING),
        ("[WINDOW '1 hour']", SLIDING),
        ("[WINDOW INTERVAL 1 HOUR]", SLIDING),
        ("[WINDOW INTERVAL '1' HOUR]", SLIDING),
        ("[WINDOW 1 HOUR SLIDING]", SLIDING),
        ("[WINDOW SLIDING 1 HOUR]", SLIDING),
        ("[WINDOW 1 DAY 30 MINUTES]", InputWindow("sliding", 24 * HOUR + 30 * MINUTE)),
        ("[WINDOW 1 HOUR TUMBLING]", InputWindow("tumbling", HOUR)),
        ("[WINDOW TUMBLING '1 hour']", InputWindow("tumbling", HOUR)),
        ("[WINDOW UNTIL NOW]", LANDMARK),
        ("[Window Landmark]", LANDMARK),
        ("[WINDOW UNBOUNDED]", LANDMARK),
    ],
)
@pytest.mark.parametrize("order", ["Auction AS a {}", "Auction {} AS a", "Auction a {}"])
def test_windows_of_inputs(bracket: str, window: InputWindow, order: str) -> None:
    auctions = order.format(bracket)
    sql = f"SELECT count(*) FROM {auctions} JOIN Bid b [WINDOW 1 HOUR] USING (auctionID)"
    assert query(sql).inputs[0].window == window


@pytest.mark.parametrize(
    ("windows", "every", "step"),
    [
        (("1 HOUR", "1 HOUR"), "", HOUR),
        (("90 MINUTES", "1 HOUR"), "", 30 * MINUTE),
        (("90 MINUTES TUMBLING", "UNTIL NOW"), "", 90 * MINUTE),
        (("1 HOUR", "UNTIL NOW"), "EVERY 10 SECONDS", 10_000_000),
        (("UNTIL NOW", "UNTIL NOW"), "every '1 minute'", MINUTE),
        (("UNTIL NOW", "UNTIL NOW"), "EVERY INTERVAL 1 MINUTE", MINUTE),
        (("UNTIL NOW", "UNTIL NOW"), "EVERY INTERVAL '1' MINUTE;", MINUTE),
        (("1 HOUR", "1 HOUR"), "EVERY 7 HOURS", 7 * HOUR),
    ],
)
def test_instants_are_those_of_every_or_of_the_pane(
    windows: tuple[str, str], every: str, step: int
) -> None:
    from_ = f"FROM Auction a [WINDOW {windows[0]}], Bid b [WINDOW {windows[1]}]"
    where = "WHERE a.auctionID = b.auctionID"
    for rest in (where, f"{where} GROUP BY channel", f"{where} HAVING count(*) > 1"):
        assert query(f"SELECT count(*) {from_} {rest} {every}").step == step


def test_every_may_follow_the_windows_and_may_still_be_a_name() -> None:
    sql = "SELECT every(b.bidPrice > 3) AS every FROM Auction a [WINDOW 1 HOUR] NATURAL JOIN Bid [WINDOW 1 HOUR]"
    join = query(sql.replace("b.bid", "bid") + " EVERY 1 MINUTE")
    assert (join.step, join.inputs[1].alias) == (MINUTE, "Bid")
    assert [c.name for c in join.columns] == ["at", "every"]
    aliased = "SELECT count(*) FROM Auction [WINDOW 1 HOUR] every JOIN Bid [WINDOW 1 HOUR] b ON every.auctionID = b.auctionID"
    assert [entry.alias for entry in query(aliased).inputs] == ["every", "b"]


def test_every_way_to_write_a_join_is_the_same() -> None:
    flat = query(f"SELECT channel, sum(bidPrice) AS s {PAIR} AND startPrice > 5 GROUP BY channel")
    for from_ in (
        "Auction a [WINDOW 2 HOURS] JOIN Bid b [WINDOW 1 HOUR] ON b.auctionID = a.auctionID AND 5 < startPrice",
        "(SELECT auctionID AS id, startPrice FROM Auction [WINDOW 2 HOURS] WHERE startPrice > 5) a "
        "JOIN Bid b [WINDOW 1 HOUR] ON id = auctionID",
        "(SELECT auctionID AS id FROM Auction WHERE startPrice > 5) a [WINDOW 2 HOURS], "
        "Bid [WINDOW 1 HOUR] WHERE id = auctionID",
        "Auction a [WINDOW 2 HOURS] CROSS JOIN Bid b [WINDOW 1 HOUR] "
        "WHERE NOT (startPrice <= 5) AND b.auctionID - a.auctionID = 0",
        "large [WINDOW 2 HOURS] JOIN Bid [WINDOW 1 HOUR] USING (auctionID)",
        "large l [WINDOW 2 HOURS] NATURAL JOIN (SELECT auctionID, bidPrice, channel FROM Bid) [WINDOW 1 HOUR] b",
    ):
        definition = "WITH large AS (SELECT auctionID FROM Auction WHERE startPrice > 5)"
        other = query(
            f"{definition} SELECT channel, sum(bidPrice) AS s FROM {from_} GROUP BY channel"
        )
        for mine, theirs in zip(flat.inputs, other.inputs, strict=True):
            assert (mine.predicate, mine.attributes) == (theirs.predicate, theirs.attributes), from_
            assert (mine.relation, mine.window) == (theirs.relation, theirs.window), from_
        assert other.predicates == flat.predicates, from_
        assert (other.keys, other.aggregates, other.columns) == (
            flat.keys,
            flat.aggregates,
            flat.columns,
        ), from_


def test_a_condition_on_one_input_is_its_selection() -> None:
    join = query(
        f"SELECT count(*) {PAIR} AND bidPrice > 3 AND channel = 'x' AND a.startPrice + 1 < 9"
        " AND upper(channel) = 'X'",
        ansi=False,
    )
    assert selections(join) == [
        "((`startPrice` + cast('1' AS int)) < 9)",
        "((`bidPrice` >= 4) AND (`channel` = 'x') AND (upper(`channel`) = 'X'))",
    ]
    assert [attributes(join, slot) for slot in (0, 1)] == [["`auctionID`"], ["`auctionID`"]]


def test_selections_are_those_of_a_windowed_aggregate() -> None:
    """Equal selections are equal predicates of the stream's plan, so their signatures are shared."""
    where = "price BETWEEN 3 AND 9 AND upper(channel) = 'X' AND (ok OR d > 1.0D)"
    alone = windowed(grouped("count(*)", where=where)).predicate
    from tests.sql.support import STREAMS

    from weft.sql import bind

    join = bind(
        "q",
        f"SELECT count(*) FROM bids b [WINDOW 1 HOUR] JOIN packets p [WINDOW 1 HOUR] ON size = price WHERE {where}",
        STREAMS,
        FakeAnalyzer(),
        query_id="q@1",
    )
    assert isinstance(join, AggregationJoin)
    assert alone is not None and join.inputs[0].predicate == alone


def test_a_selection_that_can_raise_comes_behind_those_before_it() -> None:
    join = query(
        f"SELECT count(*) {PAIR} AND bidPrice > 0 AND startPrice > 1 AND 100 / bidPrice > 7"
    )
    assert selections(join) == [
        "(`startPrice` >= 2)",
        "CASE WHEN (`bidPrice` > 0) THEN ((100 / `bidPrice`) > 7) ELSE false END",
    ]
    assert join.inputs[1].predicate is not None and join.inputs[1].predicate.can_raise


def test_conditions_between_inputs_are_over_attributes() -> None:
    join = query(
        f"SELECT count(*) {PAIR} AND bidPrice >= 2 * startPrice AND (startPrice < 5 OR channel = 'x')"
    )
    assert join.predicates.sql == (
        "(`0.startPrice` <= 4 OR `1.channel` = 'x') AND 2 * `0.startPrice` - `1.bidPrice` <= 0"
        " AND `0.auctionID` - `1.auctionID` = 0"
    )
    assert attributes(join, 0) == ["`auctionID`", "`startPrice`"]
    assert attributes(join, 1) == ["`auctionID`", "`bidPrice`", "`channel`"]
    assert selections(join) == [None, None]


def test_what_only_spark_can_evaluate_is_an_attribute_of_its_input() -> None:
    join = query(
        "SELECT count(*) FROM Bid b [WINDOW 1 HOUR], Person p "
        "WHERE upper(b.channel) = lower(p.name) AND b.bidPrice % 7 <> p.personID"
    )
    assert sorted(attributes(join, 0)) == ["(`bidPrice` % 7)", "upper(`channel`)"]
    assert sorted(attributes(join, 1)) == ["`personID`", "lower(`name`)"]
    names = {f"{slot}.{a.name}" for slot in (0, 1) for a in join.inputs[slot].attributes}
    assert join.predicates.names == names


def test_conditions_that_fall_apart_become_selections() -> None:
    join = query(f"SELECT count(*) {PAIR} AND (a.startPrice > 5 OR a.auctionID <> b.auctionID)")
    assert selections(join)[0] == "`startPrice` >= 6"
    assert join.predicates.sql == "`0.auctionID` - `1.auctionID` = 0"


def test_a_join_that_never_matches_has_no_rows_of_its_first_input() -> None:
    for never in (
        "a.auctionID <> b.auctionID",
        "false",
        "b.bidPrice < 0 AND b.bidPrice > 0",
    ):
        join = query(f"SELECT count(*) {PAIR} AND {never}")
        assert "false" in selections(join), never
    assert selections(query(f"SELECT count(*) {PAIR} AND true")) == [None, None]


def test_keys_on_one_input_are_attributes() -> None:
    join = query(
        f"SELECT a.sellerID, upper(b.channel) AS c, count(*) AS n {PAIR} GROUP BY sellerID, c, 1, upper(channel)"
    )
    seller, channel = join.keys
    assert seller == Ref("0.sellerID", "bigint")
    assert attributes(join, 0) == ["`auctionID`", "`sellerID`"]
    (upper,) = [a for a in join.inputs[1].attributes if a.value.sql == "upper(`channel`)"]
    assert channel == Ref(f"1.{upper.name}", "string")
    assert [c.value for c in join.columns] == [
        Ref("at", "timestamp"),
        Ref("k0", "bigint"),
        Ref("k1", "string"),
        Ref("a0", "bigint"),
    ]


def test_keys_on_several_inputs_are_computed_after_the_join() -> None:
    join = query(f"SELECT bidPrice - startPrice AS rise, count(*) {PAIR} GROUP BY rise")
    difference = Call("-", (Ref("1.bidPrice", "int"), Ref("0.startPrice", "int")), "int")
    assert join.keys == (difference,)
    parts = query(
        f"SELECT count(*) {PAIR} GROUP BY CASE WHEN upper(channel) = 'X' THEN startPrice + 1 ELSE 0 END"
    )
    assert attributes(parts, 0) == ["`auctionID`", "`startPrice`"], (
        "a sum may overflow: after the join"
    )
    assert any("upper(`channel`)" in a for a in attributes(parts, 1))


def test_a_constant_key_is_an_attribute_of_the_first_input() -> None:
    join = query(f"SELECT count(*) {PAIR} GROUP BY 'all'")
    assert attributes(join, 0) == ["'all'", "`auctionID`"]


def test_aggregates_read_one_input_each() -> None:
    join = query(
        f"""SELECT count(*) AS n, count(b.channel) AS c, sum(bidPrice) AS s, avg(startPrice) AS v,
                   min(b.amount) AS lo, count(*) FILTER (WHERE bidPrice > 3) AS f, count(A.*) AS rows, sum(1) AS ones,
                   max_by(channel, bidPrice) AS best, stddev(bidPrice) AS sd, approx_count_distinct(channel) AS d,
                   approx_percentile(bidPrice, 0.5) AS p, last(channel) AS l, count_if(startPrice > 1) AS i,
                   bool_or(bidPrice > 3) AS o
            {PAIR}""",
        ansi=False,
    )
    assert [(a.aggregate.function, a.slot) for a in join.aggregates] == [
        ("count", None),
        ("count", 1),
        ("sum", 1),
        ("avg", 0),
        ("min", 1),
        ("count", 1),
        ("sum", 0),
        ("max_by", 1),
        ("stddev_samp", 1),
        ("approx_count_distinct", 1),
        ("approx_percentile", 1),
        ("last", 1),
        ("count", 0),
        ("bool_or", 1),
    ]
    assert join.columns[7].value == join.columns[1].value == Ref("a0", "bigint")
    assert [a.value.sql for a in join.inputs[1].attributes] == ["`auctionID`"]
    filtered = join.aggregates[5].aggregate.filter
    assert filtered is not None and (filtered.sql, filtered.columns) == (
        "(`bidPrice` > 3)",
        ("bidPrice",),
    )


def test_having_and_expressions_over_aggregates() -> None:
    join = query(
        "SELECT state, sum(startPrice) / count(*) AS mean, at FROM Auction [WINDOW 1 HOUR], Person "
        "WHERE sellerID = personID GROUP BY state HAVING count(*) > 2 AND max(name) < 'x' AND state <> 'NY'"
    )
    assert [c.name for c in join.columns] == ["state", "mean", "at"]
    assert isinstance(join.columns[1].value, Call)
    assert join.having is not None
    assert [a.slot for a in join.aggregates] == [0, None, 1]


def test_the_instant_is_in_front_unless_it_is_selected() -> None:
    def names(items: str, from_: str) -> list[str]:
        return [c.name for c in query(f"SELECT {items} {from_}").columns]

    people = "FROM Auction a [WINDOW 1 HOUR], Person p WHERE sellerID = personID"
    assert names("count(*) AS n", people) == ["at", "n"]
    assert names("count(*) AS n, at", people) == ["n", "at"]
    assert names("AT, count(*) AS n", people) == ["AT", "n"]
    assert names("count(*) AS n, at AS seen", people) == ["at", "n", "seen"]
    assert names("count(*) AS n", f"{people} GROUP BY at, state") == ["at", "n"]
    # Bid has a column of this name: it is meant where the query says `at`.
    assert names("max(at) AS latest", PAIR) == ["at", "latest"]


def test_self_joins_and_joins_of_five() -> None:
    twice = query(
        "SELECT x.channel, count(*) FROM Bid x [WINDOW 1 HOUR], Bid y [WINDOW 10 MINUTES TUMBLING] "
        "WHERE x.bidderID = y.bidderID AND x.auctionID <> y.auctionID GROUP BY x.channel"
    )
    assert [(e.relation, e.alias) for e in twice.inputs] == [("Bid", "x"), ("Bid", "y")]
    assert twice.relations == ("Bid",) and twice.step == 10 * MINUTE
    five = query(
        "SELECT p.state, q.state AS other, count(*) FROM Auction a [WINDOW 1 HOUR], Bid b [WINDOW 1 HOUR], "
        "Person p, Person q, Bid c [WINDOW 1 HOUR] WHERE a.auctionID = b.auctionID AND a.auctionID = c.auctionID "
        "AND p.personID = b.bidderID AND q.personID = c.bidderID AND b.bidPrice < c.bidPrice GROUP BY p.state, q.state"
    )
    assert len(five.inputs) == 5 and len(five.predicates.predicates) == 5


def test_keys_of_different_types_compare_as_in_spark() -> None:
    sql = "SELECT count(*) FROM Bid b [WINDOW 1 HOUR], Person p WHERE b.bidderID = p.personID"
    assert query(sql).predicates.sql == "`0.bidderID` - `1.personID` = 0"
    decimals = "SELECT count(*) FROM Bid b [WINDOW 1 HOUR], Person p WHERE b.amount = p.personID"
    assert query(decimals).predicates.sql == "`0.amount` - 100 * `1.personID` = 0"


def test_columns_of_subqueries_are_their_expressions() -> None:
    join = query(
        "SELECT sum(twice) AS s FROM (SELECT auctionID, 2 * bidPrice AS twice FROM Bid [WINDOW 1 HOUR]) b "
        "JOIN Auction [WINDOW 1 HOUR] a ON a.auctionID = b.auctionID AND twice > startPrice"
    )
    argument = join.aggregates[0].aggregate.arguments[0]
    assert (argument.sql, argument.columns) == ("(2 * `bidPrice`)", ("bidPrice",))
    # The sum may overflow where Spark evaluates it; the comparison is exact.
    assert argument.can_raise
    assert "2 * `0.bidPrice` - `1.startPrice` >= 1" in join.predicates.sql


def test_equal_sets_of_several_queries_are_one() -> None:
    """What an aggregation set is made of does not depend on spelling, order or the other inputs."""
    one = query(f"SELECT channel, sum(bidPrice) {PAIR} AND bidPrice > 3 GROUP BY channel")
    other = query(
        "SELECT sum(B.bidprice) + 1 AS s FROM bid B [WINDOW 60 MINUTES], Person P "
        "WHERE 3 < B.BIDPRICE AND p.personID = b.auctionID GROUP BY `channel`"
    )
    mine, theirs = one.inputs[1], other.inputs[0]
    assert (mine.relation, mine.window) == (theirs.relation, theirs.window)
    assert (mine.predicate, mine.attributes) == (theirs.predicate, theirs.attributes)
    assert aggregates_of(one, 1) == aggregates_of(other, 0)


def test_emit() -> None:
    sql = f"SELECT count(*) {PAIR}"
    assert [query(sql, emit=emit).changes for emit in (None, "full", "changes")] == [
        False,
        False,
        True,
    ]
