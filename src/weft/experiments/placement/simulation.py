"""One configuration with one seed: every optimizer's costs and time.

A time is CPU time (nothing here waits, and other work on the machine does not count) of the optimizer with the costs
of its plan, from a workload whose atoms of time are known; making
these, once for all optimizers, is timed apart. Compiled loops are loaded before the first time is taken, and Python's garbage
collector waits, as in `timeit`: it would charge a plan of microseconds with the objects of all libraries.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from weft.experiments.placement.parameters import Configuration, PlacementSettings
from weft.optimizer.edges.edge_atoms import edge_atoms
from weft.optimizer.placement.balanced import BALANCE, balanced
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.optimizers import OPTIMIZERS, load_compiled
from weft.optimizer.placement.placement import Placement

READINGS = ("queries", "preprocessed")
"""Whether the preprocessing step was used is not said: every query is an item, or every edge set."""


@dataclass(frozen=True)
class Outcome:
    """What one optimizer did with one workload."""

    optimizer: str
    reading: str
    balance: float | None
    total: float
    largest: float
    seconds: float


@dataclass(frozen=True)
class Experiment:
    """All outcomes of a configuration and seed."""

    configuration: Configuration
    seed: int
    preparation: float
    """Seconds for the atoms of time."""
    outcomes: tuple[Outcome, ...]


def experiment(settings: PlacementSettings, configuration: Configuration, seed: int) -> Experiment:
    """Place one workload with every optimizer, under both readings."""
    load_compiled()
    workload = configuration.workload(seed)
    started = time.process_time()
    edge_atoms(workload)
    preparation = time.process_time() - started
    outcomes: list[Outcome] = []
    for reading in READINGS:
        make = partial(
            Demand.of,
            workload,
            configuration.rate,
            configuration.nodes,
            preprocess=reading == "preprocessed",
        )
        for name, optimizer in OPTIMIZERS.items():
            balance = BALANCE if name == "balanced" else None
            outcomes.append(_outcome(name, reading, balance, make, optimizer, seed))
    if seed in settings.front_seeds:
        for balance in settings.balances:
            if balance != BALANCE:
                search = partial(balanced, balance=balance)
                outcomes.append(
                    _outcome(
                        "balanced",
                        READINGS[0],
                        balance,
                        partial(Demand.of, workload, configuration.rate, configuration.nodes),
                        search,
                        seed,
                    )
                )
    return Experiment(configuration, seed, preparation, tuple(outcomes))


def _outcome(
    name: str,
    reading: str,
    balance: float | None,
    make: Callable[[], Demand],
    optimizer: Callable[[Demand, int], Placement],
    seed: int,
) -> Outcome:
    gc.disable()
    try:
        started = time.process_time()
        plan = optimizer(make(), seed)
        total, largest = plan.total_cost, plan.max_cost
        seconds = time.process_time() - started
    finally:
        gc.enable()
    return Outcome(name, reading, balance, total, largest, seconds)
