"""What a network keeps between steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from weft.algebra.frozen import FrozenMapping
from weft.kernel.network.distinct import Emitted
from weft.kernel.network.joins.history import Chunk, InputId, sizes
from weft.kernel.network.lookups.tables import LookupTable
from weft.kernel.network.program import Program

EMITTED = "#hash"


@dataclass(frozen=True)
class State:
    """The history of a network after a step. It never changes: a step makes another one."""

    history: Mapping[str, tuple[Chunk, ...]]
    """The chunks of every physical node that a join reads."""
    arrived: frozenset[str] = frozenset()
    """The tables whose rows have come."""
    emitted: Mapping[str, Emitted] = FrozenMapping()
    """What DISTINCT queries have shown."""
    tables: Mapping[str, LookupTable] = FrozenMapping()
    """The tables of lookups, by the lookups' ids."""

    @staticmethod
    def empty(program: Program) -> State:
        """The state before the first step."""
        return State(FrozenMapping({node.id: () for node in program.nodes if node.inputs}))

    @property
    def rows(self) -> int:
        return sum(sizes(chunks)[0] for chunks in self.history.values())

    @property
    def nbytes(self) -> int:
        shown = sum(emitted.nbytes for emitted in self.emitted.values())
        return shown + sum(sizes(chunks)[1] for chunks in self.history.values())

    def input_rows(self) -> dict[InputId, int]:
        """How many rows every side of every physical join has."""
        counts: dict[InputId, int] = {}
        for chunks in self.history.values():
            for part in chunks:
                for key, index in part.indexes.items():
                    counts[key] = counts.get(key, 0) + len(index.rows)
        return counts


def emitted_table(hashes: list[bytes]) -> pa.Table:
    """Hashes of shown rows, to be stored."""
    return pa.table({EMITTED: pa.array(hashes, pa.binary(16))})
