"""What cannot be registered: error class and place."""

from __future__ import annotations

import pytest
from tests.sql.support import FakeAnalyzer, error, grouped

from weft.algebra.query import Field
from weft.errors import SqlError
from weft.sql import AnalysisProblem

WINDOW = "GROUP BY window(ts, '1 hour')"


@pytest.mark.parametrize(
    ("sql", "error_class", "line", "column"),
    [
        # not one SELECT
        ("", "NOT_ONE_SELECT", 1, 1),
        (" \n -- nothing\n", "NOT_ONE_SELECT", 2, 12),
        (";", "NOT_ONE_SELECT", 1, 1),
        ("INSERT INTO t SELECT 1 FROM bids", "NOT_ONE_SELECT", 1, 1),
        ("\n  WITH a AS (SELECT 1) SELECT * FROM a", "NO_STREAM", 2, 3),
        ("WITH a AS (SELECT 1 FROM bids) INSERT INTO t SELECT * FROM a", "NOT_ONE_SELECT", 1, 32),
        ("WITH a AS (SELECT 1 FROM bits) SELECT * FROM a", "UNKNOWN_STREAM", 1, 26),
        ("WITH a AS (SELECT 1 FROM bids) SELECT * FROM b", "UNKNOWN_STREAM", 1, 46),
        ("WITH", "NOT_ONE_SELECT", 1, 1),
        ("SELECT 1 FROM bids; SELECT 2 FROM bids", "NOT_ONE_SELECT", 1, 21),
        ("SELECT price FROM bids\nUNION ALL SELECT 2, 3 FROM bids", "INVALID_QUERY", 2, 1),
        ("SELECT price FROM bids\nEXCEPT SELECT 2 FROM bids", "NEVER_CLOSED", 2, 1),
        ("DROP TABLE bids", "NOT_ONE_SELECT", 1, 1),
        ("hello", "NOT_ONE_SELECT", 1, 1),
        # text that is no SQL
        ("SELECT 'abc FROM bids", "PARSE_ERROR", 1, 8),
        ("SELECT price\nFROM bids /* no end", "PARSE_ERROR", 2, 11),
        (f"SELECT count(*), FROM bids {WINDOW}", "PARSE_ERROR", 1, 18),
        (f"SELECT count(* FROM bids {WINDOW}", "PARSE_ERROR", 1, 14),
        (f"SELECT count(*) FROM bids WHERE {WINDOW}", "PARSE_ERROR", 1, 33),
        (f"SELECT count(*) FROM bids {WINDOW},", "PARSE_ERROR", 1, 57),
        (f"SELECT count(*) FROM bids {WINDOW} HAVING AND", "PARSE_ERROR", 1, 64),
        (f"SELECT 1 + FROM bids {WINDOW}", "PARSE_ERROR", 1, 12),
        (f"SELECT count(*) AS 'n' FROM bids {WINDOW}", "PARSE_ERROR", 1, 20),
        ("SELECT 1", "PARSE_ERROR", 1, 9),
        ("SELECT sum(size) FROM packets [RANGE 1 MINUTE", "PARSE_ERROR", 1, 46),
        # streams and columns
        (f"SELECT count(*) FROM nowhere {WINDOW}", "UNKNOWN_STREAM", 1, 22),
        ("SELECT * FROM bids JOIN nowhere ON true", "UNKNOWN_STREAM", 1, 25),
        ("SELECT * FROM (SELECT * FROM nowhere)", "UNKNOWN_STREAM", 1, 30),
        (f"SELECT count(*)\nFROM bids\nWHERE prize > 3 {WINDOW}", "UNKNOWN_COLUMN", 3, 7),
        (f"SELECT sum(prize) FROM bids {WINDOW}", "UNKNOWN_COLUMN", 1, 12),
        (f"SELECT prize FROM bids {WINDOW}", "UNKNOWN_COLUMN", 1, 8),
        (f"SELECT count(*) FROM bids {WINDOW}, prize", "UNKNOWN_COLUMN", 1, 58),
        (f"SELECT count(*) FROM bids {WINDOW} HAVING prize > 1", "UNKNOWN_COLUMN", 1, 64),
        (f"SELECT b.nope FROM bids b {WINDOW}", "UNKNOWN_COLUMN", 1, 8),
        ("SELECT bids.price FROM bids b", "UNKNOWN_COLUMN", 1, 8),
        (f"SELECT window.begin FROM bids {WINDOW}", "UNKNOWN_COLUMN", 1, 8),
        ("SELECT count(*) FROM bids GROUP BY window(tz, '1 hour')", "UNKNOWN_COLUMN", 1, 43),
        (f"SELECT 1 FROM bids WHERE window.start > ts {WINDOW}", "UNKNOWN_COLUMN", 1, 26),
        ("SELECT prize FROM bids ", "UNKNOWN_COLUMN", 1, 8),
        (f"SELECT collect_list(prize) FROM bids {WINDOW}", "UNKNOWN_COLUMN", 1, 21),
        # grouping
        (f"SELECT price FROM bids {WINDOW}", "NOT_GROUPED", 1, 8),
        (f"SELECT count(*) + price FROM bids {WINDOW}", "NOT_GROUPED", 1, 19),
        (f"SELECT count(*) FROM bids {WINDOW} HAVING price > 1", "NOT_GROUPED", 1, 64),
        (f"SELECT count(*) FROM bids {WINDOW}, 2", "INVALID_QUERY", 1, 58),
        (f"SELECT count(*) FROM bids {WINDOW}, 1", "INVALID_QUERY", 1, 58),
        (f"SELECT count(*) FROM bids {WINDOW}, sum(price)", "INVALID_QUERY", 1, 58),
        (f"SELECT count(*) FROM bids WHERE max(price) > 1 {WINDOW}", "INVALID_QUERY", 1, 33),
        (f"SELECT sum(max(price)) FROM bids {WINDOW}", "INVALID_QUERY", 1, 12),
        (f"SELECT sum(price) FILTER (WHERE max(d) > 1) FROM bids {WINDOW}", "INVALID_QUERY", 1, 33),
        (f"SELECT rank() OVER (ORDER BY price) FROM bids {WINDOW}", "UNSUPPORTED", 1, 15),
        (f"SELECT count(*), COUNT(1) FROM bids {WINDOW}", "DUPLICATE_COLUMN", 1, 18),
        (f"SELECT price AS a, d AS A FROM bids {WINDOW}, price, d", "DUPLICATE_COLUMN", 1, 20),
        # windows
        ("SELECT count(*) FROM bids", "NO_WINDOW", 1, 8),
        ("SELECT auction FROM bids\nGROUP BY auction", "NO_WINDOW", 2, 1),
        (f"SELECT 1 FROM bids {WINDOW}, window(ts, '2 hours')", "SEVERAL_WINDOWS", 1, 51),
        (f"SELECT window(ts, '2 hours') FROM bids {WINDOW}", "SEVERAL_WINDOWS", 1, 8),
        (
            "SELECT 1 FROM packets [RANGE 1 MINUTE] GROUP BY window(Time, '1 minute')",
            "SEVERAL_WINDOWS",
            1,
            49,
        ),
        ("SELECT count(*) FROM bids GROUP BY window(day, '1 hour')", "BAD_TIME", 1, 43),
        ("SELECT count(*) FROM bids GROUP BY window(price, '1 hour')", "BAD_TIME", 1, 43),
        ("SELECT count(*) FROM bids GROUP BY window(ts + ts, '1 hour')", "BAD_TIME", 1, 43),
        ("SELECT count(*) FROM bids GROUP BY window(ts, '0 seconds')", "BAD_WINDOW", 1, 47),
        ("SELECT count(*) FROM bids GROUP BY window(ts, '-5 minutes')", "BAD_WINDOW", 1, 47),
        ("SELECT count(*) FROM bids GROUP BY window(ts, -5)", "BAD_WINDOW", 1, 47),
        ("SELECT 1 FROM bids GROUP BY window(ts, '1 hour', '0 hours')", "BAD_WINDOW", 1, 50),
        ("SELECT 1 FROM bids GROUP BY window(ts, '1 hour', '2 hours')", "BAD_WINDOW", 1, 50),
        (
            "SELECT 1 FROM bids GROUP BY window(ts, '1 hour', '1 hour', '1 hour')",
            "BAD_WINDOW",
            1,
            60,
        ),
        ("SELECT count(*) FROM bids GROUP BY window(ts)", "BAD_WINDOW", 1, 36),
        ("SELECT count(*) FROM bids GROUP BY window(ts, INTERVAL 1 HOUR)", "BAD_WINDOW", 1, 47),
        ("SELECT count(*) FROM bids GROUP BY window(ts, '1 month')", "BAD_INTERVAL", 1, 47),
        ("SELECT count(*) FROM bids GROUP BY window(ts, 'soon')", "BAD_INTERVAL", 1, 47),
        ("SELECT sum(size) FROM packets [RANGE 0 SECONDS]", "BAD_WINDOW", 1, 38),
        ("SELECT sum(size) FROM packets [RANGE 1 HOUR SLIDE -1 HOUR]", "BAD_WINDOW", 1, 51),
        ("SELECT sum(size) FROM packets [RANGE 2 YEARS]", "BAD_INTERVAL", 1, 38),
        ("SELECT sum(size) FROM packets [RANGE 0 ROWS]", "BAD_WINDOW", 1, 38),
        ("SELECT sum(size) FROM packets [RANGE -10 ROWS SLIDE 5 ROWS]", "BAD_WINDOW", 1, 38),
        ("SELECT sum(size) FROM packets [RANGE 10 ROWS SLIDE -5 ROWS]", "BAD_WINDOW", 1, 52),
        ("SELECT sum(size) FROM packets [RANGE 1.5 ROWS]", "BAD_WINDOW", 1, 38),
        ("SELECT sum(size) FROM packets [RANGE ROWS]", "BAD_WINDOW", 1, 38),
        ("SELECT sum(size) FROM packets [RANGE 1 MINUTE 5 ROWS]", "BAD_WINDOW", 1, 38),
        ("SELECT sum(size) FROM packets [RANGE 10 ROWS SLIDE 5 SECONDS]", "BAD_WINDOW", 1, 52),
        ("SELECT sum(size) FROM packets [RANGE 10 SECONDS SLIDE 5 ROWS]", "BAD_WINDOW", 1, 55),
        ("SELECT sum(size) FROM packets [RANGE 9223372036854775808 ROWS]", "BAD_WINDOW", 1, 38),
        ("SELECT sum(size) FROM packets [RANGE 10 ROWS SLIDE 5]", "BAD_INTERVAL", 1, 52),
        ("SELECT sum(size) FROM packets [RANGE 10 ROWS", "PARSE_ERROR", 1, 45),
        (
            "SELECT sum(size) FROM packets [RANGE 60 ROWS] GROUP BY window(Time, '60 microseconds')",
            "SEVERAL_WINDOWS",
            1,
            56,
        ),
        (
            "SELECT window(Time, '60 microseconds') AS w, sum(size) FROM packets [RANGE 60 ROWS]",
            "SEVERAL_WINDOWS",
            1,
            8,
        ),
        ("SELECT median(size) FROM packets [RANGE 10 ROWS]", "UNSUPPORTED", 1, 8),
        ("SELECT sum(size) FROM packets [WINDOW 1 HOUR]", "UNSUPPORTED", 1, 31),
        ("SELECT median(size) FROM packets [RANGE 1 HOUR]", "UNSUPPORTED", 1, 8),
        ("SELECT size FROM packets [RANGE 1 HOUR] ORDER BY 1", "UNSUPPORTED", 1, 41),
        # types
        (f"SELECT count(*) FROM bids WHERE price {WINDOW}", "TYPE_MISMATCH", 1, 33),
        (f"SELECT count(*) FROM bids WHERE NULL {WINDOW}", "TYPE_MISMATCH", 1, 33),
        (f"SELECT count_if(price) FROM bids {WINDOW}", "TYPE_MISMATCH", 1, 17),
        (f"SELECT sum(d) FILTER (WHERE price) FROM bids {WINDOW}", "TYPE_MISMATCH", 1, 29),
    ],
)
def test_certain_errors(sql: str, error_class: str, line: int, column: int) -> None:
    found = error(sql, tables=("people",))
    assert (found.error_class, found.line, found.column) == (error_class, line, column)
    assert found.query == "q"
    assert found.message


