"""Aggregate trees: which group-by is computed from which."""
