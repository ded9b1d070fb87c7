"""The entries of inputs in one step. Inputs that several queries share are made once, with all that the kernel finds out about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.panes import Panes
from weft.runtime.joinagg.inputs import Inputs, Use
from weft.runtime.joinagg.served import Key


class SharedEntries:
    """The entries of a step up to its watermark."""

    def __init__(self, panes: Mapping[Key, Panes], inputs: Inputs, watermark: int) -> None:
        self._panes, self._watermark = panes, watermark
        self._uses = Counter(_shape(use) for use in inputs)
        self._entries: dict[object, Entries] = {}

    def of(self, use: Use, begin: int) -> Entries:
        """The entries of an input from a time on, with the instants at which they count."""
        shape = _shape(use)
        if self._uses[shape] < 2:
            return self._made(use, begin)
        if (shape, begin) not in self._entries:
            self._entries[shape, begin] = self._made(use, begin)
        return self._entries[shape, begin]

    def _made(self, use: Use, begin: int) -> Entries:
        panes = self._panes[use.key].between(begin, self._watermark)
        return panes.entries(use.window, use.query.step)


def _shape(use: Use) -> object:
    return use.key, use.window, use.query.step
