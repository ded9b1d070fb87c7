"""What cannot be an aggregation join: error class, place, and what the message says to do."""

from __future__ import annotations

import pytest
from tests.sql.joinagg_support import error, query
from tests.sql.support import FakeAnalyzer

from weft.sql import AnalysisProblem

WHERE = "WHERE a.auctionID = b.auctionID"
TWO = "FROM Auction a [WINDOW 1 HOUR], Bid b [WINDOW 1 HOUR]"
NOW = "FROM Auction a [WINDOW UNTIL NOW], Bid b [WINDOW UNTIL NOW]"


@pytest.mark.parametrize(
    ("sql", "error_class", "place", "says"),
    [
        # windows of inputs
        (f"SELECT count(*) FROM Auction a, Bid b [WINDOW 1 HOUR] {WHERE}", "NO_INPUT_WINDOW", 22,
         "stream 'Auction' has no window"),
        (f"SELECT count(*) FROM Auction a [WINDOW 1 HOUR], bid b {WHERE}", "NO_INPUT_WINDOW", 49,
         "write Bid [WINDOW 1 HOUR], or Bid [WINDOW UNTIL NOW]"),
        ("SELECT count(*) FROM Bid b [WINDOW 1 HOUR], Person p [WINDOW 1 HOUR] WHERE personID = bidderID",
         "BAD_WINDOW", 54, "'Person' is a table"),
        ("SELECT count(*) FROM Bid [WINDOW 1 HOUR]", "UNSUPPORTED", 26,
         "Bid [RANGE 1 HOUR SLIDE 10 SECONDS]"),
        ("SELECT count(*) FROM Person p, Person q [WINDOW 1 HOUR] WHERE p.name = q.name", "BAD_WINDOW", 41,
         "leave the brackets out"),
        (f"SELECT count(*) FROM Auction a [WINDOW 1 MONTH], Bid b [WINDOW 1 HOUR] {WHERE}", "BAD_INTERVAL",
         40, "months and years differ in length; use days"),
        (f"SELECT count(*) FROM Auction a [WINDOW 0 HOURS], Bid b [WINDOW 1 HOUR] {WHERE}", "BAD_WINDOW",
         40, "must be positive"),
        (f"SELECT count(*) FROM Auction a [WINDOW -1 HOUR TUMBLING], Bid b [WINDOW 1 HOUR] {WHERE}",
         "BAD_WINDOW", 40, "must be positive"),
        (f"SELECT count(*) FROM Auction a [WINDOW 100000000 DAYS], Bid b [WINDOW 1 HOUR] {WHERE}",
         "BAD_WINDOW", 32, "write [WINDOW UNTIL NOW]"),
        ("SELECT count(*) FROM Auction a [WINDOW 1 HOUR], Bid a [WINDOW 1 HOUR] WHERE a.auctionID = 1",
         "AMBIGUOUS_COLUMN", 77, "different aliases"),
        (f"SELECT count(*) FROM Auction a [WINDOW 100 ROWS], Bid b [WINDOW 1 HOUR] {WHERE}", "BAD_WINDOW",
         40, "a length in time, such as 1 HOUR, not '100 ROWS'"),
        (f"SELECT count(*) FROM Auction a [WINDOW], Bid b [WINDOW 1 HOUR] {WHERE}", "BAD_WINDOW", 39,
         "this one has none"),
        (f"SELECT count(*) FROM Auction a [WINDOW TUMBLING], Bid b [WINDOW 1 HOUR] {WHERE}", "BAD_WINDOW",
         48, "this one has none"),
        (f"SELECT count(*) FROM Auction a [WINDOW soon], Bid b [WINDOW 1 HOUR] {WHERE}", "BAD_INTERVAL", 40,
         "write a number and a unit"),
        (f"SELECT count(*) FROM Auction a [WINDOW 1 HOUR SLIDE 1 MINUTE], Bid b [WINDOW 1 HOUR] {WHERE}",
         "BAD_WINDOW", 47, "EVERY at the end"),
        ("SELECT count(*) FROM Auction a [WINDOW 1 HOUR", "PARSE_ERROR", 46, "the closing ] is missing"),
        (f"SELECT count(*) FROM Auction a [RANGE 1 HOUR], Bid b [WINDOW 1 HOUR] {WHERE}", "BAD_WINDOW", 32,
         "beside [WINDOW …] write [WINDOW …]"),
        ("SELECT count(*) FROM Auction a [RANGE 1 HOUR], Bid b WHERE a.auctionID = b.auctionID AND a.ts = b.ts "
         "GROUP BY window(a.ts, '1 hour')", "BAD_WINDOW", 32, "a window such as [WINDOW 1 HOUR]"),
        ("SELECT count(*) FROM Auction a [RANGE 1 HOUR], Bid b [RANGE 1 HOUR] WHERE a.auctionID = b.auctionID",
         "BAD_WINDOW", 32, "a window such as [WINDOW 1 HOUR]"),
        ("SELECT a.auctionID FROM Auction a [RANGE 1 HOUR], Bid b WHERE a.auctionID = b.auctionID",
         "BAD_WINDOW", 35, "conditions on event times"),
        ("SELECT count(*) FROM (SELECT a.sellerID AS s FROM Auction a, Bid b WHERE a.auctionID = b.auctionID) "
         "x [WINDOW 1 HOUR], Person p WHERE s = personID", "BAD_WINDOW", 103, "inside of the subquery"),
        ("SELECT auctionID FROM Bid WHERE bidderID IN (SELECT sellerID FROM Auction [WINDOW 1 HOUR])",
         "UNSUPPORTED", 75, "a window in brackets"),
        # EVERY
        (f"SELECT count(*) {NOW} {WHERE}", "BAD_EVERY", 32, "EVERY 10 SECONDS at the end"),
        (f"SELECT count(*) {TWO} {WHERE} EVERY 0 SECONDS", "BAD_EVERY", 109, "positive"),
        (f"SELECT count(*) {TWO} {WHERE} EVERY -5 SECONDS", "BAD_EVERY", 109, "positive"),
        (f"SELECT count(*) {TWO} {WHERE} EVERY 1 MONTH", "BAD_INTERVAL", 109, "use days"),
        (f"SELECT count(*) {TWO} {WHERE} EVERY 5 MICROSECONDS", "BAD_EVERY", 109, "millisecond"),
        (f"SELECT count(*) {TWO} {WHERE} EVERY", "PARSE_ERROR", 103, "is not expected here"),
        (f"SELECT count(*) {TWO} {WHERE} EVERY 5 apples", "BAD_INTERVAL", 109, "'apples' is not a unit"),
        ("SELECT count(*) FROM Auction a [WINDOW 1 HOUR], Bid b [WINDOW 1.000001 SECONDS] "
         "WHERE a.auctionID = b.auctionID", "BAD_EVERY", 32, "add a longer EVERY"),
        ("SELECT auctionID FROM Bid WHERE bidPrice > 3 EVERY 10 SECONDS", "BAD_EVERY", 46,
         "no input has a window"),
        ("SELECT count(*) FROM Bid GROUP BY window(ts, '1 hour') EVERY 10 SECONDS", "BAD_EVERY", 56,
         "the slide of other windows"),
        ("SELECT count(*) FROM Bid [RANGE 1 HOUR] EVERY 10 SECONDS", "BAD_EVERY", 41, "behind SLIDE"),
        ("SELECT count(*) FROM Auction a, Bid b WHERE a.auctionID = b.auctionID EVERY 1 HOUR", "BAD_EVERY",
         71, "such as [WINDOW 1 HOUR]"),
        # what is joined
        (f"SELECT count(*) {TWO}", "CARTESIAN", 49, "write CROSS JOIN to allow it"),
        (f"SELECT count(*) {TWO} WHERE a.sellerID = 3 AND b.bidPrice > 3", "CARTESIAN", 49, "a with b"),
        ("SELECT count(*) FROM Auction a [WINDOW 1 HOUR] LEFT JOIN Bid b [WINDOW 1 HOUR] USING (auctionID)",
         "UNSUPPORTED", 48, "no entries for rows without a partner"),
        ("SELECT count(*) FROM Auction a [WINDOW 1 HOUR] LEFT ANTI JOIN Person ON sellerID = personID",
         "UNSUPPORTED", 48, "write an inner JOIN"),
        ("SELECT count(*) FROM Auction a [WINDOW 1 HOUR], nowhere", "UNKNOWN_STREAM", 49, "nowhere"),
        ("SELECT count(*) FROM " + ", ".join(f"Bid b{i} [WINDOW 1 HOUR]" for i in range(16)),
         "TOO_MANY_INPUTS", 387, "at most 15"),
        (f"SELECT count(*) {TWO} {WHERE} AND a.sellerID IN (SELECT personID FROM Person)", "UNSUPPORTED",
         107, "a subquery"),
        (f"SELECT count(*) {TWO} {WHERE} AND b.bidPrice / a.startPrice > 2", "UNSUPPORTED", 107,
         "may raise an error"),
        (f"SELECT count(*) {TWO} {WHERE} AND a.sellerID + 1", "TYPE_MISMATCH", 107, "a boolean"),
        (f"SELECT count(*) {TWO} WHERE auctionID > 3", "AMBIGUOUS_COLUMN", 77, "auctionID"),
        # what is aggregated
        (f"SELECT a.auctionID {TWO} {WHERE}", "NO_AGGREGATE", 35, "count(*)"),
        (f"SELECT DISTINCT count(*) {TWO} {WHERE}", "UNSUPPORTED", 8, "SELECT DISTINCT"),
        (f"SELECT count(*) {TWO} {WHERE} ORDER BY 1", "UNSUPPORTED", 103, "ORDER BY"),
        (f"SELECT count(*) {TWO} {WHERE} LIMIT 5", "UNSUPPORTED", 103, "limit what results(name) gives"),
        (f"SELECT count(*) {TWO} {WHERE} EVERY 1 MINUTE LIMIT 5", "UNSUPPORTED", 118, "LIMIT"),
        (f"SELECT count(*) {TWO} {WHERE} UNION ALL SELECT 1 FROM Bid", "UNSUPPORTED", 103,
         "register each of them"),
        (f"SELECT b.channel, count(*) {TWO} {WHERE}", "NOT_GROUPED", 8, "GROUP BY"),
        (f"SELECT count(*) {TWO} {WHERE} GROUP BY nothing", "UNKNOWN_COLUMN", 112, "nothing"),
        (f"SELECT max_by(a.auctionID, b.bidPrice) {TWO} {WHERE}", "UNSUPPORTED", 8,
         "max_by of columns of several inputs (a and b)"),
        (f"SELECT approx_count_distinct(a.startPrice - b.bidPrice) {TWO} {WHERE}", "UNSUPPORTED", 8,
         "read one input"),
        (f"SELECT sum(DISTINCT b.bidPrice) {TWO} {WHERE}", "UNSUPPORTED", 8,
         "count(DISTINCT x) and approx_count_distinct(x) are shared"),
        (f"SELECT median(b.bidPrice) {TWO} {WHERE}", "UNSUPPORTED", 8, "approx_percentile"),
        (f"SELECT count(c.*) {TWO} {WHERE}", "UNKNOWN_COLUMN", 14, "'c.*'"),
        ("SELECT first(name) FROM Bid [WINDOW 1 HOUR], Person WHERE bidderID = personID", "UNSUPPORTED", 8,
         "first is by event time"),
        (f"SELECT count(*) {TWO} {WHERE} GROUP BY window(b.ts, '1 hour')", "UNSUPPORTED", 112,
         "the instant in the column at"),
        (f"SELECT window.start, count(*) {TWO} {WHERE}", "UNKNOWN_COLUMN", 8, "window.start"),
        ("SELECT count(*) FROM Bid [WINDOW 1 HOUR], Person WHERE bidderID = personID GROUP BY channel || name",
         "UNSUPPORTED", 85, "group by its parts"),
        ("SELECT count(*) FROM Auction [WINDOW 1 HOUR], Person WHERE sellerID = personID GROUP BY at",
         "UNSUPPORTED", 89, "every instant is a group"),
        # result columns
        (f"SELECT count(*) AS n, sum(bidPrice) AS N {TWO} {WHERE}", "DUPLICATE_COLUMN", 23, "an alias"),
        (f"SELECT max(b.at) AS at {TWO} {WHERE}", "DUPLICATE_COLUMN", 8, "its instant in the column 'at'"),
        (f"SELECT at, count(*) AS n {TWO} {WHERE} GROUP BY at", "DUPLICATE_COLUMN", 8, "an alias"),
    ],
)  # fmt: skip
def test_refused(sql: str, error_class: str, place: int, says: str) -> None:
    found = error(sql)
    assert (found.error_class, found.line, found.column) == (error_class, 1, place), found
    assert says in found.message
    assert found.query == "q"


