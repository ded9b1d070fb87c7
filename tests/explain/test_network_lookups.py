"""EXPLAIN of tables that are looked up: which, by which conditions, and what sharing saved."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.explain.support import BIDS, CLICKS, NoAnalyzer, network_of

from weft.algebra.network.query import JoinQuery
from weft.algebra.query import Field
from weft.explain import Explanation, explain
from weft.sql import bind

TABLES = {
    "people": (Field("id", "bigint"), Field("city", "string"), Field("age", "int")),
    "cities": (Field("name", "string"), Field("land", "string")),
}
LEFT = "FROM bids b LEFT JOIN people p ON b.bidder = p.id AND p.age > 17"
QUERIES = {
    "adults": f"SELECT price, p.city {LEFT} WHERE price > 100",
    "strangers": f"SELECT price {LEFT} WHERE p.id IS NULL",
    "lands": f"SELECT price, c.land {LEFT} LEFT JOIN cities c ON c.name = p.city",
    "known": "SELECT price FROM bids WHERE bidder IN (SELECT id FROM people) "
    "AND NOT EXISTS (SELECT 1 FROM people q WHERE q.id = auction)",
}


def explained(*names: str, only: str | None = None) -> Explanation:
    streams = {schema.name: schema for schema in (BIDS, CLICKS)}
    queries = [
        bind(name, QUERIES[name], streams, NoAnalyzer(), query_id=f"{name}@1", tables=TABLES)
        for name in names
    ]
    shared = [query for query in queries if isinstance(query, JoinQuery)]
    return explain([], [], only, network=network_of(shared, tuple(streams.values())))


def test_a_lookup_is_shown_once_for_all_queries_that_share_it() -> None:
    text = str(explained("adults", "strangers", "lands"))
    assert text.startswith("network: 3 queries over bids, plan version 1")
    assert "4 lookups in tables alone: here 2 (2×)" in text
    assert "3 scans alone: here 1 (3×)" in text
    source = text[text.index("\nbids+people ") :].split("\n\n")[0]
    assert " ".join(source.split()) == (
        "bids+people stream bids with lookups, event time ts, watermark 10 s behind "
        "left join people on people.id = bidder AND people.age >= 18 "
        "columns people.city, people.id, price read by 2 queries: adults, strangers"
    )
    assert "where       people.id IS NULL" in text
    assert "left join   cities on people.city = cities.name" in text


def test_truth_values_are_columns() -> None:
    text = str(explained("known"))
    assert "exists in   people on people.id = auction" in text
    assert "exists in   people_2 on people_2.id = bidder" in text
    assert "where       NOT (people.found) AND people_2.found" in text


def test_one_query_says_what_it_looks_up() -> None:
    text = str(explained("lands", only="lands"))
    assert "reads       bids b; looks up people, cities" in text
    assert "land string = b.cities.land" in text


def test_json_and_drawing_name_the_lookups() -> None:
    both = explained("adults", "known")
    network = both.to_json()["network"]
    relations = {relation["label"]: relation for relation in network["relations"]}
    assert relations["bids+people"]["name"] == "bids"
    assert relations["bids+people"]["lookups"] == [
        "left join people on people.id = bidder AND people.age >= 18"
    ]
    assert network["queries"][0]["inputs"][0]["lookups"] == relations["bids+people"]["lookups"]
    assert network["sharing"]["lookups"] == 3
    texts = " ".join(ElementTree.fromstring(both.to_svg()).itertext())
    assert "bids+people · stream bids" in texts
    assert "left join people on people.id = bidder" in " ".join(texts.split())
