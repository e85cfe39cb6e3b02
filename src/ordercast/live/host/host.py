"""The machine of a protocol in real time: inputs one at a time, outputs carried out in their order."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol

from ordercast.live.host.batching import Outbox, OutgoingBatch, messages_in
from ordercast.live.host.congestion import MAX_BYTES_IN_FLIGHT
from ordercast.live.host.recording import MemberRecorder
from ordercast.model.errors import GroupAborted
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    Drained,
    GiveUp,
    Input,
    Level,
    Machine,
    Numbered,
    Reached,
    Receive,
    Resumed,
    Send,
    SetTimer,
    Stopped,
    Suspect,
    TimerFired,
    View,
)
from ordercast.model.units import Packet, Unit

_SECOND = 1_000_000_000
_DRAINED = Drained()


class Surroundings(Protocol):
    """What a host needs to have done for it."""

    def send(self, unit: Unit, to: int | None) -> None:
        """Puts a unit on the network; it may wait until `flush`."""

    def flush(self) -> bool:
        """Puts on the network what waits; whether anything was heard by that, from a channel of our own."""

    def read_all(self) -> None:
        """Hands over what has come: a timer must not ask for what is here already."""

    def deliver(self, packet: Packet) -> None:
        """Hands a packet to the application."""

    def has_view(self, view: View) -> None:
        """The group goes on with these members."""

    def has_aborted(self, why: str) -> None:
        """The machine gave the group up."""

    def has_failed(self, error: Exception) -> None:
        """The machine, or who was told by it, made a mistake: nobody knows any more what it holds."""

    def has_room(self) -> None:
        """The machine took something from the outbox."""


class Host:
    """Runs one machine. Each entry is called from the event loop, and comes back when everything is done."""

    def __init__(
        self, machine: Machine, me: int, highest: Level, outbox: Outbox, around: Surroundings, record: MemberRecorder
    ) -> None:
        """`highest`: the highest level that the protocol tells."""
        self.machine, self._me, self._highest = machine, me, highest
        self._outbox, self._around, self.record = outbox, around, record
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._submitted: deque[OutgoingBatch] = deque()  # given to the machine, and not numbered by it yet
        self._own: dict[int, OutgoingBatch] = {}  # numbered, and not known to be everywhere, by first message
        self._in_flight: dict[int, int] = {}  # the bytes of those of these not known to have their place in the order
        self._under_way = 0  # these bytes, together
        self.most_under_way = MAX_BYTES_IN_FLIGHT
        self.closed = False
        self.sent = self.numbered = 0
        """Messages that have a number; the same with every piece of a large one for itself, as a record has it."""
        self.transmitted = self.retransmitted = self.requests = self.recoveries = 0
        """Units, the copies among them, those that ask for copies; orders agreed on anew."""
        self.discarded: Counter[str] = Counter()
        """Units that the machine threw away, by reason."""
        self._carry_out: dict[type[Any], Callable[[Any], None]] = {
            Send: self._send,
            Numbered: self._numbered,
            Reached: self._reached,
            Deliver: self._deliver,
            Discard: self._discard,
            SetTimer: self._set_timer,
            CancelTimer: self._cancel_timer,
            Stopped: self._stopped,
            Resumed: self._resumed,
            View: self._view,
            Abort: self._abort,
        }

    # --- what happens ---

    def receive(self, unit: Unit) -> None:
        """A unit came. What follows may wait for `drained`."""
        if not self.closed:
            self.record.arrive(unit)
            self._handle(Receive(unit))

    def drained(self) -> None:
        """Nothing more has come for now."""
        self._drained()
        self.pump()

    def _drained(self) -> None:
        if not self.closed:
            self.record.turn()
            self._handle(_DRAINED)

    def pump(self) -> None:
        """Gives the machine what it has room for, and puts everything on the network."""
        self._submit()
        while self._around.flush():
            self._drained()
            self._submit()

    def _submit(self) -> None:
        outbox, submitted = self._outbox, self._submitted
        while not submitted and not self.closed and self._under_way < self.most_under_way:
            parcel = outbox.take()
            if parcel is None:
                break
            submitted.append(parcel)
            self.record.turn()
            self._handle(parcel.submission())
            self._around.has_room()

    def suspect(self, members: int) -> None:
        """These seem to be dead: a protocol with views may go on without them."""
        self._handle(Suspect(members))
        self.pump()

    def give_up(self, why: str) -> None:
        """The group is over: what is certain is still delivered."""
        self._handle(GiveUp(why))

    def is_idle(self) -> bool:
        """Whether nothing of ours is on its way to its place in the order."""
        return not (self._in_flight or self._submitted)

    def is_at_rest(self) -> bool:
        """Whether everything that was sent is known to be everywhere, as far as the protocol tells."""
        return not (self._outbox or self._submitted or self._own or self.machine.waits_for())

    def stop(self, why: BaseException) -> None:
        """Nothing happens any more; who waits is told why."""
        if self.closed:
            return
        self.closed = True
        self.record.turn()
        if isinstance(why, GroupAborted):
            self.record.abort(why.why)
        self.record.end(
            {
                "sent": self.numbered,
                "transmitted": self.transmitted,
                "retransmitted": self.retransmitted,
                "requests": self.requests,
                "discarded": self.discarded.total(),
                "recoveries": self.recoveries,
            }
        )
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        for parcel in (*self._own.values(), *self._submitted):
            parcel.give_up(why)
        self._outbox.give_up(why)

    def unconfirmed(self) -> int:
        """Messages of ours that are not known to be with everybody, sent or not."""
        under_way = (*self._own.values(), *self._submitted)
        lacking = sum(parcel.messages for parcel in under_way if parcel.level < Level.PREACKNOWLEDGED)
        return lacking + self._outbox.messages()

    def _fire(self, name: str) -> None:
        handle = self._timers[name]
        self._around.read_all()
        self._drained()
        if self._timers.get(name) is handle and not self.closed:  # nothing that came has set or cancelled it
            del self._timers[name]
            self.record.timeout(name)
            self._handle(TimerFired(name))
        self.pump()

    def _handle(self, event: Input) -> None:
        if not self.closed:
            carry_out = self._carry_out
            try:
                for output in self.machine.handle(event):
                    carry_out[type(output)](output)
            except Exception as error:  # a mistake of ours, whatever it is
                self._around.has_failed(error)

    # --- what follows ---

    def _send(self, output: Send) -> None:
        unit = output.unit
        self.transmitted += 1
        if output.again:
            self.retransmitted += 1
        elif unit.asks_for() is not None:
            self.requests += 1
        self.record.transmit(unit, again=output.again)
        self._around.send(unit, output.to)

    def _numbered(self, output: Numbered) -> None:
        packet = output.packet
        self.sent += messages_in(packet)
        self.numbered += len(packet.lengths)
        self.record.send(packet)
        parcel = self._submitted.popleft()
        self._own[packet.first] = parcel
        self._in_flight[packet.first] = size = len(packet.payload)
        self._under_way += size
        parcel.rise(Level.ACCEPTED)

    def _reached(self, output: Reached) -> None:
        packet, level = output.packet, output.level
        self.record.level(level, packet)
        if packet.source == self._me:
            if level > Level.ACCEPTED:
                self._has_place(packet)
            parcel = self._own.get(packet.first)
            if parcel is not None and level > parcel.level:
                parcel.rise(level)
                if level >= self._highest:
                    del self._own[packet.first]
                    parcel.rise(Level.ACKNOWLEDGED)

    def _deliver(self, output: Deliver) -> None:
        packet = output.packet
        if packet.source == self._me:
            self._has_place(packet)
        self.record.deliver(packet)
        self._around.deliver(packet)

    def _has_place(self, packet: Packet) -> None:
        self._under_way -= self._in_flight.pop(packet.first, 0)

    def _discard(self, output: Discard) -> None:
        self.record.discard(output.unit, output.why)
        self.discarded[output.why] += 1

    def _stopped(self, output: Stopped) -> None:
        self.recoveries += 1
        self.record.stopped(output.why)

    def _resumed(self, output: Resumed) -> None:
        self.record.resumed(output)

    def _view(self, output: View) -> None:
        self.record.view(output)
        self._around.has_view(output)

    def _abort(self, output: Abort) -> None:
        self.record.abort(output.why)
        self._around.has_aborted(output.why)

    def _set_timer(self, output: SetTimer) -> None:
        name = output.name
        old = self._timers.get(name)
        if old is not None:
            old.cancel()
        self._timers[name] = self._loop.call_later(output.after / _SECOND, self._fire, name)

    def _cancel_timer(self, output: CancelTimer) -> None:
        handle = self._timers.pop(output.name, None)
        if handle is not None:
            handle.cancel()
