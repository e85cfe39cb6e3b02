"""What a live member writes down: a trace like a simulation's, of one node, under the name that all members share."""

import time

from ordercast.model.machine import Level, View
from ordercast.model.units import Packet, Unit
from ordercast.trace.recorder import Recorder
from ordercast.trace.schema import EventKind


class Record:
    """Writes nothing down: the default."""

    def send(self, packet: Packet) -> None:
        """A packet of ours got its number."""

    def deliver(self, packet: Packet) -> None:
        """A packet was handed to the application."""

    def level(self, level: Level, packet: Packet) -> None:
        """What is known of a packet rose."""

    def transmit(self, unit: Unit, *, again: bool) -> None:
        """A unit was put on the network."""

    def arrive(self, unit: Unit) -> None:
        """A unit came."""

    def discard(self, unit: Unit, why: str) -> None:
        """A unit was thrown away."""

    def view(self, view: View) -> None:
        """The group goes on with these members."""

    def timeout(self, name: str) -> None:
        """A timer fired."""

    def abort(self, why: str) -> None:
        """The group was given up."""


class TraceRecord(Record):
    """Writes rows of a trace, with the time of the clock on the wall."""

    def __init__(self, recorder: Recorder, me: int) -> None:
        self._recorder, self._me = recorder, me
        self._unit = 0  # counts what we transmitted and heard; no other member's count is the same

    def send(self, packet: Packet) -> None:
        """A packet of ours got its number."""
        self._recorder.send(time.time_ns(), packet)

    def deliver(self, packet: Packet) -> None:
        """A packet was handed to the application."""
        self._recorder.deliver(time.time_ns(), self._me, packet)

    def level(self, level: Level, packet: Packet) -> None:
        """What is known of a packet rose."""
        self._recorder.level(time.time_ns(), self._me, level, packet)

    def transmit(self, unit: Unit, *, again: bool) -> None:
        """A unit was put on the network."""
        self._unit += 1
        self._recorder.transmit(time.time_ns(), self._me, unit, self._unit, again=again)

    def arrive(self, unit: Unit) -> None:
        """A unit came."""
        self._unit += 1
        self._recorder.arrive(time.time_ns(), self._me, unit, self._unit)

    def discard(self, unit: Unit, why: str) -> None:
        """A unit was thrown away."""
        self._recorder.discard(time.time_ns(), self._me, unit, why)

    def view(self, view: View) -> None:
        """The group goes on with these members."""
        self._recorder.view(time.time_ns(), self._me, view)

    def timeout(self, name: str) -> None:
        """A timer fired."""
        self._recorder.note(time.time_ns(), self._me, EventKind.TIMEOUT, name)

    def abort(self, why: str) -> None:
        """The group was given up."""
        self._recorder.note(time.time_ns(), self._me, EventKind.ABORT, why)