def test_a_query_over_tables_alone_is_no_continuous_query() -> None:
    found = error("SELECT count(*) FROM people", tables=("people",))
    assert (found.error_class, found.line, found.column) == ("UNSUPPORTED", 1, 22)
    both = error("SELECT count(*) FROM people JOIN people p2", tables=("people",))
    assert both.error_class == "UNSUPPORTED"


MISMATCH = AnalysisProblem(
    "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
    '[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] Cannot resolve "(ts = 3)" due to data type '
    "mismatch: no. SQLSTATE: 42K09; line 1 pos 1;\n'Project …",
)


def test_sparks_objections_stand_at_the_expression_that_caused_them() -> None:
    analyzer = FakeAnalyzer({"((`price` > 3) AND (`ts` = 3))": MISMATCH})
    found = error(grouped("count(*)", where="price > 3\n  AND ts = 3"), analyzer)
    assert (found.error_class, found.line, found.column) == ("TYPE_MISMATCH", 2, 7)
    assert found.message == 'Cannot resolve "(ts = 3)" due to data type mismatch: no.'


def test_an_aggregate_that_spark_refuses() -> None:
    problem = AnalysisProblem("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", "no sum of booleans")
    found = error(grouped("1, sum(ok)"), FakeAnalyzer({"sum(`ok`)": problem}))
    assert (found.error_class, found.line, found.column) == ("TYPE_MISMATCH", 1, 11)


