"""`ordercast simulate`: one run, its summary, its trace and its picture."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from ordercast.cli.pictures import show_picture
from ordercast.cli.progress import bar
from ordercast.cli.summary import as_json, print_summary
from ordercast.cli.unused_options import report_unused_options, report_unused_readings
from ordercast.drawing import require_drawable
from ordercast.model import values
from ordercast.model.config import GroupConfig, PriorityConfig, Recovery, Rules, SequencerConfig, require
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.model.services import PRIORITISED
from ordercast.protocols.registry import PROTOCOLS, machine_class
from ordercast.simulator import simulate
from ordercast.trace.schema import EventKind, EventRow

Value = TypeVar("Value")
Text = TypeVar("Text", str, list[str])


_GROUP, _WORK, _NET, _SHOW = "The group", "What is sent", "The network and its faults", "What is shown and kept"
_FAULTS = (
    "A fault, as often as wanted: 'loss rate=0.1 shared=true', 'bursts well=10ms bad=1ms', 'duplicates rate=0.01', "
    "'miss node=E3 source=E1 nth=2', 'twice node=E3 source=E1 nth=2', 'pause node=E2 at=1ms lasting=5ms', "
    "'split side=E1,E2 at=1ms lasting=5ms', 'crash node=E2 at=3ms'. Times count from the start. Nodes are named as in "
    "what is printed, E1 and so on; a bare number counts from 0, so that node=2 is E3."
)
_READINGS = (
    "A reading of the printed rules, as often as wanted: 'first_id=1', 'asks_once=true', 'condition_2=others'. "
    "The pages on the protocols tell them."
)


def simulate_command(
    protocol: Annotated[str, typer.Argument(help=f"One of: {', '.join(PROTOCOLS)}.")],
    nodes: Annotated[int, typer.Option(help="Nodes of the group.", rich_help_panel=_GROUP)] = 4,
    rules: Annotated[
        Rules, typer.Option(help="The mended rules, or the printed ones.", rich_help_panel=_GROUP)
    ] = Rules.SOUND,
    window: Annotated[int, typer.Option(help="Packets a source may have under way.", rich_help_panel=_GROUP)] = 32,
    quota: Annotated[int, typer.Option(help="Places a node keeps for each source.", rich_help_panel=_GROUP)] = 256,
    recovery: Annotated[
        Recovery, typer.Option(help="What ST sends again after a loss.", rich_help_panel=_GROUP)
    ] = Recovery.SELECTIVE,
    hearsay: Annotated[
        bool, typer.Option(help="Ask early about losses that others' words show.", rich_help_panel=_GROUP)
    ] = False,
    synchronise: Annotated[
        bool, typer.Option(help="End priority runs in time, so that nothing starves.", rich_help_panel=_GROUP)
    ] = True,
    history: Annotated[
        int, typer.Option(help="Broadcasts that the sequencer keeps for those who lack them.", rich_help_panel=_GROUP)
    ] = 1024,
    resilience: Annotated[
        int,
        typer.Option(
            help="Nodes that hold a broadcast besides the sequencer before it is delivered.", rich_help_panel=_GROUP
        ),
    ] = 0,
    direct_from: Annotated[
        int,
        typer.Option(
            help="Bytes from which senders broadcast themselves and the sequencer only numbers; 0: never.",
            rich_help_panel=_GROUP,
        ),
    ] = 1400,
    reading: Annotated[list[str] | None, typer.Option(help=_READINGS, rich_help_panel=_GROUP)] = None,
    messages: Annotated[int, typer.Option(help="Messages by each node.", rich_help_panel=_WORK)] = 100,
    spread: Annotated[
        float, typer.Option(help="Share of the group that a message is for, above 0 to 1.", rich_help_panel=_WORK)
    ] = 1.0,
    pattern: Annotated[Pattern, typer.Option(help="When nodes send.", rich_help_panel=_WORK)] = Pattern.POISSON,
    senders: Annotated[
        str,
        typer.Option(
            help="The nodes that send, such as E2,E3 (a bare 2 is E3); if not said, as the pattern.",
            rich_help_panel=_WORK,
        ),
    ] = "",
    gap: Annotated[str, typer.Option(help="Mean time between a node's messages.", rich_help_panel=_WORK)] = "200us",
    burst: Annotated[int, typer.Option(help="Messages of a burst.", rich_help_panel=_WORK)] = 16,
    batch: Annotated[int, typer.Option(help="Messages in one packet.", rich_help_panel=_WORK)] = 1,
    size: Annotated[int, typer.Option(help="Bytes of a message.", rich_help_panel=_WORK)] = 64,
    priorities: Annotated[
        int | None,
        typer.Option(
            help="Priorities 1 to so many are drawn; if not said, 3 for prito and prio, else 1.", rich_help_panel=_WORK
        ),
    ] = None,
    urgent: Annotated[
        float,
        typer.Option(
            help="Share of messages of the highest priority; 0: as many as of any other.", rich_help_panel=_WORK
        ),
    ] = 0.0,
    loss: Annotated[
        float, typer.Option(help="Chance that a node loses a unit, 0 to below 1.", rich_help_panel=_NET)
    ] = 0.0,
    fault: Annotated[list[str] | None, typer.Option(help=_FAULTS, rich_help_panel=_NET)] = None,
    channel: Annotated[
        Channel | None,
        typer.Option(
            help="One order for all (1C), each sender's only (MC), or none; if not said, what the protocol needs.",
            rich_help_panel=_NET,
        ),
    ] = None,
    propagation: Annotated[str, typer.Option(help="Least time on the way.", rich_help_panel=_NET)] = "50us",
    jitter: Annotated[str, typer.Option(help="The most added to it.", rich_help_panel=_NET)] = "50us",
    bandwidth: Annotated[str, typer.Option(help="Speed such as 10Mbit; 0: no limit.", rich_help_panel=_NET)] = "0",
    send_time: Annotated[str, typer.Option(help="Time to send a unit.", rich_help_panel=_NET)] = "0",
    receive_time: Annotated[str, typer.Option(help="Time to take in a unit.", rich_help_panel=_NET)] = "0",
    receive_buffer: Annotated[
        int, typer.Option(help="Units that may wait at a node; more are lost; 0: no limit.", rich_help_panel=_NET)
    ] = 0,
    drained: Annotated[
        bool, typer.Option(help="Say at once what is owed when no unit waits, as live.", rich_help_panel=_NET)
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same run.", rich_help_panel=_NET)] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the trace there.", rich_help_panel=_SHOW)] = None,
    record: Annotated[
        TraceDetail, typer.Option(help="How much the trace keeps.", rich_help_panel=_SHOW)
    ] = TraceDetail.ALL,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_SHOW)] = False,
    draw: Annotated[bool, typer.Option("--draw", help="Draw a small run here.", rich_help_panel=_SHOW)] = False,
    svg: Annotated[Path | None, typer.Option(help="Draw a small run as SVG there.", rich_help_panel=_SHOW)] = None,
) -> None:
    """Simulates one run. Exit 0: every message was acknowledged everywhere; 1: not; 2: bad arguments."""
    require(not (json and draw), "--json and --draw both want standard output; take --svg FILE for the picture")
    network = Network(
        channel=channel or machine_class(protocol, rules).needs,
        propagation=_read("--propagation", values.duration, propagation),
        jitter=_read("--jitter", values.duration, jitter),
        bits_per_second=_read("--bandwidth", values.speed, bandwidth),
        send_time=_read("--send-time", values.duration, send_time),
        receive_time=_read("--receive-time", values.duration, receive_time),
        receive_buffer=receive_buffer,
        drained=drained,
    )
    workload = Workload(
        messages=messages,
        spread=spread,
        pattern=pattern,
        senders=_read("--senders", values.nodes, senders),
        gap=_read("--gap", values.duration, gap),
        burst=burst,
        batch=batch,
        size=size,
        priorities=priorities if priorities is not None else 3 if protocol in PRIORITISED else 1,
        urgent=urgent,
    )
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(
            nodes=nodes,
            rules=rules,
            window=window,
            quota=quota,
            hearsay=hearsay,
            recovery=recovery,
            priority=PriorityConfig(synchronises=synchronise),
            sequencer=SequencerConfig(history=history, resilience=resilience, direct_from=direct_from),
            paper=_read("--reading", values.readings, reading or []),
        ),
        network=network,
        workload=workload,
        faults=(
            *([Loss(rate=loss)] if loss else []),
            *(_read("--fault", values.fault, text) for text in fault or []),
        ),
        seed=seed,
        record=record,
    )
    _tell_unheeded(config)
    _show(config.suited(), out, json=json, draw=draw, svg=svg)


def _show(config: RunConfig, out: Path | None, *, json: bool, draw: bool, svg: Path | None) -> None:
    console = Console()
    drawn = _Drawn(config.group.nodes) if draw or svg else None
    with bar(f"{config.protocol}, {config.group.nodes} nodes: messages sent") as progress:
        result = simulate(config, out, sink=drawn.take if drawn else None, progress=progress)
    if drawn is not None:
        show_picture(drawn.rows, config.group.nodes, console if draw else None, svg)
    if json:
        typer.echo(as_json(result))
    else:
        print_summary(result, console, out)
    raise typer.Exit(0 if result.complete else 1)


class _Drawn:
    """The rows of a run that is to be drawn; one that turns out too large for that ends there, before memory does."""

    def __init__(self, nodes: int) -> None:
        self.rows: list[EventRow] = []
        self._nodes, self._transmissions = nodes, set[int | None]()
        require_drawable(nodes, 0)

    def take(self, rows: Sequence[EventRow]) -> None:
        """Takes a batch of rows."""
        self.rows += rows
        self._transmissions.update(row[-1] for row in rows if row[3] == EventKind.TRANSMIT)
        require_drawable(self._nodes, len(self._transmissions))


def _read(option: str, reader: Callable[[Text], Value], text: Text) -> Value:
    try:
        return reader(text)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error}") from error


def _tell_unheeded(config: RunConfig) -> None:
    group, work, usual = config.group, config.workload, SequencerConfig()
    given = {
        "--spread": work.spread < 1,
        "--recovery": group.recovery is not Recovery.SELECTIVE,
        "--hearsay": group.hearsay,
        "--history": group.sequencer.history != usual.history,
        "--resilience": group.sequencer.resilience != usual.resilience,
        "--direct-from": group.sequencer.direct_from != usual.direct_from,
        "--priorities": work.priorities > 1,
        "--urgent": work.urgent > 0,
        "--no-synchronise": not group.priority.synchronises,
    }
    report_unused_options(config.protocol, given)
    report_unused_readings(group)
    if work.burst != Workload(messages=1).burst and work.pattern is not Pattern.BURSTY:
        typer.echo("ordercast: --burst changes nothing here: it is for --pattern bursty", err=True)
