"""EXPLAIN shows what is known of a stream, and nothing if nothing is."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.explain.support import explained, numbered

from weft.stats import JointSample, Selectivity, StreamStatistics

SQL = """-- name: hot
    SELECT auction, COUNT(*) AS n FROM bids WHERE channel = 'Google'
    GROUP BY window(ts, '10 seconds'), auction;
    -- name: dear
    SELECT bidder, COUNT(*) AS n FROM bids WHERE price > 100
    GROUP BY window(ts, '10 seconds'), bidder;
    -- name: pages
    SELECT page, COUNT(*) AS n FROM clicks GROUP BY window(at, '1 minute'), page"""


def bids() -> StreamStatistics:
    auctions = (np.arange(10_000) % 40).astype(np.uint32)
    sample = JointSample().then({"`auction`": auctions})
    google = "(`channel` = 'Google')"
    known = StreamStatistics(sample=sample, selectivities={google: Selectivity(250.0, 1000.0)})
    return known.counted({"rows": 50_000, "rate": 200.0})


def test_without_statistics_there_is_no_section() -> None:
    shown = explained(SQL)
    unknown = shown.with_statistics({"bids": StreamStatistics.unknown()})
    assert "statistics" not in str(shown)
    assert (str(unknown), unknown.to_json()) == (str(shown), shown.to_json())
    assert all("statistics" not in stream for stream in shown.to_json()["streams"])


def test_text_and_json_show_what_is_known_and_where_from() -> None:
    shown = explained(SQL).with_statistics({"bids": bids()})
    section = str(shown).split("statistics after ")[1].split("\n\n")[0]
    assert section.splitlines() == [
        "50,000 rows",
        "    rate        200 rows/s (measured, 50,000 rows)",
        "    groups      N1  40 in the 2,000 rows of a fragment, exponent 0.00 (sampled, 10,000 rows)",
        "    selectivity 25 %  channel = 'Google' (sampled, 1,000 rows)",
    ]
    first, second = json.loads(json.dumps(shown.to_json()))["streams"]
    assert "statistics" not in second
    found = first["statistics"]
    assert found["rows"] == 50_000
    assert found["rate"] == {"value": 200.0, "source": "measured", "rows": 50_000}
    (groups,) = found["groups"]
    assert (groups["node"], groups["keys"], groups["rows_per_fragment"]) == (
        "N1",
        ["auction"],
        2000,
    )
    assert groups["groups"]["value"] == pytest.approx(40, rel=1e-6)
    assert groups["at_least"] <= 40.001 and groups["at_most"] >= 39.999
    assert groups["alpha"] == {"value": 0.0, "source": "sampled", "rows": 10_000}
    assert found["selectivities"] == [
        {"predicate": "channel = 'Google'", "value": 0.25, "source": "sampled", "rows": 1000.0}
    ]


def test_long_lists_are_cut_in_text_only() -> None:
    many = numbered(
        "SELECT COUNT(*) AS n FROM bids WHERE price > {n} GROUP BY window(ts, '1 hour')", 30
    )
    shares = {f"(`price` >= {n + 1}L)": Selectivity(1.0, 2.0) for n in range(1, 31)}
    shown = explained(many).with_statistics({"bids": StreamStatistics(selectivities=shares)})
    assert "… and 22 more" in str(shown).split("statistics after")[1]
    assert len(shown.to_json()["streams"][0]["statistics"]["selectivities"]) == 30


def test_costs_are_at_the_measured_rate_once_one_is_known() -> None:
    shown = explained(SQL).with_statistics({"bids": bids()})
    assert "operations per second at 200 rows/s (measured)" in str(shown)
    assert "operations per second at 1,000 rows/s (assumed)" in str(shown), "clicks are unknown"
    cost = shown.to_json()["streams"][0]["cost"]
    assert (cost["rate"], cost["rate_is"]) == (200.0, "measured")
    assert "at 200 rows/s (measured)" in shown.to_svg()
    given = explained(SQL, rate=50.0).with_statistics({"bids": bids()})
    assert "at 50 rows/s (given)" in str(given)


def test_a_rate_that_the_user_assumes_is_taken_before_ours() -> None:
    shown = explained(SQL).with_statistics({"bids": StreamStatistics.unknown(50.0)})
    assert "operations per second at 50 rows/s (assumed)" in str(shown)
