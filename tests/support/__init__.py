"""Helpers that run weft for tests."""
