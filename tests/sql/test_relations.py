"""Which relations a text reads: too few fail, too many freeze Spark's watermark."""

from __future__ import annotations

import pytest
from tests.sql.support import error, fallback, query

from weft.sql.binding.safety import Guard
from weft.sql.reading.relations import references
from weft.sql.reading.source import QUOTED, read


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT 1 FROM a", "a"),
        ("SELECT 1 FROM a, b AS c, `d e` f", "a b d e"),
        ("SELECT 1 FROM a JOIN b ON a.x = b.x LEFT OUTER JOIN c USING (x, y), d", "a b c d"),
        ("SELECT 1 FROM (a JOIN b ON true), c", "a b c"),
        ("SELECT 1 FROM ((a CROSS JOIN b) CROSS JOIN (SELECT 2 FROM c))", "a b c"),
        ("SELECT 1 FROM (SELECT 2 FROM a WHERE x > 1, 2) s, b", "a b"),
        ("SELECT 1 FROM a WHERE x IN (SELECT y FROM b) AND EXISTS (SELECT 1 FROM c)", "a b c"),
        ("SELECT (SELECT max(x) FROM b) FROM a", "b a"),
        ("SELECT b, c AS d FROM a GROUP BY b, c HAVING e > 1 ORDER BY f, g", "a"),
        ("SELECT a.b, b.a FROM a AS b", "a"),
        (
            "SELECT extract(YEAR FROM b), trim(BOTH 'x' FROM c), substring(d FROM 1 FOR 2) FROM a",
            "a",
        ),
        ("SELECT 1 FROM a WHERE b IS DISTINCT FROM c AND d IS NOT DISTINCT FROM e", "a"),
        ("SELECT 1 FROM a LATERAL VIEW explode(x) t AS b, c WHERE d", "a"),
        ("SELECT 1 FROM a, LATERAL (SELECT 1 FROM b), LATERAL explode(c)", "a b"),
        ("SELECT 1 FROM range(10) r, a", "a"),
        ("SELECT 1 FROM a TABLESAMPLE (10 PERCENT), b TABLESAMPLE (5 ROWS) AS c JOIN d", "a b d"),
        ("SELECT 1 FROM a WINDOW w AS (PARTITION BY b), v AS (ORDER BY c)", "a"),
        ("SELECT 1 FROM STREAM a, STREAM(b), STREAM JOIN c", "a b STREAM c"),
        ("SELECT 1 FROM x.a, parquet.`/b/c`, a.b.c", "x.a parquet./b/c a.b.c"),
        ("FROM a SELECT b WHERE c IN (FROM d SELECT e)", "a d"),
        ("FROM a |> JOIN b ON true |> WHERE x |> SELECT c, d |> EXTEND 1, e", "a b"),
        ("TABLE a", "a"),
        ("SELECT 1 FROM f(TABLE(a), TABLE b, c)", "a b"),
        ("SELECT table, x FROM a", "a"),
        ("(SELECT 1 FROM a) UNION ALL (TABLE b)", "a b"),
        ("SELECT 1 FROM a UNION ALL SELECT 2 FROM b", "a b"),
        ("SELECT 1 FROM a PIVOT (count(b) FOR c IN (1, 2))", "a"),
        # common table expressions, each in its scope
        ("WITH a AS (SELECT 1 FROM b) SELECT 1 FROM a", "b"),
        ("WITH a AS (SELECT 1 FROM a) SELECT 1 FROM A", "a"),
        ("WITH a(x, y) AS (SELECT 1 FROM b), c AS (SELECT 1 FROM a, c) SELECT 1 FROM a, c", "b c"),
        ("WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT 2 FROM a) SELECT 1 FROM a, b", "b"),
        ("WITH recursive AS (SELECT 1 FROM b) SELECT 1 FROM recursive", "b"),
        ("SELECT 1 FROM (WITH a AS (SELECT 1 FROM b) SELECT 1 FROM a) s, a", "b a"),
        ("WITH a AS (WITH b AS (SELECT 1 FROM c) SELECT 1 FROM b) SELECT 1 FROM a, b", "c b"),
        ("WITH `A b` AS (SELECT 1 FROM c) SELECT 1 FROM `a B`", "c"),
    ],
)
def test_the_relations_of_a_text(sql: str, names: str) -> None:
    assert " ".join(reference.name for reference in references(read(sql))) == names


