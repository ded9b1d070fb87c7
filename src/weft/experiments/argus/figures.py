"""Data of figures 14 and 15, and of the queries run directly."""

from __future__ import annotations

from typing import Any

from weft.bench.peers.in_full import available
from weft.experiments.argus.configurations import ALL_SHARING, CONFIGURATIONS
from weft.experiments.argus.run import EXECUTIONS, MERGED, ArgusRun
from weft.experiments.argus.sizes import network_size
from weft.experiments.reproduction import Data

TITLES = {
    "fig14": "Figure 14: seconds per increment, by number of queries",
    "fig15": "Figure 15: weighted size of the network, by number of queries",
    "baseline": "Queries run directly, over all rows for every increment",
}


def execution_times(run: ArgusRun) -> Data:
    """Figure 14: every configuration, both ways to run it."""
    series: list[dict[str, Any]] = []
    for scale in run.settings.scales:
        for configuration in CONFIGURATIONS:
            for how in EXECUTIONS:
                points = []
                for network in run.networks(scale, configuration):
                    executed = run.executed(scale, configuration, network, how)
                    points.append(
                        {
                            "queries": network.queries,
                            "seconds": executed.seconds_per_increment,
                            "physical_joins": executed.physical_joins,
                            "candidates": executed.candidates,
                            "results": executed.results,
                            "history_rows": executed.history_rows,
                            "weighted": network_size(network.plan).weighted,
                        }
                    )
                series.append(
                    {
                        "workload": scale.workload,
                        "configuration": configuration,
                        "execution": how,
                        "points": points,
                    }
                )
    return _data("fig14", run, series)


def network_sizes(run: ArgusRun) -> Data:
    """Figure 15: nodes and their weighted sum."""
    series = [
        {
            "workload": scale.workload,
            "configuration": configuration,
            "points": [
                {"queries": network.queries, "generation_seconds": network.seconds}
                | network_size(network.plan).to_json()
                for network in run.networks(scale, configuration)
            ],
        }
        for scale in run.settings.scales
        for configuration in CONFIGURATIONS
    ]
    return _data("fig15", run, series)


def direct_queries(run: ArgusRun) -> Data:
    """The shared network beside DuckDB, which runs some queries in full; all are taken to cost as much
    as these on average."""
    if not available():
        raise RuntimeError("DuckDB is not installed: pip install duckdb")
    series = []
    for scale in (scale.direct for scale in run.settings.scales):
        measured = run.direct(scale)
        network = run.networks(scale, ALL_SHARING)[-1]
        shared = run.executed(scale, ALL_SHARING, network, MERGED)
        seconds_of_one = sum(full.seconds for full in measured) / len(measured)
        series.append(
            {
                "workload": scale.workload,
                "queries": network.queries,
                "history": scale.history,
                "measured": len(measured),
                "seconds_of_one": seconds_of_one,
                "direct": seconds_of_one * network.queries,
                "shared": shared.seconds_per_increment,
                "ratio": seconds_of_one * network.queries / shared.seconds_per_increment,
            }
        )
    return _data("baseline", run, series)


def _data(figure: str, run: ArgusRun, series: list[dict[str, Any]]) -> Data:
    return {"title": TITLES[figure], "settings": run.settings.to_json(), "series": series}
