"""Aggregation sets in the shared plan of their stream: nodes, signatures and weave groups are those of windowed aggregates."""

from __future__ import annotations

from dataclasses import replace

from tests.sql.joinagg_support import STREAMS, bound, query
from tests.support.joinagg_engine import together

from weft.algebra.joinagg.serving import providers
from weft.algebra.joinagg.sets import set_of
from weft.algebra.joinagg.sources import Source, source_of
from weft.algebra.plan import SharedPlan
from weft.algebra.query import Query
from weft.optimizer.gtweave import share
from weft.runtime.joinagg.serving import apart

BID = STREAMS["Bid"]
WINDOWED = """SELECT auctionID, max(bidPrice) AS best FROM Bid WHERE channel = 'web'
    GROUP BY window(ts, '10 minutes', '1 minute'), auctionID"""
JOINED = """SELECT {key}, {value} AS v FROM Auction A [WINDOW 10 MINUTES], Bid B [WINDOW 5 MINUTES]
    WHERE A.auctionID = B.auctionID AND B.channel = 'web' GROUP BY {key} EVERY 1 MINUTE"""


def bids(key: str, value: str) -> Source:
    return source_of(query(JOINED.format(key=key, value=value)), 1)


def plan(*queries: Query) -> SharedPlan:
    return share(1, BID, queries, {})


def first_level(*queries: Query) -> list[tuple[list[str], tuple[str, ...]]]:
    """The jobs over the stream's rows: their keys and the bits of their signatures."""
    return [
        ([key.sql for key in node.keys], node.signature.bits)
        for node in plan(*queries).nodes
        if node.parent is None
    ]


def test_a_set_and_a_windowed_aggregate_are_one_node_with_one_bit_in_one_weave_group() -> None:
    windowed = replace(bound(WINDOWED), id="w@2", name="w")
    early = set_of(bids("A.sellerID", "MAX(B.bidPrice)"), BID)
    alone = [*first_level(windowed), *first_level(early)]
    assert len(alone) == 2 and alone[0] == alone[1]
    assert first_level(windowed, early) == [(["`auctionID`"], ("(`channel` = 'web')",))]
    together = plan(windowed, early)
    assert [set(group.queries) for group in together.groups] == [{"w@2", early.id}]
    assert len(together.nodes[0].partials) == 2, "count(*) and the maximum, which both read"


def test_a_finer_set_is_one_job_instead_of_two() -> None:
    coarse, fine = bids("A.sellerID", "MAX(B.bidPrice)"), bids("B.bidderID", "COUNT(*)")
    off = providers([coarse, fine], {}, apart)
    on = providers([coarse, fine], {}, together)
    jobs = {
        name: len(first_level(*(set_of(s, BID) for s in {p.id: p for p in of.values()}.values())))
        for name, of in (("off", off), ("on", on))
    }
    assert jobs == {"off": 2, "on": 1}
