"""One run of the experiments: all points of a figure, in the prototype and in the kernel.

The points of a figure are measured in turns, round after round: then a busy minute of the machine does not fall on one
point alone, and the least of all rounds is one of a quiet minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.experiments.aggjoin.kernel_run import KernelRun, PointKernel
from weft.experiments.aggjoin.parameters import AggJoinSettings, Budget, Point, Sweep
from weft.experiments.aggjoin.prototype.measuring import PlanRun, PointPrototype
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
        self.progress = progress
        self._done = 0

    def finish(self) -> None:
        self.progress(self.steps, self.steps, "done")

    @cached_property
    def steps(self) -> int:
        return sum(
            len(self._points(figure)) * (1 + self._budget(figure).rounds) for figure in self.figures
        )

    def sweep(self, figure: str) -> Sweep:
        (found,) = (sweep for sweep in self.settings.sweeps if sweep.figure == figure)
        return found

    def measured(self, figure: str) -> list[MeasuredPoint]:
        """The points of a figure. Those of figure 6 are others in the kernel."""
        budget, seed = self._budget(figure), self.settings.seed
        points = self._points(figure)
        in_kernel = self.settings.kernel_showcase if figure == SHOWCASE else points
        running = []
        for point, kernel_point in zip(points, in_kernel, strict=True):
            self._step(f"{figure}, {point.label}: windows are filled")
            prototype = PointPrototype(point, budget, seed)
            running.append((point, prototype, PointKernel(kernel_point, budget, seed)))
        for number in range(1, budget.rounds + 1):
            for point, prototype, kernel in running:
                self._step(f"{figure}, {point.label}: round {number} of {budget.rounds}")
                prototype.round()
                kernel.round()
        return [
            MeasuredPoint(point, prototype.runs, kernel.runs)
            for point, prototype, kernel in running
        ]

    def _step(self, what: str) -> None:
        self.progress(self._done, self.steps, what)
        self._done += 1

    def _budget(self, figure: str) -> Budget:
        return self.settings.showcase_budget if figure == SHOWCASE else self.settings.budget

    def _points(self, figure: str) -> tuple[Point, ...]:
        if figure == ARITY:
            return self.settings.arities
        return self.settings.showcase if figure == SHOWCASE else self.sweep(figure).points
