"""Filters and joins: inputs, names, predicates, result columns."""

from __future__ import annotations

import pytest
from tests.sql.support import FakeAnalyzer, join
from tests.sql.support import query as windowed

from weft.algebra.network.query import JoinInput, JoinQuery
from weft.algebra.predicates import PredicateSet
from weft.algebra.query import Field, OutputColumn, StreamSchema
from weft.algebra.scalar import Call, Literal, Opaque, Ref
from weft.sql import bind

PEOPLE = {"people": (Field("name", "string"), Field("city", "string"), Field("age", "int"))}
PAIR = "FROM bids a, bids b WHERE a.auction = b.auction"


def literals(predicates: PredicateSet) -> list[str]:
    return [predicate.sql for predicate in predicates.predicates]


def conditions(sql: str, **options: object) -> list[str]:
    """The conditions of a query, in their canonical form."""
    return literals(join(sql, **options).predicates)


def test_a_filter_is_a_join_of_one_input() -> None:
    sql = "SELECT price, channel AS c FROM bids WHERE price > 17 AND channel = 'Google'"
    assert join(sql) == JoinQuery(
        id="q@1",
        name="q",
        sql=sql,
        inputs=(JoinInput("bids", "bids"),),
        predicates=join(sql).predicates,
        columns=(
            OutputColumn("price", "int", Ref("0.price", "int")),
            OutputColumn("c", "string", Ref("0.channel", "string")),
        ),
    )
    assert conditions(sql) == ["`0.channel` = 'Google'", "`0.price` >= 18"]


def test_a_query_without_conditions_takes_every_row() -> None:
    assert join("SELECT price FROM bids").predicates == PredicateSet()
    assert join("SELECT price FROM bids WHERE true").predicates == PredicateSet()


def test_every_way_to_write_a_join_is_the_same() -> None:
    flat = join(f"SELECT a.price AS p, b.price AS q {PAIR} AND a.price < 5")
    for from_ in (
        "bids a JOIN bids b ON a.auction = b.auction WHERE a.price < 5",
        "bids a INNER JOIN bids b ON b.auction = a.auction AND a.price < 5",
        "bids AS a CROSS JOIN bids AS b WHERE 5 > a.price AND b.auction = a.auction",
        "(bids a JOIN bids b ON a.auction = b.auction AND a.price < 5)",
        "(SELECT * FROM bids WHERE price < 5) a JOIN bids b ON a.auction = b.auction",
        "(SELECT auction AS k, price FROM bids) a, bids b WHERE a.k = b.auction AND a.price < 5",
        "(SELECT auction, price FROM bids) a(k, price), BIDS b WHERE k = auction AND a.price < 5",
        "STREAM bids a, STREAM(bids) b WHERE a.auction = b.auction AND NOT a.price >= 5",
    ):
        other = join(f"SELECT a.price AS p, b.price AS q FROM {from_}")
        assert other.predicates == flat.predicates, from_
        assert (other.columns, other.relations) == (flat.columns, flat.relations), from_


def test_common_table_expressions_are_merged() -> None:
    flat = join(f"SELECT a.price AS p, b.d AS q {PAIR} AND a.price < 5 AND b.price < 5")
    cte = join(
        """WITH cheap AS (SELECT auction, price, d FROM bids WHERE price < 5),
             renamed(k, p, q) AS (SELECT * FROM cheap)
           SELECT one.p, two.q FROM renamed one JOIN renamed AS two ON one.k = two.k"""
    )
    assert (cte.predicates, cte.columns) == (flat.predicates, flat.columns)
    assert cte.relations == flat.relations
    assert [entry.relation for entry in cte.inputs] == ["bids", "bids"]


def test_a_definition_may_have_the_name_of_the_stream_it_reads() -> None:
    cte = join("WITH bids AS (SELECT price FROM bids WHERE price > 1) SELECT price FROM bids")
    assert literals(cte.predicates) == ["`0.price` >= 2"]


