"""Sketches of distinct values as sets of few sketches.

Often all sketches of a column are merges of few: of a key with some dozens of values, each fragment has
the sketch of one value. Merging the same sketch twice changes nothing, so that a merge is known by the set
of what it consists of, one bit for each: a column is an array of 64-bit integers, and merging is OR. A
sketch is made of a set only when it is asked for, and remembered.

Columns of one origin know their sketches by the same bits (`Bases`): at most `MOST`, and they only grow
in number.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.kernel.columns.arrow import factorized
from weft.kernel.columns.operations import UfuncOperation
from weft.kernel.columns.ranges import combine_ranges
from weft.kernel.columns.sketches.sketch_kinds import KINDS

MOST: Final = 63
_REMEMBERED: Final = 10_000
_REMEMBERED_BYTES: Final = 1 << 24
_OR: Final = UfuncOperation(np.bitwise_or, 0, np.int64)

Masks = NDArray[np.int64]


class Bases:
    """Up to `MOST` sketches, as bytes; what sets of them give is remembered."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._bits: dict[bytes, int] = {}
        self._written: list[bytes] = []
        self._merged: dict[int, bytes] = {}
        self._merged_bytes = 0
        self._estimates: dict[int, int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._written)

    @property
    def nbytes(self) -> int:
        return sum(map(len, self._written)) + self._merged_bytes

    def bit(self, written: bytes) -> int | None:
        """The bit of a sketch, as a number; None if there is no room for one more."""
        with self._lock:
            bit = self._bits.get(written)
            if bit is None and len(self._written) < MOST:
                bit = self._bits[written] = 1 << len(self._written)
                self._written.append(written)
            return bit

    def of(self, mask: int) -> list[bytes]:
        """The sketches of a set."""
        return [written for position, written in enumerate(self._written) if mask >> position & 1]

    def written(self, mask: int) -> bytes | None:
        """The merged sketch of a set, None of the empty one."""
        if mask & (mask - 1) == 0:
            return self.of(mask)[0] if mask else None
        sketch = self._merged.get(mask)
        if sketch is None:
            sketch = KINDS[self.kind].write(self._sketch(mask))
            with self._lock:
                if self._merged_bytes + len(sketch) > _REMEMBERED_BYTES:
                    self._merged, self._merged_bytes = {}, 0
                self._merged[mask] = sketch
                self._merged_bytes += len(sketch)
        return sketch

    def _sketch(self, mask: int) -> Any:
        kind = KINDS[self.kind]
        return kind.merge([kind.read(written) for written in self.of(mask)])

    def estimate(self, mask: int) -> int:
        """About how many distinct values a set has."""
        estimate = self._estimates.get(mask)
        if estimate is None:
            estimate = round(self._estimated(mask))
            if len(self._estimates) >= _REMEMBERED:
                self._estimates = {}
            self._estimates[mask] = estimate
        return estimate

    def _estimated(self, mask: int) -> float:
        if mask & (mask - 1):
            return float(self._sketch(mask).get_estimate())
        written = self.written(mask)
        return 0.0 if written is None else float(KINDS[self.kind].read(written).get_estimate())


@dataclass(frozen=True)
class SketchSets:
    """A column of sets; the empty set stands for no sketch."""

    masks: Masks
    bases: Bases

    @staticmethod
    def of(kind: str, written: Sequence[bytes | None], places: NDArray[Any]) -> SketchSets | None:
        """The column of sketches at the given places of a list; None if they are too many."""
        bases = Bases(kind)
        bits = [0 if sketch is None else bases.bit(sketch) for sketch in written]
        present_bits = [bit for bit in bits if bit is not None]
        if len(present_bits) < len(bits):
            return None
        return SketchSets(np.array(present_bits, np.int64)[places], bases)

    @staticmethod
    def concatenated(columns: Sequence[SketchSets]) -> SketchSets | None:
        """Columns one after the other, by the bits of the first; None if there are too many."""
        bases = columns[0].bases
        parts = [columns[0].masks]
        for column in columns[1:]:
            masks = column._by(bases)
            if masks is None:
                return None
            parts.append(masks)
        return SketchSets(np.concatenate(parts), bases)

    def _by(self, bases: Bases) -> Masks | None:
        """The sets by other bits."""
        if bases is self.bases:
            return self.masks
        used, places = factorized(self.masks)
        masks: list[int] = []
        for mask in used.tolist():
            bits = [bases.bit(written) for written in self.bases.of(mask)]
            present_bits = [bit for bit in bits if bit is not None]
            if len(present_bits) < len(bits):
                return None
            masks.append(sum(present_bits))
        return np.array(masks, np.int64)[places]

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def nbytes(self) -> int:
        return int(self.masks.nbytes) + self.bases.nbytes

    def take(self, positions: NDArray[Any]) -> SketchSets:
        return SketchSets(self.masks[positions], self.bases)

    def over_runs(self, low: NDArray[Any], high: NDArray[Any]) -> SketchSets:
        """The merges of runs that follow each other."""
        masks = np.bitwise_or.reduceat(self.masks, low) if len(low) else self.masks
        return SketchSets(masks, self.bases)

    def over_ranges(self, low: NDArray[Any], high: NDArray[Any]) -> SketchSets:
        (masks,) = combine_ranges(_OR, (self.masks,), low, high)
        return SketchSets(masks, self.bases)

    def written(self) -> tuple[list[bytes | None], NDArray[Any]]:
        """The distinct sketches as bytes, None for none, and which of them each row has."""
        used, places = factorized(self.masks)
        return [self.bases.written(mask) for mask in used.tolist()], places

    def estimates(self) -> NDArray[np.int64]:
        """The rounded estimates of distinct values, 0 for no sketch."""
        used, places = factorized(self.masks)
        by_mask = [self.bases.estimate(mask) for mask in used.tolist()]
        estimates: NDArray[np.int64] = np.array(by_mask, np.int64)[places]
        return estimates

    def to_arrow(self) -> pa.Array:
        """The sketches as bytes, as state files have them."""
        written, places = self.written()
        return pa.array(written, pa.binary()).take(pa.array(places))
