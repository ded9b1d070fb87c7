"""What the tasks of one stage of a step are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from weft.kernel.network import Limits
from weft.kernel.network.passing import FromSteps
from weft.runtime.checkpoint.commits import Entry

Kind = Literal["rows", "joins", "distinct"]


@dataclass(frozen=True)
class Surroundings:
    """What all stages of a step have in common."""

    checkpoint: str
    log: str
    """The name of the network's log."""
    plan_version: int
    queries: tuple[str, ...] | None
    """The queries that show rows; None: all of the plan."""
    weights: tuple[float, ...]
    """Of the lanes, each of which has a share of the buckets."""
    tables: Mapping[str, Entry]
    """The files of the tables."""
    versions: Mapping[str, str]
    """The versions of the tables."""
    watermark_before: int
    watermark: int
    from_steps: FromSteps
    most_matches: int
    most_candidates: int
    ansi: bool
    cap_bytes: int
    """How many bytes of rows a task holds at once, about."""
    step: str
    attempt: str
    sequence: int
    results_root: str
    owner: str

    @property
    def tasks(self) -> int:
        return len(self.weights)

    @property
    def folder(self) -> str:
        """The name of the step's folders."""
        return f"{self.step}-{self.attempt}"

    @property
    def piece_bytes(self) -> int:
        """The size of a piece: there is one of either side, its index, and what is made of both."""
        return max(1, self.cap_bytes // 8)

    @property
    def limits(self) -> Limits:
        block = min(1 << 20, max(1 << 10, self.cap_bytes // 512))
        return Limits(self.most_matches, self.most_candidates, block, self.ansi)


@dataclass(frozen=True)
class Share:
    """A part of the row groups of a file, with rows of a physical node."""

    node: str
    entry: Entry
    part: int = 0
    parts: int = 1


@dataclass(frozen=True)
class Stage:
    """One stage. Of `rows`, task i reads `shares[i]`. Of `joins` and `distinct`, it takes share i of the
    buckets."""

    around: Surroundings
    kind: Kind
    number: int
    """Its place among the step's stages, for the names of files."""
    emits: bool = True
    """Whether queries show rows of it."""
    shares: tuple[tuple[Share, ...], ...] = ()
    nodes: tuple[str, ...] = ()
    """The physical joins that are computed."""
    old: tuple[Entry, ...] = ()
    new: tuple[Entry, ...] = ()
    """Files of kept rows and of new ones. Of `distinct`: of hashes that were shown, and of rows."""
    writes: tuple[str, ...] = ()
    """The inputs for which bucket files are written."""

    @property
    def tasks(self) -> int:
        return len(self.shares) if self.kind == "rows" else self.around.tasks


def encoded(stage: Stage) -> str:
    return json.dumps(asdict(stage))


def decoded(text: str) -> Stage:
    body = json.loads(text)
    shares = tuple(tuple(Share(**share) for share in task) for task in body["shares"])
    names = ("nodes", "old", "new", "writes")
    lists = {name: tuple(body[name]) for name in names}
    queries, weights = (body["around"][name] for name in ("queries", "weights"))
    tuples = {"queries": None if queries is None else tuple(queries), "weights": tuple(weights)}
    around = Surroundings(**{**body["around"], **tuples})
    return Stage(**{**body, **lists, "around": around, "shares": shares})
