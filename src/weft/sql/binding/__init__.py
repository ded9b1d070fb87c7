"""Syntax to queries: names, types, aggregates, windows, outputs."""
