"""IP flow records as of a backbone router: the workload of the Memory paper (WORKLOADS §6).

Thirteen attributes, about 400,000 records in each epoch of five minutes. The paper's traces are
gone; what is known of them is made: the frequencies of source addresses, of address pairs and of
connections are Zipf-like with parameters near 0.85, 0.67 and 0.48, and attributes depend on each
other as in real traffic. A record is drawn in this order:

- a conversation (source and destination address) by Zipf popularity; its source is one of many
  hosts, by Zipf popularity, too;
- a connection of that conversation: busy conversations have more; a connection has its ports for
  good. One side is a service of the server (a host has one to three), the other an ephemeral port;
- everything else follows: protocol from the service, flags and type of service from protocol and
  connection, the autonomous system from the address, mask, interfaces and next hop from the
  systems.

Hosts and conversations are those of the seed, the same in all epochs; records of different epochs
are different draws. Records are independent of each other in time: real traces have bursts, which
help any table that evicts.

In NumPy, seeded: an epoch takes about a tenth of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ATTRIBUTES = (
    "src_addr",
    "dst_addr",
    "src_port",
    "dst_port",
    "protocol",
    "tos",
    "tcp_flags",
    "input_if",
    "output_if",
    "src_as",
    "dst_as",
    "next_hop",
    "masks",
)

MEASURES = ("bytes", "packets")
TIME = "ts"
PAIRS = tuple(frozenset(pair) for pair in combinations(ATTRIBUTES, 2))
"""The 78 queries of the paper."""

RECORDS = 400_000
EPOCHS = 4
EPOCH_SECONDS = 300
BASE = datetime(2006, 10, 16, 23, 20, tzinfo=UTC)

HOSTS = 90_000
CONVERSATIONS = 190_000
SYSTEMS = 700
SOURCE_SKEW = 0.85
DESTINATION_SKEW = 0.75
CONVERSATION_SKEW = 0.69
SYSTEM_SKEW = 1.0
CONNECTIONS = 0.4
"""A conversation that is x times as busy has x to this power as many connections."""

_SERVICES = np.array([80, 443, 53, 25, 22, 110, 143, 123, 6881, 1935, 8080, 3306, 5060, 119, 21, 0])
_PROTOCOLS = np.array([6, 6, 17, 6, 6, 6, 6, 17, 6, 6, 6, 6, 17, 6, 6, 1])
_TCP = 6
_FLAGS = np.array([27, 24, 2, 18, 16, 17, 20, 4, 25, 26, 19, 31])
_TYPES_OF_SERVICE = np.array([0, 0, 0, 0, 8, 16, 32, 40, 184])
_EPHEMERAL = 1024, 65536
_INTERFACES = 14
_NEXT_HOPS = 24

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class _Network:
    """Hosts and conversations of one router."""

    source: Integers
    destination: Integers
    popularity: NDArray[np.float64]
    address: Integers
    system: Integers
    service: Integers
    """Three for each host, some of them equal."""
    mask: Integers
    interface: Integers
    next_hop: Integers


def flows(seed: int = 1, epochs: int = EPOCHS, records: int = RECORDS) -> pa.Table:
    """Records in the order of time; another seed is another router.

    >>> table = flows(epochs=1, records=1000)
    >>> table.num_rows, table.column_names == [*ATTRIBUTES, *MEASURES, TIME]
    (1000, True)
    """
    network = _network(seed)
    return pa.concat_tables([epoch(seed, number, records, network) for number in range(epochs)])


def epoch(
    seed: int = 1, number: int = 0, records: int = RECORDS, network: _Network | None = None
) -> pa.Table:
    """The records of one epoch."""
    network = network or _network(seed)
    random = np.random.default_rng([seed, 1000 + number, records])
    bounds = np.cumsum(network.popularity)
    chosen = np.searchsorted(bounds, random.random(records) * bounds[-1], side="right")
    chosen = np.minimum(chosen, len(bounds) - 1)
    expected = network.popularity[chosen] / bounds[-1] * RECORDS
    most = np.ceil(np.maximum(expected, 1.0) ** CONNECTIONS)
    connection = (random.random(records) * most).astype(np.int64)
    bits = _mixed(chosen * 100_003 + connection, seed)
    source, destination = network.source[chosen], network.destination[chosen]
    # Every other connection is seen from the server's side.
    answer = (bits & 1).astype(bool)
    server = np.where(answer, source, destination)
    service = network.service[server, (bits >> 1) % 3]
    low, high = _EPHEMERAL
    ephemeral = np.where(_PROTOCOLS[service] == 1, 0, low + (bits >> 8) % (high - low))
    port = _SERVICES[service]
    protocol = _PROTOCOLS[service]
    tcp = protocol == _TCP
    rare = (random.random(records) ** 3 * len(_FLAGS)).astype(np.int64)
    source_system, destination_system = network.system[source], network.system[destination]
    micros = int(BASE.timestamp() * 1e6) + number * EPOCH_SECONDS * 1_000_000
    times = micros + np.sort(random.integers(0, EPOCH_SECONDS * 1_000_000, records))
    packets = 1 + random.lognormal(1.2, 1.6, records).astype(np.int64)
    columns = {
        "src_addr": network.address[source],
        "dst_addr": network.address[destination],
        "src_port": np.where(answer, port, ephemeral),
        "dst_port": np.where(answer, ephemeral, port),
        "protocol": protocol,
        "tos": _TYPES_OF_SERVICE[
            _mixed(source_system * 31 + protocol, seed) % len(_TYPES_OF_SERVICE)
        ],
        "tcp_flags": np.where(tcp, _FLAGS[rare], 0),
        "input_if": network.interface[source_system],
        "output_if": network.interface[network.next_hop[destination_system]],
        "src_as": source_system,
        "dst_as": destination_system,
        "next_hop": network.next_hop[destination_system],
        "masks": network.mask[source_system] * 100 + network.mask[destination_system],
        "bytes": packets * (40 + (random.random(records) ** 2 * 1460).astype(np.int64)),
        "packets": packets,
    }
    return pa.table(
        {
            name: pa.array(np.ascontiguousarray(values), pa.int64())
            for name, values in columns.items()
        }
        | {TIME: pa.array(times, pa.timestamp("us", tz="UTC"))}
    )


def random_pairs(count: int, seed: int = 1) -> tuple[frozenset[str], ...]:
    """Some of the 78 queries.

    >>> len(set(random_pairs(20, seed=3)))
    20
    """
    random = np.random.default_rng([seed, count])
    return tuple(PAIRS[i] for i in sorted(random.choice(len(PAIRS), count, replace=False)))


def _network(seed: int) -> _Network:
    random = np.random.default_rng([seed, 1])
    system = random.choice(SYSTEMS, HOSTS, p=_zipf(SYSTEMS, SYSTEM_SKEW))
    servers = random.integers(0, len(_SERVICES), (HOSTS, 3))
    few = random.random(HOSTS) < 0.7
    servers[few, 1] = servers[few, 2] = servers[few, 0]
    return _Network(
        source=random.choice(HOSTS, CONVERSATIONS, p=_zipf(HOSTS, SOURCE_SKEW)),
        destination=random.permutation(HOSTS)[
            random.choice(HOSTS, CONVERSATIONS, p=_zipf(HOSTS, DESTINATION_SKEW))
        ],
        popularity=_zipf(CONVERSATIONS, CONVERSATION_SKEW),
        address=random.choice(2**32, HOSTS, replace=False).astype(np.int64),
        system=system,
        service=servers,
        mask=random.choice([8, 12, 16, 18, 19, 20, 21, 22, 24], SYSTEMS),
        interface=random.integers(0, _INTERFACES, SYSTEMS),
        next_hop=random.choice(_NEXT_HOPS, SYSTEMS, p=_zipf(_NEXT_HOPS, 0.7)),
    )


def _zipf(values: int, skew: float) -> NDArray[np.float64]:
    weights = np.arange(1, values + 1, dtype=np.float64) ** -skew
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _mixed(numbers: Integers, seed: int) -> Integers:
    """Bits that look random and depend on the numbers alone (SplitMix64), never negative."""
    bits = numbers.astype(np.uint64) + np.uint64((seed * 0x9E3779B97F4A7C15) % 2**64)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)
