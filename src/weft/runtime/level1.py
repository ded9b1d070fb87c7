"""Level 1 in native Spark: rows of a micro-batch to fragments (sub-aggregation).

One `groupBy(fragment end, signature, keys)` per first-level node (`signatures` makes the signature
columns), and one over the fragments of its parent for every other node of the aggregate tree. Nothing
here touches a row in Python. The tasks write the fragments as state files; a `bucket` column, a hash of the
group keys, lets lanes share the files of a node.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.algebra.aggregate import stored
from weft.algebra.partial import COUNT_STAR
from weft.algebra.plan import Fragments, Node
from weft.algebra.query import StreamSchema, quote
from weft.kernel.state import BUCKET, FRAGMENT_END, ROW_COUNT, key_column, signature_column
from weft.runtime.combining import combine_sql
from weft.runtime.signatures import inherited, useful, with_signature, with_signature_of

BUCKETS = 64
MAX_EVENT, LATE_ROWS = "max_event", "late_rows"


def fragment_end_sql(fragments: Fragments, time: str) -> str:
    """The end of the fragment that a time is in, as Spark SQL over microseconds.

    >>> fragment_end_sql(Fragments(pane=10, offset=3), "t")
    't + 10L - pmod(t - 3L, 10L)'
    """
    if fragments.pane:
        return _next_edge(time, fragments.pane, fragments.offset)
    nexts = [_next_edge(time, edge.slide, edge.residue) for edge in fragments.classes]
    return nexts[0] if len(nexts) == 1 else f"least({', '.join(nexts)})"


def _next_edge(time: str, slide: int, residue: int) -> str:
    shifted = f"{time} - {residue}L" if residue else time
    return f"{time} + {slide}L - pmod({shifted}, {slide}L)"


def fragments(
    rows: DataFrame, node: Node, stream: StreamSchema, counting_before: int | None = None
) -> DataFrame:
    """The fragments of a node for the rows of a micro-batch.

    With `counting_before`, a watermark, the node counts the batch on the way: each fragment has
    its latest event time and its late rows, and rows without event time are a fragment
    whose end is NULL. Only for nodes that see every row and in which nothing can raise.
    """
    time = stream.time_micros
    if counting_before is None:
        rows = rows.where(F.expr(f"{quote(stream.time)} IS NOT NULL"))
    wanted = useful(node)
    if wanted is not None:
        rows = rows.where(F.expr(wanted))
    rows = with_signature(rows, node)
    grouping: list[Column] = [F.expr(fragment_end_sql(node.fragments, time)).alias(FRAGMENT_END)]
    grouping += [F.col(signature_column(i)) for i in range(node.signature.columns)]
    grouping += [
        F.expr(stored(key.sql, key.type)).alias(key_column(i)) for i, key in enumerate(node.keys)
    ]
    lifted = [F.expr(COUNT_STAR.lift).alias(ROW_COUNT)]
    lifted += [F.expr(partial.lift).alias(partial.name) for partial in node.partials]
    if counting_before is not None:
        late = f"count_if({time} < {counting_before}L)"
        lifted += [F.expr(f"max({time})").alias(MAX_EVENT), F.expr(late).alias(LATE_ROWS)]
    return _with_bucket(rows.groupBy(*grouping).agg(*lifted), node)


def coarser(above: DataFrame, parent: Node, node: Node) -> DataFrame:
    """The fragments of a node from those of its parent in the aggregate tree."""
    last = f"({FRAGMENT_END} - 1L)"
    end = fragment_end_sql(node.fragments, last)
    places = {key.sql: key_column(i) for i, key in enumerate(parent.keys)}
    above = with_signature_of(above.where(f"{FRAGMENT_END} IS NOT NULL"), parent, node)
    grouping = [F.expr(end).alias(FRAGMENT_END)]
    grouping += [
        F.col(inherited(i)).alias(signature_column(i)) for i in range(node.signature.columns)
    ]
    grouping += [F.col(places[key.sql]).alias(key_column(i)) for i, key in enumerate(node.keys)]
    combined = [F.sum(ROW_COUNT).alias(ROW_COUNT)]
    combined += [F.expr(combine_sql(p)).alias(p.name) for p in node.partials]
    return _with_bucket(above.groupBy(*grouping).agg(*combined), node)


def _with_bucket(frame: DataFrame, node: Node) -> DataFrame:
    keys = [F.col(key_column(i)) for i in range(node.group_keys)]
    bucket = F.pmod(F.hash(*keys), F.lit(BUCKETS)) if keys else F.lit(0)
    return frame.withColumn(BUCKET, bucket.cast("int"))
