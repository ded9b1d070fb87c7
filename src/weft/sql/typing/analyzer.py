"""What the binder asks of Spark, and the memory that keeps it from asking twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from weft.algebra.query import Field
from weft.algebra.types import SqlType

MOST_ANSWERS: Final = 100_000


@dataclass(frozen=True, slots=True)
class AnalysisProblem:
    """Spark's objection to an expression."""

    error_class: str
    message: str


class Analyzer(Protocol):
    """Types and names of Spark SQL expressions over columns of given names and types.

    An expression may mix plain columns and aggregates, as in a query that groups by every
    column. An implementation may be slow: the binder asks only what the whitelist does not
    cover, and asks it once.
    """

    def types(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[SqlType | AnalysisProblem, ...]:
        """The type of each expression, or Spark's objection to it."""
        ...

    def output_names(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[str, ...]:
        """The name Spark gives to each expression in a SELECT without an alias."""
        ...


@dataclass(slots=True, weakref_slot=True)
class Remembering:
    """An analyzer that is asked each question once."""

    analyzer: Analyzer
    _types: dict[tuple[tuple[Field, ...], str], SqlType | AnalysisProblem] = field(
        default_factory=dict
    )
    _names: dict[tuple[tuple[Field, ...], str], str] = field(default_factory=dict)

    def type(self, fields: tuple[Field, ...], expression: str) -> SqlType | AnalysisProblem:
        key = (fields, expression)
        if key not in self._types:
            self._forget(self._types)
            self._types[key] = self.analyzer.types(fields, (expression,))[0]
        return self._types[key]

    def output_name(self, fields: tuple[Field, ...], expression: str) -> str:
        key = (fields, expression)
        if key not in self._names:
            self._forget(self._names)
            self._names[key] = self.analyzer.output_names(fields, (expression,))[0]
        return self._names[key]

    @staticmethod
    def _forget(answers: dict[tuple[tuple[Field, ...], str], Any]) -> None:
        """Keeps the memory bounded where queries come and go for ever."""
        if len(answers) >= MOST_ANSWERS:
            answers.clear()


_REMEMBERED: WeakKeyDictionary[Analyzer, dict[bool, Remembering]] = WeakKeyDictionary()


def remembering(analyzer: Analyzer, ansi: bool) -> Remembering:
    """The memory of an analyzer, one for each ANSI mode; it lives as long as the analyzer."""
    modes = _REMEMBERED.setdefault(analyzer, {})
    if ansi not in modes:
        modes[ansi] = Remembering(analyzer)
    return modes[ansi]
