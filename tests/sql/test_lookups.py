"""Tables that are looked up for the rows of a stream: which, for whose rows, under which conditions."""

from __future__ import annotations

import pytest
from tests.sql.support import error, fallback, join

from weft.algebra.network.lookup import Lookup
from weft.algebra.network.query import JoinQuery
from weft.algebra.query import Field
from weft.algebra.scalar import Call, Literal, Ref

TABLES = {
    "people": (Field("name", "string"), Field("city", "string"), Field("age", "int")),
    "cities": (Field("id", "string"), Field("land", "string"), Field("size", "bigint")),
    "odd": (Field("name@0", "string"), Field("age", "int")),
}
LEFT = "bids b LEFT JOIN people p ON b.channel = p.name"
TWO = "bids b JOIN packets q ON q.size = b.price"


def looked_up(sql: str) -> JoinQuery:
    return join(sql, tables=TABLES)


def described(lookups: tuple[Lookup, ...]) -> list[str]:
    """Lookups in a line each; those of a table in brackets."""
    return [
        f"{lookup.kind} {lookup.table} ON {lookup.predicates.sql}"
        + (f" {described(lookup.lookups)}" if lookup.lookups else "")
        for lookup in lookups
    ]


def lookups(sql: str) -> list[str]:
    """The lookups of the only input."""
    (entry,) = looked_up(sql).inputs
    return described(entry.lookups)


def test_a_left_join_adds_the_columns_of_a_table() -> None:
    query = looked_up(
        f"SELECT price, p.city, age + 1 AS n FROM {LEFT} AND p.age > 30 AND b.price < 5"
    )
    (entry,) = query.inputs
    assert (entry.relation, entry.alias) == ("bids", "b")
    assert described(entry.lookups) == [
        "left people ON `0.channel` = `1.name` AND `0.price` <= 4 AND `1.age` >= 31"
    ]
    assert [column.value for column in query.columns] == [
        Ref("0.price", "int"),
        Ref("0.people@0.city", "string"),
        Call("+", (Ref("0.people@0.age", "int"), Literal(1, "int")), "int"),
    ]
    assert query.predicates.predicates == ()
    assert query.relations == ("bids", "people")
    assert query.columns_of("bids") == {"channel", "price"}
    assert query.columns_of("people") == {"name", "city", "age"}


def test_conditions_behind_the_join_are_conditions_of_the_query() -> None:
    query = looked_up(f"SELECT price FROM {LEFT} WHERE p.name IS NULL AND (age = 7 OR age IS NULL)")
    assert query.predicates.sql == (
        "(`0.people@0.age` IS NULL OR `0.people@0.age` = 7) AND `0.people@0.name` IS NULL"
    )


@pytest.mark.parametrize(
    "from_",
    [
        "people p RIGHT JOIN bids b ON p.name = b.channel",
        "people p RIGHT OUTER JOIN bids b ON b.channel = p.name",
        "(SELECT price, channel AS name FROM bids) b LEFT JOIN people p USING (name)",
        "people p RIGHT JOIN (SELECT price, channel AS name FROM bids) b USING (name)",
        "bids b LEFT JOIN (SELECT name AS k, city FROM people) p ON b.channel = k",
    ],
)
def test_every_way_to_write_it_is_the_same(from_: str) -> None:
    flat = looked_up(f"SELECT price, city FROM {LEFT}")
    other = looked_up(f"SELECT price, city FROM {from_}")
    assert other.inputs[0].lookups == flat.inputs[0].lookups
    assert other.columns == flat.columns


def test_using_shows_the_column_of_the_side_that_is_kept() -> None:
    for from_ in ("x LEFT JOIN people USING (name)", "people RIGHT JOIN x USING (name)"):
        query = looked_up(
            f"WITH x AS (SELECT channel AS name, price FROM bids) SELECT name, people.name AS n FROM {from_}"
        )
        values = [column.value for column in query.columns]
        assert values == [Ref("0.channel", "string"), Ref("0.people@0.name", "string")]


def test_computed_columns_of_a_table_are_null_without_a_match() -> None:
    query = looked_up(
        "SELECT k, one FROM bids LEFT JOIN (SELECT name AS k, 1 AS one FROM people) p ON channel = k"
    )
    found = Ref("0.people@0.#found", "boolean")
    one = Call("case", (found, Literal(1, "int"), Literal(None, "int")), "int")
    assert [column.value for column in query.columns] == [Ref("0.people@0.name", "string"), one]


