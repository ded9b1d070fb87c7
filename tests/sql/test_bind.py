"""Queries that weft shares: windows, keys, aggregates, outputs."""

from __future__ import annotations

import time

import pytest
from tests.sql.support import STREAMS, FakeAnalyzer, grouped, query

from weft.algebra import codec
from weft.algebra.aggregate import Aggregate
from weft.algebra.query import Field, Query, StreamSchema
from weft.algebra.scalar import Call, Expression, Literal, Opaque, Ref
from weft.algebra.types import WINDOW
from weft.algebra.window import Window
from weft.errors import SqlError
from weft.sql import bind

HOUR, MINUTE, SECOND = 3_600_000_000, 60_000_000, 1_000_000
TYPICAL = """SELECT auction, window.start AS start, COUNT(*) AS n, AVG(price) AS p FROM bids
WHERE channel = 'Google' AND price > 17
GROUP BY window(ts, '1 hour', '1 minute'), auction HAVING COUNT(*) > 5"""

PRICE = Expression("`price`", "int", ("price",))
COUNT = Aggregate("count", (), "bigint")


def test_a_typical_query() -> None:
    found = query(TYPICAL)
    assert found == Query(
        id="q@1",
        name="q",
        sql=TYPICAL,
        stream="bids",
        window=Window(HOUR, MINUTE),
        keys=(Expression("`auction`", "bigint", ("auction",)),),
        predicate=found.predicate,
        aggregates=(COUNT, Aggregate("avg", (PRICE,), "double")),
        having=Call(">", (Ref("a0", "bigint"), Literal(5, "bigint")), "boolean"),
        columns=found.columns,
    )
    assert found.predicate is not None and not found.predicate.can_raise
    assert found.predicate.sql == "((`channel` = 'Google') AND (`price` >= 18))"
    assert found.predicate.columns == ("channel", "price")
    assert [(column.name, column.type, column.value) for column in found.columns] == [
        ("auction", "bigint", Ref("k0", "bigint")),
        ("start", "timestamp", Ref("window_start", "timestamp")),
        ("n", "bigint", Ref("a0", "bigint")),
        ("p", "double", Ref("a1", "double")),
    ]


def test_a_bound_query_survives_the_codec() -> None:
    found = query(TYPICAL)
    assert codec.loads(codec.dumps(found)) == found


