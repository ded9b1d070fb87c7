"""EXPLAIN of semi-joins and anti-joins: what a row must match, and when it is closed."""

from __future__ import annotations

from tests.explain.support import NoAnalyzer, network_of
from tests.support.lookup_queries import STREAMS, TABLES

from weft.algebra.network.query import JoinQuery
from weft.explain.network.document import network_document
from weft.explain.network.drawing import network_drawing
from weft.explain.network.text import network_lines, query_lines
from weft.explain.network.view import NetworkView, network_view
from weft.sql import bind

ANTI = (
    "SELECT r.k FROM a r WHERE r.g > 5 AND NOT EXISTS (SELECT 1 FROM b z WHERE z.k = r.k "
    "AND z.ts BETWEEN r.ts - INTERVAL 1 HOUR AND r.ts + INTERVAL 10 MINUTES AND z.g > 3)"
)
SEMI = "SELECT k FROM a INTERSECT SELECT k FROM b"


def view(*texts: str) -> NetworkView:
    queries = []
    for number, sql in enumerate(texts):
        query = bind(
            f"q{number}",
            sql,
            STREAMS,
            NoAnalyzer(),
            query_id=f"q{number}@1",
            tables=TABLES,
            time_zone="UTC",
        )
        assert isinstance(query, JoinQuery)
        queries.append(query)
    return network_view(network_of(queries, tuple(STREAMS.values())))


def test_a_query_says_when_its_rows_are_closed() -> None:
    shown = view(ANTI, ANTI.replace("r.k FROM", "r.s FROM"), SEMI)
    text = "\n".join(query_lines(shown, shown.plan.queries[0]))
    assert "rows        without a match in b z\n" in text
    assert "closed      when the watermark has reached r.ts + 10 min\n" in text
    assert "A1  anti-join of S1 and S2, as r, z" in text
    assert "on          z.ts BETWEEN r.ts - 1 h AND r.ts + 10 min AND z.k = r.k\n" in text
    assert "shared      with 1 query: q1" in text
    other = "\n".join(query_lines(shown, shown.plan.queries[2]))
    assert "rows        with a match in b\n" in other and "closed" not in other
    assert "kept for ever" in other


def test_nodes_are_counted_and_drawn() -> None:
    shown = view(ANTI, ANTI.replace("r.k FROM", "r.s FROM"), SEMI)
    text = "\n".join(network_lines(shown))
    assert "3 semi-joins or anti-joins alone: here 2 nodes (1.5×)" in text
    assert "E1  semi-join of a and b" in text
    document = network_document(shown)
    assert (document["sharing"]["partners_alone"], document["sharing"]["partners"]) == (3, 2)
    partner = document["queries"][0]["partner"]
    assert (partner["kind"], partner["conditions"]) == ("anti-join", ["z.g >= 4"])
    assert len(partner["matching"]) == 2
    drawing = network_drawing(shown)
    assert drawing is not None
    titles = {node.label for box in drawing.boxes for node in box.nodes}
    assert titles == {"a", "b", "S1", "S2", "A1", "E1"}
