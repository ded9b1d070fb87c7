"""The three forms name the same things; only JSON names all of them."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

from tests.explain.support import explained, numbered

from weft.explain import FallbackNote, Measured, explain

HOT = """-- name: hot
SELECT auction, COUNT(*) AS n, COUNT(DISTINCT bidder) AS bidders FROM bids WHERE channel = 'Google'
GROUP BY window(ts, '1 hour', '1 minute'), auction HAVING COUNT(*) > 5;
"""
HUNDREDS = numbered(
    "SELECT auction, SUM(price) AS s FROM bids GROUP BY window(ts, '{n} minutes'), auction", 200
)
PREDICATES = numbered(
    "SELECT COUNT(*) AS n FROM bids WHERE price > {n} GROUP BY window(ts, '1 hour')", 60, "p"
)


def test_text_summarises_the_names_that_json_lists() -> None:
    found = explained(HUNDREDS)
    assert "200 queries: q001, q002, q003, q004 … and 196 more" in str(found)
    node = found.to_json()["streams"][0]["nodes"][0]
    assert node["queries"] == [f"q{n:03d}" for n in range(1, 201)]
    assert node["keys"] == ["auction"]


def test_every_node_is_named_once_and_referred_to() -> None:
    found = explained(HOT + HUNDREDS)
    text = str(found)
    heads = re.findall(r"^(N\d+)  ", text, re.MULTILINE)
    assert heads == ["N1", "N2", "N3"], "hot selects by channel: apart from the others"
    stream = found.to_json()["streams"][0]
    assert [node["label"] for node in stream["nodes"]] == heads
    hot = next(query for query in stream["queries"] if query["name"] == "hot")
    assert hot["nodes"] == ["N1", "N2"]
    assert hot["group"] in {group["label"] for group in stream["groups"]}


def test_partials_of_approximate_percentiles_have_names() -> None:
    """Those of a float count NaN, too."""
    sql = "-- name: {0}\nSELECT approx_percentile({0}, 0.5) AS m FROM bids GROUP BY window(ts, '1 hour');\n"
    found = explained(sql.format("weight") + sql.format("price"))
    assert "count(isnan(weight))" in str(found.to_json())
    assert "kll(price)" in str(found)


def test_json_goes_through_json() -> None:
    document = explained(HOT + HUNDREDS).to_json()
    assert json.loads(json.dumps(document)) == document


def test_one_query_shows_its_company() -> None:
    text = str(explained(HOT + HUNDREDS, only="hot"))
    assert text.startswith("query hot (shared)")
    assert "1 h every 1 min: a row is in 60 of them" in text
    assert "channel = 'Google' (P1 of N1)" in text
    assert "count(*) > 5" in text
    assert "N2  by auction, distinct bidder, selecting by channel, with no other query" in text
    mates = str(explained(HOT + HUNDREDS, only="q001"))
    assert "q003" in mates and "q150" not in mates


def test_one_query_as_json_has_its_nodes_and_nothing_else() -> None:
    part = explained(HOT + HUNDREDS, only="hot").to_json()
    assert part["status"] == "shared"
    assert [node["label"] for node in part["node_details"]] == ["N1", "N2"]
    assert part["group_details"]["queries"] == ["hot"]


def test_a_fallback_says_why() -> None:
    note = FallbackNote("medians", "bids", "median has no partial form")
    found = explain([], [note], only="medians")
    assert "because median has no partial form" in str(found)
    assert found.to_json()["status"] == "fallback"
    assert explain([], [note]).to_json()["fallbacks"] == [
        {"query": "medians", "stream": "bids", "reason": "median has no partial form"}
    ]


def test_a_query_in_no_plan_is_not_invented() -> None:
    assert "in no plan" in str(explained(HOT, only="cold"))


def test_nothing_registered() -> None:
    assert str(explain([], [])) == "no query is registered"
    ElementTree.fromstring(explain([], []).to_svg())


def test_the_drawing_is_well_formed_and_stays_readable_with_hundreds_of_queries() -> None:
    found = explained(HOT + HUNDREDS + PREDICATES)
    drawing = found.to_svg()
    root = ElementTree.fromstring(drawing)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "200 queries, 200 windows" in texts
    assert any("more weave groups" in text for text in texts)
    assert len(texts) < 150
    titles = "".join(e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title"))
    assert "q200: every 200 min" in titles


def test_markup_in_sql_is_escaped() -> None:
    found = explained(
        "SELECT COUNT(*) AS n FROM bids WHERE channel = '<b>&' AND price < 5"
        " GROUP BY window(ts, '1 hour')"
    )
    ElementTree.fromstring(found.to_svg())
    assert "<b>&" not in found._repr_html_()


def test_measured_figures_stand_beside_the_predicted() -> None:
    found = explained(HOT)
    node = found.plans[0].nodes[0].id
    measured = Measured(
        stream="bids",
        batches=3,
        rows=6000,
        results=120,
        late_rows=7,
        null_times=2,
        state_rows=40,
        state_bytes=4096,
        watermark=1_704_067_200_000_000,
        state_rows_by_node={node: 40},
        seconds=2.0,
        event_rate=100.0,
    )
    analyzed = found.with_measured([measured])
    text = str(analyzed)
    assert "at 100 rows/s (measured)" in text
    assert "6,000, 3,000/s while running" in text
    assert "N1  40 fragments open" in text
    assert "2024-01-01 00:00:00 UTC" in text
    stream = analyzed.to_json()["streams"][0]
    assert stream["measured"]["state_rows_by_node"] == {"N1": 40, "N2": 0}
    assert stream["cost"]["rate"] == 100