def test_a_table_behind_a_table_belongs_to_the_stream() -> None:
    assert lookups(f"SELECT price, land FROM {LEFT} LEFT JOIN cities c ON p.city = c.id") == [
        "left people ON `0.channel` = `1.name`",
        "left cities ON `0.people@0.city` = `1.id`",
    ]


def test_tables_that_are_joined_first_are_one_optional_side() -> None:
    pair = "(people p {} cities c ON p.city = c.id)"
    for word, kind in (("JOIN", "inner"), ("LEFT JOIN", "left")):
        assert lookups(
            f"SELECT price, land FROM bids LEFT JOIN {pair.format(word)} ON channel = p.name"
        ) == [f"left people ON `0.channel` = `1.name` ['{kind} cities ON `0.city` = `1.id`']"]


def test_one_stream_looks_up_all_its_tables() -> None:
    """Of an inner join only the equalities decide, so queries with other conditions share it."""
    sql = (
        "SELECT price FROM bids, people, cities WHERE city = id AND channel = name AND size > price"
    )
    query = looked_up(f"{sql} AND age > 30")
    (entry,) = query.inputs
    assert described(entry.lookups) == [
        "inner people ON `0.channel` = `1.name`",
        "inner cities ON `0.people@0.city` = `1.id`",
    ]
    assert "`0.cities@1.size` - `0.price` >= 1" in query.predicates.sql
    assert looked_up(f"{sql} AND age < 5").inputs == query.inputs


def test_the_order_of_lookups_is_not_the_querys() -> None:
    parts = [
        "LEFT JOIN people p ON b.channel = p.name",
        "LEFT JOIN cities c ON c.size = b.auction",
        "LEFT JOIN people o ON b.price = o.age",
    ]
    wheres = ["b.price IN (SELECT age FROM people)", "b.auction NOT IN (SELECT size FROM cities)"]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        from_ = " ".join(parts[place] for place in order)
        for where in (wheres, wheres[::-1]):
            query = looked_up(
                f"SELECT p.city, c.land, o.city AS x FROM bids b {from_} WHERE {' AND '.join(where)}"
            )
            assert (
                query.inputs
                == looked_up(
                    f"SELECT d FROM bids b {' '.join(parts)} WHERE {' AND '.join(wheres)}"
                ).inputs
            )
    inner = "SELECT d FROM bids, {} WHERE channel = name AND city = id AND size > 3"
    one, other = (looked_up(inner.format(names)) for names in ("people, cities", "cities, people"))
    assert one.inputs == other.inputs and one.predicates == other.predicates


def test_what_follows_from_an_inner_join_is_still_inferred() -> None:
    query = looked_up("SELECT price FROM bids JOIN people ON channel = name WHERE name = 'x'")
    assert query.predicates.sql == "`0.channel` = 'x' AND `0.people@0.name` = 'x'"


def test_beside_several_streams_optional_tables_belong_to_one() -> None:
    query = looked_up(
        f"SELECT b.price, p.city, c.land FROM {TWO} LEFT JOIN people p ON b.channel = p.name "
        "LEFT JOIN cities c ON c.size = q.size WHERE p.age IS NULL"
    )
    assert [described(entry.lookups) for entry in query.inputs] == [
        ["left people ON `0.channel` = `1.name`"],
        ["left cities ON `0.size` - `1.size` = 0"],
    ]
    assert query.columns[2].value == Ref("1.cities@0.land", "string")
    inner = f"{TWO} JOIN people p ON p.name = b.channel LEFT JOIN cities c ON c.id = p.city"
    assert [
        described(entry.lookups) for entry in looked_up(f"SELECT land FROM {inner}").inputs
    ] == [
        [],
        [],
        ["left cities ON `0.city` = `1.id`"],
    ]
    both = f"{inner} AND c.size = b.price"
    assert [described(entry.lookups) for entry in looked_up(f"SELECT land FROM {both}").inputs] == [
        [
            "inner people ON `0.channel` = `1.name`",
            "left cities ON `0.people@0.city` = `1.id` AND `0.price` - `1.size` = 0",
        ],
        [],
    ]


