"""A schedule as event rows, in the column order of a trace: what pictures are drawn from. Time counts steps."""

from collections.abc import Iterable

from ordercast.explorer.replay import Happening, Replay
from ordercast.explorer.world import Kind, World
from ordercast.model.machine import Abort, Deliver, Discard, Numbered, Output, Reached, Resumed, Send, Stopped, View
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import EventKind, EventRow


def rows_of(world: World, steps: Iterable[int]) -> list[EventRow]:
    """What happens at the nodes; the first step is at time 1."""
    rows: list[EventRow] = []
    recorder = Recorder(world.size, rows.extend, deliveries_only=False)
    for time, happening in enumerate(Replay(world).run(steps), start=1):
        _record(recorder, time, happening)
    recorder.flush()
    return rows


def names_of_messages(world: World) -> dict[tuple[int, int], str]:
    """What the scripts call each message, by its source and number."""
    return {(item.source, item.first): item.submission.payload.decode() for item in world.scenario.items}


def _record(recorder: Recorder, time: int, happening: Happening) -> None:
    node, transmission = happening.node, happening.transmission
    if happening.kind is Kind.CRASH:
        recorder.note(time, node, EventKind.CRASH, None)
    elif happening.kind is Kind.FIRE:
        recorder.note(time, node, EventKind.TIMEOUT, getattr(happening.event, "name", None))
    elif transmission is not None and happening.kind is Kind.RECEIVE:
        recorder.arrive(time, node, transmission.unit, transmission.number)
    elif transmission is not None and happening.kind is Kind.LOSE:
        recorder.lose(time, node, transmission.unit, transmission.number, "lost")
    sent = iter(happening.sent)
    for output in happening.outputs:
        if isinstance(output, Send):
            leaving = next(sent)
            recorder.transmit(time, node, leaving.unit, leaving.number, again=leaving.again)
        else:
            _note(recorder, time, node, output)


def _note(recorder: Recorder, time: int, node: int, output: Output) -> None:
    """As in a simulation's trace."""
    match output:
        case Numbered(packet=packet):
            recorder.send(time, packet)
        case Reached(level=level, packet=packet):
            recorder.level(time, node, level, packet)
        case Deliver(packet=packet):
            recorder.deliver(time, node, packet)
        case Discard(unit=unit, why=why):
            recorder.discard(time, node, unit, why)
        case Stopped(why=why):
            recorder.note(time, node, EventKind.STOP, why)
        case Resumed(asked=asked, inserted=inserted):
            recorder.note(time, node, EventKind.RESUME, f"{asked} asked, {inserted} inserted")
        case View():
            recorder.view(time, node, output)
        case Abort(why=why):
            recorder.note(time, node, EventKind.ABORT, why)
        case _:
            pass
