"""EXPLAIN of a network: its nodes, whom they serve, what sharing saved, and histories without end."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.networks import (
    FED,
    difference,
    every,
    onward,
    plan_of_many,
    plan_of_two,
    query,
)
from tests.explain.support import explained, network_of
from tests.support.networks import STREAMS, join_queries

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.predicates import NEVER
from weft.explain import FallbackNote, NetworkMeasured, NodeMeasured, explain
from weft.explain.network.layout import layered
from weft.explain.network.savings import physical_joins, savings
from weft.explain.network.text import MOST_NODES
from weft.explain.network.view import network_view
from weft.kernel.network.program import program

SVG = "{http://www.w3.org/2000/svg}"


def shown(plan: NetworkPlan, only: str | None = None) -> str:
    return str(explain([], [], only, network=plan))


def test_every_node_says_what_it_tests_and_whom_it_serves() -> None:
    text = shown(plan_of_two())
    assert text.startswith("network: 2 queries over fed, plan version 7")
    heads = re.findall(r"^(\w+)  (?:stream|selection|join)", text, re.MULTILINE)
    assert heads == ["fed", "S1", "S2", "J1", "S3"]
    flat = " ".join(text.split())
    assert "S2 selection of S1, level 0, sequence 2000 where amount > 1000000" in flat
    assert "J1 join of S2 and S1, level 1, sequence 1000, physical join 1 on" in flat
    assert "fed2.amount > 0.5 * fed1.amount AND fed2.sbank = fed1.rbank" in flat
    assert "S3 selection of J1, level 1, sequence 2000 where fed2.ts <= fed1.ts + 10 d" in flat
    assert "read by 2 queries: within_20, within_10 feeds 1 query: within_20" in flat


def test_one_query_shows_its_path_in_its_own_aliases() -> None:
    plan = plan_of_two()
    text = " ".join(shown(plan, "within_20").split())
    assert text.startswith("query within_20 (shared, plan version 7) reads fed r1, fed r2")
    assert "r2.amount > 0.5 * r1.amount" in text
    assert "J1 join of S2 and S1" in text and "S3" not in text
    assert "S1 selection of fed, as r1 and r2" in text
    assert "S2 selection of S1, as r1, level" in text
    assert "shared with 1 query: within_10" in text


def test_a_query_that_takes_a_join_with_its_slots_exchanged_names_them_right() -> None:
    plan = plan_of_two()
    first, second = plan.feeds
    plan = replace(plan, feeds=(replace(first, slots=(1, 0)), second))
    text = " ".join(shown(plan, "within_20").split())
    assert "r1.amount > 0.5 * r2.amount" in text


def test_what_sharing_saved_is_counted_against_the_queries_alone() -> None:
    saved = savings(plan_of_two())
    assert (saved.joins_alone, saved.joins, saved.physical_joins) == (2, 1, 1)
    assert (saved.selections_alone, saved.selections) == (4, 3)
    assert (saved.scans_alone, saved.scans) == (4, 1)
    many = savings(plan_of_many(400))
    assert (many.joins_alone, many.joins, many.physical_joins) == (400, 201, 1)


def test_joins_are_one_physical_join_only_with_equal_inputs_and_keys() -> None:
    plan = plan_of_two()
    join = plan.nodes[3]
    other_keys = every(
        difference("0.rbank", "1.sbank", 0, 0), difference("0.sbank", "1.rbank", 0, 0)
    )
    more = (
        replace(join, id="k1", parents=("n0", "n0"), predicates=onward(5)),
        replace(join, id="k2", predicates=other_keys),
        replace(join, id="k3", parents=("k1", "n1"), relations=("fed",) * 3, level=2),
        replace(join, id="k4", parents=("k2", "n1"), relations=("fed",) * 3, level=2),
    )
    numbers = physical_joins(replace(plan, nodes=(*plan.nodes, *more)))
    assert numbers["k1"] == numbers["n3"], "selections do not tell joins apart"
    assert len({numbers["n3"], numbers["k2"], numbers["k3"], numbers["k4"]}) == 4


def test_many_nodes_are_summarized_in_text_and_all_in_json() -> None:
    plan = plan_of_many(768)
    text = shown(plan)
    assert len(text.splitlines()) < 200
    assert "level 0: 1 source, 2 selections; level 1: 385 joins, 384 selections" in text
    assert "768 joins of the queries alone: here 385 join nodes in 1 physical join" in text
    assert re.search(r"… and 742 more nodes, each serving 1 query; JSON names all", text)
    assert len(re.findall(r"^\w+  (?:stream|selection|join)", text, re.MULTILINE)) == MOST_NODES
    document = explain([], [], network=plan).to_json()
    assert json.loads(json.dumps(document)) == document
    assert len(document["network"]["nodes"]) == 772
    assert len(document["network"]["queries"]) == 768


def test_json_has_the_parts_of_text() -> None:
    network = explain([], [], network=plan_of_two()).to_json()["network"]
    nodes = {node["label"]: node for node in network["nodes"]}
    assert nodes["J1"]["parents"] == ["S2", "S1"]
    assert nodes["J1"]["queries"] == ["within_20", "within_10"]
    assert nodes["J1"]["feeds"] == ["within_20"]
    assert nodes["S3"]["conditions"] == ["fed2.ts <= fed1.ts + 10 d"]
    assert network["sharing"]["joins_alone"] == 2
    assert network["queries"][1]["node"] == "S3"
    part = explain([], [], "within_10", network=plan_of_two()).to_json()
    assert part["status"] == "shared"
    assert [node["label"] for node in part["node_details"]] == ["fed", "S1", "S2", "J1", "S3"]


def test_windows_network_and_fallbacks_are_one_explanation() -> None:
    windows = explained("SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute')")
    note = FallbackNote("alone", "bids", "median has no partial form")
    both = explain(windows.plans, [note], network=plan_of_two())
    text = str(both)
    assert text.index("stream bids") < text.index("network: 2 queries") < text.index("1 query runs")
    assert "N1  one group" in text
    document = both.to_json()
    assert len(document["streams"]) == 1 and document["network"] and document["fallbacks"]
    drawing = both.to_svg()
    assert "weave groups (level 2)" in drawing and "network of join queries" in drawing
    assert explain(windows.plans, []).to_json()["network"] is None
    assert "network" in both.summary()


def test_a_network_without_queries_is_not_shown() -> None:
    assert str(explain([], [], network=NetworkPlan(3))) == "no query is registered"


def test_a_query_that_no_row_can_satisfy_has_no_path() -> None:
    never = replace(query("never"), predicates=NEVER)
    plan = NetworkPlan(1, (FED,), (never,))
    assert "no row can ever match" in shown(plan, "never")
    assert explain([], [], "never", network=plan).to_json()["node"] is None
    assert "1 query" in explain([], [], network=plan).to_svg()


def test_measured_sizes_stand_beside_the_nodes() -> None:
    nodes = {"n1": NodeMeasured(1200, 900, 2048), "n3": NodeMeasured(31)}
    measured = NetworkMeasured(4, 5000, 31, 2, 1_704_067_200_000_000, nodes, 2.0)
    found = explain([], []).with_network(plan_of_two(), measured)
    text = " ".join(str(found).split())
    assert "size 1,200 rows so far; history of 900 rows, 2.0 KiB" in text
    assert "measured in 4 steps rows 5,000, 2,500/s while running results 31 late rows 2" in text
    assert (
        "watermark 2024-01-01 00:00:00 UTC history 900 rows, 2.0 KiB in memory, on the driver"
        in text
    )
    in_tasks = replace(measured, where="lanes")
    text = " ".join(str(explain([], []).with_network(plan_of_two(), in_tasks)).split())
    assert "history 900 rows, 2.0 KiB in files; joins run in tasks" in text
    document = found.to_json()["network"]
    assert document["measured"]["history_bytes"] == 2048
    assert document["measured"]["where"] == "driver"
    assert document["nodes"][1]["measured"]["history_rows"] == 900


def test_a_history_without_end_is_warned_of() -> None:
    plan = plan_of_two()
    first, second = plan.queries
    unbounded = replace(first, predicates=query("x", None).predicates)
    text = " ".join(shown(replace(plan, queries=(unbounded, second))).split())
    assert (
        "warning query within_20: the rows of r1, r2 are kept for ever; a bound on event times "
        "ends that, such as r2.ts <= r1.ts + INTERVAL 1 HOUR"
    ) in text
    assert "query within_10: the rows" not in text
    one = shown(replace(plan, queries=(unbounded, second)), "within_20")
    assert "kept for ever" in " ".join(one.split())


@settings(max_examples=60)
@given(st.data())
def test_physical_joins_are_those_that_the_kernel_runs(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    queries = [data.draw(join_queries(f"q@{number}")) for number in range(count)]
    plan = network_of(queries, STREAMS)
    by_number: dict[int, set[str]] = {}
    for node, number in physical_joins(plan).items():
        by_number.setdefault(number, set()).add(node)
    run = [
        {member.node for member in node.join.members}
        for node in program(plan).nodes
        if node.join is not None and node.join.kind == "join"
    ]
    assert sorted(map(sorted, by_number.values())) == sorted(map(sorted, run))


@pytest.mark.parametrize("count", [2, 768])
def test_the_drawing_is_xml_with_a_box_for_every_group_of_nodes(count: int) -> None:
    plan = plan_of_two() if count == 2 else plan_of_many(count)
    drawing = ElementTree.fromstring(explain([], [], network=plan).to_svg())
    titles = [
        text.text or "" for text in drawing.iter(f"{SVG}text") if "font-weight" in text.attrib
    ]
    joins = "J1 · S2 ⋈ S1" if count == 2 else "J1 … J385 · 385 joins"
    boxes, lines = (5, 5) if count == 2 else (4, 3)
    assert len(titles) == boxes
    assert joins in titles
    assert len(list(drawing.iter(f"{SVG}path"))) == lines


def test_the_drawing_of_one_query_is_its_path() -> None:
    drawing = explain([], [], "q0000", network=plan_of_many(768)).to_svg()
    assert "S3 · selection of J1" in drawing
    assert "J2" not in drawing


def test_boxes_do_not_overlap_and_children_stand_right_of_their_parents() -> None:
    sizes = {str(number): (100.0, 40.0 + number) for number in range(12)}
    edges = [(str(number // 3), str(number)) for number in range(1, 12)]
    layout = layered(sizes, edges)
    rectangles = [(*layout.corners[name], *sizes[name]) for name in sizes]
    for number, (x, y, width, height) in enumerate(rectangles):
        assert x >= -0.1 and y >= -0.1
        assert x + width <= layout.width + 0.1 and y + height <= layout.height + 0.1
        for other_x, other_y, other_width, other_height in rectangles[:number]:
            apart_across = x + width <= other_x + 0.1 or other_x + other_width <= x + 0.1
            apart_down = y + height <= other_y + 0.1 or other_y + other_height <= y + 0.1
            assert apart_across or apart_down
    for start, end in edges:
        assert layout.corners[start][0] + sizes[start][0] < layout.corners[end][0]
    assert all(len(line.points) % 3 == 1 for line in layout.lines)


def test_a_stream_named_like_a_node_is_quoted() -> None:
    plan = plan_of_two()
    nodes = (replace(plan.nodes[0], relations=("S1",)), *plan.nodes[1:])
    labels = [node.label for node in network_view(replace(plan, nodes=nodes)).nodes]
    assert labels[:2] == ["`S1`", "S1"]
