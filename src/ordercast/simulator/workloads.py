"""What the applications of a simulated group send, and when; drawn as it is needed, never kept whole."""

from collections.abc import Iterator
from random import Random

from ordercast.model.machine import Submit
from ordercast.model.nodes import mask_of
from ordercast.model.runs import Pattern, RunConfig
from ordercast.simulator.chance import exponential, stream


def submissions(config: RunConfig, node: int) -> Iterator[tuple[int, Submit]]:
    """What one node sends: the time of each packet and its submission."""
    work, nodes = config.workload, config.group.nodes
    if work.pattern is Pattern.TALKER and node != 0:
        return
    whom, when = stream(config.seed, f"destinations/{node}"), stream(config.seed, f"arrivals/{node}")
    full = _batch(work.batch, work.size)
    time = work.gap * node // nodes if work.pattern is Pattern.STEADY else 0
    since_burst, left = 0, work.messages
    while left:
        count = min(work.batch, left)
        lengths, payload = full if count == work.batch else _batch(count, work.size)
        match work.pattern:
            case Pattern.POISSON:
                time += exponential(when, work.gap * count)
            case Pattern.BURSTY if since_burst >= work.burst:
                time += work.gap * since_burst
                since_burst = 0
        yield time, Submit(_draw_destinations(whom, nodes, work.spread), lengths, payload)
        if work.pattern in {Pattern.STEADY, Pattern.TALKER}:
            time += work.gap * count
        since_burst += count
        left -= count


def senders(config: RunConfig) -> int:
    """How many nodes send."""
    return 1 if config.workload.pattern is Pattern.TALKER else config.group.nodes


def _batch(count: int, size: int) -> tuple[tuple[int, ...], bytes]:
    return (size,) * count, bytes(size * count)


def _draw_destinations(chance: Random, nodes: int, spread: float) -> int:
    """A random subset of `spread` of the nodes on average, and at least one."""
    wanted = spread * nodes
    count = int(wanted)
    if chance.random() < wanted - count:
        count += 1
    return mask_of(chance.sample(range(nodes), max(1, count)))
