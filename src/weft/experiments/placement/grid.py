"""All configurations and seeds, on the machine's cores."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from weft.experiments.placement.parameters import PlacementSettings
from weft.experiments.placement.simulation import Experiment, experiment
from weft.experiments.reproduction import Progress
from weft.optimizer.placement.optimizers import load_compiled


def measure(settings: PlacementSettings, progress: Progress) -> list[Experiment]:
    """Every experiment, in order; configurations that take long are mixed with others."""
    work = [
        (configuration, seed)
        for configuration in settings.configurations
        for seed in settings.seeds
    ]
    load_compiled()
    processes = settings.processes or os.cpu_count() or 1
    done: list[Experiment] = []
    if processes == 1:
        for number, (configuration, seed) in enumerate(work):
            progress(
                number, len(work), f"{configuration.queries} queries, {configuration.nodes} nodes"
            )
            done.append(experiment(settings, configuration, seed))
    else:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            results = pool.map(
                experiment,
                [settings] * len(work),
                [configuration for configuration, _ in work],
                [seed for _, seed in work],
                chunksize=4,
            )
            for number, result in enumerate(results):
                where = result.configuration
                progress(number, len(work), f"{where.queries} queries, {where.nodes} nodes")
                done.append(result)
    progress(len(work), len(work), "done")
    return done
