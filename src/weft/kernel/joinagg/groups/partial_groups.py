"""Groups of joined entries, with their partials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.kernel.columns import partial_columns
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored

Slot = int | None
"""The input of an aggregate; None: it counts joined rows, or is computed of several inputs."""


@dataclass(frozen=True)
class Groups:
    """Groups at instants, sorted by group: the instant, the code of the key, and the partials of each."""

    instants: Array
    codes: Array
    partials: Mapping[tuple[Slot, str], Stored]

    def only(self, chosen: Array) -> Groups:
        """Some of the groups."""
        taken = {key: partial_columns.take(of, chosen) for key, of in self.partials.items()}
        return Groups(self.instants[chosen], self.codes[chosen], taken)
