"""Reductions of a configuration: smaller or simpler ones, one change at a time. `shrink` checks which still fail."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import msgspec

from ordercast.model.config import GroupConfig, RecoveryPolicy
from ordercast.model.errors import ConfigError
from ordercast.model.faults import (
    Crash,
    DiskFailure,
    Fault,
    Join,
    Leave,
    Miss,
    NodeFault,
    Pause,
    Quit,
    Restart,
    Return,
    Split,
    Suspicion,
    Twice,
    UnitKind,
    returned_nodes,
)
from ordercast.model.machine import Machine
from ordercast.model.nodes import members
from ordercast.model.runs import Network, Pattern, RunConfig, ScriptedSend, TraceDetail, Workload
from ordercast.model.services import BROADCASTS
from ordercast.simulator.fault_recorder import FaultRecorder
from ordercast.simulator.workloads import senders, submissions
from ordercast.swarm.run_audit import attempt

replace = msgspec.structs.replace


@dataclass(frozen=True, order=True)
class RunSize:
    """The size of a run: what a reader has to understand."""

    nodes: int
    messages: int
    faults: int

    def __str__(self) -> str:
        counts = {"node": self.nodes, "message": self.messages, "fault": self.faults}
        return ", ".join(f"{count:,} {what}{'' if count == 1 else 's'}" for what, count in counts.items())


def size_of(config: RunConfig) -> RunSize:
    """The size of a configuration."""
    script = config.workload.scripted_sends()
    messages = (
        sum(sending.messages for sending in script)
        if script is not None
        else len(senders(config)) * config.workload.messages
    )
    return RunSize(config.group.nodes, messages, len(config.faults))


# --- from random to explicit ---


def explicit(config: RunConfig, machine: type[Machine] | None = None) -> RunConfig:
    """The run with all random decisions as explicit faults and scripted sends, except for the delays of units.

    Each loss becomes a fault of its own, whatever caused it; each packet becomes a scripted send.
    """
    fault_recorder = FaultRecorder()
    attempt(replace(config, record=TraceDetail.ALL), machine, fault_recorder)
    script = tuple(
        ScriptedSend(
            node=node,
            to=() if config.protocol in BROADCASTS else members(submission.destinations),
            at=at,
            messages=len(submission.lengths),
            priority=submission.priority,
        )
        for node in range(config.group.nodes)
        for at, submission in submissions(config, node)
    )
    kept = tuple(fault for fault in config.faults if isinstance(fault, NodeFault))
    return replace(
        config,
        workload=Workload(size=config.workload.size, batch=config.workload.batch, script=script),
        network=replace(config.network, receive_buffer=0, queue_bytes=0),
        faults=(*kept, *dict.fromkeys(fault_recorder.found)),
    )


# --- fewer nodes ---


def without_nodes(config: RunConfig, gone: Collection[int], kept: Sequence[int] | None = None) -> RunConfig:
    """The group without some nodes, what they send and the faults that name them; the others are renumbered.

    `kept`: the indices of the faults that stay; default: all. Without its return, a new incarnation is gone, too.
    """
    faults = config.faults if kept is None else tuple(config.faults[place] for place in kept)
    if config.group.views:
        gone = set(gone)
        for node, fault in returned_nodes(config.faults, config.group.nodes).items():
            if fault.node in gone or node in gone or all(each is not fault for each in faults):
                gone.add(node)
                faults = tuple(each for each in faults if each is not fault)
    place = {node: new for new, node in enumerate(node for node in range(config.group.nodes) if node not in gone)}
    group, work = config.group, config.workload
    sequencer = replace(
        group.sequencer,
        node=place.get(group.sequencer.node, 0),
        resilience=min(group.sequencer.resilience, len(place) - 1),
    )
    first_seq = tuple(seq for node, seq in enumerate(group.first_seq) if node in place)
    script = work.scripted_sends()
    if script is not None:
        moved = (_moved_send(sending, place) for sending in script)
        work = replace(work, script=tuple(sending for sending in moved if sending is not None))
    work = replace(work, senders=tuple(place[node] for node in work.senders if node in place))
    moved_faults = (_moved_fault(fault, place) for fault in faults)
    return replace(
        config,
        group=replace(group, nodes=len(place), first_seq=first_seq, sequencer=sequencer),
        workload=work,
        faults=tuple(fault for fault in moved_faults if fault is not None),
    )


def _moved_send(sending: ScriptedSend, place: dict[int, int]) -> ScriptedSend | None:
    to = tuple(place[node] for node in sending.to if node in place)
    if sending.node not in place or (sending.to and not to):
        return None
    return replace(sending, node=place[sending.node], to=to)


def _moved_fault(fault: Fault, place: dict[int, int]) -> Fault | None:
    match fault:
        case Miss(node=node, source=source) | Twice(node=node, source=source):
            known = node in place and source in place
            return replace(fault, node=place[node], source=place[source]) if known else None
        case (
            Pause(node=node)
            | Crash(node=node)
            | Join(node=node)
            | Leave(node=node)
            | Quit(node=node)
            | Return(node=node)
            | Restart(node=node)
            | DiskFailure(node=node)
        ):
            return replace(fault, node=place[node]) if node in place else None
        case Suspicion(node=node, by=by):
            return replace(fault, node=place[node], by=place[by]) if node in place and by in place else None
        case Split(side=side):
            moved = tuple(place[node] for node in side if node in place)
            return replace(fault, side=moved) if 0 < len(moved) < len(place) else None
    return fault


# --- fewer scripted sends ---


def with_sends(config: RunConfig, kept: Sequence[int]) -> RunConfig:
    """The script with only these scripted sends; faults of a first transmission still affect the same one."""
    script = config.workload.scripted_sends() or ()
    by_source: dict[int, list[int]] = {}
    for place in sorted(range(len(script)), key=lambda place: script[place].at):
        by_source.setdefault(script[place].node, []).append(place)
    left = set(kept)
    faults: list[Fault] = []
    for fault in config.faults:
        if not isinstance(fault, Miss | Twice) or fault.kind is not UnitKind.DATA:
            faults.append(fault)
            continue
        sent = by_source.get(fault.source, [])
        if fault.nth > len(sent):
            faults.append(fault)
        elif sent[fault.nth - 1] in left:
            before = sum(place not in left for place in sent[: fault.nth - 1])
            faults.append(replace(fault, nth=fault.nth - before))
    work = replace(config.workload, script=tuple(script[place] for place in sorted(left)))
    return replace(config, workload=work, faults=tuple(dict.fromkeys(faults)))


def with_fewer_destinations(config: RunConfig) -> Iterator[RunConfig]:
    """Each scripted send without each of its destinations."""
    script = config.workload.scripted_sends() or ()
    for place, sending in enumerate(script):
        for node in sending.to if len(sending.to) > 1 else ():
            fewer = replace(sending, to=tuple(other for other in sending.to if other != node))
            work = replace(config.workload, script=(*script[:place], fewer, *script[place + 1 :]))
            yield replace(config, workload=work)


# --- smaller numbers, in random runs ---


def smaller(config: RunConfig) -> Iterator[RunConfig]:
    """Fewer nodes, messages, senders or faults: the largest reductions first."""
    nodes, work = config.group.nodes, config.workload
    for count in _below(nodes, least=1 if config.group.views else 2):
        yield from _possible(partial(without_nodes, config, range(count, nodes)))
    for messages in _below(work.messages, least=1):
        yield replace(config, workload=replace(work, messages=messages, batch=min(work.batch, messages)))
    sending = senders(config)
    for sender in sending if len(sending) > 1 else ():
        yield replace(config, workload=replace(work, senders=(sender,)))
    for sender in sending if len(sending) > 2 else ():
        yield replace(config, workload=replace(work, senders=tuple(node for node in sending if node != sender)))
    for place in range(len(config.faults)):
        others = [other for other in range(len(config.faults)) if other != place]
        yield from _possible(partial(with_faults, config, others))


def with_faults(config: RunConfig, kept: Sequence[int]) -> RunConfig:
    """The run with only these of its faults; without a return there is one node less."""
    if config.group.views:
        return without_nodes(config, (), kept)
    return replace(config, faults=tuple(config.faults[place] for place in kept))


def _possible(make: Callable[[], RunConfig]) -> Iterator[RunConfig]:
    """A reduction, unless it makes no sense: a member may crash only after it has joined, for example."""
    with suppress(ConfigError):
        yield make()


def _below(number: int, least: int) -> list[int]:
    wanted = {least, least + 1, least + 2, number // 4, number // 2, number - 1}
    return sorted(value for value in wanted if least <= value < number)


# --- simpler ---


def simpler(config: RunConfig) -> Iterator[RunConfig]:
    """The same run with one setting at its default."""
    usual_group, usual_network = (
        GroupConfig(nodes=config.group.nodes, views=config.group.views),
        Network(channel=config.network.channel),
    )
    yield replace(config, network=replace(usual_network, jitter=0))
    yield replace(config, network=replace(config.network, jitter=0))
    for name in (
        *("receive_time", "receive_buffer", "send_time", "queue_bytes", "line_bits_per_second", "bits_per_second"),
        *("drained", "propagation"),
    ):
        yield replace(config, network=replace(config.network, **{name: getattr(usual_network, name)}))
    for name in ("first_seq", "infer_losses", "window", "quota", "log_limit", "priority", "sequencer"):
        yield replace(config, group=replace(config.group, **{name: getattr(usual_group, name)}))
    yield replace(config, group=replace(config.group, recovery=RecoveryPolicy.SELECTIVE))
    yield replace(config, group=config.with_default_timeouts().group)
    yield from _simpler_work(config)
    yield replace(config, seed=0)


def _simpler_work(config: RunConfig) -> Iterator[RunConfig]:
    work = config.workload
    script = work.scripted_sends()
    if script is None:
        plain = {"batch": 1, "pattern": Pattern.STEADY, "spread": 1.0, "priorities": 1, "urgent": 0.0, "size": 0}
        for name, value in plain.items():
            changed = {name: value} | ({"urgent": 0.0} if name == "priorities" else {})
            yield replace(config, workload=replace(work, **changed))
        return
    for name, value in (("at", 0), ("messages", 1), ("priority", 0)):
        yield _rescripted(config, [replace(sending, **{name: value}) for sending in script])
        for place in range(len(script)):
            plain_one = replace(script[place], **{name: value})
            yield _rescripted(config, [*script[:place], plain_one, *script[place + 1 :]])
    yield replace(config, workload=replace(work, batch=1, size=0))


def _rescripted(config: RunConfig, script: Sequence[ScriptedSend]) -> RunConfig:
    return replace(config, workload=replace(config.workload, script=tuple(script)))
