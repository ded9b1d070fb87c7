"""Aggregates as lift, combine, lower.

`lift(aggregate, …)` gives the partials that a fragment must carry for it, as Spark SQL;
`weft.kernel` combines them over a window and lowers the result to the type Spark gives.
An aggregate with FILTER lifts only the rows that pass; an argument that can raise is
lifted behind the query's predicate, so that it is never evaluated on foreign rows.

| function | partials |
|---|---|
| count(*), count(x), count_if | additive counts |
| sum, avg of integers | exact wide sums (high and low halves), so overflow is judged per window |
| sum, avg of decimals | exact decimal sums, and a count of overflowed fragments |
| sum, avg of floats | float sums, combined without an inverse |
| min, max, bool_and, bool_or | extremes |
| min_by, max_by, first, last | extremes of structs (order, event time, value) |
| variance and deviation | count, mean and sum of squared differences |
| approx_count_distinct, approx_percentile | HLL and KLL sketches (and a count of NaN) |
| count(distinct x) | none: x joins the key of a fragment of its own |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from weft.algebra.partial import Associative, Invertible, Partial
from weft.algebra.scalar import Expression, Value
from weft.algebra.types import (
    BIGINT,
    BINARY,
    DOUBLE,
    FRACTIONAL,
    INTEGRAL,
    SqlType,
    decimal,
    decimal_parameters,
    is_ordered,
)

MOMENTS: Final = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
EXTREMES: Final = frozenset({"min", "max", "bool_and", "bool_or"})
ORDERED_BY: Final = frozenset({"min_by", "max_by", "first", "last"})
HIGHEST_KLL_K: Final = 65535


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a query.

    `function` is canonical (`mean` is `avg`, `every` is `bool_and`, `any_value` is `first`);
    `parameters` are constants: the percentages and accuracy of approx_percentile, the
    relative deviation of approx_count_distinct, ("ignore_nulls",) for first and last.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: SqlType
    filter: Expression | None = None
    parameters: tuple[Value, ...] = ()
    distinct: bool = False


def result_type(function: str, argument: SqlType | None) -> SqlType | None:
    """The type Spark gives the aggregate, None where weft has no partial form for it.

    >>> result_type("sum", "decimal(10,2)"), result_type("avg", "int")
    ('decimal(20,2)', 'double')
    """
    if function in ("count", "approx_count_distinct"):
        return BIGINT
    if argument is None:
        return None
    precision_scale = decimal_parameters(argument)
    if function == "sum":
        if precision_scale:
            return decimal(precision_scale[0] + 10, precision_scale[1])
        return BIGINT if argument in INTEGRAL else DOUBLE if argument in FRACTIONAL else None
    if function == "avg":
        if precision_scale:
            return decimal(precision_scale[0] + 4, precision_scale[1] + 4)
        return DOUBLE if argument in INTEGRAL or argument in FRACTIONAL else None
    if function in MOMENTS:
        numeric = argument in INTEGRAL or argument in FRACTIONAL or precision_scale
        return DOUBLE if numeric else None
    if function in ("bool_and", "bool_or"):
        return argument if argument == "boolean" else None
    if function in EXTREMES or function in ORDERED_BY:
        return argument if is_ordered(argument) else None
    if function == "approx_percentile":
        return argument if _percentile_carrier(argument) else None
    return None


def stored_type(type_: SqlType) -> SqlType:
    """The type that carries a value in state files: timestamps travel as microseconds."""
    return BIGINT if type_ == "timestamp" else type_


def stored(sql: str, type_: SqlType) -> str:
    """Spark SQL that turns a value into its form in state files."""
    return f"unix_micros({sql})" if type_ == "timestamp" else sql


def lift(aggregate: Aggregate, time: str, guard: Expression | None) -> tuple[Partial, ...]:
    """The partials of an aggregate, in the order that its lowering reads them.

    `time` is the event time as Spark SQL in microseconds. `guard` is the query's predicate.
    A distinct aggregate has none: it is computed from a fragment keyed by its argument.
    """
    if aggregate.distinct:
        return ()
    condition = _condition(aggregate, guard)
    function = aggregate.function
    if function == "count" and not aggregate.arguments:
        return (_add(f"count({_when(condition, '1')})"),)
    argument = aggregate.arguments[0]
    value = _when(condition, argument.sql)
    if function == "count":
        arguments = ", ".join(_when(condition, item.sql) for item in aggregate.arguments)
        return (_add(f"count({arguments})"),)
    if function in ("sum", "avg"):
        return (_sum(value, argument.type), _add(f"count({value})"))
    if function in MOMENTS:
        number = value if argument.type == DOUBLE else f"cast({value} AS double)"
        lifted = (
            f"named_struct('n', count({number}), 'mean', avg({number}), "
            f"'m2', var_pop({number}) * count({number}))"
        )
        return (Partial(lifted, "struct<n:bigint,mean:double,m2:double>", Associative("moments")),)
    if function in EXTREMES:
        operation = "min" if function in ("min", "bool_and") else "max"
        carried = stored(value, argument.type)
        type_ = stored_type(argument.type)
        return (_extreme(operation, carried, type_),)
    if function in ORDERED_BY:
        return (_ordered_by(aggregate, time, condition),)
    if function == "approx_count_distinct":
        lifted = distinct_sketch(value, argument.type, str(_log_k(aggregate)))
        return (Partial(lifted, BINARY, Associative("hll")),)
    if function == "approx_percentile":
        seen = (_percentile(aggregate, value), _add(f"count({value})"))
        if argument.type not in FRACTIONAL:
            return seen
        return (*seen, _add(f"count(CASE WHEN isnan({value}) THEN 1 END)"))
    raise ValueError(f"no partial form: {function}")


def distinct_count(arguments: str, condition: str) -> Partial:
    """The number of distinct values as one column of a group. It is counted when the group is complete, and is not combined."""
    return _add(f"count(DISTINCT {arguments}) FILTER (WHERE {condition})")


def distinct_sketch(value: str, type_: SqlType, log_k: str) -> str:
    """Spark SQL for the sketch of the distinct values of an expression."""
    return f"hll_sketch_agg({_hashable(value, type_)}, {log_k})"


def kll_k(accuracy: int) -> int:
    """The KLL parameter whose rank error (single-sided, 99 %) is at most 1/accuracy.

    The published error of the sketch is 2.296 / k^0.9021; k is bounded by the library.
    A sketch of at most k items holds them all and is exact.
    """
    wanted = math.ceil(math.pow(2.296 * accuracy, 1 / 0.9021))
    return min(HIGHEST_KLL_K, max(200, wanted))


def _condition(aggregate: Aggregate, guard: Expression | None) -> str | None:
    raises = any(item.can_raise for item in aggregate.arguments)
    raises = raises or (aggregate.filter is not None and aggregate.filter.can_raise)
    parts = [guard] if guard is not None and raises else []
    if aggregate.filter is not None:
        parts.append(aggregate.filter)
    return " AND ".join(f"({part.sql})" for part in parts) or None


def _when(condition: str | None, sql: str) -> str:
    return sql if condition is None else f"CASE WHEN {condition} THEN {sql} END"


def _add(lifted: str) -> Partial:
    return Partial(lifted, BIGINT, Invertible("add"))


def _sum(value: str, type_: SqlType) -> Partial:
    parameters = decimal_parameters(type_)
    if parameters:
        summed = decimal(parameters[0] + 10, parameters[1])
        lifted = (
            f"named_struct('sum', coalesce(try_sum({value}), cast(0 AS {summed})), 'overflow', "
            f"if(try_sum({value}) IS NULL AND count({value}) > 0, 1L, 0L))"
        )
        return Partial(lifted, f"struct<sum:{summed},overflow:bigint>", Invertible("add_decimal"))
    if type_ == BIGINT:
        lifted = (
            f"named_struct('high', coalesce(sum(shiftright({value}, 32)), 0L), "
            f"'low', coalesce(sum(({value}) & 4294967295L), 0L))"
        )
        return Partial(lifted, "struct<high:bigint,low:bigint>", Invertible("add_wide"))
    if type_ in INTEGRAL:
        return _add(f"coalesce(sum(cast({value} AS bigint)), 0L)")
    return Partial(f"sum(cast({value} AS double))", DOUBLE, Associative("add_float"))


def _extreme(operation: str, value: str, type_: SqlType) -> Partial:
    name = "min" if operation == "min" else "max"
    combine = Associative("min") if name == "min" else Associative("max")
    return Partial(f"{name}({value})", type_, combine)


def _ordered_by(aggregate: Aggregate, time: str, condition: str | None) -> Partial:
    """first and last order by (event time, value), min_by and max_by by (order, time, value).

    Every field of a struct may be NULL; a struct that is NULL itself is not a candidate.
    """
    value = aggregate.arguments[0]
    carried = f"{stored(value.sql, value.type)} AS value"
    value_type = stored_type(value.type)
    conditions = [f"({condition})"] if condition else []
    if aggregate.function in ("first", "last"):
        operation = "min" if aggregate.function == "first" else "max"
        if "ignore_nulls" in aggregate.parameters:
            conditions.append(f"({value.sql}) IS NOT NULL")
        struct, type_ = f"struct({time} AS at, {carried})", f"struct<at:bigint,value:{value_type}>"
    else:
        order = aggregate.arguments[1]
        operation = aggregate.function[:3]
        conditions.append(f"({order.sql}) IS NOT NULL")
        struct = f"struct({stored(order.sql, order.type)} AS `by`, {time} AS at, {carried})"
        type_ = f"struct<by:{stored_type(order.type)},at:bigint,value:{value_type}>"
    return _extreme(operation, _when(" AND ".join(conditions) or None, struct), type_)


def _hashable(value: str, type_: SqlType) -> str:
    """A value as the sketch should hash it: it ignores empty strings, and takes 0.0 and -0.0
    for different values."""
    if type_ in ("int", "bigint"):
        return value
    if type_ == "string":
        return f"concat('_', {value})"
    if type_ == "binary":
        return f"concat(X'00', {value})"
    if type_ in FRACTIONAL:
        return f"cast(cast({value} AS double) + 0.0D AS string)"
    if type_ in INTEGRAL or type_ == "boolean":
        return f"cast({value} AS int)"
    if type_ == "timestamp":
        return f"unix_micros({value})"
    return f"cast({value} AS string)"


def _log_k(aggregate: Aggregate) -> int:
    """One step finer than Spark's own HLL++ for the same relative deviation."""
    deviation = aggregate.parameters[0] if aggregate.parameters else 0.05
    assert isinstance(deviation, (int, float))
    return max(4, min(21, math.ceil(2 * math.log2(1.106 / deviation)) + 1))


def _percentile_carrier(type_: SqlType) -> str | None:
    if type_ in INTEGRAL or type_ in ("date", "timestamp"):
        return BIGINT
    if type_ in FRACTIONAL:
        return DOUBLE
    parameters = decimal_parameters(type_)
    return BIGINT if parameters and parameters[0] <= 18 else None


def _percentile(aggregate: Aggregate, value: str) -> Partial:
    type_ = aggregate.arguments[0].type
    carrier = _percentile_carrier(type_)
    accuracy = aggregate.parameters[1]
    assert isinstance(accuracy, int)
    parameters = decimal_parameters(type_)
    if type_ == "date":
        value = f"cast(unix_date({value}) AS bigint)"
    elif type_ == "timestamp":
        value = f"unix_micros({value})"
    elif parameters:
        value = f"cast({value} * {10 ** parameters[1]}BD AS bigint)"
    else:
        value = f"cast({value} AS {carrier})"
    name = "kll_bigint" if carrier == BIGINT else "kll_double"
    lifted = f"kll_sketch_agg_{carrier}({value}, {kll_k(accuracy)})"
    if name == "kll_bigint":
        return Partial(lifted, BINARY, Associative("kll_bigint"))
    return Partial(lifted, BINARY, Associative("kll_double"))
