"""Errors with a class, parameters, and the place in the user's SQL.

The catalogue below is the only place where messages are written. Every error is a
`WeftError`; its subclass says what kind of thing went wrong.
"""

from __future__ import annotations

from typing import Any, ClassVar

MESSAGES: dict[str, str] = {
    # registering
    "PARSE_ERROR": "the SQL cannot be parsed: {detail}",
    "NOT_ONE_SELECT": "a query is one SELECT statement; found {found}",
    "UNKNOWN_STREAM": "there is no stream or table '{name}'; known: {known}",
    "UNKNOWN_COLUMN": "'{name}' is not a column of '{stream}'; columns: {known}",
    "AMBIGUOUS_COLUMN": "'{name}' may be a column of '{relations}'; write the relation's name and a dot "
    "before it, and give relations of one name different aliases",
    "CARTESIAN": "nothing connects {left} with {right}, so every row of one would be joined with every "
    "row of the other; add a condition on both, or write CROSS JOIN to allow it",
    "TOO_MANY_INPUTS": "a join has at most {most} inputs",
    "TOO_MANY_BRANCHES": "a query is a union of at most {most} filters and joins; where it reads several "
    "unions, every combination of their branches is one",
    "NEVER_CLOSED": "{words} would have to take back rows that it has shown, since nothing says until when "
    "a row of {alias} can match; {advice}",
    "UNKNOWN_FUNCTION": "there is no function '{name}'",
    "TYPE_MISMATCH": "{detail}",
    "NOT_GROUPED": "'{name}' must be in GROUP BY or inside an aggregate",
    "NO_WINDOW": "a continuous aggregate needs a window in GROUP BY: {detail}",
    "SEVERAL_WINDOWS": "a query has one window; register a query for each window",
    "BAD_WINDOW": "{detail}",
    "BAD_INTERVAL": "'{text}' is not an interval of fixed length: {detail}",
    "NO_INPUT_WINDOW": "stream '{stream}' has no window; in an aggregation join every stream has one: write "
    "{stream} [WINDOW 1 HOUR], or {stream} [WINDOW UNTIL NOW] for all rows so far",
    "NO_AGGREGATE": "windows in brackets are for joins that aggregate; add an aggregate such as count(*), or "
    "GROUP BY, or write the windows as conditions on event times",
    "BAD_EVERY": "{detail}",
    "BAD_BACKFILL": "backfill is for filters and joins: {detail}",
    "BAD_EMIT": "emit is 'full' or 'changes', and belongs to aggregation joins: {detail}",
    "BAD_TIME": "the window must be over the stream's event time '{time}', not {found}",
    "UNSUPPORTED": "{detail}",
    "INVALID_QUERY": "Spark refuses the query: {detail}",
    "NO_STREAM": "the query reads no stream; streams and tables: {known}",
    "DUPLICATE_COLUMN": "{detail}",
    "RESERVED_COLUMN": "column '{reserved}' of '{name}' starts with '{prefix}', which weft "
    "uses for its own columns; rename it",
    "UNSAFE_SQL": "{detail}. Queries may do this only with the setting allow_unsafe_sql=True",
    "SESSION_SETTING": "the session has {key}={value}: {detail}. Set it to {wanted}",
    "DUPLICATE_NAME": "a {kind} named '{name}' exists already",
    "BAD_NAME": "'{name}' cannot be the name of a {kind}: {detail}",
    "UNKNOWN_QUERY": "there is no query '{name}'; known: {known}",
    "STREAM_NOT_STREAMING": "'{name}' is not a streaming DataFrame; use add_table for relations",
    "TIME_COLUMN": "the event time of stream '{name}' must be a TIMESTAMP column: {detail}",
    "WATERMARK": "stream '{name}' needs a watermark delay: {detail}",
    # the catalog
    "BAD_CATALOG_URL": "'{url}' cannot be opened as a catalog: {detail}. Give the URL of a database, "
    "such as sqlite:///names.db",
    "CATALOG_UNAVAILABLE": "the catalog {url} cannot be used: {detail}",
    "CLOSED": "this weft is closed; make a new one on the same checkpoint",
    # the project
    "PROJECT": "{detail}",
    # a table of windows
    "BAD_TABLE": "{detail}",
    "TOO_MANY_WINDOWS": "{count:,} windows with different edges are too many to plan at once; "
    "the limit is {most:,}",
    # an aggregate tree
    "BAD_TREE": "{detail}",
    # early and late plans of an aggregation join
    "BAD_QEP": "{detail}",
    # placement over nodes
    "BAD_PLACEMENT": "{detail}",
    # running
    "ALREADY_RUNNING": "this checkpoint is in use by {owner}; stop that process first",
    "UNKNOWN_SETTING": "there is no {name} '{value}'; choose one of {known}",
    "BAD_SETTING": "{name} cannot be {value!r}: {detail}",
    "BROKEN_PLAN": "the pass '{name}' made a plan of stream '{stream}' that is not sound: {detail}. "
    "This is a defect of weft; leave the pass out of the setting `passes` to go on without it",
    "NOTHING_TO_RUN": "no query is registered",
    "NOT_RUNNING": "nothing is running",
    "NO_RESULTS": "the results of '{name}' went to the sink {sink}, which weft cannot read back",
    "SINK_FAILED": "the sink {sink} failed {tries} times on batch {batch}. Nothing of the batch is "
    "committed: it is run again at the next start, or when a quarantined query is resumed. "
    "Cause: {detail}",
    "NOTHING_TO_RESUME": "query '{name}' is {status}; only a quarantined or rejected query can be "
    "resumed",
    "QUERY_FAILED": "{detail}",
    "LANE_LOST": "a lane of stream '{stream}' was killed, most likely because memory ran out: "
    "the files of its open fragments are {megabytes} MB in {lanes} lanes. Nothing of the batch is "
    "committed, and it will be run again at the next start. Start with a new checkpoint "
    "and a larger `lanes`, so that each lane holds less",
    "WORKERS": "the workers of {master} cannot run weft: {detail}. Windows and joins that outgrow the driver "
    "run there. Let PYSPARK_PYTHON name a Python with weft before the session starts (this one is "
    "{python}), or give them weft: `weft package weft.zip`, then --py-files weft.zip (docs/cluster.md). "
    "With the setting kernel='driver' nothing runs there",
    "CLUSTER": "the cluster {master} cannot be reached: {detail}. Start it, or correct spark.master",
    # the checkpoint
    "FOREIGN_CHECKPOINT": "{path} belongs to another project: {detail}. Give this project a "
    "checkpoint of its own",
    "NEWER_FORMAT": "{path} was written by a newer weft (format {found}, this one reads up to "
    "{known}). Update weft; nothing was changed",
    "OLDER_FORMAT": "{path} was written by an older weft (format {found}, this one reads {known}). "
    "Finish it with the weft that wrote it, or start over with a new checkpoint; nothing was changed",
    "DAMAGED": "{path} is damaged: {detail}. Restore it from a copy, or start over with a new "
    "checkpoint; nothing was changed",
    "NEEDS_CATALOG": "{path} is not a local folder, so its catalog cannot be a file inside it: give "
    "catalog=, the URL of a database",
    "BAD_ADDRESS": "{path} cannot be the address of a folder in object storage: {detail}",
    "NO_CONDITIONAL_PUT": "{path} cannot hold a checkpoint, since files there cannot be written only if they "
    "are absent. A checkpoint is a folder that driver and workers share, or in object storage (s3://…). "
    "Results may go elsewhere",
    "UNREACHABLE": "{path} cannot be reached: {detail}. Nothing of the step under way is lost, and none of it "
    "is committed twice: start again when the storage answers",
    "NOT_SHARED": "Spark cannot read the checkpoint at {path}: {detail}. Driver and workers must share it: a "
    "folder that is mounted everywhere, or object storage with Spark's connector for it "
    "(docs/object-storage.md)",
    "CATALOG_DAMAGED": "the catalog {url} cannot be read: {detail}. If it is the file in the "
    "checkpoint, move it away: weft writes a new one from what the checkpoint holds. Otherwise restore "
    "it from a copy",
    "UNKNOWN_STORED": "it holds a value of the kind '{name}', which this weft cannot read; most likely "
    "a newer weft wrote it. Update weft; nothing was changed",
    "CANNOT_WRITE": "{path} cannot be written: {detail}. Nothing of the step under way is committed; "
    "correct this and start again",
    "SETTINGS_CHANGED": "the checkpoint was made with {setting}={found}, this session has "
    "{now}. Results would change in the middle; set it back to {found}",
    "SPARK_CHECKPOINT": "Spark's checkpoint does not fit weft's: {detail}. Running on would "
    "lose or repeat data. Restore Spark's checkpoint, or start over with a new one",
    "LOST_LEASE": "another process took over this checkpoint (epoch {found}, ours was {ours})",
    "STREAM_CHANGED": "stream '{name}' differs from the one in the checkpoint: {detail}",
}


