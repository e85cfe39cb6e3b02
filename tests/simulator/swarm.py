"""Random configurations, each decided by a number, and the judgement of their runs."""

from dataclasses import replace
from random import Random

import msgspec

from ordercast.audit.judge import Verdict, judge
from ordercast.audit.logs import COLUMNS, RunLogs, logs_of
from ordercast.model.config import MICROSECOND, MILLISECOND, GroupConfig, PriorityConfig, Recovery
from ordercast.model.faults import Bursts, Duplicates, Fault, Loss, Pause, Split
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.model.services import Service
from ordercast.simulator import RunResult, simulate
from ordercast.trace.schema import EVENTS, EventRow
from tests.simulator.sequencer_swarm import for_sequencer


def draw_config(number: int, *, protocol: str = "spo", most_nodes: int = 16, receipts: int = 3_000) -> RunConfig:
    """The configuration of a number: any group, network, workload and faults that a run must survive."""
    config = _draw_config(number, most_nodes=most_nodes, receipts=receipts)
    if protocol == "st":
        return _for_st(config)
    if protocol == "sequencer":
        return for_sequencer(config)
    if protocol in {"to", "prito", "prio"}:
        return _for_priorities(config, protocol)
    return msgspec.structs.replace(config, protocol=protocol)


def _for_st(config: RunConfig) -> RunConfig:
    """The same on one channel, with epochs of any length; small groups go back n too, which takes large ones too long.

    Where a buffer may overrun there are no duplicates: a unit that is lost at its place and comes as its own duplicate
    has changed its place.
    """
    replace = msgspec.structs.replace
    chance = Random(f"swarm/st/{config.seed}")
    network = replace(config.network, channel=Channel.ONE)
    group = replace(
        config.group,
        log_limit=chance.choice([2, 20, 100, 400]),
        recovery=Recovery.GO_BACK_N if config.group.nodes <= 5 and chance.random() < 0.5 else Recovery.SELECTIVE,
        timing=config.workload.timing(network, config.group.nodes),
    )
    faults = tuple(fault for fault in config.faults if not (network.receive_buffer and isinstance(fault, Duplicates)))
    return replace(config, protocol="st", network=network, group=group, faults=faults)


def _for_priorities(config: RunConfig, protocol: str) -> RunConfig:
    """The same on one channel, with priorities. All three protocols get the same runs.

    A run has as much patience as the command line gives it: a burst may swallow many polls in a row.
    """
    replace = msgspec.structs.replace
    chance = Random(f"swarm/priorities/{config.seed}")
    network = replace(config.network, channel=Channel.ONE)
    group = replace(config.group, priority=PriorityConfig(synchronises=chance.random() < 0.8))
    work = replace(
        config.workload, priorities=chance.choice([1, 2, 3, 9, 9]), urgent=chance.choice([0.0, 0.0, 0.1, 0.5])
    )
    if work.priorities == 1:
        work = replace(work, urgent=0.0)
    faults = tuple(fault for fault in config.faults if not (network.receive_buffer and isinstance(fault, Duplicates)))
    return replace(config, protocol=protocol, network=network, group=group, workload=work, faults=faults).suited()


