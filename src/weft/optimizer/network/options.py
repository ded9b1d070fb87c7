"""Which sharing the generator looks for: the configurations of ARGUS' Table 3 and their thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["sharing-selection", "match-plan"]


@dataclass(frozen=True, slots=True)
class Options:
    """How a query is added to a network.

    Without `canonicalize` a node is shared only if each of its OR predicates is one of the query's,
    in the same words: no implication. (Queries reach the generator in canonical form, so two spellings
    of one literal are equal all the same.)
    """

    strategy: Strategy = "sharing-selection"
    """Match all joins of the query with the network, or only the next join of its own best plan."""
    share_joins: bool = True
    canonicalize: bool = True
    materialize_below: float = 0.3
    """A selection before a join becomes a node if it keeps less than this share of the rows."""
    reroute: bool = False
    """Move selections below a new one that includes their rows, if it has fewer than their parents."""
    restructure: bool = False
    """Where a new join and an old one differ in constants only, let a weaker join feed both (Figure
    13(b)). The network has fewer joins then, with more rows. The kernel searches the candidates of such
    joins once in any case."""
