"""The log of one stepper: intents, staged steps, commits, bases and plan snapshots (DESIGN section 4.2).

A step is a micro-batch (`data`) or a flush. Before any work an intent fixes what the step uses. A step
that is finished beside the next one is staged after its rows are read. From then on it can be finished
without the rows. A commit makes the step's results and state visible. It is put in place atomically,
and only if it does not exist yet. Readers see only files that a commit or a base names.

    intents/    of steps that are not committed yet
    staged/     the step that is being finished
    commits/    deltas, each naming the step before it (`commits`)
    bases/      a whole commit and the list of all result files up to it
    plans/      a snapshot of every plan version in use, with a checksum
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Sequence
from typing import Any, TypeVar

from weft.algebra import codec
from weft.algebra.joinagg.plan import AggregationPlan
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.plan import SharedPlan
from weft.errors import CheckpointError
from weft.runtime.checkpoint.commits import (
    FORMAT,
    Commit,
    Entry,
    Intent,
    Position,
    Staged,
    check_body,
    decoded,
    delta,
    encoded,
    folded,
)
from weft.runtime.checkpoint.storage import Storage, to_json

KEPT_COMMITS = 20
PLAN_FORMAT = 4
"""Of plan snapshots. 4: what occurs several times in a plan is written once (`codec.dumps_by_parts`). 3: plans are
written whole. Both are read, so a checkpoint goes on with its older plans; an older weft refuses newer ones."""
T = TypeVar("T")

Plan = SharedPlan | NetworkPlan | AggregationPlan
"""What a version of a log's plan can be; each log has plans of one kind."""


