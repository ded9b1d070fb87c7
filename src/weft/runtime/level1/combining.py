"""Spark combines partials: of fragments into coarser ones, and of many state files into one."""

from __future__ import annotations

from weft.algebra.partial import Partial


def combine_sql(partial: Partial) -> str:
    """The combine operation of a partial as a Spark aggregate over its own column."""
    column, operation = partial.name, partial.combine.name
    if operation == "add":
        return f"sum({column})"
    if operation == "add_wide":
        return f"named_struct('high', sum({column}.high), 'low', sum({column}.low))"
    if operation == "add_decimal":
        type_ = partial.type[len("struct<sum:") : partial.type.rindex(",overflow")]
        total = f"try_sum({column}.sum)"
        return (
            f"named_struct('sum', cast(coalesce({total}, 0) AS {type_}), 'overflow', "
            f"sum({column}.overflow) + if(cast({total} AS {type_}) IS NULL, 1L, 0L))"
        )
    if operation == "add_float":
        return f"sum({column})"
    if operation in ("min", "max"):
        return f"{operation}({column})"
    if operation == "hll":
        return f"hll_union_agg({column})"
    if operation in ("kll_bigint", "kll_double"):
        return f"kll_merge_agg_{operation[4:]}({column})"
    return _combine_moments_sql(column)


def _combine_moments_sql(column: str) -> str:
    """Chan's formula as a fold; cheap, since few partials share a fragment."""
    n = "(a.n + b.n)"
    merged = (
        f"IF(b.n = 0, a, IF(a.n = 0, b, named_struct('n', {n}, "
        f"'mean', a.mean + (b.mean - a.mean) * b.n / {n}, "
        f"'m2', a.m2 + b.m2 + (b.mean - a.mean) * (b.mean - a.mean) * a.n * b.n / {n})))"
    )
    zero = "named_struct('n', 0L, 'mean', cast(NULL AS double), 'm2', cast(NULL AS double))"
    return f"aggregate(collect_list({column}), {zero}, (a, b) -> {merged})"