def test_a_thousand_typical_queries_bind_fast_and_ask_nothing() -> None:
    analyzer = FakeAnalyzer()
    begin = time.process_time()
    for number in range(1000):
        sql = TYPICAL.replace("17", str(number))
        bind(f"q{number}", sql, STREAMS, analyzer, query_id=f"q{number}@1")
    assert analyzer.asked == []
    assert time.process_time() - begin < 2.5


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("window(ts, '1 hour')", Window(HOUR, HOUR)),
        ("window(ts, '1 hour', '1 minute')", Window(HOUR, MINUTE)),
        ("WINDOW(bids.TS, '90 seconds', '20 SECONDS')", Window(90 * SECOND, 20 * SECOND)),
        (
            "window(ts, '1 hour', '30 minutes', '-10 minutes')",
            Window(HOUR, 30 * MINUTE, -10 * MINUTE),
        ),
        ("window(ts, 'interval 1 hour')", Window(HOUR, HOUR)),
        ("window(ts, 60000000)", Window(MINUTE, MINUTE)),
    ],
)
def test_windows(window: str, expected: Window) -> None:
    assert query(f"SELECT count(*) FROM bids GROUP BY {window}").window == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT auction, count(*) FROM bids GROUP BY auction, window(ts, '1 hour')",
        "SELECT auction, count(*) FROM bids GROUP BY window(ts, '1 hour'), auction",
        "SELECT auction, count(*) FROM bids GROUP BY 1, window(ts, '1 hour'), auction",
        "SELECT auction AS a, count(*) FROM bids GROUP BY a, window(ts, '1 hour')",
        "SELECT auction, count(*) FROM STREAM bids GROUP BY window(ts, '1 hour'), auction",
        "SELECT auction, count(*) FROM STREAM(bids) GROUP BY window(ts, '1 hour'), auction",
        "SELECT ALL auction, count(*) FROM bids GROUP BY window(ts, '1 hour'), (auction);",
    ],
)
def test_the_window_may_stand_anywhere_in_group_by(sql: str) -> None:
    found = query(sql)
    assert found.window == Window(HOUR, HOUR)
    assert [key.sql for key in found.keys] == ["`auction`"]


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("packets [RANGE 1 MINUTE SLIDE 5 SECONDS]", Window(MINUTE, 5 * SECOND)),
        ("packets[range 1 minute]", Window(MINUTE, MINUTE)),
        ("packets AS p [RANGE 1 MINUTE]", Window(MINUTE, MINUTE)),
        ("packets p [RANGE 1 MINUTE 30 SECONDS]", Window(90 * SECOND, 90 * SECOND)),
        ("STREAM packets [RANGE 5 SECONDS SLIDE 1 MINUTE]", Window(5 * SECOND, MINUTE)),
        ("packets [RANGE 1.5 SECONDS SLIDE 500 MILLISECONDS]", Window(1_500_000, 500_000)),
        ("packets [RANGE INTERVAL '1' HOUR]", Window(HOUR, HOUR)),
    ],
)
def test_the_bracket_form(relation: str, expected: Window) -> None:
    found = query(f"SELECT window.end AS at, sum(size) AS n FROM {relation}")
    assert found.window == expected
    assert found.stream == "Packets"
    assert found.keys == ()
    assert found.columns[0].value == Ref("window_end", "timestamp")


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        ("packets [RANGE 1000 ROWS SLIDE 100 ROWS]", Window(1000, 100)),
        ("packets[range 1 row]", Window(1, 1)),
        ("STREAM packets AS p [RANGE +5 ROWS SLIDE '60' ROWS]", Window(5, 60)),
        ("packets [RANGE '7 rows' SLIDE '1152921504606846976 rows']", Window(7, 1 << 60)),
    ],
)
def test_windows_of_rows(relation: str, expected: Window) -> None:
    """They are bound to the numbered stream; its number takes the place of the event time."""
    found = query(
        "SELECT window.end AS at, window.start + 1 AS next, window, max(time) AS latest "
        f"FROM {relation} GROUP BY size"
    )
    assert found.window == expected
    assert found.stream == "Packets@rows"
    assert found.counts_rows
    assert found.columns[0].value == Ref("window_end", "bigint")
    types = ("bigint", "bigint", "struct<start:bigint,end:bigint>", "timestamp")
    assert found.output_types == types


def test_windows_of_rows_need_columns_that_files_can_hold() -> None:
    fields = (Field("ts", "timestamp"), Field("gap", "interval"), Field("x", "int"))
    streams = {"s": StreamSchema("s", fields, "ts", 0)}
    analyzer = FakeAnalyzer()
    bound = bind("q", "SELECT sum(x) FROM s [RANGE 5 ROWS]", streams, analyzer, query_id="q@1")
    assert isinstance(bound, Query)
    with pytest.raises(SqlError, match=r"line 1, column 26: .*cannot hold 'gap'"):
        bind("q", "SELECT count(gap) FROM s [RANGE 5 ROWS]", streams, analyzer, query_id="q@1")
    streams = {"s": StreamSchema("s", (*fields, Field("Row#", "int")), "ts", 0)}
    with pytest.raises(SqlError, match="name of column 'Row#'"):
        bind("q", "SELECT sum(x) FROM s [RANGE 5 ROWS]", streams, analyzer, query_id="q@1")


def test_the_bracket_form_with_keys_and_conditions() -> None:
    found = query(
        "SELECT p.size, count(*) AS n FROM Packets AS p [RANGE 1 MINUTE] "
        "WHERE p.size > 3 GROUP BY size HAVING n > 1"
    )
    assert [key.sql for key in found.keys] == ["`size`"]
    assert found.predicate is not None and found.predicate.sql == "(`size` >= 4L)"


@pytest.mark.parametrize(
    "select",
    [
        "window.start",
        "window(ts, '1 hour').start",
        "window(ts, '60 minutes').START",
        "`window`.`start`",
        "(window).start",
    ],
)
def test_the_start_of_the_window(select: str) -> None:
    found = query(grouped(select), FakeAnalyzer())
    assert found.columns[0].value == Ref("window_start", "timestamp")


