"""Groups by open state: the cheapest cut of windows by the lengths of their ranges."""

from __future__ import annotations

from itertools import chain, combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from weft.algebra.window import Window
from weft.optimizer.edges.workload import Windowed, Workload
from weft.optimizer.windows.calibration import Constants
from weft.optimizer.windows.spans import Groups, OpenSpans


def edges_in(windows: list[Window], period: int) -> int:
    """How many of the times of a period are an edge of some window, one by one."""
    return sum(
        any((t - r) % w.slide == 0 for w in windows for r in (w.start, w.start + w.range))
        for t in range(period)
    )


def brute_force(spans: OpenSpans, windows: list[Window], groups: Groups, period: int) -> float:
    """The module's formula, over edges that are counted."""
    places = spans.workload.edge_set_of.tolist()
    total = 0.0
    for group in groups:
        members = [w for w, edge_set in zip(windows, places, strict=True) if edge_set in group]
        longest = max(window.range for window in members)
        rate = edges_in(members, period) / period
        total += rate * (longest + spans.step) / spans.step * spans.keys * spans.constants.scan
    whole = edges_in(windows, period) / period
    written = whole if spans.written is None else spans.written
    total += len(groups) * written * spans.keys * spans.constants.coalesce
    if len(groups) == 1:
        longest = max(window.range for window in windows)
        scans = (longest + spans.step) / spans.step * spans.keys * spans.constants.scan
        total = min(total, written * scans)
    return total


def spans_of(
    windows: list[Window],
    keys: float,
    step: float,
    constants: Constants,
    written: float | None = None,
) -> OpenSpans:
    workload = Workload.of(Windowed(str(i), window) for i, window in enumerate(windows))
    ranges = [0] * len(workload.edge_sets)
    for window, edge_set in zip(windows, workload.edge_set_of.tolist(), strict=True):
        ranges[edge_set] = max(ranges[edge_set], window.range)
    return OpenSpans(workload, tuple(ranges), keys, step, constants, written)


WINDOWS = st.lists(
    st.builds(Window, st.integers(1, 300), st.sampled_from([1, 2, 3, 4, 5, 6, 10, 12, 15, 20])),
    min_size=1,
    max_size=6,
)
POSITIVE = st.floats(0.01, 100)


@settings(max_examples=60)
@given(
    WINDOWS,
    POSITIVE,
    POSITIVE,
    st.builds(Constants, POSITIVE, POSITIVE, POSITIVE, POSITIVE),
    st.sampled_from([None, 1.0, 10.0]),
)
def test_the_cheapest_of_all_cuts(
    windows: list[Window], keys: float, step: float, constants: Constants, written: float | None
) -> None:
    spans = spans_of(windows, keys, step, constants, written)
    order: dict[int, list[int]] = {}
    for edge_set, length in enumerate(spans.ranges):
        order.setdefault(length.bit_length(), []).append(edge_set)
    runs = [order[magnitude] for magnitude in sorted(order)]
    cuts: list[Groups] = []
    for count in range(len(runs)):
        for at in combinations(range(1, len(runs)), count):
            bounds = [0, *at, len(runs)]
            chosen = [list(chain.from_iterable(runs[a:b])) for a, b in pairwise(bounds)]
            cuts.append(tuple(tuple(sorted(group)) for group in chosen))
    expected = min(brute_force(spans, windows, cut, period=60) for cut in cuts)
    groups = spans.groups()
    assert abs(brute_force(spans, windows, groups, period=60) - expected) <= 1e-9 * expected
    assert abs(spans.cost(groups) - expected) <= 1e-9 * expected


def test_a_short_alert_and_a_long_report_are_kept_apart() -> None:
    # alert  |-|-|-|-|-|-|   every second
    # report |---------------- a day, every hour
    alert, report = Window(2, 1), Window(86_400, 3600)
    spans = spans_of([alert, report], 100, 10, Constants())
    assert len(spans.groups()) == 2
    near = spans_of([Window(2, 1), Window(4, 2)], 100, 10, Constants())
    assert len(near.groups()) == 1
