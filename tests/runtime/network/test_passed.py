"""How far the network has come in its streams, and for whom streams publish: what aggregation joins go by."""

from __future__ import annotations

from weft.algebra.joinagg.matches import PASSED
from weft.runtime.checkpoint.commits import Edition
from weft.runtime.network import editions
from weft.runtime.network.passed import Passed
from weft.runtime.network.publication import serves
from weft.runtime.network.unseen import Unseen


def test_rows_above_their_streams_watermark_may_be_late_for_the_network() -> None:
    passed = Passed()
    passed.add("s", 100, 0)
    passed.add("s", 150, 90)
    assert passed.missed == {}, "it admits all rows above 90, and the stream had passed 100"
    passed.add("young", 20, 120)
    assert passed.missed == {"young": 120}, "the first rows, of which any may be on time"
    passed.add("young", 130, 120)
    passed.add("young", 200, 125)
    assert passed.missed == {"young": 120} and passed.watermarks == {"s": 150, "young": 200}


def test_it_is_kept_from_step_to_step_with_what_matches_have_not_seen() -> None:
    passed = Passed({"s": 150}, {"young": 120})
    unseen = Unseen({}, {"s": 170}, {"&q@1": {"s": 40}, "derived@2": {"s": 3}})
    section = passed.section(unseen)
    assert section[PASSED]["unseen"] == {"&q@1": {"s": 40}}
    assert section[PASSED]["events"] == {"s": 170}
    assert Passed.of(section) == passed
    assert Passed.of({}) == Passed(), "a commit of an earlier version of weft"
    assert "unseen" not in passed.section(Unseen({}))[PASSED]


def test_matches_are_published_for_where_an_edition_names_them() -> None:
    """A registration number would not do: they come and go without one."""
    edition = Edition(7, ("q@3",), ("&q@5",))
    assert serves(edition, "&q@5") and serves(edition, "q@5")
    assert not serves(edition, "&q@4") and not serves(edition, "q@3")
    changes = editions.noted((), [(0, Edition(7)), (3, edition)])
    assert editions.first_step(changes, "&q@5") == 3
    stored = editions.encoded({"s": changes})
    assert editions.decoded(stored) == {"s": changes}
    assert editions.decoded({"s": [[0, 7, ["q@3"]]]}) == {"s": ((0, Edition(7, ("q@3",))),)}