def test_the_column_of_changes_is_reserved_in_changes_only() -> None:
    sql = f"SELECT count(*) AS removed {TWO} {WHERE}"
    assert [column.name for column in query(sql).columns] == ["at", "removed"]
    found = error(sql, emit="changes")
    assert (found.error_class, found.column) == ("DUPLICATE_COLUMN", 8)
    assert "whether its group is gone" in found.message


def test_emit_is_for_aggregation_joins() -> None:
    assert error("SELECT auctionID FROM Bid", emit="full").error_class == "BAD_EMIT"
    windowed = "SELECT count(*) FROM Bid GROUP BY window(ts, '1 hour')"
    assert error(windowed, emit="changes").error_class == "BAD_EMIT"
    found = error(f"SELECT count(*) {TWO} {WHERE}", emit="some")
    assert found.error_class == "BAD_EMIT" and "'some'" in found.message


def test_fifteen_inputs_are_allowed() -> None:
    inputs = ", ".join(f"Bid b{i} [WINDOW 1 HOUR]" for i in range(15))
    equal = " AND ".join(f"b0.auctionID = b{i}.auctionID" for i in range(1, 15))
    assert len(query(f"SELECT count(*) FROM {inputs} WHERE {equal}").inputs) == 15


def test_join_keys_of_types_that_spark_cannot_compare_are_named_as_they_are_written() -> None:
    problem = AnalysisProblem(
        "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
        '[DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES] Cannot resolve "(0.auctionID = 1.ts)" due to data type mismatch: ("BIGINT" and "TIMESTAMP"). SQLSTATE: 42K09',
    )
    analyzer = FakeAnalyzer({"(`0.auctionID` = `1.ts`)": problem})
    raised = error(f"SELECT count(*) {TWO} WHERE a.auctionID = b.ts", analyzer=analyzer)
    assert raised.error_class == "TYPE_MISMATCH"
    assert '"(auctionID = ts)"' in str(raised)


