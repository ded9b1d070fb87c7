"""From a query that weft cannot share to the `Fallback` that Spark runs alone."""

from __future__ import annotations

from typing import Final

from weft.sql.binding.safety import Guard
from weft.sql.fallback import Fallback, Unshared
from weft.sql.reading.intervals import IntervalProblem, interval_micros
from weft.sql.reading.relations import Reference, references
from weft.sql.reading.source import STRING, WORD, Source
from weft.sql.scopes.inputs import Inputs

_STATEFUL: Final = frozenset({"GROUP", "DISTINCT", "LIMIT"})


def fallback(
    name: str, source: Source, unshared: Unshared, inputs: Inputs, guard: Guard | None
) -> Fallback:
    """The query as Spark runs it, unless it has weft's own brackets, reads no stream, names what
    is unknown, or does what the guard refuses."""
    read = references(source)
    streams, tables = _relations(source, read, inputs)
    _refuse_brackets(source, unshared)
    if guard is not None:
        guard.check(source, read)
    return Fallback(
        name,
        source.text,
        streams[0],
        unshared.reason,
        unshared.advice,
        streams,
        tables,
        row_copies(source),
        _keeps_state(source) or len(streams) > 1,
    )


def _relations(
    source: Source, read: list[Reference], inputs: Inputs
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The streams and tables that the text names, by their registered names, each once."""
    plain = [reference for reference in read if len(reference.parts) == 1]
    streams: dict[str, None] = {}
    tables: dict[str, None] = {}
    for reference in plain:
        table = inputs.find_table(reference.name)
        if table is not None:
            tables[table] = None
        else:
            streams[inputs.stream(source, reference.name, reference.at).name] = None
    if not streams and plain:
        inputs.stream(source, plain[0].name, plain[0].at)
    if not streams:
        raise source.error("NO_STREAM", 0, known=inputs.listed)
    return tuple(streams), tuple(tables)


def _refuse_brackets(source: Source, unshared: Unshared) -> None:
    for token, following in zip(source.tokens, source.tokens[1:]):
        if token.upper == "[" and following.upper == "WINDOW":
            advice = f": {unshared.advice}" if unshared.advice else ""
            detail = f"{unshared.reason}, and Spark has no windows of inputs{advice}"
            raise source.error("UNSUPPORTED", unshared.at, detail=detail)
        if token.upper == "[" and following.upper == "RANGE":
            raise source.error(
                "UNSUPPORTED",
                unshared.at,
                detail=f"{unshared.reason}, and Spark does not know the bracket form; "
                "with window(…) in GROUP BY the query would run alone",
            )


def row_copies(source: Source) -> int:
    """How often Spark copies each row for the text's sliding windows: range / slide, rounded up."""
    most = 1
    tokens = source.tokens
    for at, token in enumerate(tokens[:-1]):
        if token.upper == "WINDOW" and tokens[at + 1].upper == "(":
            lengths = _lengths(source, at + 2)
            if len(lengths) > 1 and lengths[1] > 0:
                most = max(most, -(-lengths[0] // lengths[1]))
    return most


def _lengths(source: Source, at: int) -> list[int]:
    """The interval strings up to the end of a call, in microseconds."""
    lengths: list[int] = []
    depth = 1
    for token in source.tokens[at:]:
        depth += (token.upper == "(") - (token.upper == ")")
        if depth == 0:
            break
        if token.kind == STRING and token.value is not None:
            try:
                lengths.append(interval_micros(token.value))
            except IntervalProblem:
                return []
    return lengths


def _keeps_state(source: Source) -> bool:
    """Whether the text groups, removes duplicates or limits."""
    return any(
        token.kind == WORD
        and token.upper in _STATEFUL
        and source.tokens[max(at - 1, 0)].upper not in ("IS", "NOT", ".")
        for at, token in enumerate(source.tokens)
    )
