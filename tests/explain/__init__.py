"""EXPLAIN: cost, text, JSON, SVG, and the golden plans."""