class StreamLog:
    """Intents, commits and plans of one stepper."""

    def __init__(self, storage: Storage, stream: str) -> None:
        self.storage = storage
        self.stream = stream
        self._folder = f"streams/{stream}"
        self._plans: dict[int, Plan] = {}
        self._lock = threading.RLock()
        self._read: Commit | None = None
        """The last commit that was read or put; later deltas are folded into it."""

    def folder(self, kind: str) -> str:
        return f"{self._folder}/{kind}"

    # commits and bases

    def last(self) -> Commit | None:
        """The last commit, whole; None before the first."""
        with self._lock:
            names = self._names("commits")
            if not names:
                base = self._newest_base()
                self._read = self._base_commit(base) if base else None
                return self._read
            commit = self._read
            if commit is None or commit.name > names[-1] or commit.name not in names:
                base = self._newest_base()
                commit = self._base_commit(base) if base else None
            for name in names:
                if commit is None or name > commit.name:
                    path = self._path("commits", name)
                    commit = folded(self._commit_body(name), commit, path)
            self._read = commit
            return commit

    @property
    def begun(self) -> bool:
        """Whether a step is committed or staged."""
        last = self.last()
        return last is not None or self.staged(None) is not None

    def put_commit(self, commit: Commit, before: Commit | None) -> None:
        """Put a commit in place after the one before it. A committed step is refused."""
        body = to_json(delta(commit, before))
        if not self.storage.put_new(self._path("commits", commit.name), body):
            raise CheckpointError(
                "SPARK_CHECKPOINT", detail=f"step {commit.name} is committed already"
            )
        with self._lock:
            self._read = commit

    def steps_after(self, position: Position | None) -> list[dict[str, Any]]:
        """The stored commits after a position, oldest first. What a commit published and counted
        belongs to that step alone. Without a position, all stored commits. Commits that are pruned
        meanwhile are left out, with all older ones."""
        steps: list[dict[str, Any]] = []
        for name in reversed(self._names("commits")):  # pruning deletes the oldest first
            if position is not None and name <= position.step:
                break
            try:
                steps.append(self._commit_body(name))
            except FileNotFoundError:
                break
        return steps[::-1]

    def commits_after(self, step: str) -> int:
        """How many committed steps come after a step."""
        return sum(name > step for name in self._names("commits"))

    def put_base(self, commit: Commit, results: Sequence[Entry], merged: Sequence[Entry]) -> None:
        """Write a whole commit with all result files up to it. `merged` are the files that were merged
        into others; they are deleted after the next base."""
        body = {"format": FORMAT, "commit": encoded(commit)}
        body |= {"results": list(results), "merged": list(merged)}
        self.storage.put(self._path("bases", commit.name), to_json(body))

    def result_files(self) -> list[Entry]:
        """All committed result files, oldest first."""
        base = self._newest_base()
        files: list[Entry] = list(self._base(base)["results"]) if base else []
        before = base
        for name in self._names("commits"):
            if base is None or name > base:
                body = self._commit_body(name)
                if body["previous"] != before:
                    self.last()  # says which commit is missing
                files += body["results"]
                before = name
        return files

    def all_result_files(self) -> list[Entry]:
        """All committed result files, and those that were merged and wait to be deleted."""
        files = self.result_files()
        for name in self._names("bases"):
            files += self._base(name)["merged"]
        return files

    def _newest_base(self) -> str | None:
        return max(self._names("bases"), default=None)

    def _base(self, name: str) -> dict[str, Any]:
        path = self._path("bases", name)
        body = self.storage.read_json(path)
        if not isinstance(body, dict) or body.keys() != {"format", "commit", "results", "merged"}:
            raise CheckpointError("DAMAGED", path=path, detail="its fields do not fit")
        if body["format"] > FORMAT:
            raise CheckpointError("NEWER_FORMAT", path=path, found=body["format"], known=FORMAT)
        return body

    def _base_commit(self, name: str) -> Commit:
        return decoded(Commit, self._base(name)["commit"], self._path("bases", name))

    def _commit_body(self, name: str) -> dict[str, Any]:
        path = self._path("commits", name)
        body: dict[str, Any] = self.storage.read_json(path)
        check_body(Commit, body, path)
        return body

    # intents and staged steps

    def intent(self, batch: int) -> Intent | None:
        return self._read_if_there(Intent, self._path("intents", f"{batch:012d}"))

    def put_intent(self, intent: Intent) -> None:
        self.storage.put(self._path("intents", f"{intent.batch:012d}"), to_json(encoded(intent)))

    def intents_after(self, last: Commit | None) -> list[Intent]:
        """The intents of micro-batches that are not committed: two if one of them is staged."""
        first = last.batch + 1 if last else 0
        intents = [self.intent(batch) for batch in (first, first + 1)]
        return [intent for intent in intents if intent is not None]

    def staged(self, last: Commit | None) -> Staged | None:
        """The micro-batch after the last commit, if it is staged."""
        return self._read_if_there(
            Staged, self._path("staged", f"{last.batch + 1 if last else 0:012d}")
        )

    def put_staged(self, staged: Staged) -> None:
        self.storage.put(self._path("staged", f"{staged.batch:012d}"), to_json(encoded(staged)))

    def delete_staged(self, batch: int) -> None:
        """Delete the record of a staged micro-batch, which is committed now."""
        self.storage.delete(self._path("staged", f"{batch:012d}"))

    # plans

    def any_plan(self, version: int) -> Plan:
        """A plan of whichever kind the log has."""
        plan = self._plans.get(version)
        if plan is None:
            path = self._path("plans", f"{version:08d}")
            self._plans[version] = plan = _read_plan(self.storage, path)
        return plan

    def plan(self, version: int) -> SharedPlan:
        """A plan of windowed aggregates."""
        plan = self.any_plan(version)
        assert isinstance(plan, SharedPlan)
        return plan

    def network(self, version: int) -> NetworkPlan:
        """A plan of join queries."""
        plan = self.any_plan(version)
        assert isinstance(plan, NetworkPlan)
        return plan

    def aggregations(self, version: int) -> AggregationPlan:
        """A plan of aggregation joins."""
        plan = self.any_plan(version)
        assert isinstance(plan, AggregationPlan)
        return plan

    def plan_checksum(self, version: int) -> int:
        """The checksum of a plan's snapshot."""
        header, _, _ = self.storage.read(self._path("plans", f"{version:08d}")).partition(b"\n")
        return int(json.loads(header)["checksum"])

    def put_plan(self, plan: Plan) -> None:
        """Keep a snapshot of a plan: a line with its checksum, then the plan."""
        data = codec.dumps_by_parts(plan).encode()
        header = to_json({"format": PLAN_FORMAT, "size": len(data), "checksum": zlib.crc32(data)})
        path = self._path("plans", f"{plan.version:08d}")
        self.storage.put(path, header + b"\n" + data)
        self._plans[plan.version] = plan

    def plan_versions(self) -> list[int]:
        return [int(name) for name in self._names("plans")]

    # pruning

    def prune(self, last: Commit, passed: str | None = None) -> None:
        """Delete commits, intents, plans and bases that are no longer needed. Commits after `passed`
        are kept, because a follower has not consumed them."""
        base = self._newest_base() or ""
        needed_from = base if passed is None else min(base, passed)
        for name in self._names("commits")[:-KEPT_COMMITS]:
            if name <= needed_from:
                self.storage.delete(self._path("commits", name))
        for kind in ("intents", "staged"):
            for name in self._names(kind):
                if name < f"{last.batch:012d}":
                    self.storage.delete(self._path(kind, name))
        self._prune_plans(last)
        for name in self._names("bases"):
            if name < base:
                self._delete_base(name)

    def _prune_plans(self, last: Commit) -> None:
        versions = last.engine.get("versions", ())
        needed = {entry["version"] for entry in (*last.state, *versions) if "version" in entry}
        needed |= {intent.plan_version for intent in self.intents_after(last)}
        needed.add(last.plan_version)
        for version in self.plan_versions():
            if version < last.plan_version and version not in needed:
                self.storage.delete(self._path("plans", f"{version:08d}"))
                self._plans.pop(version, None)

    def _delete_base(self, name: str) -> None:
        """Delete an old base, and the result files that it lists as merged into others."""
        for entry in self._base(name)["merged"]:
            results = Storage(entry["root"] or f"{self.storage.uri}/results")
            results.delete(entry["name"])
        self.storage.delete(self._path("bases", name))

    # files

    def _path(self, kind: str, name: str) -> str:
        return f"{self._folder}/{kind}/{name}.json"

    def _names(self, kind: str) -> list[str]:
        files = self.storage.names(f"{self._folder}/{kind}")
        return sorted(file[:-5] for file in files if file.endswith(".json") and file[0] != ".")

    def _read_if_there(self, kind: type[T], path: str) -> T | None:
        if not self.storage.exists(path):
            return None
        return decoded(kind, self.storage.read_json(path), path)


def _read_plan(storage: Storage, path: str) -> Plan:
    try:
        header, _, data = storage.read(path).partition(b"\n")
        described = json.loads(header)
        if described["format"] > PLAN_FORMAT:
            raise CheckpointError(
                "NEWER_FORMAT", path=path, found=described["format"], known=PLAN_FORMAT
            )
        if (described["size"], described["checksum"]) != (len(data), zlib.crc32(data)):
            raise CheckpointError("DAMAGED", path=path, detail="its checksum differs")
        plan: Plan = codec.loads(data)
        return plan
    except FileNotFoundError as error:
        raise CheckpointError("DAMAGED", path=path, detail="it is missing") from error
    except (LookupError, TypeError, ValueError) as error:
        raise CheckpointError("DAMAGED", path=path, detail=str(error)) from error