def test_a_wrong_call_of_a_function() -> None:
    problem = AnalysisProblem("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", "[WRONG] too many. SQLSTATE: 4")
    found = error(
        grouped("upper(channel, 1)", keys="channel"), FakeAnalyzer({"upper(`k0`, 1)": problem})
    )
    assert (found.error_class, found.line, found.column) == ("INVALID_QUERY", 1, 8)
    assert found.message == "Spark refuses the query: too many."


def test_the_text_of_an_error_says_where_it_is() -> None:
    found = error("SELECT count(*)\n  FROM nowhere")
    assert isinstance(found, SqlError)
    assert str(found) == (
        "[UNKNOWN_STREAM] query 'q', line 2, column 8: "
        "there is no stream or table 'nowhere'; known: Packets, bids"
    )


PAIR = "FROM bids a, bids b WHERE a.auction = b.auction"


@pytest.mark.parametrize(
    ("sql", "error_class", "line", "column"),
    [
        # names
        (f"SELECT a.prize {PAIR}", "UNKNOWN_COLUMN", 1, 8),
        (f"SELECT prize {PAIR}", "UNKNOWN_COLUMN", 1, 8),
        (f"SELECT c.price {PAIR}", "UNKNOWN_COLUMN", 1, 8),
        (f"SELECT bids.price {PAIR}", "UNKNOWN_COLUMN", 1, 8),
        (f"SELECT c.* {PAIR}", "UNKNOWN_COLUMN", 1, 8),
        (f"SELECT a.price {PAIR}\n  AND b.prize > 3", "UNKNOWN_COLUMN", 2, 7),
        (f"SELECT price {PAIR}", "AMBIGUOUS_COLUMN", 1, 8),
        (f"SELECT a.price {PAIR}\n  AND d > 3", "AMBIGUOUS_COLUMN", 2, 7),
        ("SELECT bids.price FROM bids, bids", "AMBIGUOUS_COLUMN", 1, 8),
        ("SELECT x FROM (SELECT d AS x, f AS x FROM bids)", "AMBIGUOUS_COLUMN", 1, 8),
        ("SELECT price FROM (SELECT d FROM bids)", "UNKNOWN_COLUMN", 1, 8),
        ("SELECT x FROM (SELECT prize AS x FROM bids)", "UNKNOWN_COLUMN", 1, 23),
        ("WITH c AS (SELECT prize FROM bids) SELECT 1 AS x FROM c", "UNKNOWN_COLUMN", 1, 19),
        ("SELECT a.d FROM bids a JOIN packets p USING (d)", "UNKNOWN_COLUMN", 1, 24),
        # ON sees what stands before it
        ("SELECT a.d FROM bids a JOIN bids b ON a.d = c.d JOIN bids c ON a.d = c.d", "UNKNOWN_COLUMN", 1, 45),
        # what is joined
        ("SELECT a.price FROM bids a, bids b", "CARTESIAN", 1, 29),
        ("SELECT a.price FROM bids a JOIN bids b", "CARTESIAN", 1, 33),
        ("SELECT a.price FROM bids a, bids b WHERE a.d > 1 AND b.d > 1", "CARTESIAN", 1, 29),
        (f"SELECT a.price {PAIR.replace('b WHERE', 'b, packets p WHERE')}", "CARTESIAN", 1, 37),
        ("SELECT a.price FROM bids a, bids b WHERE a.d = b.d OR true", "CARTESIAN", 1, 29),
        ("SELECT a.price FROM bids a CROSS JOIN bids b, bids c", "CARTESIAN", 1, 47),
        ("SELECT a.d FROM bids a JOIN nowhere n ON a.d = n.d", "UNKNOWN_STREAM", 1, 29),
        ("SELECT name FROM people", "UNSUPPORTED", 1, 18),
        ("SELECT d FROM bids JOIN people p ON p.nme = channel", "UNKNOWN_COLUMN", 1, 37),
        # results
        (f"SELECT a.price, b.price {PAIR}", "DUPLICATE_COLUMN", 1, 17),
        ("SELECT price, price FROM bids", "DUPLICATE_COLUMN", 1, 15),
        ("SELECT p.*, q.* FROM packets p JOIN packets q ON p.size = q.size", "DUPLICATE_COLUMN", 1, 13),
        ("SELECT x FROM (SELECT d FROM bids) s(x, y)", "INVALID_QUERY", 1, 15),
        # types
        ("SELECT price FROM bids WHERE price", "TYPE_MISMATCH", 1, 30),
        ("SELECT a.d FROM bids a JOIN bids b ON a.price", "TYPE_MISMATCH", 1, 39),
        # aggregates and analytic functions
        ("SELECT r FROM (SELECT rank() OVER (ORDER BY d) AS r FROM bids)", "UNSUPPORTED", 1, 30),
        ("SELECT price FROM bids WHERE max(d) > 1", "INVALID_QUERY", 1, 30),
        ("SELECT a.d FROM bids a JOIN bids b ON max(a.d) > b.d", "INVALID_QUERY", 1, 39),
        # syntax
        ("SELECT a.d FROM bids a JOIN", "PARSE_ERROR", 1, 28),
        ("SELECT a.d FROM bids a JOIN bids b ON", "PARSE_ERROR", 1, 38),
        ("SELECT a.d FROM (SELECT d FROM bids", "PARSE_ERROR", 1, 36),
        ("SELECT a.d FROM bids a, WHERE d > 1", "PARSE_ERROR", 1, 25),
        ("SELECT d FROM (bids", "PARSE_ERROR", 1, 20),
    ],
)  # fmt: skip
def test_certain_errors_of_joins(sql: str, error_class: str, line: int, column: int) -> None:
    found = error(sql, tables={"people": (Field("name", "string"),)})
    assert (found.error_class, found.line, found.column) == (error_class, line, column)
    assert found.query == "q"
    assert found.message


