"""Random configurations, each determined by its protocol and a number: any that a protocol must survive."""

from dataclasses import dataclass
from random import Random

import msgspec

from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, PriorityConfig, RecoveryPolicy
from ordercast.model.faults import Bursts, Duplicates, Fault, Loss, Pause, Split
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.swarm.draw_sequencer import for_sequencer

replace = msgspec.structs.replace
_LARGE_NUMBERS = 0.15
_BITS = (8, 16, 31, 32)


@dataclass(frozen=True)
class Sizes:
    """The sizes of generated runs; default: small ones with much loss."""

    least_nodes: int = 2
    most_nodes: int = 16
    receipts: int = 3_000
    """About how many messages all nodes together receive, if each is addressed to all."""
    batches: tuple[int, ...] = (1, 1, 1, 3, 16)
    rates: tuple[float, ...] = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3)
    """Of loss. In large groups hardly any unit reaches all nodes if more than a little is lost."""


def draw_config(number: int, *, protocol: str = "spo", most_nodes: int = 16, receipts: int = 3_000) -> RunConfig:
    """The configuration of a number: any group, network, workload and faults that a run must survive."""
    return draw_sized(number, protocol, Sizes(most_nodes=most_nodes, receipts=receipts))


def draw_sized(number: int, protocol: str, sizes: Sizes) -> RunConfig:
    """The configuration of a number, with other sizes."""
    config = _draw_config(number, sizes)
    if protocol == "st":
        config = _for_st(config)
    elif protocol == "sequencer":
        return for_sequencer(config)
    elif protocol in {"to", "prito", "prio"}:
        config = _for_priorities(config, protocol)
    else:
        config = replace(config, protocol=protocol)
    return replace(config, stall_timeout=config.with_default_timeouts().stall_timeout)


def _for_st(config: RunConfig) -> RunConfig:
    """The configuration for ST: one channel, epochs of any length, any recovery; go-back-n in small groups only.

    Where a buffer may overrun there are no duplicates: a unit that is lost and then arrives as its own duplicate has
    changed its position in the channel's order.
    """
    rng = Random(f"swarm/st/{config.seed}")
    network = replace(config.network, channel=Channel.ONE)
    group = replace(
        config.group,
        log_limit=rng.choice([2, 20, 100, 400]),
        recovery=RecoveryPolicy.GO_BACK_N
        if config.group.nodes <= 5 and rng.random() < 0.5
        else RecoveryPolicy.SELECTIVE,
        timing=config.workload.timing(network, config.group.nodes),
    )
    if rng.random() < 0.3:
        group = replace(group, recovery=RecoveryPolicy.PLACE)
    return replace(config, protocol="st", network=network, group=group, faults=_without_moved(config))


def _for_priorities(config: RunConfig, protocol: str) -> RunConfig:
    """The configuration for TO, PriTO and PriO: one channel, with priorities; all three get the same runs.

    All timeouts are those of the command line: a burst may lose many polls in a row.
    """
    rng = Random(f"swarm/priorities/{config.seed}")
    network = replace(config.network, channel=Channel.ONE)
    group = replace(config.group, priority=PriorityConfig(synchronises=rng.random() < 0.8))
    work = replace(config.workload, priorities=rng.choice([1, 2, 3, 9, 9]), urgent=rng.choice([0.0, 0.0, 0.1, 0.5]))
    if work.priorities == 1:
        work = replace(work, urgent=0.0)
    faults = _without_moved(config)
    config = replace(config, protocol=protocol, network=network, group=group, workload=work, faults=faults)
    return config.with_default_timeouts()


def _without_moved(config: RunConfig) -> tuple[Fault, ...]:
    """The faults that preserve the one order of the channel: see `_for_st`."""
    return tuple(fault for fault in config.faults if not (config.network.may_lose() and isinstance(fault, Duplicates)))


