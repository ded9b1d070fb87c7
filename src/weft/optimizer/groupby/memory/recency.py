"""What leaves a table that evicts the least recently used entry, from how often groups come: weft's
own model.

Lemma 6.1 of the Memory paper is about the b most *frequent* groups. A table that keeps the b most
*recent* ones evicts more, and every group is new to it once. Let D(t) be the expected number of
groups in t rows; with c_k rows of group k among n in random order, D(t) = Σ 1 - (1 - t/n)^c_k. A
table of b entries holds the groups of the last T rows, where D(T) = b. A row needs a new entry if
its group is not among the last T rows, which has the probability D'(T) (for the first T rows: not
among all before, and these are D(T) together). So

    out(b) = D(T) + (n - T)·D'(T):

the tangent of D at T, read at n. It falls with b (D is concave) from n to g = D(n).

Below another table it is taken as it is, but not above what comes in: a parent that has seen a
group lately holds it back, yet what it lets through still touches the same groups in the same
stretch of time, so the child's table forgets as before. On generated flows a
table at the stream is within 0.1 points of all records (`weft reproduce memory/fig3`); that a table
below another is only bounded makes predictions too high there.

Precondition: records in random order. Bursts, which real traces have, make a table forget less.

Time: O(distinct frequencies × places), once for each set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.optimizer.groupby.memory.eviction import Floats

_PLACES = 128
_BINS = 256


@dataclass(frozen=True)
class RecencyCurve:
    """Entries and what leaves, from nothing to all groups."""

    groups: float
    entries: Floats
    leaving: Floats

    @classmethod
    def of(cls, frequency: Floats, groups: Floats) -> RecencyCurve:
        """From frequencies, and how many groups have each.

        >>> curve = RecencyCurve.of(np.array([10.0]), np.array([100.0]))
        >>> [round(float(np.interp(b, curve.entries, curve.leaving))) for b in (0, 1, 50, 100)]
        [1000, 991, 550, 100]
        """
        rows, count = float(frequency @ groups), float(groups.sum())
        time = np.concatenate(([0.0], np.geomspace(min(1.0, rows / 2), rows, _PLACES)))
        rest = np.maximum(1 - time / rows, 0.0)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = (groups * (1 - rest**frequency)).sum(axis=1)
            fresh = (groups * frequency / rows * rest ** (frequency - 1)).sum(axis=1)
        out = seen + (rows - time) * np.where(time < rows, fresh, 0.0)
        out[-1] = seen[-1] = count
        return cls(count, seen, np.minimum.accumulate(np.clip(out, count, rows)))


def zipf_frequencies(groups: float, alpha: float, rows: float) -> tuple[Floats, Floats]:
    """Frequencies in proportion to rank^-alpha, in bins of similar ranks, and the groups of each bin."""
    edges = np.unique(np.floor(np.geomspace(1, groups + 1, _BINS)))
    edges[-1] = groups + 1
    width = np.diff(edges)
    middle = np.sqrt(edges[:-1] * np.maximum(edges[1:] - 1, edges[:-1]))
    shares = middle**-alpha
    return rows * shares / float(shares @ width), width