def test_a_fallback_names_what_it_reads_once_and_by_its_registered_name() -> None:
    alone = fallback(
        "SELECT * FROM PACKETS p, `people` JOIN packets q ON true, People", tables=("People", "x")
    )
    assert (alone.stream, alone.streams, alone.tables) == ("Packets", ("Packets",), ("People",))


def test_a_column_or_alias_with_the_name_of_a_stream_is_no_relation() -> None:
    alone = fallback("SELECT payload AS packets FROM bids AS people", tables=("people",))
    assert (alone.streams, alone.tables) == (("bids",), ())


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("SELECT reflect('java.lang.System', 'exit') FROM bids", 8),
        ("SELECT price FROM bids WHERE `Java_Method`('a', 'b') = 'c'", 30),
        ("SELECT system.builtin.try_reflect('a', 'b') FROM bids", 23),
        (
            "SELECT count(*) AS n FROM bids WHERE reflect('a', 'b') = 'c' "
            "GROUP BY window(ts, '1 minute')",
            38,
        ),
        ("SELECT a.price FROM bids a JOIN bids b ON reflect('x', 'y', a.d) = b.d", 43),
        ("SELECT TRANSFORM(price) USING 'rm -r .' AS (a) FROM bids", 25),
        ("SELECT IDENTIFIER('reflect')('a', 'b') FROM bids", 8),
        ("SELECT * FROM bids, parquet.`/etc`", 21),
        ("SELECT * FROM bids JOIN `org.apache.spark.sql.json`.`/etc/passwd` ON true", 25),
    ],
)
def test_unsafe_queries_are_refused_unless_allowed(sql: str, column: int) -> None:
    guard = Guard(is_table=lambda name: name == "`reference`.`people`")
    refused = error(sql, guard=guard)
    assert (refused.error_class, refused.line, refused.column) == ("UNSAFE_SQL", 1, column)
    assert "allow_unsafe_sql" in refused.message
    assert fallback(sql).streams == ("bids",)


def test_tables_of_sparks_catalog_are_safe() -> None:
    guard = Guard(is_table=lambda name: name == "`reference`.`people`")
    sql = "SELECT * FROM bids JOIN other USING (price), reference.people"
    assert fallback(sql, guard=guard, tables=("other",)).tables == ("other",)


def test_double_quotes_hold_names_if_the_session_says_so() -> None:
    window = "GROUP BY window(ts, '1 hour')"
    sql = f'SELECT count(b."price") AS "n" FROM "bids" b WHERE "channel" = \'a\' {window}'
    plain = query(f"SELECT count(price) AS n FROM bids WHERE channel = 'a' {window}")
    quoted = query(sql, double_quoted_names=True)
    assert quoted.aggregates == plain.aggregates
    assert (quoted.predicate, quoted.columns) == (plain.predicate, plain.columns)


def test_double_quotes_hold_strings_otherwise() -> None:
    window = "GROUP BY window(ts, '1 hour')"
    sql = f'SELECT count(*) AS n FROM bids WHERE "channel" = channel {window}'
    string, name = query(sql), query(sql, double_quoted_names=True)
    assert string.predicate is not None and "'channel'" in string.predicate.sql
    assert name.predicate is not None and "'channel'" not in name.predicate.sql


def test_a_doubled_double_quote_in_a_name_stands_for_one() -> None:
    tokens = read('SELECT "a""b", "c" "d", r"e"', double_quoted_names=True).tokens
    assert [token.value for token in tokens if token.kind == QUOTED] == ['a"b', "c", "d"]
