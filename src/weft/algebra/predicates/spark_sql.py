"""Predicate sets as Spark SQL, for the selections that Spark evaluates.

`spark_sql` is exact: it is true for the rows that pass, and false or NULL for others. Columns are
compared with plain constants, so that Spark can push the comparison into a source. Sums are computed as
bigints where no value of the columns' types can overflow them, else as decimals of 38 digits, which
`linear` has made sure are wide enough.

`join_sql` is the same for predicates over two relations whose columns have different names. An equality
keeps each relation on its own side, where Spark finds the keys of a join.

`widened` is one condition for many sets, cheap for thousands of them: it is true wherever one of the
sets is, and elsewhere as seldom as is simple. Of every set it takes one OR predicate over plain columns,
the most selective by its look (points before ranges), and unites all values by column. Values that many
sets share, such as a country, say little: together they soon are all that there are. Sets that restrict the
same other columns are tested by the united values of these, too. Spark looks up a long `IN` in a hash set.
Many ranges of exact numbers become a list of cells; others are united until they are few. So the cost per
row does not grow with the number of sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from weft.algebra.condition import Values, constant_sql, is_point, union
from weft.algebra.condition.values import NO_POINT, Interval, coarser, listed, point, single
from weft.algebra.predicates.literal import (
    LiteralPredicate,
    date_text,
    holds,
    order_operator,
    values_text,
)
from weft.algebra.predicates.predicate_set import OrPredicate, PredicateSet
from weft.algebra.predicates.slots import names_in, plain_name, renamed, slot_of
from weft.algebra.predicates.subject import (
    COMPARE,
    DATE,
    Linear,
    is_plain_column,
    is_truth,
)
from weft.algebra.scalar import Call, Ref, Scalar, Value, quote, quoted_sql
from weft.algebra.types import (
    INTEGRAL,
    INTEGRAL_LIMITS,
    TIMESTAMP,
    SqlType,
    decimal_parameters,
)

_BIGINT: Final = INTEGRAL_LIMITS["bigint"]
_WIDE: Final = "decimal(38,0)"
_MOST_RANGES: Final = 8
"""How many ranges of a column are tested for every row: with many more, Java no longer compiles the test."""
_MOST_GROUPS: Final = 8
"""How many kinds of sets on a column, by the other columns that they restrict, are tested one by one."""
_FEW: Final = 64
"""For how many values another column may be tested."""
_CELLS: Final = 4096
"""In how many cells of a column many ranges may lie."""
_BIGINT_DIGITS: Final = 18
_LISTED: Final = 16
"""Ranges of at most so many integers are listed value by value."""
_MANY: Final = 16
_SHARED: Final = 2
"""A column is common if so many values or ranges are asked for at least, and each so often on average."""


def spark_sql(predicates: PredicateSet) -> str:
    """The condition over the columns of the one relation that the predicates read."""
    if len(predicates.slots) > 1:
        raise ValueError(f"the predicates read several slots: {predicates.sql}")
    if predicates.never:
        return "false"
    return " AND ".join(map(_or_sql, predicates.predicates)) or "true"


def join_sql(predicates: PredicateSet) -> str:
    """The condition over the columns of two relations, slots 0 and 1. No name is a column of both."""
    if predicates.never:
        return "false"
    return " AND ".join(map(_pair_sql, predicates.predicates)) or "true"


def _pair_sql(predicate: OrPredicate) -> str:
    if len(predicate.literals) == 1 and len(predicate.slots) == 2:
        literal = predicate.literals[0]
        subject, values = literal.subject, literal.values
        if isinstance(subject, Linear) and not values.null and len(values.intervals) == 1:
            constant = point(values.intervals[0])
            if constant is not NO_POINT:
                return _equality_sql(subject, constant)
    return _or_sql(predicate)


def _equality_sql(subject: Linear, constant: int) -> str:
    """That a sum of columns of both relations has a value: its parts on either side of `=`."""
    left = [(factor, ref) for factor, ref in subject.terms if slot_of(ref.name) == 0]
    right = [(-factor, ref) for factor, ref in subject.terms if slot_of(ref.name) != 0]
    if len(left) == len(right) == 1 and constant == 0:
        ((one, mine), (other, theirs)) = left[0], right[0]
        same = mine.type == theirs.type or {mine.type, theirs.type} <= INTEGRAL
        if one == other and same:
            return f"({_quoted(mine)} = {_quoted(theirs)})"
    in_bigints = _fits_bigints(subject)
    sides = [[_term_sql(factor, ref, in_bigints) for factor, ref in side] for side in (left, right)]
    if constant:
        sides[1].append(_number(constant, in_bigints))
    return f"({' + '.join(sides[0])} = {' + '.join(sides[1])})"


def widened(sets: Sequence[PredicateSet]) -> str:
    """One condition that is true wherever one of the sets is, each of which reads one slot of the same
    relation. It is `true` if one of the sets restricts no column by itself."""
    possible = [predicates for predicates in sets if not predicates.never]
    candidates = [_candidates(predicates) for predicates in possible]
    if not all(candidates):
        return "true"
    literals = [
        literal for of_set in candidates for choice in of_set for literal in choice.literals
    ]
    popularity = Counter(map(_column, literals))
    common = _common_columns(literals)
    groups: dict[tuple[str, frozenset[str]], list[_Chosen]] = {}
    for predicates in candidates:
        chosen = min(predicates, key=lambda predicate: _breadth(predicate, popularity, common))
        others = _single_literals(predicates, chosen)
        for literal in chosen.literals:
            key = _column(literal), frozenset(others.keys() - {_column(literal)})
            groups.setdefault(key, []).append(_Chosen(literal, others))
    parts = [
        part
        for column in sorted({column for column, _ in groups})
        for part in _of_column([group for key, group in groups.items() if key[0] == column])
    ]
    if not parts:
        return "false"
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


@dataclass(frozen=True)
class _Chosen:
    """The literal that stands for a set, and what the set asks of other columns, one literal for each."""

    literal: LiteralPredicate
    others: Mapping[str, LiteralPredicate]


def _single_literals(
    predicates: Sequence[OrPredicate], chosen: OrPredicate
) -> dict[str, LiteralPredicate]:
    """The predicates of one literal, by column, apart from the chosen one."""
    literals = (
        predicate.literals[0]
        for predicate in predicates
        if len(predicate.literals) == 1 and predicate is not chosen
    )
    return {_column(literal): literal for literal in literals}


def _of_column(groups: Sequence[Sequence[_Chosen]]) -> Iterator[str]:
    """The values of literals on one column. Sets that restrict the same other columns, too, are tested by
    the values of these as well, unless there are many kinds of sets."""
    if len(groups) > _MOST_GROUPS or not any(group[0].others for group in groups):
        yield from _united([one.literal for group in groups for one in group])
        return
    for group in groups:
        tests = list(_united([one.literal for one in group]))
        column = _column(group[0].literal)
        tests = [tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"]
        for name in sorted(set.intersection(*(set(one.others) for one in group)) - {column}):
            of_other = [one.others[name] for one in group]
            few, rest = listed(union([literal.values for literal in of_other]), _LISTED)
            if len(few) <= _FEW and len(rest.intervals) <= _MOST_RANGES:
                parts = list(_united(of_other))
                tests.append(parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})")
        yield tests[0] if len(tests) == 1 else f"({' AND '.join(tests)})"


def _united(literals: Sequence[LiteralPredicate]) -> Iterator[str]:
    """The values of literals on one column: a list, cells of equal width that many ranges lie in, and a
    few ranges."""
    subject = literals[0].subject
    few, rest = listed(union([literal.values for literal in literals]), _LISTED)
    cells: str | None = None
    if len(rest.intervals) > _MOST_RANGES and isinstance(subject, Linear):
        cells = _cells_sql(subject, [one for one in rest.intervals if None not in one])
        if cells is not None:
            open_ended = tuple(one for one in rest.intervals if None in one)
            rest = Values(open_ended, rest.null)
    for values in (Values(tuple(map(single, few))), coarser(rest, _MOST_RANGES)):
        if not values.empty:
            yield _literal_sql(LiteralPredicate(subject, values))
    if cells is not None:
        yield cells


def _cells_sql(subject: Linear, intervals: Sequence[Interval]) -> str | None:
    """Whether an exact number is in one of the cells that some ranges lie in; None for other types. Cells
    are found by a division and looked up in a hash set, however many there are. They hold a little more
    than the ranges."""
    ref = subject.terms[0][1]
    digits = decimal_parameters(ref.type)
    if digits is None and ref.type not in INTEGRAL:
        return None
    if digits is not None and digits[0] - digits[1] > _BIGINT_DIGITS:
        return None
    scale = 10 ** digits[1] if digits is not None else 1
    ends: list[tuple[int, int]] = []
    for low, high in intervals:
        if low is None or high is None:
            return None
        if not isinstance(low.value, int) or not isinstance(high.value, int):
            return None
        ends.append((_truncated(low.value, scale), _truncated(high.value, scale)))
    width = 1
    while sum(_truncated(high, width) - _truncated(low, width) + 1 for low, high in ends) > _CELLS:
        width *= 2
    cells = sorted(
        {
            cell
            for low, high in ends
            for cell in range(_truncated(low, width), _truncated(high, width) + 1)
        }
    )
    listed_cells = ", ".join(f"{cell}L" for cell in cells)
    return f"cast({_quoted(ref)} AS bigint) div {width}L IN ({listed_cells})"


def _truncated(value: int, divisor: int) -> int:
    """A quotient without its fraction, as Spark's casts and `div` give it."""
    quotient = abs(value) // divisor
    return quotient if value >= 0 else -quotient


