"""The 13 optimizers of the Placement paper, one module for each algorithm.

A name has two parts (table 1 of the paper). The first says what may share a tree: `g` nothing, each item is a
tree of its own; `w` all items of a node, one tree per node; `wg` what the optimizer chooses. The second says how a
node is chosen: `at_random` (rand), `round_robin` (rr), `to_lowest` (tl, Algorithm 1), `to_nodes` (tn, Algorithm
2), `inserted` (i, Algorithm 3). Where the printed pseudocode and the text differ the text is followed, and the
module says so. weft's own optimizer is one folder up, in `balanced`.
"""
