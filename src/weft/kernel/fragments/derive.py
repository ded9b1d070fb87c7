"""Fragments of a node from those of its parent, on the driver: an inner node of the aggregate tree.

What `runtime.level1.fragments.coarser` does in Spark, for small parents: a job costs more than the
work. The result is a table as Spark would have written it. Time: O(n log n) per node for the n
fragments of its parent; columns are encoded once for all children.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.algebra.nodes.implied import carried
from weft.algebra.partial import SKETCHES, Partial
from weft.algebra.plan import Node
from weft.algebra.signature import WORD_BITS
from weft.kernel.columns import partial_columns
from weft.kernel.columns.arrow import arrow_type, factorized, single
from weft.kernel.columns.codes import to_arrow
from weft.kernel.columns.combine import over_runs, ranges_of_runs
from weft.kernel.columns.keys import hashable
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.columns.sorting import ordered
from weft.kernel.fragments.buckets import buckets, can_hash
from weft.kernel.fragments.classify import classes
from weft.kernel.fragments.coalesce import coarse_ends
from weft.kernel.fragments.state import (
    BUCKET,
    FRAGMENT_END,
    ROW_COUNT,
    key_column,
    partial_column,
    signature_column,
)

_WIDEST = 1 << 62
MOST_SKETCHED = 100_000
"""Fragments whose sketches are merged here; more go to Spark."""


class Parent:
    """The fragments of a node, ready for its children."""

    def __init__(self, node: Node, tables: Sequence[pa.Table]) -> None:
        self.node = node
        table = pa.concat_tables(tables, promote_options="permissive")
        if table.column(FRAGMENT_END).null_count:
            table = table.filter(table.column(FRAGMENT_END).is_valid())
        table = table.combine_chunks()
        self.rows = table.num_rows
        self._arrays = {name: single(table.column(name)) for name in table.column_names}
        self._ends, self._end_places = factorized(self._arrays[FRAGMENT_END].to_numpy())
        self._codes: dict[str, tuple[Array, int]] = {}
        self._stored: dict[str, Stored] = {}

    def can_derive(self, node: Node) -> bool:
        """Whether a child can be computed here."""
        kinds = {partial.combine.name for partial in carried(node)}
        if "add_decimal" in kinds or (kinds & SKETCHES and self.rows > MOST_SKETCHED):
            return False
        places = self._places(node)
        return can_hash([self._arrays[places[key.sql]].type for key in node.keys])

    def derived(self, node: Node, bucket_count: int) -> pa.Table:
        """The fragments of a child."""
        places = self._places(node)
        names = [places[key.sql] for key in node.keys]
        ends, coarse_codes = factorized(coarse_ends(self._ends, node.fragments))
        end_codes = coarse_codes[self._end_places]
        signature = self._signature(node)
        grouping = [(end_codes, max(len(ends), 1)), *(_coded(column) for column in signature)]
        grouping += [self._code(name) for name in names]
        order, low = _grouped(grouping, self.rows)
        high = np.append(low[1:], self.rows)
        first = order[low]
        first_rows = pa.array(first)
        keys = [self._arrays[name].take(first_rows) for name in names]
        table: dict[str, object] = {FRAGMENT_END: ends[end_codes[first]]}
        table |= {signature_column(i): column[first] for i, column in enumerate(signature)}
        table |= {key_column(i): column for i, column in enumerate(keys)}
        counts = self._arrays[ROW_COUNT].to_numpy()[order]
        table[ROW_COUNT] = np.add.reduceat(counts, low) if self.rows else counts
        partials = carried(node)
        columns = {p.name: partial_columns.take(self._column(p), order) for p in partials}
        for partial in partials:
            table[partial.name] = file_column(partial, over_runs(partial, columns, low, high))
        table[BUCKET] = buckets(keys[: node.group_keys], len(first), bucket_count)
        return pa.table(table)

    def _places(self, node: Node) -> dict[str, str]:
        return {key.sql: key_column(i) for i, key in enumerate(self.node.keys)}

    def _code(self, name: str) -> tuple[Array, int]:
        if name not in self._codes:
            encoded = hashable(self._arrays[name]).dictionary_encode(null_encoding="encode")
            codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            self._codes[name] = (codes, max(len(encoded.dictionary), 1))
        return self._codes[name]

    def _column(self, partial: Partial) -> Stored:
        if partial.name not in self._stored:
            self._stored[partial.name] = partial_column(partial, self.node, self._arrays)
        return self._stored[partial.name]

    def _signature(self, node: Node) -> list[Array]:
        """The signature columns of a child: its cuts are the parent's, or are found in a key; its
        bits are some of the parent's."""
        parent_signature = self.node.signature
        cuts = {cut.attribute: signature_column(i) for i, cut in enumerate(parent_signature.cuts)}
        keys = {key.sql: key_column(i) for i, key in enumerate(self.node.keys)}
        columns: list[Array] = []
        for cut in node.signature.cuts:
            if cut.attribute in cuts:
                columns.append(self._arrays[cuts[cut.attribute]].to_numpy())
            else:
                encoded = self._arrays[keys[cut.attribute]].dictionary_encode(
                    null_encoding="encode"
                )
                places = encoded.indices.to_numpy(zero_copy_only=False)
                columns.append(classes(encoded.dictionary, cut)[places].astype(np.int32))
        for first in range(0, len(node.signature.bits), WORD_BITS):
            word = np.zeros(self.rows, np.int64)
            for bit, sql in enumerate(node.signature.bits[first : first + WORD_BITS]):
                parent_bit = parent_signature.bit_of(sql)
                assert parent_bit is not None, "a child's bits are its parent's"
                above, within = divmod(parent_bit, WORD_BITS)
                column = self._arrays[
                    signature_column(len(parent_signature.cuts) + above)
                ].to_numpy()
                word |= ((column >> within) & 1) << bit
            columns.append(word)
        return columns


def file_column(partial: Partial, stored: Stored) -> pa.Array:
    """A partial's arrays as a column of a state file."""
    name = partial.combine.name
    if name == "add_wide":
        return pa.StructArray.from_arrays([pa.array(half) for half in stored], ["high", "low"])
    if name == "moments":
        count = pa.array(stored[0].astype(np.int64))
        return pa.StructArray.from_arrays(
            [count, pa.array(stored[1]), pa.array(stored[2])], ["n", "mean", "m2"]
        )
    if name in SKETCHES:
        return stored[0].to_arrow()
    if isinstance(stored[0], np.ndarray):
        return pa.array(stored[0], arrow_type(partial.type))
    return to_arrow(stored[0])


def _coded(values: Array) -> tuple[Array, int]:
    distinct, codes = factorized(values)
    return codes, max(len(distinct), 1)


def _grouped(columns: Sequence[tuple[Array, int]], rows: int) -> tuple[Array, Array]:
    """Rows in the order of their groups, and where each group begins."""
    combined, width = np.zeros(rows, np.int64), 1
    for codes, size in columns:
        if width * size >= _WIDEST:
            combined, width = _coded(combined)
        combined, width = combined * size + codes, width * size
    order, sorted_groups = ordered(combined)
    low, _ = ranges_of_runs(sorted_groups)
    return order, low