def _common_columns(literals: Sequence[LiteralPredicate]) -> frozenset[str]:
    """The columns that many sets restrict to the same few values or ranges."""
    asked: Counter[str] = Counter()
    distinct: dict[str, set[Interval]] = {}
    for literal in literals:
        column, intervals = _column(literal), literal.values.intervals
        asked[column] += len(intervals)
        distinct.setdefault(column, set()).update(intervals)
    return frozenset(
        column
        for column, different in distinct.items()
        if asked[column] >= max(_MANY, _SHARED * len(different))
    )


def _candidates(predicates: PredicateSet) -> list[OrPredicate]:
    """The OR predicates over plain columns."""
    return [
        predicate
        for predicate in predicates.predicates
        if all(is_plain_column(literal.subject) for literal in predicate.literals)
    ]


def _column(literal: LiteralPredicate) -> str:
    (name,) = literal.names
    return plain_name(name)


def _breadth(
    predicate: OrPredicate, popularity: Counter[str], common: frozenset[str]
) -> tuple[int, int, int, str]:
    """How much an OR predicate seems to let through: the shape of its widest literal, the number of its
    values. In a common column, points count as ranges with one end. Among equals, columns that many sets
    restrict come first, so that few columns are tested."""
    shapes = [
        (max(shape, 2) if _column(literal) in common else shape, size)
        for literal in predicate.literals
        for shape, size in [_shape(literal.values)]
    ]
    popular = min(popularity[_column(literal)] for literal in predicate.literals)
    return max(shapes)[0], sum(size for _, size in shapes), -popular, predicate.sql


