"""The query network in the kernel: new matches of many join queries, from new rows and history.

`program` compiles a plan to physical nodes, `step` computes a step of it on `rows`, `passing` is what
the rows of a node go through, `state` what is kept between steps. Conditions are in `conditions/` and
`members`; the search for matches is in `joins/`, and in `buckets` where tasks share it; rows with a match,
or without one, are in `partners`; what rows find in tables is in `lookups/`; what queries show in `output` and `distinct`. No Spark, no files: rows come and go as Arrow tables.
"""

from weft.kernel.network.passing import Counters, Limits
from weft.kernel.network.program import Program, program
from weft.kernel.network.state import State
from weft.kernel.network.step import Outcome, admitted, advance, restored

__all__ = [
    "Counters",
    "Limits",
    "Outcome",
    "Program",
    "State",
    "admitted",
    "advance",
    "program",
    "restored",
]
