"""What a step leaves in the log: its intent, its staging, its commit; and how commits are stored.

In memory a commit is whole: it names every live file. On disk it is a *delta*: it names the commit
before it, and what it adds and removes. So a commit file does not grow with the state. From time to
time a *base* holds a whole commit (`log`), and older commits can be deleted. Folding a base with the
deltas after it gives the last commit. If a delta does not follow the one before it, a commit is
missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

from weft.errors import CheckpointError

FORMAT = 3
"""3: commits are deltas, classes have names of their own, plans have checksums, rows are published.
2: nodes have signatures (cuts and bits) and parents. 1: a bit for every predicate."""

Entry = dict[str, Any]
"""A file in a manifest: name, size, checksum, rows, and what else its reader needs."""

_ADDED_LATER = {"editions", "tables"}
"""Fields that format 3 did not have at first; they have defaults."""

Kind = Literal["data", "flush"]
T = TypeVar("T")

STATE, RETAINED = "state", "retained"
"""Kinds of live files: the log's own files, and published files of other logs that it still uses."""


@dataclass(frozen=True)
class Position:
    """A committed step of a log: everything up to it has been consumed."""

    sequence: int
    step: str


@dataclass(frozen=True)
class Edition:
    """For whom a step publishes rows: the queries up to the registration number `last`, apart from
    those in `without`, which do not run or need columns that are not read yet. And what else it publishes for, by `names`."""

    last: int = 0
    without: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Intent:
    """What a step uses. It is fixed before the step's work, so that a replay uses the same."""

    batch: int
    plan_version: int
    watermark_before: int
    watermark: int
    settings: Mapping[str, str]
    publications: tuple[str, ...] = ()
    """What the step publishes for followers."""
    editions: Mapping[str, Edition] = field(default_factory=dict)
    """By publication: for which queries it is."""
    inputs: Mapping[str, Position] = field(default_factory=dict)
    """For a follower: by input log, the position up to which the step consumes it."""
    tables: Mapping[str, str] = field(default_factory=dict)
    """The version of each table that the step reads."""
    format: int = FORMAT


@dataclass(frozen=True)
class Staged:
    """A micro-batch whose rows have been read: everything that is needed to finish it."""

    intent: Intent
    spark_query: str
    offsets: str
    max_event_time: int | None
    """The latest event time of all rows so far."""
    counted: Mapping[str, Any]
    files: tuple[Entry, ...]
    """What the engine wrote when it read the rows."""
    published: tuple[Entry, ...] = ()
    format: int = FORMAT

    @property
    def batch(self) -> int:
        return self.intent.batch

    @property
    def plan_version(self) -> int:
        return self.intent.plan_version

    @property
    def watermark(self) -> int:
        return self.intent.watermark

    @property
    def settings(self) -> Mapping[str, str]:
        return self.intent.settings


