"""Predicate sets as the kernel of networks evaluates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from weft.algebra.predicates import Linear, PredicateSet
from weft.algebra.scalar import Opaque, walk
from weft.algebra.types import SqlType
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import column
from weft.kernel.network.conditions import Compiler, Evaluation
from weft.kernel.network.rows import ColumnRows
from weft.sql.fallback import Unshared
from weft.sql.joins.evaluation import evaluable


def for_kernel(predicates: PredicateSet) -> PredicateSet | None:
    """The predicates in the form that the binder gives them; None if Spark must compute a part."""
    try:
        predicates = evaluable(predicates)
    except Unshared:
        return None
    for predicate in predicates.predicates:
        for literal in predicate.literals:
            if not isinstance(literal.subject, Linear) and any(
                isinstance(part, Opaque) for part in walk(literal.subject)
            ):
                return None
    return predicates


def rows_of(values: Sequence[Mapping[str, Any]], types: Mapping[str, SqlType]) -> ColumnRows:
    """Rows with columns of the given types."""
    columns = {
        name: column(pa.array([_in_utc(row[name]) for row in values], arrow_type(type_)))
        for name, type_ in types.items()
    }
    return ColumnRows(columns, len(values))


def _in_utc(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def kernel_truth(predicates: PredicateSet, rows: ColumnRows, *, ansi: bool = True) -> list[bool]:
    """Whether each row passes."""
    compiler = Compiler()
    tests = compiler.numbers(predicates.predicates)
    chosen = Evaluation(compiler.compiled(), rows, ansi=ansi).filtered(tests)
    truth = np.zeros(rows.count, bool)
    truth[slice(None) if chosen is None else chosen] = True
    return [bool(one) for one in truth]
