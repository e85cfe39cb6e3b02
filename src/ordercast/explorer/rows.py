"""A schedule as event rows, in the column order of a trace, for drawing. Time counts steps."""

from collections.abc import Iterable

from ordercast.explorer.execution import ExecutedStep, Execution
from ordercast.explorer.state_space import StateSpace, StepKind
from ordercast.model.machine import (
    Abort,
    Deliver,
    Discard,
    Numbered,
    Output,
    Reached,
    ReachedByView,
    Renumbered,
    Resumed,
    Send,
    Stopped,
    ViewInstalled,
)
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import EventKind, EventRow


def rows_of(space: StateSpace, steps: Iterable[int]) -> list[EventRow]:
    """The events of a schedule; the first step is at time 1."""
    rows: list[EventRow] = []
    recorder = Recorder(space.size, rows.extend, deliveries_only=False)
    for time, executed in enumerate(Execution(space).run(steps), start=1):
        _record(recorder, time, executed)
    recorder.flush()
    return rows


def names_of_messages(space: StateSpace) -> dict[tuple[int, int], str]:
    """The names of messages in the scripts, by source and number."""
    return {(item.source, item.first): item.submission.payload.decode() for item in space.scenario.items}


def _record(recorder: Recorder, time: int, executed: ExecutedStep) -> None:
    node, transmission = executed.node, executed.transmission
    if executed.kind is StepKind.CRASH:
        recorder.note(time, node, EventKind.CRASH, None)
    elif executed.kind is StepKind.FIRE:
        recorder.note(time, node, EventKind.TIMEOUT, getattr(executed.event, "name", None))
    elif transmission is not None and executed.kind is StepKind.RECEIVE:
        recorder.arrive(time, node, transmission.unit, transmission.number)
    elif transmission is not None and executed.kind is StepKind.LOSE:
        recorder.lose(time, node, transmission.unit, transmission.number, "lost")
    sent = iter(executed.sent)
    for output in executed.outputs:
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
        case Renumbered(packet=packet, view=view):
            recorder.renumber(time, node, packet, view)
        case Reached(level=level, packet=packet):
            recorder.level(time, node, level, packet, by_view=isinstance(output, ReachedByView))
        case Deliver(packet=packet):
            recorder.deliver(time, node, packet)
        case Discard(unit=unit, why=why):
            recorder.discard(time, node, unit, why)
        case Stopped(why=why):
            recorder.note(time, node, EventKind.STOP, why)
        case Resumed():
            recorder.resume(time, node, output)
        case ViewInstalled():
            recorder.view(time, node, output)
        case Abort(why=why):
            recorder.note(time, node, EventKind.ABORT, why)
        case _:
            pass