def _shape(values: Values) -> tuple[int, int]:
    """0 for points, 1 for ranges with two ends, 2 for those with one, 3 for the rest; and how many."""
    size = len(values.intervals)
    if values.null:
        return (0 if not values.intervals else 3), size
    if all(map(is_point, values.intervals)):
        return 0, size
    open_ends = sum(end is None for interval in values.intervals for end in interval)
    return min(1 + open_ends, 3), size


def _or_sql(predicate: OrPredicate) -> str:
    parts = [_literal_sql(literal) for literal in predicate.literals]
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _literal_sql(literal: LiteralPredicate) -> str:
    subject, values = literal.subject, literal.values
    if isinstance(subject, Linear):
        return _linear_sql(subject, values)
    scalar = _plain(subject)
    if isinstance(scalar, Call) and scalar.operator == COMPARE:
        return _order_sql(scalar, values)
    text = quoted_sql(scalar)
    if is_truth(scalar):
        return _truth_sql(text, values)
    return values_text(text, values, partial(_constant, type_=scalar.type))


def _plain(scalar: Scalar) -> Scalar:
    """The expression over the relation's own column names."""
    return renamed(scalar, {name: plain_name(name) for name in names_in(scalar)})


def _constant(value: Value, type_: SqlType) -> str:
    if isinstance(value, int) and type_ == DATE:
        text = date_text(value)
        return f"date_from_unix_date({value})" if text is None else f"DATE '{text}'"
    if isinstance(value, int) and type_ == TIMESTAMP:
        return f"timestamp_micros({value}L)"
    return constant_sql(value, type_)


