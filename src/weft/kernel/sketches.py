"""Mergeable sketches of Apache DataSketches, which Spark's own sketch functions write.

A sketch in a scan is either the bytes of a state file or a sketch object that a merge made;
merges never change their arguments.
"""

from __future__ import annotations

from typing import Any

import datasketches as ds

_LONGS = ds.PyLongsSerDe()


def _hll(value: Any) -> Any:
    return (
        ds.hll_sketch.deserialize(bytes(value)) if isinstance(value, (bytes, memoryview)) else value
    )


def _kll_bigint(value: Any) -> Any:
    if isinstance(value, (bytes, memoryview)):
        return ds.kll_items_sketch.deserialize(bytes(value), _LONGS)
    return value


def _kll_double(value: Any) -> Any:
    if isinstance(value, (bytes, memoryview)):
        return ds.kll_doubles_sketch.deserialize(bytes(value))
    return value


def merge_hll(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    first, second = _hll(left), _hll(right)
    union = ds.hll_union(max(first.lg_config_k, second.lg_config_k))
    union.update(first)
    union.update(second)
    return union.get_result()


def merge_kll_bigint(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return _merged(ds.kll_items_sketch, _kll_bigint(left), _kll_bigint(right))


def merge_kll_double(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    return _merged(ds.kll_doubles_sketch, _kll_double(left), _kll_double(right))


def _merged(kind: Any, left: Any, right: Any) -> Any:
    merged = kind(max(left.k, right.k))
    merged.merge(left)
    merged.merge(right)
    return merged


def merged_runs(name: str, values: Any, low: Any, high: Any) -> list[bytes | None]:
    """The sketches of runs that follow each other, as bytes: one union for each, in one pass; a run
    of one sketch is left as it is."""
    found: list[bytes | None] = []
    for first, beyond in zip(low.tolist(), high.tolist(), strict=True):
        run = [value for value in values[first:beyond] if value is not None]
        if len(run) < 2:
            found.append(bytes(run[0]) if run else None)
        elif name == "hll":
            sketches = [_hll(value) for value in run]
            union = ds.hll_union(max(sketch.lg_config_k for sketch in sketches))
            for sketch in sketches:
                union.update(sketch)
            found.append(hll_bytes(union.get_result()))
        else:
            sketches = [(_kll_bigint if name == "kll_bigint" else _kll_double)(v) for v in run]
            whole = type(sketches[0])(max(sketch.k for sketch in sketches))
            for sketch in sketches:
                whole.merge(sketch)
            found.append(kll_bytes(whole))
    return found


def hll_estimate(value: Any) -> int:
    """The rounded estimate, 0 for no sketch."""
    return 0 if value is None else round(_hll(value).get_estimate())


def hll_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return bytes(_hll(value).serialize_updatable())


def kll_bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, ds.kll_items_sketch):
        return bytes(value.serialize(_LONGS))
    return bytes(value.serialize())


def kll_quantiles(value: Any, percentages: list[float], *, double: bool) -> list[Any] | None:
    """The values at the given ranks, None for an empty sketch."""
    sketch = (_kll_double if double else _kll_bigint)(value) if value is not None else None
    if sketch is None or sketch.is_empty():
        return None
    return [sketch.get_quantile(percentage, True) for percentage in percentages]