def test_definitions_inside_subqueries() -> None:
    nested = join("SELECT p FROM (WITH c AS (SELECT price AS p FROM bids) SELECT p FROM c) x")
    assert nested.columns == (OutputColumn("p", "int", Ref("0.price", "int")),)


def test_columns_of_subqueries_are_their_expressions() -> None:
    assert conditions(
        "SELECT twice FROM (SELECT 2 * price AS twice, d FROM bids WHERE d > 1.0D) WHERE twice > 7"
    ) == ["`0.d` > 1.0", "`0.price` >= 4"]


def test_using_and_natural_join_columns_of_one_name() -> None:
    joined = join("SELECT * FROM (SELECT auction, price FROM bids) a "
                 "JOIN (SELECT d, auction FROM bids) b USING (auction)")  # fmt: skip
    assert [(column.name, column.value) for column in joined.columns] == [
        ("auction", Ref("0.auction", "bigint")),
        ("price", Ref("0.price", "int")),
        ("d", Ref("1.d", "double")),
    ]
    assert literals(joined.predicates) == ["`0.auction` - `1.auction` = 0"]
    natural = join("SELECT b.auction FROM (SELECT auction, price FROM bids) a "
                   "NATURAL JOIN (SELECT d, auction FROM bids) b")  # fmt: skip
    assert natural.predicates == joined.predicates
    assert natural.columns[0].value == Ref("1.auction", "bigint")


def test_using_twice_keeps_the_first_column() -> None:
    joined = join(
        "SELECT * FROM (SELECT auction FROM bids) a JOIN (SELECT auction FROM bids) b USING (auction) "
        "JOIN (SELECT auction, d FROM bids) c USING (auction)"
    )
    assert [column.name for column in joined.columns] == ["auction", "d"]
    assert literals(joined.predicates) == [
        "`0.auction` - `1.auction` = 0",
        "`0.auction` - `2.auction` = 0",
    ]


def test_a_comma_groups_from_the_left_like_join() -> None:
    joined = join("SELECT a.d FROM bids a, bids b JOIN bids c ON a.d = c.d WHERE a.d = b.d")
    assert literals(joined.predicates) == ["`0.d` = `1.d`", "`0.d` = `2.d`"]


def test_stars() -> None:
    assert [column.name for column in join("SELECT * FROM packets").columns] == ["Time", "size"]
    joined = join("SELECT p.*, price FROM bids JOIN packets p ON size = price")
    assert [(column.name, column.value) for column in joined.columns] == [
        ("Time", Ref("1.Time", "timestamp")),
        ("size", Ref("1.size", "bigint")),
        ("price", Ref("0.price", "int")),
    ]


def test_names_of_results_are_sparks() -> None:
    joined = join(
        "SELECT a.price + b.price, a.PRICE, - a.d, upper(a.channel), 1 AS one, one + 1 AS two "
        "FROM bids a JOIN bids b ON a.d = b.d",
        FakeAnalyzer(names={"upper( `channel` )": "upper(channel)"}),
    )
    assert [column.name for column in joined.columns] == [
        "(price + price)",
        "PRICE",
        "(- d)",
        "upper(channel)",
        "one",
        "two",
    ]


def test_result_columns_are_scalars_or_spark_sql() -> None:
    joined = join(
        "SELECT price + 1 AS n, upper(channel) AS u, dec * 2 AS m, price / d AS r, day + 1 AS t "
        "FROM bids"
    )
    assert [(column.type, column.value) for column in joined.columns] == [
        ("int", Call("+", (Ref("0.price", "int"), Literal(1, "int")), "int")),
        ("string", Opaque("upper(`0.channel`)", ("0.channel",), "string")),
        ("decimal(12,2)", Opaque("(`0.dec` * 2)", ("0.dec",), "decimal(12,2)")),
        ("double", Opaque("(`0.price` / `0.d`)", ("0.d", "0.price"), "double")),
        ("date", Opaque("(`0.day` + 1)", ("0.day",), "date")),
    ]


