"""The kinds of sketches of Apache DataSketches that Spark's own sketch functions write.

Merging a sketch of distinct values with itself changes nothing (`idempotent`); quantile sketches
would count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import datasketches as ds


@dataclass(frozen=True)
class Kind:
    """How sketches of a kind are read, merged and written; merging changes no argument."""

    read: Callable[[bytes], Any]
    merge: Callable[[Sequence[Any]], Any]
    write: Callable[[Any], bytes]
    idempotent: bool


def _merged_hll(sketches: Sequence[Any]) -> Any:
    union = ds.hll_union(max(sketch.lg_config_k for sketch in sketches))
    for sketch in sketches:
        union.update(sketch)
    return union.get_result(ds.tgt_hll_type.HLL_8)


def _merged_kll(sketches: Sequence[Any]) -> Any:
    whole = type(sketches[0])(max(sketch.k for sketch in sketches))
    for sketch in sketches:
        whole.merge(sketch)
    return whole


KINDS: Final = {
    "hll": Kind(
        ds.hll_sketch.deserialize,
        _merged_hll,
        lambda sketch: bytes(sketch.serialize_updatable()),
        idempotent=True,
    ),
    "kll_bigint": Kind(
        lambda data: ds.kll_items_sketch.deserialize(data, ds.PyLongsSerDe()),
        _merged_kll,
        lambda sketch: bytes(sketch.serialize(ds.PyLongsSerDe())),
        idempotent=False,
    ),
    "kll_double": Kind(
        ds.kll_doubles_sketch.deserialize,
        _merged_kll,
        lambda sketch: bytes(sketch.serialize()),
        idempotent=False,
    ),
}
