"""`ordercast simulate`: one run, its summary, its trace and its picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ordercast.cli.shared.group_options import (
    GROUP,
    OUTPUT,
    PROTOCOL_PANEL,
    History,
    InferLosses,
    Json,
    Protocol,
    Quota,
    Reading,
    RecoveryOption,
    Resilience,
    RulesOption,
    Svg,
    Window,
    option,
    parsed,
)
from ordercast.model.config import GroupConfig, PriorityConfig, RecoveryPolicy, Rules, SequencerConfig, require
from ordercast.model.faults import Loss, MembershipFault
from ordercast.model.option_parsing import parse_duration, parse_fault, parse_nodes, parse_readings, parse_speed
from ordercast.model.runs import (
    Channel,
    Network,
    Pattern,
    RunConfig,
    TraceDetail,
    Workload,
    wants_logs,
    wants_views,
    with_later_nodes,
)
from ordercast.model.services import PRIORITISED
from ordercast.trace.schema import EventField, EventKind, EventRow
from ordercast.trace.storage import Location, location

_WORK, _NET, _FAULTS = "Workload", "Network", "Faults"
_FAULT = (
    "A fault, repeatable: 'loss rate=0.1 shared=true', 'bursts well=10ms bad=1ms', 'duplicates rate=0.01', "
    "'miss node=E3 source=E1 nth=2', 'twice node=E3 source=E1 nth=2', 'pause node=E2 at=1ms lasting=5ms', "
    "'split side=E1,E2 at=1ms lasting=5ms', 'crash node=E2 at=3ms'; and of members: 'join node=E5 at=3ms', "
    "'leave node=E2 at=3ms', 'return node=E2 at=9ms' (starts again and joins under its name, as a new node), "
    "'suspect node=E3 by=E1 at=3ms', 'quit node=E2 at=3ms' (its host gives the group up); "
    "and of durable logs: 'restart node=E2 at=3ms after=9ms' (is killed, and starts "
    "again with its log, as a new node; power=false: its disk loses nothing), 'disk node=E2 at=3ms' (it fails). "
    "Times count from the start. Nodes are E1, E2, …; a bare number counts from 0, so node=2 is E3."
)
_VIEWS = (
    "Run the membership protocol: the others go on when a node crashes, and nodes may join, leave and return (default: "
    "if a fault needs it, or a node crashes; the sequencer goes on after crashes by itself)."
)
_LOGS = (
    "Each node has a durable log, on a disk of its own (default: if a fault needs it). For orders in which a message "
    "has one position: st, to, prito, sequencer."
)
_PATTERN = (
    "When nodes send: each at equal intervals (steady), at random (poisson) or in bursts (bursty); E1 alone, at equal "
    "intervals (talker); each as fast as the protocol accepts it (everybody)."
)


def simulate_command(
    protocol: Protocol,
    nodes: Annotated[
        int, option(GROUP, "Number of nodes; those that join may be more, and those that return are.")
    ] = 4,
    views: Annotated[bool | None, option(GROUP, _VIEWS, "--views/--no-views")] = None,
    logs: Annotated[bool, option(GROUP, _LOGS, "--logs")] = False,
    rules: RulesOption = Rules.SOUND,
    window: Window = 32,
    quota: Quota = 256,
    recovery: RecoveryOption = RecoveryPolicy.SELECTIVE,
    infer_losses: InferLosses = False,
    synchronise: Annotated[
        bool, option(PROTOCOL_PANEL, "PriTO, PriO: end priority runs in time, so that no message starves.")
    ] = True,
    history: History = 1024,
    resilience: Resilience = 0,
    direct_from: Annotated[
        int,
        option(PROTOCOL_PANEL, "Sequencer: bytes from which senders broadcast their data themselves; 0: never."),
    ] = 1400,
    reading: Reading = None,
    messages: Annotated[int, option(_WORK, "Messages that each node sends.")] = 100,
    spread: Annotated[float, option(_WORK, "Mean share of the group that a message is addressed to, in (0, 1].")] = 1.0,
    pattern: Annotated[Pattern, option(_WORK, _PATTERN)] = Pattern.POISSON,
    senders: Annotated[
        str, option(_WORK, "Nodes that send, such as E2,E3; a bare 2 is E3 (default: given by the pattern).")
    ] = "",
    gap: Annotated[str, option(_WORK, "Mean time between a node's messages.")] = "200us",
    burst: Annotated[int, option(_WORK, "Messages in a burst, for --pattern bursty.")] = 16,
    batch: Annotated[int, option(_WORK, "Messages in one packet.")] = 1,
    size: Annotated[int, option(_WORK, "Payload bytes of a message.")] = 64,
    priorities: Annotated[
        int | None, option(_WORK, "Draw priorities from 1 to this (default: 3 for prito and prio, else 1).")
    ] = None,
    urgent: Annotated[
        float, option(_WORK, "Share of messages with the highest priority; 0: all priorities equally often.")
    ] = 0.0,
    channel: Annotated[
        Channel | None,
        option(
            _NET,
            "one: a single order for all (1C); many: each sender's order (MC); any: none "
            "(default: the weakest that the protocol works on).",
        ),
    ] = None,
    propagation: Annotated[str, option(_NET, "Minimum delay.")] = "50us",
    jitter: Annotated[str, option(_NET, "Maximum random delay added to it.")] = "50us",
    bandwidth: Annotated[str, option(_NET, "Bits per second, such as 10Mbit; 0: unlimited.")] = "0",
    line_bandwidth: Annotated[str, option(_NET, "The same of the line from the network to each node.")] = "0",
    queue_bytes: Annotated[
        int, option(_NET, "Bytes that may wait for the medium, and for each line; more are lost; 0: unlimited.")
    ] = 0,
    send_time: Annotated[str, option(_NET, "Time that a node takes to send a unit.")] = "0",
    receive_time: Annotated[str, option(_NET, "Time that a node takes to receive a unit.")] = "0",
    receive_buffer: Annotated[int, option(_NET, "Units that may wait at a node, more are lost; 0: unlimited.")] = 0,
    drained: Annotated[
        bool, option(_NET, "Tell a node when no unit is waiting for it, as a live host does: it then sends its status.")
    ] = False,
    loss: Annotated[float, option(_FAULTS, "Probability that a node loses a unit, in [0, 1).")] = 0.0,
    fault: Annotated[list[str] | None, option(_FAULTS, _FAULT)] = None,
    seed: Annotated[int, option(_FAULTS, "Seed of all randomness: equal options and seeds give equal runs.")] = 0,
    out: Annotated[
        Any,
        typer.Option(
            rich_help_panel=OUTPUT,
            help="Write the trace to this folder, also as a URL.",
            parser=location,
            metavar="FOLDER",
        ),
    ] = None,
    record: Annotated[TraceDetail, option(OUTPUT, "What the trace in --out contains.")] = TraceDetail.ALL,
    json: Json = False,
    draw: Annotated[bool, option(OUTPUT, "Print a space-time diagram of a small run.", "--draw")] = False,
    svg: Svg = None,
) -> None:
    """Simulate one run and print its summary.

    Exit 0: every message was acknowledged everywhere; 1: not; 2: bad arguments.
    """
    from ordercast.protocols.registry import machine_class

    require(not (json and draw), "--json and --draw both write to standard output; use --svg FILE for the picture")
    network = Network(
        channel=channel or machine_class(protocol, rules).needs,
        propagation=parsed("--propagation", parse_duration, propagation),
        jitter=parsed("--jitter", parse_duration, jitter),
        bits_per_second=parsed("--bandwidth", parse_speed, bandwidth),
        line_bits_per_second=parsed("--line-bandwidth", parse_speed, line_bandwidth),
        queue_bytes=queue_bytes,
        send_time=parsed("--send-time", parse_duration, send_time),
        receive_time=parsed("--receive-time", parse_duration, receive_time),
        receive_buffer=receive_buffer,
        drained=drained,
    )
    require(
        not queue_bytes or network.bits_per_second or network.line_bits_per_second,
        "--queue-bytes has no effect without --bandwidth or --line-bandwidth",
    )
    faults = (
        *([Loss(rate=loss)] if loss else []),
        *(parsed("--fault", parse_fault, text) for text in fault or []),
    )
    has_logs = wants_logs(faults) or logs
    has_views = (wants_views(protocol, rules, faults) or has_logs) if views is None else views
    require(
        has_views or not any(isinstance(each, MembershipFault) for each in faults),
        "--no-views has no meaning where nodes join, leave, return or are suspected; remove it, or these faults",
    )
    require(
        not has_views or rules is Rules.SOUND,
        "only the sound rules run with views; use --rules sound, or no --views and no faults of members",
    )
    workload = Workload(
        messages=messages,
        spread=spread,
        pattern=pattern,
        senders=parsed("--senders", parse_nodes, senders),
        gap=parsed("--gap", parse_duration, gap),
        burst=burst,
        batch=batch,
        size=size,
        priorities=priorities if priorities is not None else 3 if protocol in PRIORITISED else 1,
        urgent=urgent,
    )
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(
            nodes=with_later_nodes(nodes, faults),
            views=has_views,
            rules=rules,
            window=window,
            quota=quota,
            infer_losses=infer_losses,
            recovery=recovery,
            priority=PriorityConfig(synchronises=synchronise),
            sequencer=SequencerConfig(history=history, resilience=resilience, direct_from=direct_from),
            paper=parsed("--reading", parse_readings, reading or []),
        ),
        network=network,
        workload=workload,
        faults=faults,
        seed=seed,
        record=record,
        logs=has_logs,
    )
    _require_used(config)
    _run(config.with_default_timeouts(), out, json=json, draw=draw, svg=svg)


def _run(config: RunConfig, out: Location | None, *, json: bool, draw: bool, svg: Path | None) -> None:
    from rich.console import Console

    from ordercast.cli.shared.diagrams import show_diagram
    from ordercast.cli.shared.progress import progress_bar
    from ordercast.cli.shared.run_summary import as_json, print_summary
    from ordercast.simulator import simulate

    console = Console()
    drawn = _DrawnRows(config.group.nodes) if draw or svg else None
    with progress_bar(f"{config.protocol}, {config.group.nodes} nodes: messages sent") as progress:
        result = simulate(config, out, sink=drawn.take if drawn else None, progress=progress)
    if drawn is not None:
        show_diagram(drawn.rows, config.group.nodes, console if draw else None, svg)
    if json:
        typer.echo(as_json(result))
    else:
        print_summary(result, console, out)
    raise typer.Exit(0 if result.complete else 1)


class _DrawnRows:
    """Collects the rows of a run to draw; raises `ConfigError` as soon as there are too many for a picture."""

    def __init__(self, nodes: int) -> None:
        from ordercast.drawing import require_drawable

        self.rows: list[EventRow] = []
        self._nodes, self._transmissions = nodes, set[int | None]()
        self._require_drawable = require_drawable
        require_drawable(nodes, 0)

    def take(self, rows: Sequence[EventRow]) -> None:
        """Takes a batch of rows."""
        self.rows += rows
        self._transmissions.update(
            row[EventField.TRANSMISSION] for row in rows if row[EventField.EVENT] == EventKind.TRANSMIT
        )
        self._require_drawable(self._nodes, len(self._transmissions))


def _require_used(config: RunConfig) -> None:
    from ordercast.cli.shared.unused_options import require_used_options, require_used_readings

    group, work, default = config.group, config.workload, SequencerConfig()
    given = {
        "--spread": work.spread < 1,
        "--recovery": group.recovery is not RecoveryPolicy.SELECTIVE,
        "--infer-losses": group.infer_losses,
        "--history": group.sequencer.history != default.history,
        "--resilience": group.sequencer.resilience != default.resilience,
        "--direct-from": group.sequencer.direct_from != default.direct_from,
        "--priorities": work.priorities > 1,
        "--urgent": work.urgent > 0,
        "--no-synchronise": not group.priority.synchronises,
    }
    require_used_options(config.protocol, given)
    require_used_readings(group)
    require(
        work.burst == Workload(messages=1).burst or work.pattern is Pattern.BURSTY,
        f"--burst has no effect for --pattern {work.pattern.value}, only for bursty: omit it",
    )
