"""The session's machine in real time: its inputs one at a time, its timers, its control messages."""

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ordercast.live.host.round_trips import RoundTrips
from ordercast.live.host.timers import Timers
from ordercast.live.session import events
from ordercast.live.session.machine import Session
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.wire.control import IN_SESSION, Control, Join

Change = events.Opened | events.Refused | events.Suspected | events.Aborted | events.Closed | events.Left
"""The outputs that are not carried out here."""


class SessionOwner(Protocol):
    """Who is told what becomes of the session."""

    def session_changed(self, change: Change) -> None:
        """The session opened, ended, or suspects a member."""

    def session_failed(self, error: Exception) -> None:
        """There is an error in the session's own code: it cannot even tell the others."""


class SessionHost:
    """Runs the session of one member. Used inside one event loop."""

    def __init__(
        self,
        machine: Session,
        transport: Transport,
        owner: SessionOwner,
        *,
        drained: Callable[[], None],
        paused: Callable[[], None],
    ) -> None:
        """`drained` or `paused` is called after each timer, before which datagrams were read; see `Timers`."""
        self.machine, self._transport, self._owner = machine, transport, owner
        nodes = len(machine.founders)
        self.round_trips = RoundTrips(machine.me, nodes)
        self._timers = Timers(self._fire, before=transport.read, drained=drained, paused=paused)
        self._inputs: deque[events.Input] = deque()  # the first is being handled
        self.places: dict[int, int] = {member: member for member in machine.names}
        """By the session's members: their places in the current view; without those that it does not have."""

    def handle(self, event: events.Input) -> None:
        """Handles one input after the other: an input that follows from another waits until that one is done."""
        self._inputs.append(event)
        if len(self._inputs) > 1:
            return
        try:
            while self._inputs:
                for output in self.machine.handle(self._inputs[0]):
                    self._carry_out(output)
                self._inputs.popleft()
        except Exception as error:  # whatever it is, it must not end the process
            self._inputs.clear()
            self._owner.session_failed(error)

    def control_received(self, member: int, message: Control) -> None:
        """A control message arrived."""
        if isinstance(message, Join):
            self.round_trips.received(member, message, time.monotonic_ns())
        self.handle(events.ControlReceived(member, message))

    def stop(self) -> None:
        """No timer fires any more."""
        self._timers.cancel_all()

    def _carry_out(self, output: events.Output) -> None:
        match output:
            case events.SendControl(message=message, to=to):
                if isinstance(message, Join):
                    self.round_trips.sent(message, time.monotonic_ns())
                if to is None or not isinstance(message, IN_SESSION):
                    self._transport.send_control(message, to)
                elif to in self.places:
                    self._transport.send_control(message, self.places[to])
            case SetTimer():
                self._timers.set(output)
            case CancelTimer():
                self._timers.cancel(output)
            case _:
                self._owner.session_changed(output)

    def _fire(self, name: str) -> None:
        self.handle(TimerFired(name))


def nanoseconds(within: float | None) -> int:
    """Of so many seconds; 0: no limit."""
    return 0 if within is None else max(int(within * SECOND), 1)