@dataclass(frozen=True)
class Commit:
    """A finished step, whole."""

    stream: str
    kind: Kind
    batch: int
    sequence: int
    previous: str | None
    """The step before; None for the first."""
    spark_query: str
    offsets: str
    epoch: int
    plan_version: int
    watermark: int
    max_event_time: int | None
    settings: Mapping[str, str]
    inputs: Mapping[str, Position] = field(default_factory=dict)
    live: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    """All files that later steps may need, by kind."""
    results: tuple[Entry, ...] = ()
    """The result files of this step alone."""
    published: tuple[Entry, ...] = ()
    """The files that this step alone published for followers."""
    publications: tuple[str, ...] = ()
    editions: Mapping[str, Edition] = field(default_factory=dict)
    counted: Mapping[str, Any] = field(default_factory=dict)
    """What this step alone counted in its rows."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """The engine's own part."""
    late: Mapping[str, int] = field(default_factory=dict)
    """What came too late so far, by query: (row, window) pairs, or rows for windows of rows."""
    statuses: Mapping[str, str] = field(default_factory=dict)
    """The queries that this step left out, with their errors."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def name(self) -> str:
        return step_name(self.batch, self.kind)

    @property
    def position(self) -> Position:
        return Position(self.sequence, self.name)

    @property
    def mark(self) -> int:
        """How far the time of the engine has come: the watermark, or the number of numbered rows."""
        return int(self.engine.get("mark", self.watermark))

    @property
    def state(self) -> tuple[Entry, ...]:
        return self.live.get(STATE, ())

    @property
    def retained(self) -> tuple[Entry, ...]:
        return self.live.get(RETAINED, ())


def step_name(batch: int, kind: str) -> str:
    """The name of a step's commit. Sorted names are in the order in which the steps ran.

    >>> step_name(7, "data") < step_name(7, "flush") < step_name(8, "data")
    True
    """
    return f"{batch:012d}" + ("-flush" if kind == "flush" else "")


def encoded(value: Intent | Staged | Commit) -> dict[str, Any]:
    """The JSON form of a whole value."""
    return asdict(value)


def delta(commit: Commit, before: Commit | None) -> dict[str, Any]:
    """The JSON form of a commit: what it changes in the commit before it."""
    old_live = before.live if before else {}
    old_late = before.late if before else {}
    return {
        **asdict(commit),
        "live": {
            kind: _changed(commit.live.get(kind, ()), old_live.get(kind, ()))
            for kind in {*commit.live, *old_live}
        },
        "late": {
            "set": {
                query: count for query, count in commit.late.items() if old_late.get(query) != count
            },
            "removed": sorted(old_late.keys() - commit.late.keys()),
        },
    }


def _changed(now: tuple[Entry, ...], before: tuple[Entry, ...]) -> dict[str, Any]:
    old_names = {entry["name"] for entry in before}
    names = {entry["name"] for entry in now}
    return {
        "added": [entry for entry in now if entry["name"] not in old_names],
        "removed": sorted(old_names - names),
    }


def folded(body: dict[str, Any], before: Commit | None, path: str) -> Commit:
    """The whole commit of a delta. A delta that does not follow the commit before it is refused."""
    expected = before.name if before else None
    if body["previous"] != expected:
        missing = body["previous"] or "the first one"
        detail = f"it follows step {missing}, whose commit is missing"
        raise CheckpointError("DAMAGED", path=path, detail=detail)
    live = {}
    for kind, change in body["live"].items():
        removed = set(change["removed"])
        old = before.live.get(kind, ()) if before else ()
        kept = (entry for entry in old if entry["name"] not in removed)
        live[kind] = (*kept, *change["added"])
    removed_late = set(body["late"]["removed"])
    old_late = before.late if before else {}
    late = {query: count for query, count in old_late.items() if query not in removed_late}
    return _commit({**body, "live": live, "late": late | body["late"]["set"]})


def decoded(kind: type[T], body: Any, path: str) -> T:
    """The value of a JSON form. A newer format, and missing or unknown fields, are refused."""
    check_body(kind, body, path)
    decoders: dict[type[Any], Any] = {Intent: _intent, Staged: _staged, Commit: _commit}
    value: T = decoders[kind](body)
    return value


def check_body(kind: type[Any], body: Any, path: str) -> None:
    """Refuse a body of a newer format, or one whose fields are not exactly those of the kind."""
    if not isinstance(body, dict) or not isinstance(body.get("format"), int):
        raise CheckpointError("DAMAGED", path=path, detail="it has no format number")
    if body["format"] > FORMAT:
        raise CheckpointError("NEWER_FORMAT", path=path, found=body["format"], known=FORMAT)
    names = {f.name for f in fields(kind)}
    required = names - _ADDED_LATER
    if not required <= body.keys() <= names:
        wrong = sorted((required - body.keys()) | (body.keys() - names))
        raise CheckpointError("DAMAGED", path=path, detail=f"fields {wrong} do not fit")


def _commit(body: dict[str, Any]) -> Commit:
    live = {kind: tuple(entries) for kind, entries in body["live"].items() if entries}
    return Commit(
        **{
            **_tuples(body),
            "live": live,
            "inputs": _positions(body["inputs"]),
            "editions": editions(body),
        }
    )


def _intent(body: dict[str, Any]) -> Intent:
    inputs = _positions(body["inputs"])
    return Intent(**{**_tuples(body), "inputs": inputs, "editions": editions(body)})


def _staged(body: dict[str, Any]) -> Staged:
    return Staged(**{**_tuples(body), "intent": _intent(body["intent"])})


def editions(body: Mapping[str, Any]) -> dict[str, Edition]:
    """The editions in the JSON form of an intent or a commit."""
    return {
        name: Edition(edition["last"], tuple(edition["without"]), tuple(edition.get("names", ())))
        for name, edition in body.get("editions", {}).items()
    }


def _positions(body: Mapping[str, Any]) -> dict[str, Position]:
    return {log: Position(**position) for log, position in body.items()}


def _tuples(body: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in body.items()}


def with_plan(staged: Staged, version: int) -> Staged:
    """The staged step with another plan version."""
    return replace(staged, intent=replace(staged.intent, plan_version=version))
