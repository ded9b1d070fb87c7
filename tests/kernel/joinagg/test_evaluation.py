"""Aggregation joins at instants against DuckDB over the windows' contents, for all plans."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.sql.joinagg_support import query as bound_query
from tests.support import joinagg as support
from tests.support.joinagg import INSTANTS, Row, cases, entries, expected, query_of, rounded

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.scalar import Call, Ref
from weft.kernel.columns import column as columns
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import coded, column, to_arrow
from weft.kernel.failure import QueryFailure
from weft.kernel.joinagg import join
from weft.kernel.joinagg.changes import REMOVED, changed
from weft.kernel.joinagg.contents import entry_keys
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.evaluation import Side, evaluated
from weft.kernel.joinagg.split import split_of
from weft.kernel.network.buckets import Range
from weft.kernel.network.joins.keys import key_values

SLIDING = InputWindow("sliding", 30)


def results(
    query: AggregationJoin, streams: list[list[Row]], early: tuple[bool, ...], instants: list[int]
) -> dict[int, Counter[Any]]:
    table = result_table(query, streams, early, instants)
    by_instant: dict[int, Counter[Any]] = {at: Counter() for at in instants}
    for row in table.to_pylist():
        at = int(row.pop("at").timestamp() * 1_000_000)
        by_instant[at][tuple(rounded(value) for value in row.values())] += 1
    return by_instant


def result_table(
    query: AggregationJoin, streams: list[list[Row]], early: tuple[bool, ...], instants: list[int]
) -> pa.Table:
    partials = [entry.partials("`t`") for entry in query.aggregates]
    sides = []
    for slot, rows in enumerate(streams):
        of_slot = {
            partial.name: partial
            for entry, lifted in zip(query.aggregates, partials, strict=True)
            if entry.slot == slot
            for partial in lifted
        }
        window = query.inputs[slot].window
        kept = entries(rows, window, list(of_slot.values()))
        sides.append(Side(kept, early[slot], tuple(of_slot.values()), window is None))
    return evaluated(query, sides, partials, np.array(instants, np.int64), ansi=False, block=7)


@given(cases(inputs=(2, 2, 2, 2, 3, 3, 3, 4, 5)))
@settings(max_examples=60)
def test_all_plans_equal_duckdb_at_every_instant(
    case: tuple[AggregationJoin, list[list[Row]]],
) -> None:
    query, streams = case
    wanted = expected(query, streams)
    if any(
        abs(v) >= 2**63
        for rows in wanted.values()
        for row in rows
        for v in row
        if isinstance(v, int)
    ):
        return  # a sum beyond BIGINT wraps here, and is wide in DuckDB
    for early in itertools.product([False, True], repeat=len(streams)):
        assert results(query, streams, early, INSTANTS) == wanted, early


@given(case=cases())
@settings(max_examples=30)
def test_coded_strings_are_joined_and_grouped_as_others(
    case: tuple[AggregationJoin, list[list[Row]]],
) -> None:
    query, streams = case
    for early in itertools.product([False, True], repeat=len(streams)):
        wanted = results(query, streams, early, INSTANTS)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(columns, "_REPEATED", 0)
            patched.setattr(support, "strings", lambda values: coded(values.dictionary_encode()))
            assert results(query, streams, early, INSTANTS) == wanted, early


@given(case=cases(inputs=(2, 3)))
@settings(max_examples=20)
def test_entries_are_found_with_and_without_a_table_of_codes(
    case: tuple[AggregationJoin, list[list[Row]]],
) -> None:
    query, streams = case
    found = []
    for sparse in (0, 1 << 40):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(join, "_SPARSE", sparse)
            early = tuple(slot % 2 == 0 for slot in range(len(streams)))
            found.append(results(query, streams, early, INSTANTS))
    assert found[0] == found[1]


@given(case=cases())
@settings(max_examples=15)
def test_keys_whose_hashes_collide_are_compared(
    case: tuple[AggregationJoin, list[list[Row]]],
) -> None:
    query, streams = case
    early = tuple(slot % 2 == 0 for slot in range(len(streams)))

    def colliding(side: Any, rows: Any, *, ansi: bool) -> tuple[Any, Any]:
        values, valid = key_values(side, rows, ansi=ansi)
        return values & 1, valid

    wanted = results(query, streams, early, INSTANTS)
    with pytest.MonkeyPatch.context() as patched:
        for module in (entry_keys, join):
            patched.setattr(module, "key_values", colliding)
        assert results(query, streams, early, INSTANTS) == wanted


@given(cases())
@settings(max_examples=40)
def test_changes_applied_to_the_result_before_give_the_full_result(
    case: tuple[AggregationJoin, list[list[Row]]],
) -> None:
    query, streams = case
    early = (True,) * len(streams)
    keys = [f"k{index}" for index in range(len(query.keys))]
    shown: dict[Any, Any] = {}
    before: pa.Table | None = None
    for part in (INSTANTS[:5], INSTANTS[5:6], INSTANTS[6:]):
        table = result_table(query, streams, early, part)
        rows, before = changed(before, table, np.array(part), keys)
        full = results(query, streams, early, part)
        for at in part:
            earlier = dict(shown)
            for row in rows.to_pylist():
                if int(row["at"].timestamp() * 1_000_000) != at:
                    continue
                key = tuple(row[name] for name in keys)
                values = {n: v for n, v in row.items() if n not in (REMOVED, "at")}
                if row[REMOVED]:
                    assert earlier.pop(key, None) is not None
                    del shown[key]
                else:
                    assert str(earlier.get(key)) != str(values), "a row that did not change"
                    shown[key] = values
            assert Counter(tuple(map(rounded, v.values())) for v in shown.values()) == full[at]


def test_a_sum_of_joined_rows_that_overflows_fails_under_ansi_and_names_the_query() -> None:
    from weft.kernel.failure import QueryFailure

    query = query_of([InputWindow("sliding", 30)] * 2, [0], ["sum"], set())
    streams: list[list[Row]] = [[(1, 1, "x", 2**62)], [(1, 1, "x", 0)] * 3]
    partials = [entry.partials("`t`") for entry in query.aggregates]
    sides = [
        Side(entries(streams[0], query.inputs[0].window, list(partials[0])), True, partials[0]),
        Side(entries(streams[1], query.inputs[1].window, []), True, ()),
    ]
    with pytest.raises(QueryFailure, match="overflow") as raised:
        evaluated(query, sides, partials, np.array([10]), ansi=True)
    assert raised.value.queries == ("q@1",)


def test_a_key_over_several_inputs_that_overflows_fails_under_ansi_and_names_the_query() -> None:
    from dataclasses import replace

    from weft.kernel.failure import QueryFailure

    total = Call("+", (Ref("0.j", "int"), Ref("1.j", "int")), "int")
    query = replace(
        query_of([InputWindow("sliding", 30)] * 2, [None], ["count"], set()), keys=(total,)
    )
    streams: list[list[Row]] = [[(1, 2**31 - 1, "x", 0)], [(1, 2**31 - 1, "x", 0)]]
    sides = [
        Side(entries(rows, entry.window, []), True, ())
        for rows, entry in zip(streams, query.inputs, strict=True)
    ]
    partials = [entry.partials("`t`") for entry in query.aggregates]
    with pytest.raises(QueryFailure, match="overflow") as raised:
        evaluated(query, sides, partials, np.array([10]), ansi=True)
    assert raised.value.queries == ("q@1",)
    assert evaluated(query, sides, partials, np.array([10]), ansi=False).to_pylist()[0]["k0"] == -2


def test_a_count_over_the_product_that_overflows_names_the_query_and_no_other() -> None:
    query = query_of([SLIDING, SLIDING], [None], ["count"], {0})
    partials = [tuple(entry.partials("t")) for entry in query.aggregates]
    many = [(1, 1, "x", 0)]
    sides = []
    for _ in range(2):
        held = entries(many, SLIDING, [])
        sides.append(Side(replace(held, counts=np.array([1 << 40])), True, ()))
    at = np.array([10])
    with pytest.raises(QueryFailure, match="too large") as raised:
        evaluated(query, sides, partials, at, ansi=False)
    assert raised.value.queries == (query.id,)


def test_sums_and_counts_of_very_many_joined_rows_do_not_wrap_around() -> None:
    query = query_of([SLIDING, SLIDING], [None, 0], ["count", "sum"], set())
    partials = [tuple(entry.partials("t")) for entry in query.aggregates]
    rows: list[Row] = [(1, 1, name, -1) for name in "abcdefgh"]
    held = entries(rows, SLIDING, list(partials[1]))
    one = entries([(1, 1, "x", 0)], SLIDING, [])

    def result(copies: int) -> Any:
        sides = [
            Side(held, True, partials[1]),
            Side(replace(one, counts=np.array([copies])), True, ()),
        ]
        (row,) = evaluated(query, sides, partials, np.array([10]), ansi=True).to_pylist()
        return row["a0"], row["a1"]

    for copies in (1 << 30, (1 << 31) - 1, 1 << 59):
        assert result(copies) == (8 * copies, -8 * copies)
    with pytest.raises(QueryFailure, match="too large"):
        result(1 << 61)


@pytest.mark.parametrize("on", ["a.sellerID = b.bidderID", "a.startPrice = b.amount"])
def test_keys_of_different_types_that_are_equal_are_in_one_bucket(on: str) -> None:
    text = f"SELECT COUNT(*) AS n FROM Auction a [WINDOW 1 HOUR], Bid b [WINDOW 1 HOUR] WHERE {on}"
    query = bound_query(text)
    split = split_of(query, {0: 1, 1: 1})
    assert split.keys.keys() == {0, 1}
    places: list[dict[int, int]] = []
    types = []
    for slot, entry in enumerate(query.inputs):
        (attribute,) = entry.attributes
        types.append(attribute.value.type)
        numbers = [None if n is None else Decimal(n) for n in (*range(50), None)]
        values = pa.array(numbers, pa.decimal128(20, 2)).cast(arrow_type(attribute.value.type))
        nothing = np.zeros(51, np.int64)
        held = Entries(nothing, nothing, {attribute.name: column(values)}, nothing + 1, {})
        found = {}
        for bucket, buckets in enumerate(Range.shares([1, 2, 1, 1])):
            part = split.part(slot, held, buckets, ansi=False)
            found |= {int(v): bucket for v in to_arrow(part.columns[attribute.name]).to_pylist()}
        places.append(found)
    assert types[0] != types[1]
    assert places[0] == places[1] and len(places[0]) == 50, "NULL joins with nothing"
    assert set(places[0].values()) == {0, 1, 2, 3}


def test_many_keys_at_many_instants_take_no_room_for_all_of_them_together() -> None:
    """As after a pause: each key is there at one instant of many."""
    keys, instants = 20_000, np.arange(256)
    counting = np.arange(keys) % len(instants)
    values = {"j": column(pa.array(np.arange(keys)))}
    entries = Entries(counting, counting, values, np.ones(keys, np.int64), {})
    tracemalloc.start()
    contents = entries.at(instants, ())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(contents) == keys and contents.counts.sum() == keys
    assert most < 8 * keys * len(instants) / 2, "half of one array of all keys at all instants"
