"""What a reproduction is made of: figures, their data, and claims with our figures beside them.

Running and plotting are apart: a figure's `run` gives plain data, its `chart` draws that data, also
data that was read back from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import altair

Data = dict[str, Any]
"""The data of a figure, as JSON can carry it."""

Progress = Callable[[int, int, str], None]
"""Told how many steps of how many are done, and what is next."""

Context = TypeVar("Context")


@dataclass(frozen=True)
class Figure(Generic[Context]):
    """A figure of a paper: how its data is measured, and how it is drawn."""

    title: str
    run: Callable[[Context], Data]
    chart: Callable[[Data], altair.TopLevelMixin]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what we measured, whether it holds, and why not where it does not."""

    claim: str
    paper: str
    ours: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class Reproduction:
    """Measured data by figure, the claims that these figures are about, and a report's sections."""

    paper: str
    title: str
    figures: Mapping[str, Data]
    claims: Sequence[Claim]
    details: str

    def to_json(self) -> Data:
        return {
            "paper": self.paper,
            "title": self.title,
            "figures": dict(self.figures),
            "claims": [asdict(claim) for claim in self.claims],
        }

    def report(self) -> str:
        """The claims and the details in Markdown."""
        rows = [
            (claim.claim, claim.paper, claim.ours, claim.verdict, claim.reason)
            for claim in self.claims
        ]
        table = markdown_table(("claim", "paper", "ours", "verdict", "why"), rows)
        return f"# {self.title}\n\n{table}\n{self.details}"


@dataclass(frozen=True)
class Paper:
    """What `weft reproduce` can run of a paper."""

    title: str
    figures: Mapping[str, Figure[Any]]
    default: tuple[str, ...]
    """The figures of `weft reproduce PAPER`; others are run only if they are named."""
    run: Callable[..., Reproduction]
    """From the names of figures, whether to be quick, and whom to tell of progress."""
    keeps_parts: bool = False
    """Whether it is given the folder of its results, too, to keep what is done of a run."""


def markdown_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(markdown_table(("a", "b"), [("1", "x | y")]), end="")
    | a | b |
    |---|---|
    | 1 | x \\| y |
    """
    lines = [list(heading), *(list(row) for row in rows)]
    text = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    text.insert(1, "|" + "---|" * len(heading))
    return "\n".join(text) + "\n"