def _truth_sql(text: str, values: Values) -> str:
    if holds(values, 1) and holds(values, 0):
        return "true" if values.null else f"({text} IS NOT NULL)"
    if holds(values, 1):
        return f"({text} IS NOT FALSE)" if values.null else text
    if holds(values, 0):
        return f"({text} IS NOT TRUE)" if values.null else f"(NOT {text})"
    return f"({text} IS NULL)" if values.null else "false"


def _order_sql(comparison: Call, values: Values) -> str:
    left, right = map(quoted_sql, comparison.arguments)
    operator = order_operator(values)
    either_null = f"{left} IS NULL OR {right} IS NULL"
    if operator is None:
        if holds(values, 0):
            return "true" if values.null else f"(NOT ({either_null}))"
        return f"({either_null})" if values.null else "false"
    text = f"({left} {operator} {right})"
    return f"({text} OR {either_null})" if values.null else text


def _linear_sql(subject: Linear, values: Values) -> str:
    if subject.is_column:
        ref = subject.terms[0][1]
        return values_text(_quoted(ref), values, partial(_constant, type_=ref.type))
    in_bigints = _fits_bigints(subject)
    terms = [_term_sql(factor, ref, in_bigints) for factor, ref in subject.terms]
    total = f"({' + '.join(terms)})"
    return values_text(total, values, lambda value: _number(value, in_bigints))


def _fits_bigints(subject: Linear) -> bool:
    low, high = subject.limits
    in_bigints = _BIGINT[0] <= low and high <= _BIGINT[1]
    return in_bigints and all(not decimal_parameters(ref.type) for _, ref in subject.terms)


def _number(value: Value, in_bigints: bool) -> str:
    return f"{value}{'L' if in_bigints else 'BD'}"


def _term_sql(factor: int, ref: Ref, in_bigints: bool) -> str:
    """A column as an integer, times its factor."""
    column = _quoted(ref)
    if ref.type in (DATE, TIMESTAMP):
        column = f"unix_{'date' if ref.type == DATE else 'micros'}({column})"
    if in_bigints:
        return f"cast({column} AS bigint) * {factor}L"
    _, scale = decimal_parameters(ref.type) or (0, 0)
    if scale:
        column = f"{column} * {10**scale}BD"
    elif not decimal_parameters(ref.type):
        column = f"cast({column} AS decimal(20,0))"
    return f"cast(cast({column} AS {_WIDE}) * {factor}BD AS {_WIDE})"


def _quoted(ref: Ref) -> str:
    return quote(plain_name(ref.name))
