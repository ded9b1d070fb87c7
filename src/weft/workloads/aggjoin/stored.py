"""Streams of the AggJoin paper as ordered files, which all contenders read in the same micro-batches."""

from __future__ import annotations

from pathlib import Path

from weft.workloads.aggjoin.streams import StreamShape, stream
from weft.workloads.stored import StoredStream, store_table


def store_stream(
    folder: Path, shape: StreamShape, rows: int, per_file: int, number: int, seed: int = 1
) -> StoredStream:
    """The first rows of a stream, `per_file` in each file; `number` is its place among the joined ones."""
    recipe = f"aggjoin {shape} number={number} seed={seed}"
    return store_table(lambda: stream(shape, rows, number, seed), folder, rows, per_file, recipe)
