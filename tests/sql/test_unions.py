"""Set operations: which branches a query has, what their columns are, and what is refused."""

from __future__ import annotations

import pytest
from tests.sql.support import FakeAnalyzer, error, fallback, join, union

from weft.algebra.network.sets import SetQuery
from weft.algebra.query import Field
from weft.algebra.scalar import quoted_sql
from weft.algebra.types import SqlType
from weft.sql import AnalysisProblem


def branches(query: SetQuery) -> list[tuple[str, str, list[str]]]:
    """The streams, the conditions and the values of each branch."""
    return [
        (
            " ".join(entry.relation for entry in branch.inputs),
            branch.predicates.sql,
            [quoted_sql(column.value) for column in branch.columns],
        )
        for branch in query.branches
    ]


def test_names_are_those_of_the_first_branch_and_types_are_widened() -> None:
    query = union(
        "SELECT price AS p, dec, NULL AS n, d FROM bids "
        "UNION ALL SELECT size, 1, Time, 2 FROM Packets"
    )
    for branch in query.branches:
        columns = [(column.name, column.type) for column in branch.columns]
        assert columns == [
            ("p", "bigint"),
            ("dec", "decimal(12,2)"),
            ("n", "timestamp"),
            ("d", "double"),
        ]
    assert query.distinct_in == (None, None)
    assert query.relations == ("bids", "Packets")


def test_nobody_asks_spark_for_names_that_do_not_matter() -> None:
    analyzer = FakeAnalyzer()
    query = union(
        "SELECT price AS p FROM bids UNION ALL SELECT length(channel) FROM bids", analyzer
    )
    assert query.columns[0].name == "p"
    assert analyzer.asked == []


@pytest.mark.parametrize(
    ("sql", "sets"),
    [
        ("{a} UNION ALL {b} UNION ALL {c}", (None, None, None)),
        ("{a} UNION {b} UNION {c}", (0, 0, 0)),
        ("{a} UNION DISTINCT {b}", (0, 0)),
        ("{a} UNION ALL {b} UNION {c}", (0, 0, 0)),
        ("{a} UNION {b} UNION ALL {c}", (0, 0, None)),
        ("({a} UNION {b}) UNION ALL ({c} UNION {a})", (0, 0, 1, 1)),
        ("{a} UNION ALL ({b} UNION {c})", (None, 0, 0)),
        ("({a}) UNION (({b}) UNION ALL ({c}))", (0, 0, 0)),
        ("SELECT DISTINCT price FROM bids UNION ALL {b}", (0, None)),
        ("SELECT DISTINCT price FROM bids UNION {b}", (0, 0)),
        ("SELECT * FROM ({a} UNION {b}) UNION ALL {c}", (0, 0, None)),
        ("SELECT DISTINCT price + 1 AS p FROM ({a} UNION {b})", (0, 0)),
        ("SELECT price FROM ({a} UNION {b} UNION ALL {c})", (0, 0, None)),
        ("SELECT price FROM ({a} UNION ALL {b}) UNION {c}", (0, 0, 0)),
    ],
)
def test_where_duplicates_are_removed(sql: str, sets: tuple[int | None, ...]) -> None:
    parts = {
        "a": "SELECT price FROM bids WHERE price > 1",
        "b": "SELECT price FROM bids WHERE price > 2",
        "c": "SELECT price FROM bids WHERE price > 3",
    }
    assert union(sql.format(**parts)).distinct_in == sets


def test_one_select_in_parentheses_is_that_select() -> None:
    assert join("((SELECT price FROM bids))").columns == join("SELECT price FROM bids").columns
    assert join("WITH a AS (SELECT price FROM bids) (SELECT price FROM a)").distinct is False
    assert join("SELECT price FROM (SELECT DISTINCT price FROM bids)").distinct is True


EVENTS = (
    "WITH e AS (SELECT auction AS id, ts AS at, 'b' AS kind FROM bids "
    "UNION ALL SELECT size, Time, 'p' FROM Packets) "
)


def test_a_query_over_a_union_is_bound_for_every_branch() -> None:
    query = union(EVENTS + "SELECT id FROM e WHERE id > 5")
    assert branches(query) == [
        ("bids", "`0.auction` >= 6", ["`0.auction`"]),
        ("Packets", "`0.size` >= 6", ["`0.size`"]),
    ]


def test_a_branch_without_rows_is_left_out() -> None:
    assert join(EVENTS + "SELECT id FROM e WHERE kind = 'p'").relations == ("Packets",)
    never = join(EVENTS + "SELECT id FROM e WHERE kind = 'x'")
    assert never.predicates.never


def test_a_join_of_unions_has_every_combination() -> None:
    query = union(EVENTS + "SELECT x.id AS x, y.id AS y FROM e x JOIN e y ON x.id = y.id")
    assert [streams for streams, _, _ in branches(query)] == [
        "bids bids",
        "bids Packets",
        "Packets bids",
        "Packets Packets",
    ]


