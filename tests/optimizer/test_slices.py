"""Shared fragments: every window is a union of whole fragments.

window 8/5:   |--------|            edges 0 3 5 8 10 13 …
                   |--------|
window 5/4:   |-----|               edges 0 1 4 5 8 9 …
fragments:    |-|--|-|---|-|…       ends  1 3 4 5 8 9 10 …
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from weft.algebra.plan import Fragments
from weft.algebra.window import EdgeClass, Window
from weft.optimizer.edges import slices as module
from weft.optimizer.edges.slices import base_pane, irreducible, slices


@st.composite
def windows(draw: st.DrawFn) -> Window:
    slide = draw(st.integers(1, 40))
    return Window(draw(st.integers(1, 90)), slide, draw(st.integers(1 - slide, slide - 1)))


MANY = st.lists(windows(), min_size=1, max_size=8)


def assert_no_window_cuts_a_fragment(fragments: Fragments, used: list[Window]) -> None:
    for time in range(-60, 60):
        end = fragments.end_of(time)
        assert end > time
        for window in used:
            for edge in range(time + 1, end):
                residues = {c.residue for c in window.edge_classes}
                assert edge % window.slide not in residues
            assert all(fragments.refines(edge_class) for edge_class in window.edge_classes)


@given(MANY)
def test_edges_of_all_windows_end_fragments(used: list[Window]) -> None:
    assert_no_window_cuts_a_fragment(slices(used), used)


@given(MANY)
def test_base_panes_do_too(used: list[Window]) -> None:
    classes = irreducible(edge for window in used for edge in window.edge_classes)
    pane, offset = base_pane(classes)
    assert_no_window_cuts_a_fragment(Fragments(pane=pane, offset=offset), used)


@given(MANY)
def test_few_classes_give_the_fewest_fragments(used: list[Window]) -> None:
    """Every fragment end is an edge of some window, unless panes stand in for many classes."""
    fragments = slices(used)
    if fragments.pane:
        return
    for time in range(-50, 50):
        end = fragments.end_of(time)
        assert any(
            end % window.slide in {c.residue for c in window.edge_classes} for window in used
        )


def test_example_2_of_the_paper() -> None:
    fragments = slices([Window(8, 5), Window(5, 4)])
    ends, time = [], 0
    while time < 13:
        time = fragments.end_of(time)
        ends.append(time)
    assert ends == [1, 3, 4, 5, 8, 9, 10, 12, 13]


def test_many_classes_become_panes() -> None:
    used = [Window(7 * s, s) for s in (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)]
    assert len(used) > module.MOST_CLASSES
    assert slices(used) == Fragments(pane=1, offset=0)


def test_a_class_within_another_adds_nothing() -> None:
    assert irreducible([EdgeClass(10, 5), EdgeClass(5, 0), EdgeClass(20, 15)]) == (EdgeClass(5, 0),)
