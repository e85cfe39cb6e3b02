"""Random configurations for the sequencer protocol: histories, resilience, and crashes."""

from random import Random

import msgspec

from ordercast.model.config import SequencerConfig
from ordercast.model.faults import Crash, Fault, Pause, Split
from ordercast.model.runs import Channel, Pattern, RunConfig

BEYOND = 1_000_000
"""From this number on, more nodes may crash or be partitioned than leave a quorum."""


def for_sequencer(config: RunConfig) -> RunConfig:
    """The configuration for the sequencer, on any channel. In half of the runs nodes crash, often the sequencer.

    Below BEYOND, a quorum survives, and there are no pauses or splits in the same run.
    """
    replace = msgspec.structs.replace
    beyond = config.seed >= BEYOND
    rng = Random(f"swarm/sequencer/{config.seed}")
    nodes = config.group.nodes
    network = replace(config.network, channel=rng.choice([Channel.ANY, Channel.ANY, *Channel]))
    options = SequencerConfig(
        node=rng.choice([0, 0, nodes - 1]),
        history=rng.choice([4, 8, 20, 64, 128, 1024]),
        resilience=min(nodes - 1, rng.choice([0, 0, 1, 2, nodes // 2])),
        direct_from=rng.choice([0, 1, 200, 1400]),
        suspect_after=rng.choice([3, 8]) if beyond else rng.choice([8, 12]),
    )
    group = replace(
        config.group,
        sequencer=options,
        timing=config.workload.timing(network, nodes),
        polls_to_abort=12 if beyond else config.group.polls_to_abort,
    )
    config = replace(config, protocol="sequencer", network=network, group=group)
    crashes = _draw_crashes(rng, config, nodes if beyond else nodes - quorum(nodes, options.resilience))
    faults = config.faults
    if crashes and not beyond:
        faults = tuple(fault for fault in faults if not isinstance(fault, Pause | Split))
    return replace(config, faults=(*faults, *crashes), stall_timeout=8 * config.with_default_timeouts().stall_timeout)


def _draw_crashes(rng: Random, config: RunConfig, most: int) -> tuple[Fault, ...]:
    """Crashes of some nodes while the group is sending, or a little later."""
    if rng.random() < 0.5 or not most:
        return ()
    work, count = config.workload, rng.randint(1, most)
    nodes = list(range(config.group.nodes))
    rng.shuffle(nodes)
    if rng.random() < 0.7:
        first = config.group.sequencer.node
        nodes = [first, *[node for node in nodes if node != first]]
    busy = work.messages * (work.gap if work.pattern is not Pattern.EVERYBODY else config.group.timing.status)
    return tuple(Crash(node=node, at=rng.randint(0, busy * 5 // 4 + 1)) for node in nodes[:count])


def quorum(nodes: int, resilience: int) -> int:
    """How many of so many members must agree before the group goes on without the rest."""
    resilience = min(resilience, nodes - 1)
    return max(nodes // 2 + 1, nodes - resilience if resilience else 0)
