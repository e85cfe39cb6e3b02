"""Divides runs into chunks of about equal work. Only the runs decide: every cluster gets the same chunks."""

from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import ceil

from ordercast.model.faults import Bursts, Loss
from ordercast.model.runs import RunConfig, TraceDetail
from ordercast.simulator.workloads import to_send

_SECONDS_OF_A_CHUNK = 2.0
"""Long enough that the cost of a task does not show, short enough that little is repeated when a worker dies."""
_FEWEST_CHUNKS = 16  # if there are as many runs: a small sweep still uses so many cores
_SECONDS_OF_A_RECEIPT = 15e-6  # of a unit at a node, with its processing there; recording everything adds half


def cost(config: RunConfig) -> float:
    """An estimate of the seconds that a run takes."""
    nodes = config.group.nodes
    packets = sum(to_send(config)) / config.workload.batch
    repeated = 1.0
    for fault in config.faults:
        match fault:
            case Loss(rate=rate):
                repeated += 3 * rate
            case Bursts(well=well, bad=bad, rate=rate):
                repeated += 3 * rate * bad / (well + bad)
    if config.record is TraceDetail.ALL:
        repeated *= 1.5
    # Every node receives every unit, and the state that it searches grows with the group.
    return 0.001 + _SECONDS_OF_A_RECEIPT * packets * nodes * repeated * (1 + nodes / 32)


def in_chunks(configs: Sequence[RunConfig]) -> list[list[int]]:
    """The indices of the runs of each chunk: the most costly run first in each, and the most costly chunk first."""
    if not configs:
        return []
    costs = [cost(config) for config in configs]
    names = [config.name() for config in configs]
    wanted = max(_FEWEST_CHUNKS, ceil(sum(costs) / _SECONDS_OF_A_CHUNK))
    chunks: list[list[int]] = [[] for _ in range(min(wanted, len(configs)))]
    loads = [(0.0, number) for number in range(len(chunks))]
    heapify(loads)
    for place in sorted(range(len(configs)), key=lambda place: (-costs[place], names[place])):
        load, number = loads[0]
        chunks[number].append(place)
        heapreplace(loads, (load + costs[place], number))
    return chunks