def test_distinct() -> None:
    assert join("SELECT DISTINCT price FROM bids").distinct
    assert not join("SELECT ALL price FROM bids").distinct


def test_conditions_that_only_spark_evaluates_name_their_columns() -> None:
    joined = join("SELECT price FROM bids WHERE length(channel) > 3 AND lower(channel) = 'x'")
    subjects = {
        literal.subject
        for predicate in joined.predicates.predicates
        for literal in predicate.literals
    }
    assert subjects == {
        Opaque("length(`0.channel`)", ("0.channel",), "int"),
        Opaque("lower(`0.channel`)", ("0.channel",), "string"),
    }


def test_beside_several_streams_tables_are_inputs_like_streams() -> None:
    joined = join(
        "SELECT b.price, p.city FROM bids b JOIN people p ON b.channel = p.name AND p.age > 30 "
        "JOIN packets q ON q.size = b.price",
        tables=PEOPLE,
    )
    assert joined.inputs == (
        JoinInput("bids", "b"),
        JoinInput("people", "p"),
        JoinInput("Packets", "q"),
    )
    assert literals(joined.predicates.within({0, 1})) == [
        "`0.channel` = `1.name`",
        "`1.age` >= 31",
    ]


def test_conditions_that_never_hold_are_accepted() -> None:
    assert join(f"SELECT a.price {PAIR} AND a.price > 3 AND a.price < 2").predicates.never
    assert join("SELECT a.price FROM bids a, bids b WHERE false").predicates.never


def test_a_cross_join_is_allowed_where_it_is_written() -> None:
    joined = join("SELECT a.price FROM bids a CROSS JOIN packets p")
    assert len(joined.inputs) == 2 and joined.predicates == PredicateSet()


def test_a_chain_of_inferred_connections_counts() -> None:
    joined = join(
        "SELECT a.price FROM bids a, bids b, packets p WHERE a.price = b.price AND p.size = b.price"
    )
    assert len(joined.inputs) == 3


@pytest.mark.parametrize("count", [2, 8, 15])
def test_wide_joins(count: int) -> None:
    streams = ", ".join(f"bids b{index}" for index in range(count))
    links = " AND ".join(f"b{index}.price = b{index + 1}.price" for index in range(count - 1))
    assert len(join(f"SELECT b0.price FROM {streams} WHERE {links}").inputs) == count


def test_a_join_asks_spark_nothing_that_weft_knows() -> None:
    analyzer = FakeAnalyzer()
    join(f"SELECT a.price {PAIR} AND a.d < b.d AND a.dec >= 0.5 * b.dec AND a.ok", analyzer)
    assert analyzer.asked == []


def test_what_spark_is_asked_has_the_columns_of_the_question_only() -> None:
    class Seeing(FakeAnalyzer):
        seen: tuple[Field, ...] = ()

        def types(self, fields, expressions):  # type: ignore[no-untyped-def]
            self.seen = fields
            return super().types(fields, expressions)

    question = "from_json(`1.channel`, 'n INT')"
    analyzer = Seeing({question: "int"})
    join(f"SELECT from_json(b.channel, 'n INT') AS n {PAIR}", analyzer)
    assert analyzer.seen == (Field("1.channel", "string"),)


