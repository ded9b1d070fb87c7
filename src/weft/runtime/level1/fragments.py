"""Level 1 in native Spark: rows of a micro-batch to fragments (sub-aggregation).

A first-level node is one `groupBy(fragment end, signature, keys)` over rows (`signatures` makes the
signature columns). Every other node of the aggregate tree is one over the fragments of its parent.
Nothing here touches a row in Python. The tasks write the fragments as state files. A `bucket` column, a
hash of the group keys, lets lanes share the files of a node.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame

from weft.algebra.aggregate import distinct_sketch, stored, stored_type
from weft.algebra.nodes.implied import carried, implied
from weft.algebra.partial import COUNT_STAR, Partial
from weft.algebra.plan import Fragments, Node
from weft.algebra.query import StreamSchema, quote
from weft.kernel.fragments.state import (
    BUCKET,
    FRAGMENT_END,
    ROW_COUNT,
    key_column,
    signature_column,
)
from weft.runtime.frames import over
from weft.runtime.level1.combining import combine_sql
from weft.runtime.level1.signatures import (
    Places,
    own_name,
    selecting,
    signature_name,
    useful,
    with_signature_of,
)

BUCKETS = 64
MAX_EVENT, LATE_ROWS = "max_event", "late_rows"


def fragment_end_sql(fragments: Fragments, time: str) -> str:
    """The end of the fragment that a time is in, as Spark SQL over microseconds.

    >>> fragment_end_sql(Fragments(pane=10, offset=3), "t")
    't + 10L - pmod(t - 3L, 10L)'
    """
    nexts = [_next_edge(time, edge.slide, edge.residue) for edge in fragments.edge_classes]
    return nexts[0] if len(nexts) == 1 else f"least({', '.join(nexts)})"


def _next_edge(time: str, slide: int, residue: int) -> str:
    shifted = f"{time} - {residue}L" if residue else time
    return f"{time} + {slide}L - pmod({shifted}, {slide}L)"


def fragments(
    rows: DataFrame, node: Node, stream: StreamSchema, counting_before: int | None = None
) -> DataFrame:
    """The fragments of a node for the rows of a micro-batch.

    With `counting_before`, a watermark, the node also counts the batch: each fragment has its
    latest event time and its number of late rows. Rows without event time form a fragment whose
    end is NULL. This is only for nodes that see every row and in which nothing can raise.
    """
    time = stream.time_micros
    wanted = useful(node)
    conditions = [] if wanted is None else [f"({wanted})"]
    if counting_before is None:
        conditions.append(f"{quote(stream.time)} IS NOT NULL")
    keys = {_key_name(i): stored(key.sql, key.type) for i, key in enumerate(node.keys)}
    lifted = {ROW_COUNT: COUNT_STAR.lift} | {p.name: p.lift for p in carried(node)}
    if counting_before is not None:
        late = f"count_if({is_late(stream, counting_before)})"
        lifted |= {MAX_EVENT: f"max({time})", LATE_ROWS: late}

    places = Places.of(node)

    def text(name: str) -> str:
        wanted_rows = name
        if conditions:
            wanted_rows = f"(SELECT * FROM {name} WHERE {' AND '.join(conditions)})"
        source = selecting(
            places.with_rows(wanted_rows), {_END: fragment_end_sql(node.fragments, time), **keys}
        )
        fragments = _aggregated(source, node, places.on_rows, lifted)
        names = [FRAGMENT_END, *keys_of(node), *lifted]
        signature = [
            f"{signature_name(i)} AS {signature_column(i)}" for i in range(node.signature.columns)
        ]
        return _bucketed(
            f"SELECT {', '.join([*names, *signature])} FROM {places.with_fragments(fragments)}",
            node,
        )

    return over(text, rows)


def is_late(stream: StreamSchema, before: int) -> str:
    """Whether a row's event time lies before a watermark, as Spark SQL.

    A watermark changes from step to step. A literal would be part of the generated code, and Spark
    would compile that code again for every micro-batch. So the watermark is an element of a constant
    array, which Spark passes beside the code. The index of the element depends on the row; with a
    constant index, Spark would turn the element into a literal again.
    """
    index = f"CAST({quote(stream.time)} IS NULL AS int)"
    return (
        f"{stream.time_micros} < get(from_json('[{before}, {before}]', 'array<bigint>'), {index})"
    )


def coarser(above: DataFrame, parent: Node, node: Node) -> DataFrame:
    """The fragments of a node from those of its parent in the aggregate tree."""
    parent_columns = {key.sql: key_column(i) for i, key in enumerate(parent.keys)}
    keys = {_key_name(i): parent_columns[key.sql] for i, key in enumerate(node.keys)}
    end = fragment_end_sql(node.fragments, f"({FRAGMENT_END} - 1L)")
    combined = {ROW_COUNT: f"sum({ROW_COUNT})"}
    combined |= {p.name: _from_parent(p, parent) for p in carried(node)}

    def text(name: str) -> str:
        timed = f"(SELECT * FROM {name} WHERE {FRAGMENT_END} IS NOT NULL)"
        source = selecting(with_signature_of(timed, parent, node), {_END: end, **keys})
        columns = range(node.signature.columns)
        return _bucketed(f"SELECT * FROM {_aggregated(source, node, columns, combined)}", node)

    return over(text, above)


def _from_parent(partial: Partial, parent: Node) -> str:
    """A partial of a node over the fragments of its parent. Some partials the parent does not hold:
    its keys imply them."""
    sketch = implied(partial, parent.keys)
    if sketch is None:
        return combine_sql(partial)
    type_ = stored_type(parent.keys[sketch.key].type)
    return distinct_sketch(key_column(sketch.key), type_, str(sketch.log_k))


_END = own_name("end")


def _key_name(key_index: int) -> str:
    """The name of a key column before it is grouped by."""
    return own_name(key_column(key_index))


def keys_of(node: Node) -> list[str]:
    return [key_column(i) for i in range(len(node.keys))]


def _aggregated(
    source: str, node: Node, signature: Iterable[int], aggregates: dict[str, str]
) -> str:
    """One fragment per end, signature and keys of a relation, where these columns have the names of
    `own_name`."""
    grouped = {FRAGMENT_END: _END}
    grouped |= {signature_column(i): signature_name(i) for i in signature}
    grouped |= {key_column(i): _key_name(i) for i in range(len(node.keys))}
    columns = ", ".join(f"{sql} AS {name}" for name, sql in {**grouped, **aggregates}.items())
    return f"(SELECT {columns} FROM {source} GROUP BY {', '.join(grouped.values())})"


def _bucketed(fragments: str, node: Node) -> str:
    """The fragments with the bucket of their group."""
    keys = ", ".join(key_column(i) for i in range(node.group_keys))
    bucket = f"pmod(hash({keys}), {BUCKETS})" if keys else "0"
    return f"SELECT *, {bucket} AS {BUCKET} FROM ({fragments})"
