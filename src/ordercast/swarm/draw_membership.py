"""Random configurations of groups whose members change: crashes, joins, leaves, returns, splits, wrong suspicions."""

from random import Random

import msgspec

from ordercast.model.config import MILLISECOND, SequencerConfig
from ordercast.model.faults import (
    Bursts,
    Crash,
    Fault,
    Join,
    Leave,
    Loss,
    Pause,
    Quit,
    Return,
    Split,
    Suspicion,
    nodes_named,
)
from ordercast.model.runs import RunConfig, wants_views
from ordercast.swarm.draw import Sizes, draw_sized

replace = msgspec.structs.replace

_BATCHES = (1, 1, 1, 3)
_SMALL = Sizes(most_nodes=5, receipts=80, batches=_BATCHES)
_LARGE = Sizes(most_nodes=16, receipts=80, batches=_BATCHES)
_MOST_LOSS_WITH_BURSTS = 0.05
_WELL_AT_LEAST = 5  # times as long as bursts; with more than 30 % loss hardly a word comes through
_HORIZONS = (5, 20, 100, 400)  # in milliseconds: when members come and go


def draw_changing(number: int, protocol: str) -> RunConfig:
    """The configuration of a number: 1 to 16 members that come and go, on any network that suits the order."""
    rng = Random(f"swarm/membership/{number}")
    config = draw_sized(number, protocol, _LARGE if rng.random() < 0.25 else _SMALL)
    members = 1 if rng.random() < 0.03 else config.group.nodes
    joiners = tuple(range(rng.randint(1, members), members)) if rng.random() < 0.6 else ()
    horizon = rng.choice(_HORIZONS) * MILLISECOND
    starts = {node: rng.randint(0, horizon) for node in joiners}
    faults: list[Fault] = [
        fault
        for fault in config.faults
        if not isinstance(fault, Crash | Pause | Split) and all(node < members for node in nodes_named(fault))
    ]
    if any(isinstance(fault, Loss) and fault.rate > _MOST_LOSS_WITH_BURSTS for fault in faults):
        faults = [fault for fault in faults if not isinstance(fault, Bursts)]
    faults = [fault for fault in faults if not isinstance(fault, Bursts) or fault.well >= _WELL_AT_LEAST * fault.bad]
    faults += [Join(node=node, at=at) for node, at in starts.items()]
    faults += _network_faults(rng, members, horizon, starts)
    returns = _comings_and_goings(rng, members, horizon, starts, faults)
    if not wants_views(protocol, config.group.rules, tuple(faults)) and members > 1:
        faults.append(Suspicion(node=0, by=members - 1, at=max(starts.get(members - 1, 0), rng.randint(0, horizon))))
    faults += _inputs_of_hosts(number, members, horizon, starts)
    group = replace(
        config.group,
        nodes=members + returns,
        views=True,
        first_seq=(),
        sequencer=_sequencer(rng, config.group.sequencer, members),
    )
    config = replace(config, group=group, faults=tuple(faults))
    return replace(config, stall_timeout=config.with_default_timeouts().stall_timeout)


def _sequencer(rng: Random, drawn: SequencerConfig, members: int) -> SequencerConfig:
    return replace(drawn, node=0, resilience=rng.choice([0, 1, members // 2, members]))


def _network_faults(rng: Random, members: int, horizon: int, starts: dict[int, int]) -> list[Fault]:
    """Splits and pauses, shorter and longer than what a member is suspected after."""
    found: list[Fault] = []
    while members > 1 and rng.random() < 0.35:
        side = tuple(node for node in range(members) if rng.random() < rng.choice([0.2, 0.5])) or (0,)
        at, lasting = rng.randint(0, horizon), rng.randint(1, rng.choice([20, 300])) * MILLISECOND
        if len(side) < members:
            found.append(Split(side=side, at=at, lasting=lasting, one_way=rng.random() < 0.2))
    if rng.random() < 0.2:
        node, lasting = rng.randrange(members), rng.randint(1, rng.choice([20, 300])) * MILLISECOND
        found.append(Pause(node=node, at=starts.get(node, 0) + rng.randint(0, horizon), lasting=lasting))
    return found


def _comings_and_goings(rng: Random, members: int, horizon: int, starts: dict[int, int], faults: list[Fault]) -> int:
    """Adds crashes, leaves, returns and suspicions; how many return. Mostly a minority crashes."""
    nodes = list(range(members))
    rng.shuffle(nodes)
    crashing = (
        nodes[: rng.randint(0, members if rng.random() < 0.1 else (members - 1) // 2)] if rng.random() < 0.7 else []
    )
    leaving = nodes[len(crashing) : len(crashing) + rng.choice([0, 1, 1, 2, members])] if rng.random() < 0.4 else []
    ends = {node: starts.get(node, 0) + rng.randint(0, horizon) for node in (*crashing, *leaving)}
    faults += [Crash(node=node, at=ends[node]) for node in crashing]
    faults += [Leave(node=node, at=ends[node]) for node in leaving]
    returning = [node for node in nodes if rng.random() < (0.4 if node in ends else 0.03)]
    faults += [
        Return(node=node, at=ends.get(node, starts.get(node, 0)) + rng.randint(0, horizon)) for node in returning
    ]
    while members > 1 and rng.random() < 0.4:
        by, node = rng.sample(range(members), 2)
        at = max(starts.get(by, 0), starts.get(node, 0)) + rng.randint(0, horizon)
        faults.append(Suspicion(node=node, by=by, at=at))
    return len(returning)


def _inputs_of_hosts(number: int, members: int, horizon: int, starts: dict[int, int]) -> list[Fault]:
    """A host that gives up; suspicions at one moment: of several by one, or of one by several."""
    rng = Random(f"swarm/hosts/{number}")
    found: list[Fault] = []
    if members > 2 and rng.random() < 0.15:
        node = rng.randrange(members)
        found.append(Quit(node=node, at=starts.get(node, 0) + rng.randint(0, horizon)))
    if members > 2 and rng.random() < 0.15:
        one, *others = rng.sample(range(members), rng.randint(3, members))
        at = max(starts.get(node, 0) for node in (one, *others)) + rng.randint(0, horizon)
        pairs = [(one, other) for other in others]
        if rng.random() < 0.5:
            pairs = [(other, one) for other in others]
        found += [Suspicion(node=node, by=by, at=at) for by, node in pairs]
    return found