def test_subqueries_are_merged_for_windowed_aggregates() -> None:
    group = "GROUP BY window(t, '1 hour'), k"
    flat = windowed(
        "SELECT auction AS k, count(*) AS n, sum(price + 1) AS s FROM bids WHERE d > 1 AND ok "
        "GROUP BY window(ts, '1 hour'), auction"
    )
    for from_ in (
        "(SELECT auction AS k, price + 1 AS p, ts AS t, ok FROM bids WHERE d > 1) WHERE ok",
        "(SELECT auction AS k, price + 1 AS p, ts AS t FROM bids WHERE ok AND d > 1) x",
    ):
        merged = windowed(f"SELECT k, count(*) AS n, sum(p) AS s FROM {from_} {group}")
        assert merged.keys == flat.keys and merged.window == flat.window, from_
        assert merged.predicate is not None and flat.predicate is not None
        assert merged.predicate.condition == flat.predicate.condition, from_
        assert merged.aggregates == flat.aggregates and merged.columns == flat.columns, from_
    cte = windowed(
        "WITH b AS (SELECT auction AS k, price + 1 AS p, ts AS t FROM bids WHERE d > 1 AND ok) "
        f"SELECT k, count(*) AS n, sum(p) AS s FROM b {group}"
    )
    assert (cte.keys, cte.aggregates, cte.columns) == (flat.keys, flat.aggregates, flat.columns)


def test_a_condition_that_can_raise_stays_behind_those_before_it() -> None:
    merged = windowed(
        "SELECT count(*) FROM (SELECT ts, 1 / d AS r FROM bids WHERE d <> 0) WHERE r > 1 "
        "GROUP BY window(ts, '1 hour')"
    )
    assert merged.predicate is not None and merged.predicate.can_raise
    assert merged.predicate.sql.startswith("CASE WHEN (`d` <> 0) THEN ((1 / `d`) > 1) ELSE")


TRANSFERS = """SELECT r1.tranid AS t1, r2.tranid AS t2, r3.tranid AS t3
FROM F r1, F r2, F r3
WHERE r2.type_code = 1000 AND r3.type_code = 1000 AND r1.type_code = 1000
  AND r1.amount > 1000000 AND r1.rbank_aba = r2.sbank_aba
  AND r1.benef_account = r2.orig_account AND r2.amount > 0.5 * r1.amount
  AND r1.tran_date <= r2.tran_date AND r2.tran_date <= r1.tran_date + {span}
  AND r2.rbank_aba = r3.sbank_aba AND r2.benef_account = r3.orig_account
  AND r2.amount = r3.amount
  AND r2.tran_date <= r3.tran_date AND r3.tran_date <= r2.tran_date + {span};"""
"""The query Q1 of ARGUS, section 3 (20 days), and Q2 (10 days)."""

DAY = 86_400_000_000


def fraud(span: str, amount: str, date: str, zone: str | None = "UTC") -> JoinQuery:
    types = {"tranid": "bigint", "type_code": "int", "tran_date": date, "amount": amount}
    names = ("sbank_aba", "orig_account", "rbank_aba", "benef_account")
    fields = [*types.items(), *((name, "string") for name in names), ("ts", "timestamp")]
    stream = StreamSchema("F", tuple(Field(*pair) for pair in fields), "ts", 0)
    analyzer = FakeAnalyzer()
    sql = TRANSFERS.format(span=span)
    query = bind("q", sql, {"F": stream}, analyzer, query_id="q@1", time_zone=zone)
    assert isinstance(query, JoinQuery), query
    assert analyzer.asked == []
    return query


@pytest.mark.parametrize(
    ("amount", "large", "half"),
    [
        ("bigint", "1000001", "500001"),
        ("int", "1000001", "500001"),
        ("decimal(18,2)", "1000000.01", "500000.01"),
    ],
)
@pytest.mark.parametrize(
    ("date", "span", "limit"),
    [
        ("date", "20", 20),
        ("date", "INTERVAL '20' DAY", 20),
        ("timestamp", "INTERVAL 20 DAYS", 20 * DAY),
    ],
)
def test_the_papers_first_query(
    amount: str, large: str, half: str, date: str, span: str, limit: int
) -> None:
    assert literals(fraud(span, amount, date).predicates) == [
        f"(`0.tran_date` - `1.tran_date` >= -{limit} AND `0.tran_date` - `1.tran_date` <= 0)",
        f"(`1.tran_date` - `2.tran_date` >= -{limit} AND `1.tran_date` - `2.tran_date` <= 0)",
        "`0.amount` - 2 * `1.amount` <= -1",
        f"`0.amount` >= {large}",
        "`0.benef_account` = `1.orig_account`",
        "`0.rbank_aba` = `1.sbank_aba`",
        "`0.type_code` = 1000",
        "`1.amount` - `2.amount` = 0",
        f"`1.amount` >= {half}",
        "`1.benef_account` = `2.orig_account`",
        "`1.rbank_aba` = `2.sbank_aba`",
        "`1.type_code` = 1000",
        f"`2.amount` >= {half}",
        "`2.type_code` = 1000",
    ]


