"""An aggregation set that is updated from step to step equals the one that is merged of all panes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.joinagg.windows import FOR_EVER
from weft.algebra.partial import Partial
from weft.algebra.scalar import Expression
from weft.kernel.columns.column import column, to_arrow
from weft.kernel.joinagg import updating
from weft.kernel.joinagg.contents.held import Contents
from weft.kernel.joinagg.entries import Entries, entries_of
from weft.kernel.joinagg.updating import SetMemory, UpdatedSet, can_update

STEP = 10
SUM = Aggregate("sum", (Expression("a", "bigint", ("a",)),), "bigint")
SUMS: tuple[Partial, ...] = lift(SUM, "0", None)
MOST: tuple[Partial, ...] = lift(Aggregate("max", SUM.arguments, "bigint"), "0", None)
Pane = tuple[int, int, str | None, int, int]
"""First and last instants in steps, key, rows, and their sum."""
PANES = st.lists(
    st.tuples(
        st.integers(1, 9),
        st.integers(-1, 8),
        st.one_of(st.none(), st.sampled_from("xy")),
        st.integers(1, 3),
        st.sampled_from([0, 1, -1, 2**62, -(2**62)]),
    ),
    max_size=14,
)


def entries(panes: list[Pane]) -> Entries:
    """Panes as entries. A length of 8 steps is for ever, and one of -1 is no time at all."""
    first = np.array([pane[0] * STEP for pane in panes], np.int64)
    last = [FOR_EVER if pane[1] == 8 else (pane[0] + pane[1]) * STEP for pane in panes]
    sums = [{"high": pane[4] >> 32, "low": pane[4] & 0xFFFFFFFF} for pane in panes]
    counts = np.array([pane[3] for pane in panes], np.int64)
    lifted = [pa.array(sums, pa.struct([("high", pa.int64()), ("low", pa.int64())])), counts]
    table = pa.table(dict(zip([p.name for p in SUMS], lifted, strict=True)))
    keys = column(pa.array([pane[2] for pane in panes], pa.string()))
    return entries_of(table, first, np.array(last, np.int64), {"k": keys}, counts, SUMS)


def found(contents: Contents) -> dict[Any, Any]:
    assert contents.instants is not None
    keys = to_arrow(contents.rows.column("0.k")).to_pylist()
    high, low = contents.partials[SUMS[0].name]
    values = [int(h) * 2**32 + int(v) for h, v in zip(high, low, strict=True)]
    known = contents.partials[SUMS[1].name][0].tolist()
    rows = zip(values, known, contents.counts.tolist(), strict=True)
    by_key = dict(zip(zip(contents.instants.tolist(), keys, strict=True), rows, strict=True))
    assert len(by_key) == len(contents), "a key twice at an instant"
    return by_key


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set is updated, whether it pays or not."""
    monkeypatch.setattr(updating, "_WORTH", 0)


@given(PANES, st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=2, max_size=6))
def test_a_set_is_what_all_panes_give(panes: list[Pane], steps: list[list[bool]]) -> None:
    """A step passes some instants, of which it evaluates those that are drawn. Panes come when their first instant is passed, and
    those that count no more are gone with the step."""
    memory, whole = SetMemory(), entries(panes)
    passed = 0
    for number, evaluated in enumerate(steps):
        now = passed + len(evaluated) * STEP
        inside = (whole.first <= now) & (whole.last > passed)
        held = whole.take(np.flatnonzero(inside))
        instants = np.array(
            [passed + (i + 1) * STEP for i, chosen in enumerate(evaluated) if chosen], np.int64
        )
        contents = UpdatedSet(held, SUMS, memory, "input").contents(instants)
        assert found(contents) == found(held.at(instants, SUMS)), number
        memory.commit() if len(instants) else memory.drop()
        passed = now


def test_a_set_is_not_used_where_panes_are_not_those_it_stands_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two panes are folded into one that begins to count later: the kept set has the first of them already."""
    apart, folded = entries([(1, 8, "x", 1, 5), (2, 8, "x", 1, 7)]), entries([(2, 8, "x", 2, 12)])
    memory = SetMemory()
    first = UpdatedSet(apart, SUMS, memory, "input").contents(np.array([STEP]))
    assert found(first) == {(STEP, "x"): (5, 1, 1)}
    memory.commit()
    later = np.array([2 * STEP])
    assert found(UpdatedSet(folded, SUMS, memory, "input").contents(later)) == {
        (2 * STEP, "x"): (12, 2, 2)
    }
    # The test can fail: with the old panes the set is used, and gives the same without looking at them.
    looked: list[int] = []
    merge = Entries.at

    def counted(self: Entries, *given: Any) -> Contents:
        looked.append(len(self))
        return merge(self, *given)

    monkeypatch.setattr(Entries, "at", counted)
    assert found(UpdatedSet(apart, SUMS, memory, "input").contents(later)) == {
        (2 * STEP, "x"): (12, 2, 2)
    }
    assert looked == [2], "the kept set and the new pane"


def test_what_a_step_makes_counts_when_it_is_committed() -> None:
    memory, panes = SetMemory(), entries([(1, 3, "x", 1, 5)])
    UpdatedSet(panes, SUMS, memory, "input").contents(np.array([STEP]))
    assert [known.time for known in memory.before("input", 2 * STEP)] == [STEP]
    memory.drop()
    assert not list(memory.before("input", 2 * STEP))
    UpdatedSet(panes, SUMS, memory, "input").contents(np.array([STEP]))
    memory.commit()
    memory.commit()
    assert not list(memory.before("input", 2 * STEP)), "a step without the input forgets it"


def test_where_keys_are_as_many_as_panes_no_set_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updating, "_WORTH", 2)
    memory, panes = SetMemory(), entries([(1, 8, "x", 1, 5), (1, 8, "y", 1, 5)])
    UpdatedSet(panes, SUMS, memory, "input").contents(np.array([STEP]))
    assert not list(memory.before("input", 2 * STEP))
    assert memory.rests("input")
    many = entries([(1, 8, "x", 1, 5)] * 5)
    UpdatedSet(many, SUMS, memory, "other").contents(np.array([STEP]))
    assert [len(known.entries) for known in memory.before("other", 2 * STEP)] == [1]


def test_extremes_and_floats_are_merged() -> None:
    floats = lift(Aggregate("sum", (Expression("d", "double", ("d",)),), "double"), "0", None)
    assert can_update(SUMS)
    assert not can_update(MOST)
    assert not can_update(floats)
