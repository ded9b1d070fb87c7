"""The papers that `weft reproduce` knows."""

from __future__ import annotations

from weft.experiments.aggjoin.paper import AGGJOIN
from weft.experiments.argus.paper import ARGUS
from weft.experiments.memory.paper import MEMORY
from weft.experiments.placement.paper import PLACEMENT
from weft.experiments.reproduction import Paper
from weft.experiments.triops.paper import TRIOPS

PAPERS: dict[str, Paper] = {
    "aggjoin": AGGJOIN,
    "argus": ARGUS,
    "memory": MEMORY,
    "placement": PLACEMENT,
    "triops": TRIOPS,
}
