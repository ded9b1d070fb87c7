"""What the tasks of one Spark job are told: which queries join together at which instants, or which files are written anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from weft.algebra import codec
from weft.algebra.joinagg.sources import Source
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg.inputs import Inputs
from weft.runtime.joinagg.joins.joining import Ready
from weft.runtime.joinagg.joins.physical import Group

Form = Mapping[str, Any]
"""A value of the algebra, or a group, as JSON."""


@dataclass(frozen=True)
class Stage:
    """The tasks of one job. `tables` has the versions of tables, `landmarks` where landmark windows begin by query and slot."""

    kind: Literal["joins", "rewrite"]
    checkpoint: str
    log: str
    plan_version: int
    schemas: Mapping[str, Form]
    finer: Mapping[str, Form]
    """By source, the finer set that serves it."""
    files: Sequence[Entry]
    marks: Mapping[str, int]
    """By query, the time up to which it is evaluated."""
    ansi: bool
    weights: Sequence[float]
    """Of the lanes, each of which has a share of the key buckets."""
    step: str
    """The folder of the step's files."""
    tables: Mapping[str, str] = field(default_factory=dict)
    groups: Sequence[Form] = ()
    keys: Sequence[tuple[str, str, int]] = ()
    """What is written anew: kind, name, and the time up to which it is gone."""
    landmarks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def tasks(self) -> int:
        return len(self.weights)

    def encoded(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def read(storage: Storage, name: str) -> Stage:
        return Stage(**storage.read_json(name))

    def inputs(self) -> Inputs:
        """The inputs of the plan, as the driver sees them."""
        log = StreamLog(Storage(self.checkpoint), self.log)
        finer: dict[str, Source] = {name: codec.decode(form) for name, form in self.finer.items()}
        schemas = {name: codec.decode(form) for name, form in self.schemas.items()}
        plan = log.aggregations(self.plan_version)
        return Inputs(plan, schemas, lambda source: finer.get(source.id))


def encoded_group(
    group: Group, portions: Sequence[int], sizes: Mapping[int, int], inputs: Inputs
) -> Form:
    """Queries that join together; each lane takes its share in so many portions. `sizes` are the entries of its streams
    by slot."""
    return {
        "portions": list(portions),
        "sizes": [[slot, size] for slot, size in sizes.items()],
        "shown": [instants.tolist() for instants in group.shown],
        "ready": [
            {
                "query": one.query.id,
                "following": one.uses is not inputs.uses[one.query.id],
                "begins": list(one.begins),
                "first": one.first,
            }
            for one in group.ready
        ],
    }


def decoded_group(form: Form, inputs: Inputs) -> Group:
    """The same group in a task."""
    return Group(
        tuple(_ready(body, inputs) for body in form["ready"]),
        tuple(np.array(instants, np.int64) for instants in form["shown"]),
    )


def _ready(body: Form, inputs: Inputs) -> Ready:
    name, plan = body["query"], inputs.plan
    following = body["following"]
    return Ready(
        plan.query_by_id[name],
        (plan.following if following else plan.early)[name],
        (inputs.following if following else inputs.uses)[name],
        tuple(body["begins"]),
        body["first"],
    )
