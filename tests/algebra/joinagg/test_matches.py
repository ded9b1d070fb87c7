"""Late inputs as a query of the network: what it reads, and which rows match."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.joinagg import query_of
from tests.support.joinagg_engine import schema

from weft.algebra import codec, stored
from weft.algebra.joinagg.matches import (
    aggregation_of,
    is_matches,
    matches_id,
    matching,
)
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.network.bits import bits_of
from weft.algebra.network.bounds import unbounded_inputs
from weft.algebra.predicates import time_bounds
from weft.algebra.predicates.spark_sql import spark_sql
from weft.algebra.scalar import Expression

STREAMS = {name: schema(name) for name in ("s0", "s1", "s2")}


def joined() -> AggregationJoin:
    """A sliding window of 30, a landmark, a tumbling one of 20; a selection on the first."""
    windows = [InputWindow("sliding", 30), InputWindow("landmark"), InputWindow("tumbling", 20)]
    query = query_of(windows, [0, None], ["sum", "count"], {0, 2})
    first = replace(query.inputs[0], predicate=Expression("(`a` > 0)", "boolean", ("a",)))
    return replace(query, inputs=(first, *query.inputs[1:]))


def test_event_times_are_as_far_apart_as_windows_allow() -> None:
    query = joined()
    join = matching(query, (0, 2), STREAMS)
    assert time_bounds(join.predicates, {0: "t", 1: "t"}) == {(0, 1): 29, (1, 0): 19}
    assert unbounded_inputs(join, STREAMS) == ()
    with pytest.raises(ValueError, match="no window with an end"):
        matching(query, (0, 1), STREAMS)


def test_many_inputs_have_bounds_of_their_own() -> None:
    """Names of slots are in the order of text: 10 comes before 2."""
    windows = [InputWindow("sliding", 10 + slot) for slot in range(12)]
    query = query_of(list(windows), [None], ["count"], set())
    streams = {f"s{slot}": schema(f"s{slot}") for slot in range(12)}
    bounds = time_bounds(
        matching(query, tuple(range(12)), streams).predicates, dict.fromkeys(range(12), "t")
    )
    assert bounds[2, 10] == windows[2].length - 1 and bounds[10, 2] == windows[10].length - 1


def test_rows_are_on_time_and_selected_where_they_are_published() -> None:
    join = matching(joined(), (0, 2), STREAMS)
    assert join.columns_of("s0") == {"t", "j", "g", "a"}
    assert join.columns_of("s2") == {"t", "j", "g"}, "neither the watermark nor computed values"
    selection = spark_sql(join.predicates.within({0}))
    assert "(`#before` < unix_micros(`t`))" in selection and "(`a` > 0)" in selection
    computed = {bit.sql for bit in bits_of(join, "s0")}
    assert any("named_struct('high'" in sql for sql in computed), "what a SUM needs of a row"
    assert {bit.sql for bit in bits_of(join, "s2")} == {"(`#before` < unix_micros(`t`))"}
    assert all(column.name.startswith(("0/", "2/")) for column in join.columns)


def test_ids_are_those_of_the_aggregation_join() -> None:
    join = matching(joined(), (0, 2), STREAMS)
    assert (join.id, join.members) == ("&0.2&q@1", ("&0.2&q@1",))
    assert is_matches(join.id) and not is_matches("q@1")
    assert aggregation_of(matches_id("a&b@1", (0, 2))) == "a&b@1"
    assert join.shown_name == "matches of q"


def test_it_is_stored_with_the_network() -> None:
    assert stored.NAMES
    join = matching(joined(), (0, 2), STREAMS)
    assert codec.loads(codec.dumps(join)) == join
