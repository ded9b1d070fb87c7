"""Nodes that are read but no longer written, after groups changed under two levels."""

from __future__ import annotations

from dataclasses import replace

from tests.explain.support import explained

from weft.algebra.plan import Retired
from weft.explain import Measured, explain


def test_their_fragments_are_shown_beside_those_of_the_nodes() -> None:
    sql = "-- name: a\nSELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '10 seconds')"
    (plan,) = explained(sql).plans
    (query,) = plan.queries
    old = replace(plan.nodes[0], id=plan.nodes[0].id + ".old", members=(query.id,))
    plan = replace(plan, retired=(Retired(old, (query.id,)),))
    held = {plan.nodes[0].id: 5, old.id: 7}
    measured = Measured("bids", 1, 10, 1, 0, 0, 12, 100, 0, held)
    found = explain([plan], []).with_measured([measured])
    assert "retired, still read by 1 query: 7 fragments open" in str(found)
    shown = found.to_json()["streams"][0]["measured"]
    assert shown["retired_nodes"] == [{"id": old.id, "queries": ["a"], "state_rows": 7}]
    nodes = sum(shown["state_rows_by_node"].values())
    assert nodes + sum(each["state_rows"] for each in shown["retired_nodes"]) == 12
    assert found.to_svg().startswith("<svg ")
