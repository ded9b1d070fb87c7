"""Columns: Arrow to NumPy and back, codes of keys, partial aggregates, sketches, ranges of them."""
