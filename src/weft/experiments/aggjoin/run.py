"""One run of the experiments: every point measured once, in the prototype and in the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.experiments.aggjoin.kernel_run import KernelRun, kernel_runs
from weft.experiments.aggjoin.parameters import AggJoinSettings, Budget, Inputs, Point, Sweep
from weft.experiments.aggjoin.prototype.measuring import PlanRun, plan_runs
from weft.experiments.reproduction import Progress

ARITY, SHOWCASE = "arity", "fig6"


@dataclass(frozen=True)
class MeasuredPoint:
    point: Point
    prototype: tuple[PlanRun, ...]
    kernel: tuple[KernelRun, ...]


class AggJoinRun:
    """Measured points, as the figures need them."""

    def __init__(
        self, figures: Sequence[str], settings: AggJoinSettings, progress: Progress
    ) -> None:
        self.figures = figures
        self.settings = settings
        self._progress = progress
        self._done = 0
        self._prototype: dict[tuple[Inputs, str], tuple[PlanRun, ...]] = {}
        self._kernel: dict[Inputs, tuple[KernelRun, ...]] = {}

    def finish(self) -> None:
        self._progress(self.steps, self.steps, "done")

    @cached_property
    def steps(self) -> int:
        return sum(len(self._points(figure)) for figure in self.figures)

    def sweep(self, figure: str) -> Sweep:
        (found,) = (sweep for sweep in self.settings.sweeps if sweep.figure == figure)
        return found

    def measured(self, figure: str) -> list[MeasuredPoint]:
        """The points of a figure. Those of figure 6 are others in the kernel."""
        budget = self.settings.showcase_budget if figure == SHOWCASE else self.settings.budget
        points = self._points(figure)
        in_kernel = self.settings.kernel_showcase if figure == SHOWCASE else points
        measured_points = []
        for point, kernel_point in zip(points, in_kernel, strict=True):
            self._progress(self._done, self.steps, f"{figure}, {point.label}")
            self._done += 1
            measured_points.append(
                MeasuredPoint(
                    point, self._in_prototype(point, budget), self._in_kernel(kernel_point, budget)
                )
            )
        return measured_points

    def _points(self, figure: str) -> tuple[Point, ...]:
        if figure == ARITY:
            return self.settings.arities
        return self.settings.showcase if figure == SHOWCASE else self.sweep(figure).points

    def _in_prototype(self, point: Point, budget: Budget) -> tuple[PlanRun, ...]:
        key = point.inputs, point.join
        if key not in self._prototype:
            self._prototype[key] = tuple(plan_runs(point, budget, self.settings.seed))
        return self._prototype[key]

    def _in_kernel(self, point: Point, budget: Budget) -> tuple[KernelRun, ...]:
        if point.inputs not in self._kernel:
            self._kernel[point.inputs] = tuple(kernel_runs(point, budget, self.settings.seed))
        return self._kernel[point.inputs]
