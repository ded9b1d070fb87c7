"""The rows that a stream publishes for join queries.

One native pass selects the rows that some query may want, by a condition that holds wherever any
query's does (`algebra/predicates/spark_sql.widened`), and projects them to the columns in use. What only
Spark can decide about a row is computed here, too, as a column of truth values. The kernel decides the
rest. Late rows are published as well: a query without a join wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.algebra.joinagg.matches import is_matches
from weft.algebra.network.bits import Bit, bits_of
from weft.algebra.network.lookup import split_prefix
from weft.algebra.network.query import BEFORE
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.spark_sql import spark_sql, widened
from weft.algebra.query import StreamSchema, quote
from weft.runtime.checkpoint.commits import Edition

NETWORK = "network"
"""The name of the publication for join queries."""

_MOST_EXACT = 16
"""So many selections of matches are tested as they are; in these only Spark can say which rows are on time, so widened ones would take all rows."""
TIME = "#time"
"""The column of published rows that holds the event time in microseconds."""


@dataclass(frozen=True)
class _Pass:
    """What one native pass over a micro-batch does."""

    condition: str
    columns: tuple[str, ...]
    bits: tuple[Bit, ...]
    reads_watermark: bool = False
    """Whether a condition reads the watermark before the step."""


@dataclass
class NetworkPublication:
    """Publishes the rows of one stream that join queries want."""

    source: StreamSchema
    queries: Callable[[], Sequence[NetworkQuery]]
    """The registered join queries, the same object as long as nothing changes."""
    read: Callable[[], set[str]]
    """The columns with which the stream is read."""
    editions: Callable[[Callable[[NetworkQuery], bool]], Edition]
    """The edition of all registered queries for which a condition holds."""
    name: str = NETWORK
    time_column: str = TIME
    _pass: tuple[object, Edition, _Pass] | None = field(default=None, repr=False)

    @property
    def wanted(self) -> bool:
        return any(self._reads(query) for query in self.queries())

    def _reads(self, query: NetworkQuery) -> bool:
        return self.source.name in query.relations

    def edition(self) -> Edition:
        """All registered queries, apart from those that need columns which are not read yet."""
        read = self.read()
        return self.editions(lambda query: query.columns_of(self.source.name) <= read)

    def rows(self, rows: DataFrame, watermark_before: int, edition: Edition) -> DataFrame:
        native = self._native(edition)
        if native.reads_watermark:
            rows = rows.withColumn(BEFORE, F.lit(watermark_before).cast("bigint"))
        kept = rows if native.condition == "true" else rows.where(F.expr(native.condition))
        return kept.select(
            *(F.col(quote(name)) for name in native.columns),
            F.expr(self.source.time_micros).alias(TIME),
            # Rows without a value are NULL in files that are written anew, so no field may be required.
            *(F.expr(bit.sql).cast(bit.type).alias(bit.name) for bit in native.bits),
        )

    def _native(self, edition: Edition) -> _Pass:
        queries = self.queries()
        if self._pass is None or self._pass[0] is not queries or self._pass[1] != edition:
            self._pass = (queries, edition, self._made(queries, edition))
        return self._pass[2]

    def _made(self, queries: Sequence[NetworkQuery], edition: Edition) -> _Pass:
        stream = self.source.name
        served = [query for query in queries if self._reads(query) and serves(edition, query.id)]
        sets: dict[PredicateSet, None] = {}
        exact: dict[str, None] = {}
        columns: set[str] = set()
        bits: dict[str, Bit] = {}
        for query in served:
            columns |= query.columns_of(stream)
            bits |= {bit.name: bit for bit in bits_of(query, stream)}
            for predicates, slot in _occurrences(query, stream):
                selection = _before_lookups(predicates.within({slot})).moved({slot: 0})
                if is_matches(query.id) and len(exact) < _MOST_EXACT:
                    exact[f"({spark_sql(selection)})"] = None
                else:
                    sets[selection] = None
        order = [column.name for column in self.source.fields]
        conditions = [*([widened(tuple(sets))] if sets else []), *exact]
        condition = "true" if "true" in conditions else " OR ".join(conditions) or "false"
        by_watermark = any(is_matches(query.id) for query in served)
        in_order = tuple(sorted(columns, key=order.index))
        return _Pass(condition, in_order, tuple(bits.values()), by_watermark)


def _occurrences(query: NetworkQuery, relation: str) -> Iterator[tuple[PredicateSet, int]]:
    """Where a query reads a relation: the conditions of a branch or of its partner, and the slot there."""
    for branch in query.branches:
        for side in (branch,) if branch.partner is None else (branch, branch.partner):
            for slot, entry in enumerate(side.inputs):
                if entry.relation == relation:
                    yield side.predicates, slot


def _before_lookups(predicates: PredicateSet) -> PredicateSet:
    """The conditions that read no column of a table."""
    kept = (
        predicate
        for predicate in predicates.predicates
        if not any(split_prefix(name)[0] for name in predicate.names)
    )
    return PredicateSet(tuple(kept))


def serves(edition: Edition, query_id: str) -> bool:
    """Whether a publication is for a query, too. The matches of aggregation joins come and go without a registration: they are named."""
    if is_matches(query_id):
        return query_id in edition.names
    change = int(query_id.rsplit("@", 1)[1])
    return change <= edition.last and query_id not in edition.without
