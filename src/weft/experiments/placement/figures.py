"""Data of figures 2 and 3, tables 3 and 4 and the front, from the experiments' outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.experiments.placement.parameters import FIGURE_3, PAPER_SECONDS, PlacementSettings
from weft.experiments.placement.simulation import READINGS, Experiment
from weft.experiments.placement.summaries import METRICS, Costs, seconds
from weft.experiments.reproduction import Data
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.optimizers import OPTIMIZERS, PAPERS

TITLES = {
    "fig2": "Figure 2: average plan quality, 0 % the best and 100 % the worst of the 13 optimizers",
    "fig3": "Figure 3: costs per node in a 4-node system",
    "tab3": "Table 3: how often WG-I and WG-TN are the best, and how far above it otherwise",
    "tab4": "Table 4: average time for a plan",
    "front": "The front of balanced: total cost beside WG-TN, max cost beside WG-I",
}


def quality(settings: PlacementSettings, experiments: Sequence[Experiment]) -> Data:
    """Figure 2, with `balanced` beside the 13."""
    costs = Costs(experiments)
    rows = []
    for reading in READINGS:
        for name in OPTIMIZERS:
            for metric in METRICS:
                mean, deviation = costs.quality(reading, name, metric)
                rows.append(
                    {
                        "reading": reading,
                        "optimizer": name,
                        "metric": metric,
                        "mean": mean,
                        "deviation": deviation,
                    }
                )
    return _data("fig2", settings, rows)


def node_costs(settings: PlacementSettings) -> Data:
    """Figure 3: one run of its setting."""
    workload = FIGURE_3.workload(settings.seeds[0])
    rows = []
    for name, optimizer in OPTIMIZERS.items():
        demand = Demand.of(workload, FIGURE_3.rate, FIGURE_3.nodes)
        plan = optimizer(demand, settings.seeds[0])
        for node, cost in enumerate(plan.node_costs.tolist()):
            rows.append({"optimizer": name, "node": node + 1, "cost": cost})
    subtitle = (
        f"{FIGURE_3.queries} queries, rate {FIGURE_3.rate}, slides up to {FIGURE_3.largest_slide}, skew "
        f"{FIGURE_3.skew}, overlap up to {FIGURE_3.largest_overlap}, seed {settings.seeds[0]}"
    )
    return _data("fig3", settings, rows) | {"subtitle": subtitle}


def wins(settings: PlacementSettings, experiments: Sequence[Experiment]) -> Data:
    """Table 3."""
    costs = Costs(experiments)
    rows = []
    for reading in READINGS:
        for name in PAPERS:
            for metric in METRICS:
                won = costs.wins(reading, name, metric)
                rows.append(
                    {
                        "reading": reading,
                        "optimizer": name,
                        "metric": metric,
                        "best": won.best,
                        "losses": won.losses,
                    }
                )
    return _data("tab3", settings, rows)


def times(settings: PlacementSettings, experiments: Sequence[Experiment]) -> Data:
    """Table 4."""
    rows = [
        {
            "reading": reading,
            "optimizer": name,
            "seconds": taken,
            "paper": PAPER_SECONDS.get(name),
        }
        for reading in READINGS
        for name, taken in seconds(experiments, reading).items()
    ]
    preparation = sum(e.preparation for e in experiments) / len(experiments)
    return _data("tab4", settings, rows) | {"preparation": preparation}


def front(settings: PlacementSettings, experiments: Sequence[Experiment]) -> Data:
    """`balanced` at every setting, and the 13 as points, all relative to wg-tn and wg-i."""
    costs = Costs(experiments)
    reading = READINGS[0]
    rows = [
        {
            "optimizer": f"balanced {balance:g}",
            "balance": balance,
            "total": float(costs.beside(reading, balance, "total", "wg-tn").mean()),
            "max": float(costs.beside(reading, balance, "max", "wg-i").mean()),
        }
        for balance in settings.balances
    ]
    for name in PAPERS:
        total = costs.of(reading, name, "total") / costs.of(reading, "wg-tn", "total")
        largest = costs.of(reading, name, "max") / costs.of(reading, "wg-i", "max")
        rows.append(
            {
                "optimizer": name,
                "balance": None,
                "total": float(total.mean()),
                "max": float(largest.mean()),
            }
        )
    return _data("front", settings, rows)


def _data(figure: str, settings: PlacementSettings, rows: Sequence[Mapping[str, object]]) -> Data:
    return {
        "figure": figure,
        "title": TITLES[figure],
        "settings": settings.to_json(),
        "rows": [dict(row) for row in rows],
    }