def test_the_papers_second_query_is_implied_to_be_narrower() -> None:
    first, second = fraud("20", "bigint", "date"), fraud("10", "bigint", "date")
    assert second.predicates.implies(first.predicates)
    assert not first.predicates.implies(second.predicates)


def test_doubles_are_not_moved_but_bounded() -> None:
    texts = literals(fraud("20", "double", "date").predicates)
    assert "(`0.amount` * cast('0.5' AS double)) < `1.amount`" in texts
    assert "`1.amount` = `2.amount`" in texts and "`1.amount` > 500000.0" in texts


def test_whole_days_follow_the_calendar_of_a_zone_with_daylight_saving() -> None:
    texts = literals(fraud("INTERVAL 20 DAYS", "bigint", "timestamp", "Europe/Berlin").predicates)
    assert any("(`0.tran_date` + INTERVAL 20 DAYS)" in text for text in texts)
    hours = literals(fraud("INTERVAL 20 HOURS", "bigint", "timestamp", "Europe/Berlin").predicates)
    assert any(f">= -{20 * DAY // 24}" in text for text in hours)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ts >= TIMESTAMP '2020-01-01 00:00:00'", "`0.ts` >= "),
        ("ts >= '2020-01-01'", "`0.ts` >= "),
        ("day = '2020-01-01'", "`0.day` = "),
        ("day BETWEEN '2020-01-01' AND DATE '2020-02-01'", "(`0.day` >= "),
        ("dec > 1.5", "`0.dec` >= 1.51"),
        ("dec > 1.555", "`0.dec` >= 1.56"),
        ("dec = 1.555", "false"),
        ("- dec < 1", "`0.dec` >= -0.99"),
        ("auction < dec", "100 * `0.auction` - `0.dec` <= -1"),
        ("cast(price AS decimal(12,2)) > 1.5", "`0.price` >= 2"),
        ("datediff(day, DATE '2020-01-01') > 3", "`0.day` >= "),
        ("date_add(day, 3) > DATE '2020-01-01'", "`0.day` >= "),
        ("date_sub(day, price) > DATE '2020-01-01'", "`0.day` - `0.price` >= "),
        ("5 + day > DATE '2020-01-01'", "`0.day` >= "),
        ("ts - ts < INTERVAL 1 HOUR", "`0.ts` IS NOT NULL"),
        ("tiny + 1 > 3", "`0.tiny` >= 3"),
        ("auction + 1 > price * 2", "`0.auction` - 2 * `0.price` >= 0"),
    ],
)
def test_exact_conditions(text: str, expected: str) -> None:
    joined = join(f"SELECT price FROM bids WHERE {text}", time_zone="UTC")
    assert joined.predicates.sql.startswith(expected), joined.predicates.sql


def test_exact_parts_inside_other_expressions_are_left_to_spark() -> None:
    joined = join("SELECT price FROM bids WHERE CASE WHEN ok THEN dec * 2 ELSE dec * 3 END > 7")
    (predicate,) = joined.predicates.predicates
    (literal,) = predicate.literals
    assert isinstance(literal.subject, Call) and literal.subject.operator == "case"
    assert literal.subject.arguments[1] == Opaque(
        "(`0.dec` * cast('2' AS decimal(1,0)))", ("0.dec",), "decimal(12,2)"
    )
