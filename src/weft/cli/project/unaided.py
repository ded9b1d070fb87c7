"""Binds a query without Spark, as far as weft can judge it by itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from weft.algebra.network.bounds import warning
from weft.algebra.network.derived import DerivedQuery
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Field, Query, StreamSchema
from weft.cli.project.folder import Project
from weft.cli.project.recorded import Recorded
from weft.cli.project.session import defaults
from weft.sql import bind


class _AskSparkError(Exception):
    """Only Spark can tell."""


class _NoSpark:
    """An analyzer that knows nothing: what it is asked needs a session."""

    def types(self, fields: tuple[Field, ...], expressions: tuple[str, ...]) -> Any:
        raise _AskSparkError

    def output_names(self, fields: tuple[Field, ...], expressions: tuple[str, ...]) -> Any:
        raise _AskSparkError


def bound_unaided(
    record: Recorded,
    project: Project,
    name: str,
    sql: str,
    query_id: str,
    emit: str | None = None,
) -> Query | NetworkQuery | None:
    """A query that is surely shared; None if only Spark can tell. Raises if it is surely wrong."""
    schemas = record.schemas()
    if not {stream.name for stream in project.streams} <= schemas.keys():
        return None
    tables = [table.name for table in project.tables]
    zone = {**defaults(), **project.spark}["spark.sql.session.timeZone"]
    try:
        bound = bind(
            name,
            sql,
            schemas,
            _NoSpark(),
            query_id=query_id,
            ansi=_ansi(project),
            tables=tables,
            time_zone=zone,
            emit=emit,
        )
    except _AskSparkError:
        return None
    return bound if isinstance(bound, Query | NetworkQuery) else None


def detail_of(bound: Query | NetworkQuery, schemas: Mapping[str, StreamSchema]) -> str:
    """What a user should know of a shared query; empty if there is nothing."""
    if isinstance(bound, DerivedQuery):
        return f"over {bound.derived.described}"
    return warning(bound, schemas) if isinstance(bound, NetworkQuery) else ""


def _ansi(project: Project) -> bool:
    default = os.environ.get("SPARK_ANSI_SQL_MODE", "true")
    return project.spark.get("spark.sql.ansi.enabled", default).lower() == "true"
