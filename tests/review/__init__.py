"""Regressions that an independent review found."""
