"""Rates on the command line: positive decimal numbers of a sensible size."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

import typer

_MOST_MAGNITUDE = 18


def positive_rate(text: str) -> Fraction:
    """The rate of an option, exactly; wrong usage if it is none.

    >>> positive_rate("0.5")
    Fraction(1, 2)
    """
    try:
        rate = Decimal(text)
    except InvalidOperation:
        raise typer.BadParameter(f"'{text}' is not a rate", param_hint="--rate") from None
    if not rate.is_finite():
        raise typer.BadParameter(f"'{text}' is not a rate", param_hint="--rate")
    if rate <= 0:
        raise typer.BadParameter(f"the rate {text} must be positive", param_hint="--rate")
    if abs(rate.adjusted()) > _MOST_MAGNITUDE:
        detail = f"the rate {text} is not between 1e-{_MOST_MAGNITUDE} and 1e{_MOST_MAGNITUDE}"
        raise typer.BadParameter(detail, param_hint="--rate")
    return Fraction(rate)