def _draw_config(number: int, sizes: Sizes) -> RunConfig:
    rng = Random(f"swarm/{number}")
    nodes = rng.randint(sizes.least_nodes, sizes.most_nodes)
    network = _with_lines(_draw_network(rng), Random(f"swarm/lines/{number}"))
    work = Workload(
        messages=max(2, sizes.receipts // (nodes * (nodes - 1))),
        spread=rng.choice([0.1, 0.3, 0.5, 0.8, 1.0]),
        pattern=rng.choice(list(Pattern)),
        gap=rng.choice([5, 50, 200, 1000]) * MICROSECOND,
        batch=rng.choice(sizes.batches),
    )
    return RunConfig(
        protocol="spo",
        group=GroupConfig(
            nodes=nodes,
            window=rng.choice([1, 2, 4, 8, 16, 32, 64]),
            quota=rng.choice([1, 2, 4, 16, 256, 256]),
            infer_losses=rng.random() < 0.3,
            polls_to_abort=1_000_000_000,  # pauses and splits end, so that no node needs to abort
            first_seq=_first_numbers(rng, Random(f"swarm/numbers/{number}"), nodes),
            timing=work.timing(network, nodes),
        ),
        network=network,
        workload=work,
        faults=_draw_faults(rng, nodes, sizes.rates),
        seed=number,
    )


def _first_numbers(rng: Random, rng_of_large: Random, nodes: int) -> tuple[int, ...]:
    """The first numbers of packets: small ones, or a few below a power of two at which fewer bits would not do."""
    small = tuple(rng.randint(0, 9) for _ in range(nodes)) if rng.random() < 0.3 else ()
    if rng_of_large.random() >= _LARGE_NUMBERS:
        return small
    power = rng_of_large.choice(_BITS)
    return tuple((1 << power) - rng_of_large.randint(0, 9) for _ in range(nodes))


def _draw_network(rng: Random) -> Network:
    overrun = rng.random() < 0.2
    return Network(
        channel=rng.choice([Channel.ONE, Channel.MANY]),
        propagation=rng.choice([1, 50, 500]) * MICROSECOND,
        jitter=rng.choice([0, 50, 200]) * MICROSECOND,
        bits_per_second=rng.choice([0, 0, 0, 1_000_000_000]),
        receive_time=5 * MICROSECOND if overrun else 0,
        receive_buffer=rng.choice([4, 16]) if overrun else 0,
        drained=rng.random() < 0.2,
    )


def _with_lines(network: Network, rng: Random) -> Network:
    """A tenth has narrow lines, or a narrow medium, with queues of a few units or of more than a window."""
    if rng.random() >= 0.1:
        return network
    narrow = rng.choice([10_000_000, 100_000_000])
    which = rng.choice(["bits_per_second", "line_bits_per_second"])
    return replace(network, **{which: narrow, "queue_bytes": rng.choice([1_000, 10_000, 100_000])})


def _draw_faults(rng: Random, nodes: int, rates: tuple[float, ...]) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    if rng.random() < 0.9:
        rate = rng.choice(rates)
        faults.append(Loss(rate=rate, shared=rng.random() < 0.2))
    if rng.random() < 0.2:
        faults.append(Bursts(well=rng.randint(1, 20) * MILLISECOND, bad=rng.randint(50, 2000) * MICROSECOND))
    if rng.random() < 0.2:
        faults.append(Duplicates(rate=rng.choice([0.01, 0.2])))
    if rng.random() < 0.15:
        start, lasting = rng.randint(0, 5), rng.randint(1, 20)
        faults.append(Pause(node=rng.randrange(nodes), at=start * MILLISECOND, lasting=lasting * MILLISECOND))
    if rng.random() < 0.15:
        side = tuple(node for node in range(nodes) if rng.random() < 0.5) or (0,)
        start, lasting = rng.randint(0, 5), rng.randint(1, 20)
        faults.append(
            Split(
                side=side,
                at=start * MILLISECOND,
                lasting=lasting * MILLISECOND,
                one_way=rng.random() < 0.5,
            )
        )
    return tuple(faults)