def test_the_window_itself_is_a_struct() -> None:
    found = query("SELECT window(ts, '1 hour') AS w, w.end, window FROM bids GROUP BY w")
    assert [column.value for column in found.columns] == [
        Ref("window", WINDOW),
        Ref("window_end", "timestamp"),
        Ref("window", WINDOW),
    ]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count(*)", COUNT),
        ("COUNT(1)", COUNT),
        ("count('x')", COUNT),
        ("count(price)", Aggregate("count", (PRICE,), "bigint")),
        ("count(ALL price)", Aggregate("count", (PRICE,), "bigint")),
        ("count(DISTINCT price)", Aggregate("count", (PRICE,), "bigint", distinct=True)),
        ("sum(price)", Aggregate("sum", (PRICE,), "bigint")),
        ("mean(price)", Aggregate("avg", (PRICE,), "double")),
        ("std(price)", Aggregate("stddev_samp", (PRICE,), "double")),
        ("stddev(price)", Aggregate("stddev_samp", (PRICE,), "double")),
        ("variance(price)", Aggregate("var_samp", (PRICE,), "double")),
        ("max(DISTINCT price)", Aggregate("max", (PRICE,), "int")),
        ("first_value(price)", Aggregate("first", (PRICE,), "int")),
        ("any_value(price)", Aggregate("first", (PRICE,), "int")),
        ("first(price, true)", Aggregate("first", (PRICE,), "int", None, ("ignore_nulls",))),
        ("last(price) IGNORE NULLS", Aggregate("last", (PRICE,), "int", None, ("ignore_nulls",))),
        ("last(price, false)", Aggregate("last", (PRICE,), "int")),
        (
            "approx_count_distinct(price)",
            Aggregate("approx_count_distinct", (PRICE,), "bigint", None, (0.05,)),
        ),
        (
            "approx_count_distinct(price, 0.01)",
            Aggregate("approx_count_distinct", (PRICE,), "bigint", None, (0.01,)),
        ),
        (
            "percentile_approx(price, 0.5)",
            Aggregate("approx_percentile", (PRICE,), "int", None, (False, 10000, 0.5)),
        ),
        (
            "approx_percentile(price, array(0.1, 1), 50)",
            Aggregate("approx_percentile", (PRICE,), "array<int>", None, (True, 50, 0.1, 1.0)),
        ),
    ],
)
def test_aggregates_have_one_form(call: str, expected: Aggregate) -> None:
    assert query(grouped(f"{call} AS a")).aggregates == (expected,)


@pytest.mark.parametrize("names", [("every", "bool_and"), ("any", "bool_or"), ("some", "bool_or")])
def test_names_of_boolean_aggregates(names: tuple[str, str]) -> None:
    (aggregate,) = query(grouped(f"{names[0]}(price > 3) AS a")).aggregates
    assert aggregate.function == names[1] and aggregate.arguments[0].sql == "(`price` > 3)"


def test_count_if_is_a_count_with_a_filter() -> None:
    expected = query(grouped("count(*) FILTER (WHERE price > 3) AS a")).aggregates
    assert query(grouped("count_if(price > 3) AS a")).aggregates == expected
    both = query(grouped("count_if(ok) FILTER (WHERE price > 3) AS a")).aggregates[0].filter
    assert both is not None and both.sql == "((`price` > 3)) AND (`ok`)"


def test_equal_aggregates_are_one() -> None:
    found = query(
        grouped("count(*) AS n, COUNT(1) + avg(price) AS x, mean(PRICE) AS m", having="count(*)>1")
    )
    assert [aggregate.function for aggregate in found.aggregates] == ["count", "avg"]


def test_having_may_use_aliases_keys_and_new_aggregates() -> None:
    found = query(
        grouped(
            "auction, count(*) AS n",
            keys="auction",
            having="N > 1 AND max(price) < 9 AND bids.auction = 3",
        )
    )
    assert isinstance(found.having, Call)
    tested = [part.arguments[0] for part in found.having.arguments if isinstance(part, Call)]
    assert tested == [Ref("a0", "bigint"), Ref("a1", "int"), Ref("k0", "bigint")]


def test_in_having_a_key_wins_over_an_alias_and_an_alias_over_a_column() -> None:
    key = query(grouped("max(price) AS auction", keys="auction", having="auction > 1"))
    assert isinstance(key.having, Call) and key.having.arguments[0] == Ref("k0", "bigint")
    alias = query(grouped("max(price) AS price", having="price > 1"))
    assert isinstance(alias.having, Call) and alias.having.arguments[0] == Ref("a0", "int")


def test_group_keys_may_be_expressions_and_stand_in_the_select_list() -> None:
    found = query(grouped("AUCTION % 3 AS m, bids.auction%3 > 1 AS big", keys="auction % 3"))
    assert found.keys == (Expression("(`auction` % 3)", "bigint", ("auction",)),)
    assert found.columns[0].value == Ref("k0", "bigint")
    assert found.columns[1].value == Call(
        ">", (Ref("k0", "bigint"), Literal(1, "bigint")), "boolean"
    )