class WeftError(Exception):
    """Base of all errors of weft.

    >>> error = SqlError("UNKNOWN_COLUMN", query="hot", line=2, column=8,
    ...                  name="prize", stream="bids", known="price, ts")
    >>> print(error)
    [UNKNOWN_COLUMN] query 'hot', line 2, column 8: 'prize' is not a column of 'bids'; \
columns: price, ts
    """

    kind: ClassVar[str] = "error"

    def __init__(
        self,
        error_class: str,
        *,
        query: str | None = None,
        line: int | None = None,
        column: int | None = None,
        **parameters: Any,
    ) -> None:
        self.error_class = error_class
        self.query = query
        self.line = line
        self.column = column
        self.parameters = parameters
        super().__init__(error_class)

    @property
    def message(self) -> str:
        """The sentence alone, without class and place."""
        return MESSAGES[self.error_class].format(**self.parameters)

    def __str__(self) -> str:
        place = f"query '{self.query}'" if self.query else ""
        if self.line is not None:
            place += (", " if place else "") + f"line {self.line}, column {self.column}"
        return f"[{self.error_class}] " + (f"{place}: " if place else "") + self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            _rebuild,
            (type(self), self.error_class, self.query, self.line, self.column, self.parameters),
        )

    def in_query(self, name: str) -> WeftError:
        """The same error, naming its query."""
        self.query = self.query or name
        return self


def _rebuild(
    kind: type[WeftError],
    error_class: str,
    query: str | None,
    line: int | None,
    column: int | None,
    parameters: dict[str, Any],
) -> WeftError:
    return kind(error_class, query=query, line=line, column=column, **parameters)


class SqlError(WeftError):
    """A query that cannot be registered."""

    kind = "sql"


class CatalogError(WeftError):
    """A name that is taken, missing or malformed."""

    kind = "catalog"


class ProjectError(WeftError):
    """A project folder that cannot be read."""

    kind = "project"


class TableError(WeftError):
    """A table of windows that cannot be read or planned."""

    kind = "table"


class TreeError(WeftError):
    """Group-bys that no aggregate tree can be planned for."""

    kind = "tree"


class QepError(WeftError):
    """An aggregation join whose early and late plans cannot be priced."""

    kind = "qep"


class PlacementError(WeftError):
    """Nodes on which nothing can be placed."""

    kind = "placement"


class CheckpointError(WeftError):
    """A checkpoint that must not be used as it is; nothing was changed in it."""

    kind = "checkpoint"


class RunError(WeftError):
    """A run that cannot start or go on."""

    kind = "run"
