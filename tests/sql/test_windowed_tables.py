"""Tables beside the stream of a windowed aggregate: what is looked up, and what is left to WHERE."""

from __future__ import annotations

import pytest
from tests.sql.support import error, fallback, query
from tests.sql.test_lookups import TABLES, described

from weft.algebra import codec
from weft.algebra.plan import query_columns, query_tables
from weft.algebra.query import Query

WINDOW = "window(ts, '1 hour')"
INNER = "bids b JOIN people p ON b.channel = p.name"
LEFT = "bids b LEFT JOIN people p ON b.channel = p.name"


def windowed(sql: str) -> Query:
    return query(sql, tables=TABLES)


def over(text: str, *keys: str) -> Query:
    """A count over what FROM and WHERE say."""
    return windowed(f"SELECT count(*) AS n FROM {text} GROUP BY {', '.join([WINDOW, *keys])}")


def test_a_tables_columns_are_keys_and_arguments_like_the_streams() -> None:
    found = windowed(
        "SELECT p.city, sum(price) AS total, max(age) FILTER (WHERE p.age > 3) AS oldest "
        f"FROM {INNER} GROUP BY {WINDOW}, p.city"
    )
    assert described(found.lookups) == ["inner people ON `0.channel` = `1.name`"]
    assert [key.sql for key in found.keys] == ["`people@0.city`"]
    assert [argument.sql for a in found.aggregates for argument in a.arguments] == [
        "`price`",
        "`people@0.age`",
    ]
    assert found.aggregates[1].filter is not None
    assert found.aggregates[1].filter.sql == "(`people@0.age` > 3)"
    assert found.predicate is None, "the lookup enforces the equality"
    assert query_columns(found) == {"channel", "price"}
    assert query_tables(found) == ("people",)


def test_spelling_does_not_matter() -> None:
    queries = [
        over(f"{INNER} WHERE age > 3", "city"),
        over("people q, bids WHERE 3 < q.age AND q.name = bids.channel", "q.city"),
        over("bids JOIN (SELECT name AS channel, city, age FROM people WHERE age > 3) USING (channel)", "city"),
    ]  # fmt: skip
    assert len({(same.lookups, same.keys, same.predicate) for same in queries}) == 1


@pytest.mark.parametrize(
    ("text", "lookups", "predicate"),
    [
        (f"{INNER} WHERE price > 5", ["inner people ON `0.channel` = `1.name`"], "(`price` >= 6)"),
        (
            f"{LEFT} AND age > 5 WHERE city IS NULL",
            ["left people ON `0.channel` = `1.name` AND `1.age` >= 6"],
            "(`people@0.city` IS NULL)",
        ),
        (
            f"{LEFT} LEFT JOIN cities c ON p.city = c.id",
            ["left people ON `0.channel` = `1.name`", "left cities ON `0.people@0.city` = `1.id`"],
            None,
        ),
        (
            "bids WHERE channel IN (SELECT name FROM people) AND price < 3",
            ["mark people ON `0.channel` = `1.name`"],
            "((`people@0.#found` >= true) AND (`price` < 3))",
        ),
        (
            "bids LEFT ANTI JOIN people ON channel = name",
            ["mark people ON `0.channel` = `1.name`"],
            "(`people@0.#found` < true)",
        ),
        (
            "bids b JOIN people p ON b.channel >= p.name AND b.price = 7",
            ["inner people ON `0.channel` >= `1.name`"],
            "(`price` = 7)",
        ),
        (f"{INNER} WHERE price < 3 AND price > 4", ["inner people ON false"], "false"),
    ],
)
def test_what_is_looked_up_and_what_is_left(
    text: str, lookups: list[str], predicate: str | None
) -> None:
    found = over(text)
    assert described(found.lookups) == lookups
    assert (found.predicate.sql if found.predicate else None) == predicate


def test_conditions_that_may_raise_come_after_all_others() -> None:
    found = over(f"{INNER} WHERE price > 0 AND auction + age > 5")
    assert found.predicate is not None and found.predicate.can_raise
    assert found.predicate.sql == (
        "CASE WHEN (`price` > 0) THEN ((`auction` + `people@0.age`) > 5) ELSE false END"
    )
    assert described(found.lookups) == ["inner people ON `0.channel` = `1.name`"]


def test_a_window_in_brackets_stands_behind_the_stream() -> None:
    found = windowed(
        "SELECT city, count(*) AS n FROM bids [RANGE 1 HOUR SLIDE 5 MINUTES] b "
        "JOIN people p ON b.channel = p.name GROUP BY city"
    )
    assert (found.window.range, found.window.slide) == (3_600_000_000, 300_000_000)
    problem = error(
        "SELECT count(*) AS n FROM bids b JOIN people [RANGE 1 HOUR] p ON b.channel = p.name",
        tables=TABLES,
    )
    assert problem.error_class == "BAD_WINDOW"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{INNER} JOIN packets q ON q.size = b.price", "a join without bounds on event times"),
        ("bids FULL JOIN people ON channel = name", "FULL JOIN"),
        (f"{LEFT} AND 10 / age > 3", "may raise an error"),
        ("bids JOIN (SELECT DISTINCT name FROM people) p ON channel = name", "SELECT DISTINCT"),
        ("bids WHERE price > (SELECT max(age) FROM people)", "a subquery"),
        (
            "bids JOIN people ON auction + 1 = age",
            "may raise an error on some rows: auction + 1",
        ),
        ("bids JOIN odd ON price = age", "a column with @ in its name"),
    ],
)
def test_what_is_not_shared_says_why(text: str, reason: str) -> None:
    alone = fallback(f"SELECT count(*) AS n FROM {text} GROUP BY {WINDOW}", tables=TABLES)
    assert reason in alone.reason


def test_errors_keep_their_place() -> None:
    row_window = error(
        "SELECT count(*) AS n FROM bids [RANGE 10 ROWS] b JOIN people p ON channel = name",
        tables=TABLES,
    )
    assert row_window.error_class == "UNSUPPORTED"
    assert "a window of rows beside tables" in str(row_window)
    apart = error(f"SELECT count(*) AS n FROM bids, people GROUP BY {WINDOW}", tables=TABLES)
    assert (apart.error_class, apart.line, apart.column) == ("CARTESIAN", 1, 33)
    ungrouped = error(f"SELECT city, count(*) AS n FROM {INNER} GROUP BY {WINDOW}", tables=TABLES)
    assert ungrouped.error_class == "NOT_GROUPED"


def test_a_query_with_lookups_is_stored_and_one_from_before_is_read() -> None:
    found = over(LEFT, "p.city")
    assert codec.loads(codec.dumps(found)) == found
    form = codec.encode(windowed(f"SELECT count(*) AS n FROM bids GROUP BY {WINDOW}"))
    del form["lookups"]
    assert codec.decode(form).lookups == ()
