"""What the applications of a simulated group send, and when; generated on demand."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, count, repeat
from random import Random

from ordercast.model.faults import start_times
from ordercast.model.machine import Submit
from ordercast.model.nodes import everybody, mask_of
from ordercast.model.runs import Pattern, RunConfig, ScriptedSend
from ordercast.model.services import BROADCASTS
from ordercast.simulator.randomness import exponential, stream

_SMALL_GROUP = 12


def submissions(config: RunConfig, node: int) -> Iterator[tuple[int, Submit]]:
    """What one node sends: the time of each packet, and its submission. Who starts later sends later."""
    start = start_times(config.faults, config.group.nodes).get(node, 0) if config.group.views else 0
    script = config.workload.scripted_sends()
    if script is not None:
        for time, submission in _scripted(script, node, config.group.nodes, config.workload.size):
            yield max(start, time), submission
        return
    for time, submission in _drawn(config, node):
        yield start + time, submission


def _drawn(config: RunConfig, node: int) -> Iterator[tuple[int, Submit]]:
    """What a node sends if there is no script, counted from its start."""
    work, nodes = config.workload, config.group.nodes
    if node not in senders(config):
        return
    targets = stream(config.seed, f"destinations/{node}")
    lengths, payload = _batch(work.batch, work.size)
    packets, rest = divmod(work.messages, work.batch)
    times = _times(config, node)
    spread = 1.0 if config.protocol in BROADCASTS else work.spread
    priority = _priorities(config, node)
    for _ in range(packets):
        yield next(times), Submit(_draw_destinations(targets, nodes, spread), lengths, payload, next(priority))
    if rest:
        body = _batch(rest, work.size)
        yield next(times), Submit(_draw_destinations(targets, nodes, spread), *body, next(priority))


def _scripted(script: Sequence[ScriptedSend], node: int, nodes: int, size: int) -> Iterator[tuple[int, Submit]]:
    """What a script lets a node send, the earliest first."""
    for sending in sorted((sending for sending in script if sending.node == node), key=lambda sending: sending.at):
        destinations = mask_of(sending.to) if sending.to else everybody(nodes)
        yield sending.at, Submit(destinations, *_batch(sending.messages, size), sending.priority)


def _priorities(config: RunConfig, node: int) -> Iterator[int]:
    """The priority of each packet; never ends."""
    work = config.workload
    if work.priorities == 1:
        yield from repeat(0)
    random = stream(config.seed, f"priorities/{node}")
    while True:
        if work.urgent and random.random() < work.urgent:
            yield work.priorities
        else:
            yield random.randint(1, work.priorities - bool(work.urgent))


def _times(config: RunConfig, node: int) -> Iterator[int]:
    """The sending time of each packet of a node; never ends."""
    work, time = config.workload, 0
    gap = work.gap * work.batch
    match work.pattern:
        case Pattern.EVERYBODY:
            yield from repeat(0)
        case Pattern.POISSON:
            random = stream(config.seed, f"arrivals/{node}")
            while True:
                time += exponential(random, gap)
                yield time
        case Pattern.BURSTY:
            size = max(1, work.burst // work.batch)  # in packets
            while True:
                yield from repeat(time, size)
                time += gap * size
        case Pattern.STEADY | Pattern.TALKER:
            yield from count(gap * node // config.group.nodes, gap)


def to_send(config: RunConfig) -> list[int]:
    """The number of messages that each node sends."""
    script = config.workload.scripted_sends()
    if script is not None:
        count = Counter[int]()
        for sending in script:
            count[sending.node] += sending.messages
        return [count[node] for node in range(config.group.nodes)]
    sending_nodes = senders(config)
    return [config.workload.messages if node in sending_nodes else 0 for node in range(config.group.nodes)]


def senders(config: RunConfig) -> tuple[int, ...]:
    """The nodes that send."""
    if config.workload.senders:
        return config.workload.senders
    return (0,) if config.workload.pattern is Pattern.TALKER else tuple(range(config.group.nodes))


def _batch(messages: int, size: int) -> tuple[tuple[int, ...], bytes]:
    return (size,) * messages, bytes(size * messages)


def _draw_destinations(random: Random, nodes: int, spread: float) -> int:
    """A random subset of `spread` of the nodes on average, and at least one."""
    wanted = spread * nodes
    size = int(wanted)
    if random.random() < wanted - size:
        size += 1
    if nodes > _SMALL_GROUP:
        return mask_of(random.sample(range(nodes), max(1, size)))
    subsets = _subsets(nodes, max(1, size))
    return subsets[int(random.random() * len(subsets))]


@cache
def _subsets(nodes: int, size: int) -> list[int]:
    """All subsets of this size of a small group, so that one draw chooses one."""
    return [mask_of(subset) for subset in combinations(range(nodes), size)]
