"""The commit protocol of one stream: intents, commits, plan snapshots (DESIGN section 4.2).

A step is a micro-batch (`data`) or a flush. Before any work an intent fixes what the step
uses. A step that is finished beside the next one is staged after level 1: from then on it can be
finished without its rows. A commit, put in place atomically and only if absent, makes its results and state
visible. Readers see only files that a commit names. The last commit alone is enough to
recover; older ones are kept for the results they name until a base manifest names these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from weft.algebra import codec
from weft.algebra.plan import SharedPlan
from weft.errors import CheckpointError
from weft.runtime.protocol.storage import Storage, to_json

FORMAT = 2
"""2: nodes have signatures (cuts and bits) and parents; 1 had a bit for every predicate."""
KEPT_COMMITS = 20

_YOUNGER = {"numbering"}
"""Fields that older checkpoints lack."""

Entry = dict[str, Any]


@dataclass(frozen=True)
class Intent:
    """What a step uses, fixed before its work: a replay uses the same."""

    batch: int
    plan_version: int
    watermark_before: int
    watermark: int
    settings: dict[str, str]
    format: int = FORMAT


@dataclass(frozen=True)
class Staged:
    """A micro-batch after level 1: all that is needed to finish it."""

    batch: int
    spark_query: str
    offsets: str
    plan_version: int
    watermark_before: int
    watermark: int
    settings: dict[str, str]
    max_event_time: int | None
    """Of all rows so far."""
    counted: dict[str, Any]
    files: tuple[Entry, ...]
    """The fragments of first-level nodes."""
    format: int = FORMAT

    @property
    def intent(self) -> Intent:
        return Intent(
            self.batch, self.plan_version, self.watermark_before, self.watermark, self.settings
        )


@dataclass(frozen=True)
class Commit:
    """A finished step."""

    stream: str
    kind: Literal["data", "flush"]
    batch: int
    sequence: int
    spark_query: str
    offsets: str
    epoch: int
    plan_version: int
    watermark: int
    max_event_time: int | None
    settings: dict[str, str]
    state: tuple[Entry, ...] = ()
    results: tuple[Entry, ...] = ()
    results_base: str | None = None
    history: tuple[Entry, ...] = ()
    horizons: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    numbering: dict[str, Any] = field(default_factory=dict)
    """Of a numbered stream: the event-time watermark up to which rows have numbers, and the
    files of the rows that wait for theirs."""
    format: int = FORMAT

    @property
    def name(self) -> str:
        return step_name(self.batch, self.kind)


def step_name(batch: int, kind: str) -> str:
    """The name of a step's commit; names sort as the steps ran.

    >>> step_name(7, "data") < step_name(7, "flush") < step_name(8, "data")
    True
    """
    return f"{batch:012d}" + ("-flush" if kind == "flush" else "")


class StreamLog:
    """Intents, commits and plans of one stream."""

    def __init__(self, storage: Storage, stream: str) -> None:
        self.storage = storage
        self.stream = stream
        self._folder = f"streams/{stream}"
        self._plans: dict[int, SharedPlan] = {}

    def folder(self, kind: str) -> str:
        return f"{self._folder}/{kind}"

    def last(self) -> Commit | None:
        """The last commit, None before the first."""
        names = self._commit_names()
        return self.commit(names[-1]) if names else None

    @property
    def begun(self) -> bool:
        """Whether a step is committed or staged."""
        last = self.last()
        return last is not None or self.staged(None) is not None

    def commit(self, name: str) -> Commit:
        path = f"{self._folder}/commits/{name}.json"
        found: Commit = _read(self.storage, path, Commit)
        return found

    def put_commit(self, commit: Commit) -> None:
        """Put a commit in place; refused if the step is committed already."""
        path = f"{self._folder}/commits/{commit.name}.json"
        if not self.storage.put_new(path, to_json(asdict(commit))):
            raise CheckpointError(
                "SPARK_CHECKPOINT", detail=f"step {commit.name} is committed already"
            )

    def intent(self, batch: int) -> Intent | None:
        path = f"{self._folder}/intents/{batch:012d}.json"
        if not self.storage.exists(path):
            return None
        found: Intent = _read(self.storage, path, Intent)
        return found

    def put_intent(self, intent: Intent) -> None:
        path = f"{self._folder}/intents/{intent.batch:012d}.json"
        self.storage.put(path, to_json(asdict(intent)))

    def intents_after(self, last: Commit | None) -> list[Intent]:
        """The intents of micro-batches that are not committed: two if one of them is staged."""
        first = last.batch + 1 if last else 0
        found = [self.intent(batch) for batch in (first, first + 1)]
        return [intent for intent in found if intent is not None]

    def staged(self, last: Commit | None) -> Staged | None:
        """The micro-batch after the last commit, if it is staged."""
        path = self._staged_path(last.batch + 1 if last else 0)
        if not self.storage.exists(path):
            return None
        found: Staged = _read(self.storage, path, Staged)
        return found

    def put_staged(self, staged: Staged) -> None:
        self.storage.put(self._staged_path(staged.batch), to_json(asdict(staged)))

    def delete_staged(self, batch: int) -> None:
        """Forget that a micro-batch was staged; it is committed."""
        self.storage.delete(self._staged_path(batch))

    def _staged_path(self, batch: int) -> str:
        return f"{self._folder}/staged/{batch:012d}.json"

    def plan(self, version: int) -> SharedPlan:
        plan = self._plans.get(version)
        if plan is None:
            path = f"{self._folder}/plans/{version:08d}.json"
            try:
                plan = codec.loads(self.storage.read(path))
            except FileNotFoundError as error:
                raise CheckpointError("DAMAGED", path=path, detail="it is missing") from error
            except (KeyError, TypeError, ValueError) as error:
                raise CheckpointError("DAMAGED", path=path, detail=str(error)) from error
            self._plans[version] = plan
        return plan

    def put_plan(self, plan: SharedPlan) -> None:
        path = f"{self._folder}/plans/{plan.version:08d}.json"
        self.storage.put(path, codec.dumps(plan).encode())
        self._plans[plan.version] = plan

    def plan_versions(self) -> list[int]:
        return [
            int(name[:8])
            for name in self.storage.names(f"{self._folder}/plans")
            if name.endswith(".json")
        ]

    def result_files(self) -> list[Entry]:
        """All committed result files, oldest first."""
        last = self.last()
        if last is None:
            return []
        files: list[Entry] = []
        base = last.results_base
        if base:
            files += self.storage.read_json(f"{self._folder}/results/{base}.json")["files"]
        for name in self._commit_names():
            if base is None or name > base:
                files += self.commit(name).results
        return files

    def all_result_files(self) -> list[Entry]:
        """Also those that were merged and wait to be deleted."""
        files = self.result_files()
        for name in self.storage.names(f"{self._folder}/results"):
            if name.endswith(".json"):
                files += self.storage.read_json(f"{self._folder}/results/{name}")["merged"]
        return files

    def put_results_base(self, name: str, files: list[Entry], merged: list[Entry]) -> None:
        """List all result files up to and including a step, and those that were merged."""
        path = f"{self._folder}/results/{name}.json"
        body = {"format": FORMAT, "files": files, "merged": merged}
        self.storage.put(path, to_json(body))

    def prune(self, last: Commit) -> None:
        """Delete commits, intents, plans and result lists that nothing needs any more."""
        names = self._commit_names()
        base = last.results_base or ""
        for name in names[:-KEPT_COMMITS]:
            if name <= base:
                self.storage.delete(f"{self._folder}/commits/{name}.json")
        for kind in ("intents", "staged"):
            for file in self.storage.names(f"{self._folder}/{kind}"):
                if file < f"{last.batch:012d}.json" and file.endswith(".json"):
                    self.storage.delete(f"{self._folder}/{kind}/{file}")
        needed = {entry["version"] for entry in (*last.state, *last.history)}
        needed |= {intent.plan_version for intent in self.intents_after(last)}
        needed.add(last.plan_version)
        for version in self.plan_versions():
            if version < last.plan_version and version not in needed:
                self.storage.delete(f"{self._folder}/plans/{version:08d}.json")
                self._plans.pop(version, None)
        for file in self.storage.names(f"{self._folder}/results"):
            if file.endswith(".json") and file[:-5] < base:
                self._delete_base(f"{self._folder}/results/{file}")

    def _delete_base(self, path: str) -> None:
        """Delete an old base and the result files that it had merged into others."""
        for entry in self.storage.read_json(path)["merged"]:
            results = Storage(entry["root"] or f"{self.storage.uri}/results")
            results.delete(entry["name"])
        self.storage.delete(path)

    def commits(self) -> Iterator[Commit]:
        for name in self._commit_names():
            yield self.commit(name)

    def _commit_names(self) -> list[str]:
        files = self.storage.names(f"{self._folder}/commits")
        return sorted(file[:-5] for file in files if file.endswith(".json") and file[0] != ".")


def _read(storage: Storage, path: str, kind: type[Any]) -> Any:
    body = storage.read_json(path)
    if not isinstance(body, dict) or not isinstance(body.get("format"), int):
        raise CheckpointError("DAMAGED", path=path, detail="it has no format number")
    if body["format"] > FORMAT:
        raise CheckpointError("NEWER_FORMAT", path=path, found=body["format"], known=FORMAT)
    known = {f.name for f in fields(kind)}
    missing = known - body.keys() - _YOUNGER
    if missing or body.keys() - known:
        raise CheckpointError("DAMAGED", path=path, detail=f"fields {sorted(missing)} are missing")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in body.items()})
