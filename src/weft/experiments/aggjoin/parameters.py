"""What the experiments vary: section 7.2 of the AggJoin paper.

The captions of figures 4 and 5 give the settings. Figure 6 has none in the text: `showcase` are ours.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from weft.optimizer.joinagg.statistics import InputStatistics, JoinStatistics

BUCKETS = 1021
Inputs = tuple[InputStatistics, ...]

TWO_WAY: Inputs = (InputStatistics(300, 5000, 150, 0.1), InputStatistics(300, 5000, 1, 0.1))
THREE_WAY: Inputs = (
    InputStatistics(200, 300, 20, 0.1),
    InputStatistics(200, 300, 1, 0.1),
    InputStatistics(200, 300, 1, 0.1),
)
_GROUPS = tuple(float(3**power) for power in range(1, 10))
_SELECTIVITIES = (0.0005, 0.005, 0.05, 0.5)
LOW, HIGH = 1.0, 19683.0
"""Groups of figure 6."""


@dataclass(frozen=True)
class Point:
    """One setting: where it is on the axis of its figure, the join, and how it is computed."""

    label: str
    value: float
    inputs: Inputs
    join: str = "hash"

    @property
    def statistics(self) -> JoinStatistics:
        return JoinStatistics(self.inputs, BUCKETS)


@dataclass(frozen=True)
class Sweep:
    """One parameter of the first input is varied, or of all inputs together."""

    figure: str
    title: str
    axis: str
    parameter: str
    values: tuple[float, ...]
    inputs: Inputs
    of_all: bool = False
    logarithmic: bool = False

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(
            Point(f"{self.axis} = {value:g}", value, self._with(value)) for value in self.values
        )

    def _with(self, value: float) -> Inputs:
        return tuple(
            replace(given, **{self.parameter: value}) if number == 0 or self.of_all else given
            for number, given in enumerate(self.inputs)
        )


@dataclass(frozen=True)
class Budget:
    """How much is run. The paper runs three units of time; here a round is a part of one, or several."""

    rounds: int
    """In the kernel a round is an instant."""
    operations: float
    """Of a plan in one round, by the model."""
    least_rows: int
    most_units: int
    seconds: float
    """A plan that has used up so many in the kernel is not run again."""


@dataclass(frozen=True)
class AggJoinSettings:
    """One run of all experiments."""

    sweeps: tuple[Sweep, ...]
    arities: tuple[Point, ...]
    """Joins of more and more inputs with the same settings."""
    showcase: tuple[Point, ...]
    kernel_showcase: tuple[Point, ...]
    """In windows of a few rows the kernel has nothing to do; these are larger."""
    budget: Budget
    showcase_budget: Budget
    seed: int = 1

    def to_json(self) -> dict[str, Any]:
        return {"budget": asdict(self.budget), "seed": self.seed, "buckets": BUCKETS}


def _sweeps(
    name: str,
    arity: str,
    inputs: Inputs,
    windows: tuple[float, ...],
    rates: tuple[float, ...],
    rated: Inputs,
) -> tuple[Sweep, ...]:
    def title(letter: str, what: str) -> str:
        return f"Figure {name[3:]}{letter}: {arity} hash join by {what}"

    return (
        Sweep(f"{name}a", title("a", "window"), "w1", "window", windows, inputs),
        Sweep(
            f"{name}b",
            title("b", "groups"),
            "g1",
            "groups",
            _GROUPS,
            inputs,
            logarithmic=True,
        ),
        Sweep(f"{name}c", title("c", "rate"), "λ1", "rate", rates, rated),
        Sweep(
            f"{name}d",
            title("d", "selectivity"),
            "σ",
            "selectivity",
            _SELECTIVITIES,
            inputs,
            of_all=True,
            logarithmic=True,
        ),
    )


def _showcase(window: float, selectivity: float, join: str) -> tuple[Point, ...]:
    return tuple(
        Point(
            f"g1 {'low' if first == LOW else 'high'}, g2 {'low' if second == LOW else 'high'}",
            float(number),
            tuple(InputStatistics(300, window, groups, selectivity) for groups in (first, second)),
            join=join,
        )
        for number, (first, second) in enumerate(
            ((LOW, LOW), (LOW, HIGH), (HIGH, LOW), (HIGH, HIGH))
        )
    )


def _settings(scale: float, budget: Budget, showcase_budget: Budget) -> AggJoinSettings:
    """`scale` divides all windows but those of figure 6 in the prototype."""
    two_way, three_way = _shrunk(TWO_WAY, scale), _shrunk(THREE_WAY, scale)
    return AggJoinSettings(
        sweeps=(
            *_sweeps(
                "fig4",
                "two-way",
                two_way,
                tuple(window / scale for window in (1000, 2000, 3000, 4000, 5000)),
                (100, 300, 500, 700, 900),
                # The text of section 7.2.2 fixes the second rate at 500, not at the default of 300.
                (two_way[0], replace(two_way[1], rate=500)),
            ),
            *_sweeps(
                "fig5",
                "three-way",
                three_way,
                tuple(window / scale for window in (100, 150, 200, 250, 300)),
                (100, 200, 300, 400, 500, 600),
                three_way,
            ),
        ),
        arities=tuple(
            Point(f"{count} inputs", count, (*three_way, three_way[-1])[:count])
            for count in (2, 3, 4)
        ),
        showcase=_showcase(10, 0.2, "nested"),
        kernel_showcase=_showcase(8000 / scale, 0.001, "hash"),
        budget=budget,
        showcase_budget=showcase_budget,
    )


def _shrunk(inputs: Inputs, scale: float) -> Inputs:
    return tuple(replace(given, window=given.window / scale) for given in inputs)


def _ends(settings: AggJoinSettings) -> AggJoinSettings:
    """Only the first and the last point of every sweep."""
    return replace(
        settings,
        sweeps=tuple(
            replace(sweep, values=(sweep.values[0], sweep.values[-1])) for sweep in settings.sweeps
        ),
    )


_FULL = Budget(rounds=7, operations=40e3, least_rows=12, most_units=5, seconds=0.6)
_QUICK = Budget(rounds=1, operations=1e3, least_rows=6, most_units=1, seconds=0.1)
FULL = _settings(1, _FULL, replace(_FULL, rounds=25, seconds=3))
QUICK = _ends(_settings(10, _QUICK, _QUICK))