def test_select_aliases_stand_for_expressions_in_group_by() -> None:
    found = query("SELECT upper(channel) AS u FROM bids GROUP BY u, window(ts, '1 hour')")
    assert found.keys == (Expression("upper(`channel`)", "string", ("channel",)),)


def test_a_column_wins_over_an_alias_in_group_by() -> None:
    found = query(grouped("auction, max(price) AS price", keys="auction, price"))
    assert [key.sql for key in found.keys] == ["`auction`", "`price`"]


def test_later_columns_may_use_earlier_aliases() -> None:
    found = query(grouped("sum(price) AS total, total / count(*) AS mean"))
    assert found.columns[1].type == "double"
    assert found.columns[1].value == Call(
        "/",
        (
            Call("cast_double", (Ref("a0", "bigint"),), "double"),
            Call("cast_double", (Ref("a1", "bigint"),), "double"),
        ),
        "double",
    )


def test_what_the_kernel_cannot_evaluate_is_sparks_over_the_values_of_the_group() -> None:
    analyzer = FakeAnalyzer({"round(`a0`, 2)": "double"})
    found = query(grouped("round(avg(price), 2) AS r"), analyzer)
    assert found.columns[0].value == Opaque("round(`a0`, 2)", ("a0",), "double")


def test_the_analyzer_is_asked_once_for_an_expression() -> None:
    analyzer = FakeAnalyzer({"(`price` = '10')": "boolean"})
    for _ in range(3):
        query(grouped("count(*)", where="price = '10'"), analyzer)
    assert analyzer.asked == ["(`price` = '10')"]


def test_what_spark_types_may_raise() -> None:
    analyzer = FakeAnalyzer({"(`price` = '10')": "boolean"})
    found = query(grouped("count(*)", where="price = '10'"), analyzer)
    assert found.predicate == Expression("(`price` = '10')", "boolean", ("price",), True)


def test_fields_of_structs() -> None:
    analyzer = FakeAnalyzer({"`payload`.`kind`": "string"})
    found = query(grouped("payload.Kind", keys="bids.payload.kind"), analyzer)
    assert found.keys == (Expression("`payload`.`kind`", "string", ("payload",)),)
    assert found.columns[0].name == "Kind"


@pytest.mark.parametrize(
    ("select", "name"),
    [
        ("PRICE", "PRICE"),
        ("bids.price", "price"),
        ("price AS `a b`", "a b"),
        ("price p", "p"),
        ("window.END", "END"),
        ("window(ts, '1 hour').end", "window.end"),
        ("window", "window"),
        ("COUNT(*)", "count(1)"),
        ("count(DISTINCT PRICE, d)", "count(DISTINCT PRICE, d)"),
        ("Mean(Price)", "mean(Price)"),
        ("first(price, true)", "first(price)"),
        ("first_value(price) IGNORE NULLS", "first(price)"),
        ("approx_percentile(price, 0.50)", "approx_percentile(price, 0.50, 10000)"),
        ("approx_count_distinct(price, 0.1)", "approx_count_distinct(price)"),
        ("sum(price) FILTER (WHERE price > 3)", "sum(price) FILTER (WHERE (price > 3))"),
        ("count_if(price<>3)", "count_if((NOT (price = 3)))"),
        ("max(price)-min(price)", "(max(price) - min(price))"),
        ("- count(*)", "(- count(1))"),
        ("price + 1", "(price + 1)"),
        ("'x'", "x"),
    ],
)
def test_names_without_an_alias_are_sparks(select: str, name: str) -> None:
    assert query(grouped(select, keys="price")).columns[0].name == name


def test_other_names_are_asked_without_the_streams_name() -> None:
    analyzer = FakeAnalyzer(
        {"round(`a0`, 2)": "double"}, {"round(avg( `price` ), 2)": "round(avg(price), 2)"}
    )
    sql = "SELECT round(avg(b.price), 2) FROM bids b GROUP BY window(b.ts, '1 hour')"
    assert query(sql, analyzer).columns[0].name == "round(avg(price), 2)"


def test_a_query_may_ask_only_for_the_groups() -> None:
    found = query(grouped("auction", keys="auction"))
    assert found.aggregates == ()


def test_columns_may_be_called_like_clauses() -> None:
    found = query(grouped("count(*) AS order, max(price) AS `from`"))
    assert [column.name for column in found.columns] == ["order", "from"]
