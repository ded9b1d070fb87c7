"""Data of figures 10 to 13 of the TriOps paper, from the simulation's points.

Data is plain: series with one list for each axis, for every guess and seed. The drawn guess and
the spread of all are chosen when a chart is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from weft.experiments.reproduction import Data
from weft.experiments.triops.grid import SimulatedPoint
from weft.experiments.triops.parameters import MODEL_RATES, TriopsSettings
from weft.experiments.triops.simulation import TRI_OPS, TWO_OPS

TITLES = {
    "fig10": "Figure 10: cost of TriWeave, normalized to WeaveShare, by input rate",
    **{
        figure: f"Figure {figure[3:]}: each plan under TwoOps and TriOps, {rate:,} tuples/s"
        for figure, rate in MODEL_RATES.items()
    },
}


def rate_sweep(settings: TriopsSettings, points: Iterable[SimulatedPoint]) -> Data:
    """Figure 10: TriWeave under TriOps beside WeaveShare under TwoOps, for each rate."""
    wanted = {float(rate) for rate in settings.rates}
    chosen = [
        point
        for point in points
        if point.queries in settings.rate_sweep_queries and point.rate in wanted
    ]
    chosen.sort(key=lambda point: (*_workload(point), point.rate))
    series = [_rate_series(list(points)) for _, points in groupby(chosen, key=_workload)]
    return _data("fig10", settings, series)


def query_sweep(figure: str, settings: TriopsSettings, points: Iterable[SimulatedPoint]) -> Data:
    """Figures 11 to 13: every plan under both models, beside Shared under TwoOps."""
    rate = float(MODEL_RATES[figure])
    chosen = [
        point for point in points if point.queries in settings.query_sweep and point.rate == rate
    ]
    chosen.sort(key=_workload)
    series: list[Data] = []
    for (guess, seed), points in groupby(chosen, key=lambda point: (str(point.guess), point.seed)):
        same = list(points)
        for optimizer, model in same[0].costs():
            series.append(
                {
                    "guess": guess,
                    "seed": seed,
                    "optimizer": optimizer,
                    "model": model,
                    "queries": [point.queries for point in same],
                    "normalized": [point.costs()[optimizer, model] for point in same],
                    "groups": [_groups(point, optimizer, model) for point in same],
                }
            )
    return _data(figure, settings, series) | {"rate": rate}


def _rate_series(points: Sequence[SimulatedPoint]) -> Data:
    first = points[0]
    return {
        "guess": str(first.guess),
        "seed": first.seed,
        "queries": first.queries,
        "edge_rate": first.shared.edge_rate,
        "edge_rate_error": max(point.edge_rate_error for point in points),
        "triweave_groups": len(first.triweave.groups),
        "rate": [point.rate for point in points],
        "normalized": [point.normalized for point in points],
        "weaveshare_groups": [len(point.weaveshare.groups) for point in points],
        "weaveshare_cost": [point.weaveshare.cost(TWO_OPS, point.rate) for point in points],
        "triweave_cost": [point.triweave.cost(TRI_OPS, point.rate) for point in points],
    }


def _groups(point: SimulatedPoint, optimizer: str, model: str) -> int:
    if optimizer == "best":
        return len(point.best[model].groups)
    plans = {plan.optimizer: plan for plan in (point.shared, point.weaveshare, point.triweave)}
    return len(plans[optimizer].groups)


def _workload(point: SimulatedPoint) -> tuple[str, int, int]:
    return str(point.guess), point.seed, point.queries


def _data(figure: str, settings: TriopsSettings, series: list[dict[str, Any]]) -> Data:
    return {
        "figure": figure,
        "title": TITLES[figure],
        "settings": settings.to_json(),
        "series": series,
    }