def test_in_and_exists_are_truth_values() -> None:
    query = looked_up(
        "SELECT price FROM bids b WHERE channel IN (SELECT name FROM people WHERE age > 30) "
        "AND (price < 3 OR NOT EXISTS (SELECT 1 FROM cities c WHERE c.size = b.price))"
    )
    (entry,) = query.inputs
    within, exists = sorted(entry.lookups, key=lambda lookup: -len(lookup.unknown))
    assert described((within, exists)) == [
        "mark people ON `0.channel` = `1.name` AND `1.age` >= 31",
        "mark cities ON `0.price` - `1.size` = 0",
    ]
    assert [unknown.sql for unknown in within.unknown] == [
        "`0.channel` IS NULL AND `1.age` >= 31",
        "`1.age` >= 31 AND `1.name` IS NULL",
    ]
    numbers = {lookup.table: number for number, lookup in enumerate(entry.lookups)}
    assert query.predicates.sql == (
        f"(NOT `0.cities@{numbers['cities']}.#found` OR `0.price` <= 2) "
        f"AND `0.people@{numbers['people']}.#found`"
    )


def test_equal_subqueries_are_one() -> None:
    within = "channel IN (SELECT name FROM people)"
    assert len(lookups(f"SELECT price FROM bids WHERE {within} OR NOT {within}")) == 1


def test_left_semi_and_anti_join() -> None:
    semi = looked_up("SELECT * FROM packets LEFT SEMI JOIN cities ON cities.size = packets.size")
    assert [column.name for column in semi.columns] == ["Time", "size"]
    assert semi.predicates.sql == "`0.cities@0.#found`"
    anti = looked_up("SELECT Time FROM packets ANTI JOIN cities USING (size)")
    assert (anti.predicates.sql, anti.inputs[0].lookups) == (
        "NOT `0.cities@0.#found`",
        semi.inputs[0].lookups,
    )


def test_names_inside_a_subquery_are_its_own_first() -> None:
    assert lookups(
        "SELECT d FROM bids WHERE price IN (SELECT age FROM people WHERE name = city)"
    ) == ["mark people ON `0.price` - `1.age` = 0 AND `1.city` = `1.name`"]
    assert lookups(
        "WITH old AS (SELECT * FROM people WHERE age > 60) "
        "SELECT d FROM bids WHERE EXISTS (SELECT * FROM old WHERE channel = name)"
    ) == ["mark people ON `0.channel` = `1.name` AND `1.age` >= 61"]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "SELECT b.price FROM bids b LEFT JOIN bids c ON b.d = c.d",
            "LEFT JOIN has no shared form",
        ),
        ("SELECT b.price FROM bids b FULL JOIN people p ON b.channel = p.name", "FULL JOIN has no"),
        (
            "SELECT p.age FROM people p LEFT JOIN bids b ON b.channel = p.name JOIN bids c ON c.d = b.d",
            "LEFT JOIN has no shared form unless",
        ),
        (
            f"SELECT b.d FROM {TWO} LEFT JOIN cities c ON c.size = q.size AND c.id = b.channel",
            "conditions on several inputs",
        ),
        ("SELECT d FROM bids WHERE d IN (SELECT d FROM bids) OR d = 1", "below other conditions"),
        ("SELECT d FROM bids WHERE d IN (SELECT max(size) FROM cities)", "groups or aggregates"),
        ("SELECT channel IN (SELECT name FROM people) AS x FROM bids", "in a select list"),
        ("SELECT d FROM bids WHERE upper(channel) IN (SELECT age FROM people)", "string and int"),
        ("SELECT d FROM bids LEFT JOIN odd ON odd.age = price", "a column with @"),
        ("SELECT d FROM bids LEFT JOIN people ON age / price > 2 AND name = channel", "may raise"),
    ],
)
def test_what_is_left_to_spark(sql: str, reason: str) -> None:
    assert reason in fallback(sql, tables=TABLES).reason


@pytest.mark.parametrize(
    ("sql", "error_class"),
    [
        ("SELECT d FROM bids LEFT JOIN people ON age = 3", "CARTESIAN"),
        ("SELECT d FROM bids LEFT JOIN people", "CARTESIAN"),
        ("SELECT d FROM bids WHERE d IN (SELECT size, id FROM cities)", "INVALID_QUERY"),
        ("SELECT d FROM bids WHERE d IN (SELECT height FROM cities)", "UNKNOWN_COLUMN"),
        ("SELECT d FROM bids WHERE EXISTS (SELECT 1 FROM nobody)", "UNKNOWN_STREAM"),
        ("SELECT name FROM people LEFT JOIN cities ON id = city", "UNSUPPORTED"),
    ],
)
def test_what_is_refused(sql: str, error_class: str) -> None:
    assert error(sql, tables=TABLES).error_class == error_class
