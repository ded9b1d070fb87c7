"""The drawing shows the tree of nodes: every line goes from a parent to a child, no title is cut."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

from tests.explain.support import explained

from weft.explain import Explanation, explain

NAMES = ("all", "by_auction", "by_channel")
SQL = """-- name: all
SELECT auction, bidder, channel, weight, COUNT(*) AS n FROM bids
GROUP BY window(ts, '1 minute'), auction, bidder, channel, weight;
-- name: by_auction
SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute'), auction;
-- name: by_channel
SELECT channel, COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute'), channel
"""
SVG = "{http://www.w3.org/2000/svg}"


def chain() -> Explanation:
    """The stream, below it `all`, below that `by_auction`, below that `by_channel`."""
    (plan,) = explained(SQL).plans
    node_of = {
        query.name: next(group.node for group in plan.groups if query.id in group.queries)
        for query in plan.queries
    }
    parents = {
        node_of["by_auction"]: node_of["all"],
        node_of["by_channel"]: node_of["by_auction"],
    }
    nodes = tuple(replace(node, parent=parents.get(node.id)) for node in plan.nodes)
    return explain([replace(plan, nodes=nodes)], [])


def boxes(drawing: str) -> dict[str, tuple[float, str]]:
    """Where the box of each node begins, and its title, by its label."""
    found = {}
    for group in ElementTree.fromstring(drawing).iter(f"{SVG}g"):
        rect, bold = group.find(f"{SVG}rect"), group.findall(f"{SVG}text[@font-size='14']")
        if rect is not None and bold and re.match(r"N\d+ · ", bold[0].text or ""):
            title = " ".join(line.text or "" for line in bold)
            found[title.split(" · ")[0]] = (float(rect.attrib["x"]), title.split(" · ")[1])
    return found


def lines(drawing: str) -> tuple[list[str], list[str]]:
    """The lines that leave the stream, and those that go down from a node."""
    paths = [path.attrib["d"] for path in ElementTree.fromstring(drawing).iter(f"{SVG}path")]
    return [path for path in paths if path.startswith("M218,")], [p for p in paths if " V" in p]


def test_a_derived_node_hangs_on_its_parent_and_not_on_the_stream() -> None:
    drawing = chain().to_svg()
    found = boxes(drawing)
    by_title = {title: left for left, title in found.values()}
    assert len(found) == 3
    top = by_title["by auction, bidder, channel, weight"]
    assert by_title["by auction"] > top
    assert by_title["by channel"] > by_title["by auction"]
    from_stream, downwards = lines(drawing)
    assert len(from_stream) == 1
    assert len(downwards) == 2


def test_nodes_that_read_the_stream_all_hang_on_it() -> None:
    from_stream, downwards = lines(explained(SQL).to_svg())
    assert len(from_stream) == 3
    assert not downwards


def test_titles_are_broken_into_lines_and_never_cut() -> None:
    sql = (
        "SELECT auction, bidder, channel, price, weight, COUNT(*) AS n FROM bids "
        "WHERE price > 10 GROUP BY window(ts, '1 minute'), auction, bidder, channel, price, weight"
    )
    ((_, title),) = boxes(explained(sql).to_svg()).values()
    assert title == "by auction, bidder, channel, price, weight"


def test_a_name_longer_than_a_line_is_broken_and_not_cut() -> None:
    key = "concat(channel, '" + "x" * 100 + "')"
    sql = f"SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute'), {key}"
    ((_, title),) = boxes(explained(sql).to_svg()).values()
    assert "x" * 100 in title.replace(" ", "")
    assert "…" not in title


def test_a_query_at_the_end_of_a_chain_lights_up_all_of_it() -> None:
    (plan,) = chain().plans
    faded = 'opacity="0.22"'
    assert chain().to_svg().count(faded) == 0
    only = explain([plan], [], only="by_channel").to_svg()
    drawn = ElementTree.fromstring(only)
    nodes = [
        group
        for group in drawn.iter(f"{SVG}g")
        if any(re.match(r"N\d+ · ", text.text or "") for text in group.iter(f"{SVG}text"))
    ]
    assert len(nodes) == 3
    assert all("opacity" not in group.attrib for group in nodes)
