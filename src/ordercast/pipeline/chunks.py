"""Divides runs into chunks of about equal work. The runs alone decide: every cluster gets the same chunks."""

from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import ceil

from ordercast.model.faults import Bursts, Loss
from ordercast.model.runs import RunConfig, TraceDetail
from ordercast.simulator.workloads import to_send

_SECONDS_OF_A_CHUNK = 2.0
"""Long enough that handing a task out does not show, short enough that little is done twice when a worker dies."""
_FEWEST_CHUNKS = 16  # as far as there are runs: so many cores have something to do even in a small sweep
_SECONDS_OF_A_RECEIPT = 15e-6  # of a unit at a node, with what its machine does about it; recording all adds half


def cost(config: RunConfig) -> float:
    """About how many seconds a run takes."""
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
    # Every node hears every unit, and what it must look through grows with the group.
    return 0.001 + _SECONDS_OF_A_RECEIPT * packets * nodes * repeated * (1 + nodes / 32)


def in_chunks(configs: Sequence[RunConfig]) -> list[list[int]]:
    """Places of the runs of each chunk: the most costly first in each, and the most costly chunk first of all."""
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
