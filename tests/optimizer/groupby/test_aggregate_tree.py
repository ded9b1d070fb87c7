"""Aggregate trees are values; changes keep every query and never lose the order of computation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optimizer.groupby.support import A_B, A_B_C, A_B_C_D, ALL, B_C, C_D

from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, Branch, node_name
from weft.optimizer.groupby.trees.greedy_tree import changes

sets = st.frozensets(st.sampled_from("abcde"), max_size=4)


def test_equal_queries_are_one_node_in_the_order_of_names() -> None:
    tree = AggregateTree.flat([C_D, A_B, C_D, B_C])
    assert [node_name(child.node) for child in tree.children] == ["a,b", "b,c", "c,d"]
    assert tree == AggregateTree.flat([A_B, B_C, C_D])
    assert hash(tree) == hash(AggregateTree.flat([B_C, C_D, A_B]))


def test_a_merge_takes_all_siblings_inside_the_union() -> None:
    tree = AggregateTree.flat(ALL).merged(None, A_B_C)
    assert repr(tree) == "<stream: [<a,b,c*: [<a,b>, <b,c>]>, <a,d>, <c,d>]>"


def test_a_union_that_is_a_query_gets_the_siblings_below_it() -> None:
    tree = AggregateTree.flat([A_B_C, A_B, B_C, C_D]).merged(None, A_B_C)
    assert repr(tree) == "<stream: [<a,b,c: [<a,b>, <b,c>]>, <c,d>]>"
    assert tree.intermediates() == ()


def test_a_deletion_undoes_a_merge_and_spares_queries() -> None:
    flat = AggregateTree.flat(ALL)
    assert flat.merged(None, A_B_C_D).without(A_B_C_D) == flat
    with pytest.raises(ValueError, match="a,b is a query"):
        flat.without(A_B)


def test_a_change_shares_the_branches_it_does_not_touch() -> None:
    tree = AggregateTree.flat(ALL).merged(None, A_B_C)
    changed = tree.merged(None, frozenset("acd"))
    assert changed.find(A_B_C) is tree.find(A_B_C)


def test_a_node_must_lie_inside_its_parent() -> None:
    with pytest.raises(ValueError, match="c,d is not computed from a,b"):
        Branch(A_B, True, [Branch(C_D, True)])
    with pytest.raises(ValueError, match="not connected"):
        AggregateTree.of([A_B], {A_B: A_B_C})


def test_the_global_aggregate_is_a_node_with_a_name_of_its_own() -> None:
    tree = AggregateTree.flat([frozenset(), A_B]).merged(None, A_B)
    assert tree.to_json() == {
        "node": "",
        "children": [{"node": "a,b", "children": [{"node": "()", "children": []}]}],
    }


@given(st.lists(sets, min_size=1, max_size=6), st.data())
def test_every_change_keeps_the_queries_and_has_each_node_once(
    queries: list[frozenset[str]], data: st.DataObject
) -> None:
    tree = AggregateTree.flat(queries)
    for _ in range(3):
        options = list(changes(tree))
        for option in options:
            names = [node_name(branch.node) for _, branch in option.walk()]
            assert len(names) == len(set(names))
            assert set(option.queries()) == set(queries)
            for parent, branch in option.walk():
                assert parent is None or branch.node < parent
        if not options:
            break
        tree = data.draw(st.sampled_from(options))