def test_more_than_fifteen_inputs_are_refused() -> None:
    streams = ", ".join(f"bids b{index}" for index in range(16))
    links = " AND ".join(f"b{index}.price = b{index + 1}.price" for index in range(15))
    found = error(f"SELECT b0.price FROM {streams} WHERE {links}")
    assert (found.error_class, found.column) == ("TOO_MANY_INPUTS", 162)
    assert found.message == "a join has at most 15 inputs"


def test_messages_name_what_can_be_written() -> None:
    unknown = error("SELECT a.prize FROM packets a JOIN packets b ON a.size = b.size")
    assert unknown.message == (
        "'a.prize' is not a column of 'a' or 'b'; columns: a.Time, a.size, b.Time, b.size"
    )
    ambiguous = error("SELECT size FROM packets a JOIN packets b ON a.size = b.size")
    assert ambiguous.message.startswith("'size' may be a column of 'a' or 'b'; write")
    product = error("SELECT a.size AS s FROM packets a, packets b")
    assert "nothing connects a with b" in product.message and "CROSS JOIN" in product.message


def test_types_that_spark_refuses_to_compare() -> None:
    problem = AnalysisProblem(
        "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
        "[DATATYPE_MISMATCH.X] Cannot compare. SQLSTATE: 1",
    )
    analyzer = FakeAnalyzer({"((`0.d` = `1.d`) AND (`0.ok` = `1.ts`))": problem})
    found = error("SELECT a.d FROM bids a JOIN bids b ON a.d = b.d AND a.ok = b.ts", analyzer)
    assert (found.error_class, found.line, found.column) == ("TYPE_MISMATCH", 1, 53)
