"""Random configurations of long runs: two or three nodes that send for long. What fails late fails there."""

from random import Random

import msgspec

from ordercast.model.config import MICROSECOND, GroupConfig, Rules
from ordercast.model.faults import Loss
from ordercast.model.runs import Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.model.services import PRIORITISED
from ordercast.protocols.registry import machine_class

replace = msgspec.structs.replace

_OF_MANY_MESSAGES = 0.3
_LARGEST_PACKET = 1024
_MORE_THAN_16_BITS = 66_000
_GAP = 40 * MICROSECOND  # more packets than can be acknowledged before the next


def draw_long(number: int, protocol: str, *, packets: int = 8_000) -> RunConfig:
    """The configuration of a number: so many packets in all, or one sender's messages with numbers above 2¹⁶.

    With priorities nearly all packets are urgent, and runs are ended many times: messages would starve otherwise.
    """
    rng = Random(f"swarm/long/{number}")
    nodes = rng.choice([2, 3])
    network = Network(channel=machine_class(protocol, Rules.SOUND).needs, jitter=rng.choice([0, 50]) * MICROSECOND)
    work = Workload(messages=packets // nodes, gap=_GAP, pattern=rng.choice([Pattern.STEADY, Pattern.POISSON]))
    record = TraceDetail.ALL
    if rng.random() < _OF_MANY_MESSAGES:
        messages = rng.randint(_MORE_THAN_16_BITS, _MORE_THAN_16_BITS + 5_000)
        work = replace(work, messages=messages, batch=_LARGEST_PACKET, pattern=Pattern.TALKER)
        record = TraceDetail.DELIVERIES
    elif protocol in PRIORITISED:
        work = replace(work, priorities=3, urgent=0.9)
    timing = work.timing(network, nodes)
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=nodes, timing=replace(timing, run=4 * timing.status), polls_to_abort=10**9),
        network=network,
        workload=work,
        faults=(Loss(rate=0.01),) if rng.random() < 0.3 else (),
        seed=number,
        record=record,
    )
