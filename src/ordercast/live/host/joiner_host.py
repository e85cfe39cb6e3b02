"""A joiner's machine in real time: its timers, and what it sends and receives as one that is in no view."""

import time
from collections.abc import Callable
from typing import Protocol

from ordercast.live.host.timers import Timers
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.protocols.membership.events import ReceiveOutside, SendOutside
from ordercast.protocols.membership.joiner import Joined, Joiner, JoinerOutput, Refused, Waits
from ordercast.protocols.membership.units import Answer, Apply, Find, Found, OutsideUnit, Welcome


class JoinerOwner(Protocol):
    """Who is told what becomes of it."""

    def found_group(self, found: Found) -> None:
        """A member has answered; called again when a later view is found, or another member to apply at."""

    def joined_group(self, welcome: Welcome) -> None:
        """It is a member now."""

    def refused_by_group(self, why: str) -> None:
        """It never will be, as this incarnation."""


class JoinerHost:
    """Runs one joiner, from `begin` until it is a member, is refused, or `stop`. Used inside one event loop."""

    def __init__(self, joiner: Joiner, send: Callable[[OutsideUnit, str], None], owner: JoinerOwner) -> None:
        self._joiner, self._send, self._owner = joiner, send, owner
        self._timers = Timers(lambda name: self._carry_out(joiner.handle(TimerFired(name))))
        self._asked_at, self._stopped, self._withdrawn, self._heard_blocked = 0, False, False, False
        self.has_applied = False
        """The members may take it in, or have done so."""
        self.waits_for = ""
        """Why it takes so long, as the members say; empty: none has answered."""
        self.round_trip: int | None = None
        """Nanoseconds, of a question to a member: the shortest."""

    @property
    def is_cut_off(self) -> bool:
        """Those that have answered reach too few others to take anybody in."""
        return self._joiner.found is None and self._heard_blocked

    def begin(self) -> None:
        """Looks for the group."""
        self._carry_out(self._joiner.begin())

    def receive(self, unit: OutsideUnit, address: str) -> None:
        """A valid unit arrived from one that may be a member."""
        if self._withdrawn and type(unit) is not Welcome:
            return
        if type(unit) is Answer and unit.reach:
            self.has_applied = False  # it was not noted
        known = self._joiner.found
        self._heard_blocked = self._heard_blocked or (isinstance(unit, Found) and unit.blocked)
        outputs = self._joiner.handle(ReceiveOutside(unit, address))
        found = self._joiner.found
        if found is not None and found is not known:
            took = time.monotonic_ns() - self._asked_at
            self.round_trip = took if self.round_trip is None else min(took, self.round_trip)
            self._owner.found_group(found)
        if not self._stopped:
            self._carry_out(outputs)

    def stop(self) -> None:
        """Looks no more."""
        self._stopped = self._joiner.ended = True
        self._timers.cancel_all()

    def withdraw(self) -> bool:
        """Asks for nothing any more; True if it may be taken in all the same: then it is told of that."""
        self._withdrawn = True
        self._timers.cancel_all()
        if not self.has_applied:
            self.stop()
        return not self._stopped

    def _carry_out(self, outputs: list[JoinerOutput]) -> None:
        for output in outputs:
            match output:
                case SendOutside(unit=unit, address=address):
                    if type(unit) is Find:
                        self._asked_at = time.monotonic_ns()
                    elif type(unit) is Apply:
                        self.has_applied = True
                    self._send(unit, address)
                case SetTimer():
                    self._timers.set(output)
                case CancelTimer():
                    self._timers.cancel(output)
                case Waits(why=why):
                    self.waits_for = why
                case Joined(welcome=welcome):
                    self.stop()
                    self._owner.joined_group(welcome)
                case Refused(why=why):
                    self.stop()
                    self._owner.refused_by_group(why)
                case _:
                    pass
