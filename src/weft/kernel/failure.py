"""A query whose result cannot be computed as Spark would refuse to compute it."""

from __future__ import annotations


class QueryFailure(Exception):
    """An error of one query on its own data, such as an overflow under ANSI. Where the caller cannot
    tell whose it is, `queries` holds the ids of the queries concerned."""

    def __init__(self, error_class: str, message: str, queries: tuple[str, ...] = ()) -> None:
        super().__init__(f"[{error_class}] {message}")
        self.error_class = error_class
        self.message = message
        self.queries = queries


class NeedsSpark(Exception):
    """The kernel's scalar evaluation met a case whose meaning only Spark decides."""


def would_raise(what: str, problem: NeedsSpark) -> QueryFailure:
    """The failure of a query with an expression of which the kernel can evaluate all parts: then what only Spark decides is which error it
    raises under ANSI.

    >>> would_raise("a key", NeedsSpark("division by zero")).error_class
    'DIVIDE_BY_ZERO'
    """
    by_zero = "division by zero" in str(problem)
    return QueryFailure(
        "DIVIDE_BY_ZERO" if by_zero else "ARITHMETIC_OVERFLOW", f"{what}: {problem}"
    )
