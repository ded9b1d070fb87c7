"""Edges of windows: where fragments end, how many edges a set of windows has in common."""
