"""EXPLAIN of windowed aggregates beside tables: what their nodes look up."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.explain.support import BIDS, NoAnalyzer
from tests.explain.test_network_lookups import TABLES

from weft.algebra.query import Query
from weft.explain import Explanation, explain
from weft.optimizer.gtweave import share
from weft.sql import bind

QUERIES = {
    "cities": "SELECT p.city, sum(p.age) AS ages FROM bids b LEFT JOIN people p ON b.bidder = p.id "
    "AND p.age > 17 WHERE p.city <> 'Rome' GROUP BY window(ts, '1 hour'), p.city "
    "HAVING max(p.age) > 30",
    "lands": "SELECT c.land, count(*) AS n FROM bids b JOIN people p ON b.bidder = p.id "
    "JOIN cities c ON c.name = p.city GROUP BY window(ts, '1 hour'), c.land",
    "plain": "SELECT channel, count(*) AS n FROM bids GROUP BY window(ts, '1 hour'), channel",
}


def explained(only: str | None = None) -> Explanation:
    queries: list[Query] = []
    for number, (name, sql) in enumerate(QUERIES.items()):
        id_ = f"{name}@{number}"
        query = bind(name, sql, {"bids": BIDS}, NoAnalyzer(), query_id=id_, tables=TABLES)
        assert isinstance(query, Query), query
        queries.append(query)
    return explain([share(1, BIDS, queries, {})], [], only)


def test_nodes_show_their_lookups_and_the_columns_of_tables_by_name() -> None:
    text = str(explained())
    assert "one scan of 3 columns: bidder, channel, ts" in text
    assert "N1  by people.city, looked up in people, selecting by people.city" in text or (
        "N1  by people.city, looked up in people" in text
    )
    assert "tables      left join people on people.id = bidder AND people.age >= 18" in text
    assert "sum(people.age)" in text
    assert "looked up in people and cities" in text
    assert "join cities on people.city = cities.name" in text
    assert "@" not in text


def test_one_query_says_what_it_looks_up() -> None:
    text = str(explained("cities"))
    assert "tables      left join people on people.id = bidder AND people.age >= 18" in text
    assert "keys        people.city" in text
    assert "having      max(people.age) > 30" in text
    assert "@" not in text


def test_json_and_drawing_have_them_too() -> None:
    explanation = explained()
    (stream,) = explanation.to_json()["streams"]
    by_name = {query["name"]: query for query in stream["queries"]}
    assert by_name["plain"]["lookups"] == []
    assert by_name["cities"]["lookups"] == [
        "left join people on people.id = bidder AND people.age >= 18"
    ]
    lookups = [node["lookups"] for node in stream["nodes"]]
    assert lookups.count([]) == 1 and by_name["cities"]["lookups"] in lookups
    drawing = explanation.to_svg()
    ElementTree.fromstring(drawing)
    assert "looked up in people" in drawing