def test_join_keys_that_spark_would_cast_are_told_with_what_to_write() -> None:
    analyzer = FakeAnalyzer({"(`0.auctionID` = `1.channel`)": "boolean"})
    raised = error(f"SELECT count(*) {TWO} WHERE a.auctionID = b.channel", analyzer=analyzer)
    assert (raised.error_class, raised.column) == ("UNSUPPORTED", 77)
    assert "since it compares bigint with string" in raised.message
    assert "such as CAST(a.auctionID AS STRING) = b.channel" in raised.message


def test_a_timestamp_and_a_date_are_compared_as_timestamps() -> None:
    compared = "a.ts = CAST(b.ts AS DATE)"
    analyzer = FakeAnalyzer({"(`0.ts` = CAST(`1.ts` AS DATE))": "boolean"})
    raised = error(f"SELECT count(*) {TWO} WHERE {compared}", analyzer=analyzer)
    assert "since it compares timestamp with date" in raised.message
    advised = "a.ts = CAST(CAST(b.ts AS DATE) AS TIMESTAMP)"
    assert f"such as {advised}" in raised.message
    assert len(query(f"SELECT count(*) {TWO} WHERE {advised}").predicates.predicates) == 1


def test_a_decimal_is_compared_with_a_double_where_it_is_cast() -> None:
    """The cast reads one input and never raises an error, so Spark evaluates it before the join."""
    with_double = f"SELECT count(*) {TWO} WHERE b.amount = CAST(a.startPrice AS DOUBLE)"
    raised = error(with_double)
    assert "such a part reads one input, as in CAST(x AS DOUBLE) = y" in raised.message
    cast = f"SELECT count(*) {TWO} WHERE CAST(b.amount AS DOUBLE) = CAST(a.startPrice AS DOUBLE)"
    assert [a.value.sql for a in query(cast).inputs[1].attributes] == ["CAST(`amount` AS DOUBLE)"]


def test_an_argument_that_only_spark_can_evaluate_is_told_with_what_is_shared() -> None:
    analyzer = FakeAnalyzer({"greatest(`0.startPrice`, `1.bidPrice`)": "int"})
    sql = f"SELECT sum(greatest(a.startPrice, b.bidPrice)) {TWO} {WHERE}"
    raised = error(sql, analyzer=analyzer)
    assert (raised.error_class, raised.column) == ("UNSUPPORTED", 12)
    assert "between inputs use CASE, comparisons" in raised.message


def test_what_reads_one_input_may_be_anything() -> None:
    analyzer = FakeAnalyzer(
        {"abs(`0.startPrice`)": "int", "(abs(`0.startPrice`) * `1.bidPrice`)": "int"}
    )
    join = query(f"SELECT sum(abs(a.startPrice) * b.bidPrice) {TWO} {WHERE}", analyzer=analyzer)
    assert {a.value.sql for a in join.inputs[0].attributes} == {"`auctionID`", "abs(`startPrice`)"}
    assert [a.value.can_raise for a in join.inputs[0].attributes].count(True) == 1
