"""Random configurations of groups whose nodes have durable logs: some or all are killed and started again."""

from random import Random

import msgspec

from ordercast.model.config import MILLISECOND
from ordercast.model.faults import Bursts, Crash, DiskFailure, Fault, Loss, Pause, Restart, Return, Split, nodes_named
from ordercast.model.runs import WITH_LOGS, RunConfig
from ordercast.swarm.draw import Sizes, draw_sized

replace = msgspec.structs.replace

_SIZES = Sizes(most_nodes=5, receipts=120, batches=(1, 1, 1, 3))
_HORIZONS = (3, 20, 80)  # in milliseconds: when processes are killed
_MOST_LOSS = 0.2


def draw_restarting(number: int, protocol: str) -> RunConfig:
    """The configuration of a number: 2 to 5 nodes with logs; in about half of them all are killed at about once."""
    if protocol not in WITH_LOGS:
        protocol = sorted(WITH_LOGS)[number % len(WITH_LOGS)]
    rng = Random(f"swarm/restarts/{number}")
    config = draw_sized(number, protocol, _SIZES)
    members = config.group.nodes
    horizon = rng.choice(_HORIZONS) * MILLISECOND
    faults: list[Fault] = [
        fault
        for fault in config.faults
        if not isinstance(fault, Crash | Pause | Split | Bursts)
        and not (isinstance(fault, Loss) and fault.rate > _MOST_LOSS)
        and all(node < members for node in nodes_named(fault))
    ]
    restarts = _restarts(rng, members, horizon)
    faults += restarts
    if rng.random() < 0.15:
        faults.append(DiskFailure(node=rng.randrange(members), at=rng.randint(0, horizon)))
    if rng.random() < 0.2:
        side, lasting = (rng.randrange(members),), rng.randint(1, 100) * MILLISECOND
        faults.append(Split(side=side, at=rng.randint(0, horizon), lasting=lasting))
    group = replace(
        config.group,
        nodes=members + sum(isinstance(fault, Restart | Return) for fault in faults),
        views=True,
        first_seq=(),
        sequencer=replace(config.group.sequencer, node=0, resilience=rng.choice([0, 0, 1, members // 2])),
    )
    config = replace(
        config, group=group, faults=tuple(faults), logs=True, workload=replace(config.workload, spread=1.0)
    )
    return replace(config, stall_timeout=config.with_default_timeouts().stall_timeout)


def _restarts(rng: Random, members: int, horizon: int) -> list[Fault]:
    """Each process that is killed starts again, and some of them are killed once more, by then as other nodes."""
    together = rng.randint(0, horizon) if rng.random() < 0.5 else None
    processes = range(members) if together is not None else rng.sample(range(members), rng.randint(1, members))
    lives: list[tuple[int, int, int, int]] = []  # when it is back, process, which life, when it was killed
    for process in processes:
        at = (
            rng.randint(0, horizon) if together is None else together + rng.choice([0, rng.randint(0, 5 * MILLISECOND)])
        )
        back = at + rng.randint(1, rng.choice([20, 120]) * MILLISECOND)
        lives.append((back, process, 0, at))
        if rng.random() < 0.25:
            again = back + rng.randint(0, rng.choice([20, 150]) * MILLISECOND)
            lives.append((again + rng.randint(1, 100 * MILLISECOND), process, 1, again))
    node_of = {(process, 0): process for process in range(members)}
    found: list[Fault] = []
    for place, (back, process, life, at) in enumerate(sorted(lives)):
        node_of[process, life + 1] = members + place
        old = node_of[process, life]
        if rng.random() < 0.05:  # its disk is lost, too
            found.append(Return(node=old, at=back))
            continue
        found.append(Restart(node=old, at=at, after=back - at, power=rng.random() < 0.7))
    return found