def _draw_config(number: int, *, most_nodes: int, receipts: int) -> RunConfig:
    chance = Random(f"swarm/{number}")
    nodes = chance.randint(2, most_nodes)
    network = _draw_network(chance)
    work = Workload(
        messages=max(2, receipts // (nodes * (nodes - 1))),
        spread=chance.choice([0.1, 0.3, 0.5, 0.8, 1.0]),
        pattern=chance.choice(list(Pattern)),
        gap=chance.choice([5, 50, 200, 1000]) * MICROSECOND,
        batch=chance.choice([1, 1, 1, 3, 16]),
    )
    return RunConfig(
        protocol="spo",
        group=GroupConfig(
            nodes=nodes,
            window=chance.choice([1, 2, 4, 8, 16, 32, 64]),
            quota=chance.choice([1, 2, 4, 16, 256, 256]),
            hearsay=chance.random() < 0.3,
            polls_to_abort=1_000_000_000,  # pauses and splits end; nobody is given up
            first_seq=tuple(chance.randint(0, 9) for _ in range(nodes)) if chance.random() < 0.3 else (),
            timing=work.timing(network, nodes),
        ),
        network=network,
        workload=work,
        faults=_draw_faults(chance, nodes),
        seed=number,
    )


def _draw_network(chance: Random) -> Network:
    overrun = chance.random() < 0.2
    return Network(
        channel=chance.choice([Channel.ONE, Channel.MANY]),
        propagation=chance.choice([1, 50, 500]) * MICROSECOND,
        jitter=chance.choice([0, 50, 200]) * MICROSECOND,
        bits_per_second=chance.choice([0, 0, 0, 1_000_000_000]),
        receive_time=5 * MICROSECOND if overrun else 0,
        receive_buffer=chance.choice([4, 16]) if overrun else 0,
        drained=chance.random() < 0.2,
    )


def _draw_faults(chance: Random, nodes: int) -> tuple[Fault, ...]:
    faults: list[Fault] = []
    if chance.random() < 0.9:
        rate = chance.choice([0.0, 0.01, 0.05, 0.1, 0.2, 0.3])
        faults.append(Loss(rate=rate, shared=chance.random() < 0.2))
    if chance.random() < 0.2:
        faults.append(Bursts(well=chance.randint(1, 20) * MILLISECOND, bad=chance.randint(50, 2000) * MICROSECOND))
    if chance.random() < 0.2:
        faults.append(Duplicates(rate=chance.choice([0.01, 0.2])))
    if chance.random() < 0.15:
        start, lasting = chance.randint(0, 5), chance.randint(1, 20)
        faults.append(Pause(node=chance.randrange(nodes), at=start * MILLISECOND, lasting=lasting * MILLISECOND))
    if chance.random() < 0.15:
        side = tuple(node for node in range(nodes) if chance.random() < 0.5) or (0,)
        start, lasting = chance.randint(0, 5), chance.randint(1, 20)
        faults.append(
            Split(
                side=side,
                at=start * MILLISECOND,
                lasting=lasting * MILLISECOND,
                one_way=chance.random() < 0.5,
            )
        )
    return tuple(faults)


def run_and_judge(config: RunConfig) -> tuple[RunResult, Verdict]:
    """A run, and what the reference audit says of its trace."""
    rows: list[EventRow] = []
    result = simulate(config, rows=rows)
    return result, judge_rows(config, rows)


def judge_rows(config: RunConfig, rows: list[EventRow]) -> Verdict:
    """What the reference audit says of the rows of a trace."""
    verdict = Verdict()
    logs = logs_from_rows(config.name(), config.group.nodes, rows)
    uniform = config.protocol == "sequencer" and config.group.sequencer.resilience >= 1
    judge(replace(logs, uniform=uniform), Service(config.protocol), verdict)
    return verdict


def logs_from_rows(run: str, nodes: int, rows: list[EventRow]) -> RunLogs:
    """The logs of a run from the rows of its trace, without a file between."""
    names = EVENTS.names[1:]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    return logs_of(run, nodes, [{name: columns[name] for name in COLUMNS}] if rows else [])


def failures(result: RunResult, verdict: Verdict) -> list[str]:
    """What is wrong with a run, in words; nothing if it is as it must be."""
    found = [
        f"{name}: {witness.violation.sentence}"
        for name, finding in verdict.findings.items()
        for witness in finding.witnesses
    ]
    if not result.complete:
        found.append(f"incomplete (stalled: {result.stalled}, aborted: {result.aborted}): {result.waits}")
    elif any(result.waits):
        found.append(f"complete, but not at rest: {result.waits}")
    return found
