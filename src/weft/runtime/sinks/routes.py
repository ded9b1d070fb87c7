"""Single queries to sinks of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.runtime.checkpoint.commits import Entry
from weft.runtime.sinks.delivery import Sink, StepResults
from weft.runtime.sinks.store import ResultStore


@dataclass
class RouteSink:
    """Single queries to sinks of their own, all others to the default."""

    routes: Mapping[str, Sink]
    default: Sink = field(default_factory=ResultStore)

    @property
    def name(self) -> str:
        return f"route({', '.join(self.routes)}; else {self.default.name})"

    def write(self, results: StepResults) -> list[Entry]:
        """Every destination once, however many routes lead to it: a step has one file there."""
        sinks: dict[object, Sink] = {}
        names: dict[object, set[str]] = {}
        for query in results.queries.values():
            sink = destination(self, query.name)
            goal = sink.place if isinstance(sink, ResultStore) else id(sink)
            sinks.setdefault(goal, sink)
            names.setdefault(goal, set()).add(query.name)
        written = [sink.write(results.only(names[at].__contains__)) for at, sink in sinks.items()]
        return [entry for entries in written for entry in entries]


def destination(sink: Sink, query: str) -> Sink:
    """The sink that a query's results go to, through all routes."""
    while isinstance(sink, RouteSink):
        sink = sink.routes.get(query, sink.default)
    return sink


def stores_of(sink: Sink) -> list[ResultStore]:
    """The result stores in a sink."""
    if isinstance(sink, ResultStore):
        return [sink]
    if isinstance(sink, RouteSink):
        inner = (sink.default, *sink.routes.values())
        return [store for part in inner for store in stores_of(part)]
    return []
