"""`weft demo`."""

from __future__ import annotations


def main() -> None:
    """Run two hundred and more queries on a made-up auction stream."""
