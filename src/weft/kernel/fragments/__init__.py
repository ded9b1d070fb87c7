"""Fragments: open state in memory, coalescing, members of predicates, nodes from their parents."""
