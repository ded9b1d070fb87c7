"""From SQL text to bound, canonical queries.

`bind` turns one SELECT into a query of the algebra, or into a `Fallback` that says why weft cannot
share it, or raises `SqlError` with the place in the user's text. `statements` splits files of
several queries. Nothing here knows Spark: the few types that the whitelist cannot tell are asked of
an `Analyzer`.

`reading/` makes syntax of text, `typing/` and `scopes/` say what expressions and names mean,
`grouping/` binds keys and aggregates; `windowed/`, `joins/`, `sets/` and `joinagg/` bind the kinds of queries that are
shared, `binding/` decides which of them a text is; `fallback` is one of none.
"""

from weft.sql.binding.bind import bind
from weft.sql.fallback import Fallback
from weft.sql.reading.intervals import interval_micros
from weft.sql.reading.statements import Statement, statements
from weft.sql.typing.analyzer import AnalysisProblem, Analyzer

__all__ = [
    "AnalysisProblem",
    "Analyzer",
    "Fallback",
    "Statement",
    "bind",
    "interval_micros",
    "statements",
]