def test_a_union_may_be_nested_in_a_branch() -> None:
    query = union(
        "SELECT n FROM (SELECT price AS n FROM bids UNION ALL "
        "SELECT m FROM (SELECT tiny AS m FROM bids UNION ALL SELECT 7L FROM bids) i WHERE m > 1) o "
        "WHERE n < 9"
    )
    assert [(conditions, values) for _, conditions, values in branches(query)] == [
        ("`0.price` <= 8", ["cast(`0.price` AS bigint)"]),
        ("(`0.tiny` >= 2 AND `0.tiny` <= 8)", ["cast(`0.tiny` AS bigint)"]),
        ("true", ["cast('7' AS bigint)"]),
    ]


def test_a_column_is_cast_as_often_as_spark_casts_it() -> None:
    """A date that meets a timestamp, then a string, is '2020-01-01 00:00:00', not '2020-01-01'."""

    class Wider(FakeAnalyzer):
        def types(
            self, fields: tuple[Field, ...], expressions: tuple[str, ...]
        ) -> tuple[SqlType | AnalysisProblem, ...]:
            return ("string" if fields[1].type == "string" else "timestamp",)

    parts = [f"SELECT {column} FROM bids" for column in ("day", "ts", "channel")]
    first, *_ = branches(union(" UNION ALL ".join(parts), Wider()))
    assert first[2] == ["(CAST(CAST(`0.day` AS TIMESTAMP) AS STRING))"]


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT price FROM bids UNION ALL SELECT price, ts FROM bids", 24),
        ("SELECT price, d FROM bids UNION SELECT 1 FROM bids", 27),
        ("SELECT 1 AS x FROM (SELECT price FROM bids UNION ALL SELECT 1, 2 FROM bids)", 44),
    ],
)
def test_numbers_of_columns_must_agree(sql: str, column: int) -> None:
    raised = error(sql)
    assert (raised.error_class, raised.line, raised.column) == ("INVALID_QUERY", 1, column)


def test_types_without_a_common_one_are_an_error_at_the_column() -> None:
    analyzer = FakeAnalyzer({"coalesce(`left`, `right`)": AnalysisProblem("X", "no")})
    raised = error("SELECT d, ok FROM bids\nUNION ALL SELECT 1, ts FROM bids", analyzer)
    assert (raised.error_class, raised.line, raised.column) == ("TYPE_MISMATCH", 2, 21)
    assert "'ok' of UNION ALL has the types boolean and timestamp" in str(raised)


def test_names_are_looked_up_in_every_branch() -> None:
    raised = error("SELECT price FROM bids UNION ALL\nSELECT prize FROM bids")
    assert (raised.error_class, raised.line, raised.column) == ("UNKNOWN_COLUMN", 2, 8)
    raised = error("SELECT price FROM bids UNION ALL SELECT 1 FROM nowhere")
    assert raised.error_class == "UNKNOWN_STREAM"


def test_a_definition_inside_of_parentheses_is_not_seen_outside() -> None:
    sql = "(WITH a AS (SELECT price FROM bids) SELECT price FROM a) UNION ALL SELECT price FROM a"
    assert error(sql).error_class == "UNKNOWN_STREAM"
    both = union("WITH a AS (SELECT price FROM bids) (SELECT price FROM a) UNION SELECT 1 FROM a")
    assert both.relations == ("bids",)


def test_too_many_branches_are_refused() -> None:
    four = " UNION ALL ".join(["SELECT price AS p FROM bids"] * 4)
    sql = f"WITH e AS ({four}) SELECT a.p FROM e a, e b, e c, e d WHERE a.p = b.p AND b.p = c.p"
    assert error(f"{sql} AND c.p = d.p").error_class == "TOO_MANY_BRANCHES"


def test_a_union_of_tables_alone_is_refused() -> None:
    sql = "SELECT price FROM bids UNION ALL SELECT age FROM people"
    raised = error(sql, tables={"people": ()})
    assert raised.error_class in ("UNSUPPORTED", "UNKNOWN_COLUMN")


def test_duplicates_that_cannot_be_removed_later_fall_back() -> None:
    sql = "SELECT a.price FROM (SELECT price FROM bids UNION SELECT tiny FROM bids) a JOIN bids b"
    assert "removes duplicates" in fallback(f"{sql} ON a.price = b.price").reason
    distinct = union(f"{sql.replace('SELECT a', 'SELECT DISTINCT a', 1)} ON a.price = b.price")
    assert distinct.distinct_in == (0, 0)


@pytest.mark.parametrize(
    ("word", "error_class"),
    [
        ("EXCEPT", "NEVER_CLOSED"),
        ("MINUS", "NEVER_CLOSED"),
        ("EXCEPT ALL", "UNSUPPORTED"),
        ("INTERSECT ALL", "UNSUPPORTED"),
    ],
)
def test_what_would_take_rows_back_is_refused(word: str, error_class: str) -> None:
    raised = error(f"SELECT price FROM bids\n{word} SELECT 1 FROM bids")
    assert (raised.error_class, raised.line, raised.column) == (error_class, 2, 1)
