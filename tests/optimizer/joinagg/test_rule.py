"""Rule 1: every case of the paper, and the two it leaves out."""

from __future__ import annotations

import pytest

from weft.optimizer.joinagg.rule import AggregateCall, EarlyAggregation, early_aggregation

SUM_1, SUM_2 = AggregateCall("sum", ("0.a",)), AggregateCall("sum", ("1.a",))
COUNT = AggregateCall("count")
JOINED = ("0.j", "1.j")


def test_figure_3_grouping_and_aggregation_attributes_on_both_inputs() -> None:
    grouping, calls = ("0.g", "1.g"), (SUM_1, SUM_2)
    assert early_aggregation(0, grouping, JOINED, calls) == EarlyAggregation(
        ("0.g", "0.j"), (SUM_1,), counts=True
    )
    assert early_aggregation(1, grouping, JOINED, calls) == EarlyAggregation(
        ("1.g", "1.j"), (SUM_2,), counts=True
    )


def test_the_input_with_all_aggregation_attributes_needs_no_count_for_its_values() -> None:
    first = early_aggregation(0, ("1.g",), JOINED, (SUM_1,))
    assert first == EarlyAggregation(("0.j",), (SUM_1,), counts=False)


def test_an_input_without_aggregation_attributes_only_counts() -> None:
    second = early_aggregation(1, ("1.g",), JOINED, (SUM_1,))
    assert second == EarlyAggregation(("1.g", "1.j"), (), counts=True)


def test_the_introduction_counts_bids_for_each_auction_of_some_sellers() -> None:
    joined = ("0.auction", "1.auction", "0.seller", "2.person")
    bids = AggregateCall("count", ("1.bidder",))
    early = [early_aggregation(number, ("0.auction",), joined, (bids,)) for number in range(3)]
    assert early == [
        EarlyAggregation(("0.auction", "0.seller"), (), counts=True),
        EarlyAggregation(("1.auction",), (bids,), counts=False),
        EarlyAggregation(("2.person",), (), counts=True),
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_rows_of_the_join_are_counted_by_the_counts_of_all_inputs(number: int) -> None:
    early = early_aggregation(number, (), JOINED, (COUNT,))
    assert early == EarlyAggregation((f"{number}.j",), (), counts=True)


def test_the_rows_of_the_join_need_a_count_beside_all_aggregation_attributes() -> None:
    assert early_aggregation(0, (), JOINED, (SUM_1, COUNT)).counts


def test_an_aggregate_over_two_inputs_keeps_its_attributes() -> None:
    product = AggregateCall("sum", ("0.a", "1.a"))
    early = early_aggregation(0, ("0.g",), JOINED, (product, SUM_1))
    assert early == EarlyAggregation(("0.g", "0.j", "0.a"), (SUM_1,), counts=True)
