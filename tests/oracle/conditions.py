"""WHERE, HAVING and FILTER as Spark evaluates them.

Spark splits a condition into its conjuncts (a NOT before an OR is moved inwards first) and
stops at the first that is not true, be it false or NULL. So in `b > 0 AND 1 / a > 0` a row
with a NULL `b` never divides, although `NULL AND …` as an expression would.
"""

from __future__ import annotations

from collections.abc import Iterator

from .evaluate import Compiled, Environment, Scope, compile_expression
from .expressions import Expression, Logical, Not
from .sparktypes import BOOLEAN
from .values import ModelError


class Condition:
    """A bound condition; without an expression it always holds."""

    def __init__(self, expression: Expression | None, scope: Scope, *, ansi: bool) -> None:
        self._conjuncts: list[Compiled] = []
        for part in () if expression is None else conjuncts(expression):
            compiled = compile_expression(part, scope, ansi=ansi)
            if compiled.type != BOOLEAN:
                raise TypeError(f"not a condition: {expression}")
            self._conjuncts.append(compiled)

    def holds(self, row: Environment) -> bool:
        """Whether the condition is true, and neither false nor NULL, for a row."""
        for part in self._conjuncts:
            try:
                if part.value(row) is not True:
                    return False
            except ModelError as error:
                error.certain = error.certain and not self._rejects(row)
                raise
        return True

    def _rejects(self, row: Environment) -> bool:
        """Whether some conjunct rejects the row without raising; Spark may look at it first."""
        return any(
            not raises(part, row) and part.value(row) is not True for part in self._conjuncts
        )


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The conditions that must all be true, in order."""
    match expression:
        case Logical("and", left, right):
            yield from conjuncts(left)
            yield from conjuncts(right)
        case Not(Logical("or", left, right)):
            yield from conjuncts(Not(left))
            yield from conjuncts(Not(right))
        case Not(Not(operand)):
            yield from conjuncts(operand)
        case _:
            yield expression


def raises(compiled: Compiled, row: Environment) -> bool:
    """Whether evaluating raises."""
    try:
        compiled.value(row)
    except ModelError:
        return True
    return False
