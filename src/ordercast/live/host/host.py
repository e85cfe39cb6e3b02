"""A protocol's machine in real time: inputs one at a time, outputs carried out in their order.

outbox → machine → transport        machine → inbox

The machine is that of the current view, and belongs to a member of the membership protocol, which replaces it at each
view. Inputs of the order are given to it directly, unless the member says otherwise: so views cost nothing while none
begins. The application's destinations are node numbers, which never change; a machine's are places of its view.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec.structs import replace

from ordercast.live.host.batching import TO_ALL, Outbox, OutgoingBatch
from ordercast.live.host.congestion import MAX_BYTES_IN_FLIGHT, FlightWindow
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.latency_samples import DELIVERED, LatencySamples
from ordercast.live.host.recording import MemberRecorder
from ordercast.live.host.round_trips import Pace
from ordercast.live.host.timers import Timers
from ordercast.live.host.unit_counts import UnitCounts
from ordercast.live.transport.transport import Transport
from ordercast.model.errors import GroupAborted, Undelivered
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    Drained,
    GiveUp,
    Input,
    Level,
    Numbered,
    Reached,
    Receive,
    Resumed,
    Send,
    SetTimer,
    Stopped,
    Submit,
    Suspect,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.nodes import mask_of, members
from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.events import (
    Begin,
    Blocked,
    Excluded,
    InstallView,
    LeaveGroup,
    LeftGroup,
    MemberInput,
    Retired,
    SendControl,
    SendOutside,
    Unblocked,
    Unheard,
    Withdrawn,
)
from ordercast.protocols.membership.machine import MembershipMachine, Phase
from ordercast.protocols.membership.units import Accept, Found, Install, Propose, Report, Welcome
from ordercast.protocols.membership.view import GroupView, NextView, heard_members

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog

_DRAINED = Drained()
_LOOKED_AT = 63  # one packet in so many is looked at, when the message whose latency is followed may be overdue
_PROMISES = {Report, Accept, Propose}
"""Units that say what a member has promised or accepted: with a log, it is on the disk before."""
_SELECTIVE_SECONDS = 1.0  # after a message to some members in which acknowledgments are not gathered
_ENDS = InstallView | LeftGroup
"""Outputs that come after everything that happens in a view."""
_CACHED_DESTINATIONS = 1024  # sets of destinations: most groups use few
MAX_TOLD = 128
"""Members that departed last, which one that joins is told: a datagram has to carry them."""


class Settled(NamedTuple):
    """Own batches of a member that was excluded, in the order in which they were submitted."""

    delivered: list[OutgoingBatch]
    not_delivered: list[OutgoingBatch]
    unknown: list[OutgoingBatch]


class HostOwner(Protocol):
    """Who is told what becomes of the group."""

    def view_installed(self, change: InstallView) -> None:
        """The group continues with these members. The machine is in the middle of a turn, as in all that follow."""

    def left_group(self) -> None:
        """The others continue without this member, as it wanted."""

    def excluded(self, output: Excluded) -> None:
        """The others continue without this member."""

    def found(self, unit: Found, address: str) -> Found:
        """The same, with what one that asks from this address is told besides."""

    def welcome(self, unit: Welcome) -> Welcome:
        """The same, with what those that join are told besides."""

    def blocked(self, lacks: int) -> None:
        """Too few members can be reached to agree on the next view: these places are silent; 0: it is over."""

    def recovery_started(self, why: str) -> None:
        """The group agrees on its order anew."""

    def protocol_aborted(self, why: str) -> None:
        """The machine gave the group up."""

    def protocol_failed(self, error: Exception) -> None:
        """There is an error in our own code: the machine's state is worth nothing any more."""


class Host:
    """Runs one machine. Each entry is called from the event loop, and returns when everything is done."""

    def __init__(  # noqa: PLR0913 (what it connects)
        self,
        member: MembershipMachine,
        *,
        highest_level: Level,
        outbox: Outbox,
        inbox: Inbox,
        transport: Transport,
        recorder: MemberRecorder,
        counts: UnitCounts,
        owner: HostOwner,
        flight: FlightWindow | None = None,
        flow: FlowControl | None = None,
        measures_rounds: bool = False,
        log: "MemberLog | None" = None,
    ) -> None:
        """`highest_level`: the highest level that the protocol reports; `counts`: continued here.

        `flight`: limits what is in flight by how long it takes; None: somebody sets `max_bytes_in_flight`. `flow`:
        whether to wait for members that do not read. `measures_rounds`: timers follow how long rounds take; `log`:
        where the inbox writes what is delivered.
        """
        self._log = log
        self._unlogged: dict[
            int, OutgoingBatch
        ] = {}  # numbered, not delivered yet, by first message: if there is a log
        self.member, self._highest_level = member, highest_level
        self.machine, self._me = member.machine, member.current.place
        self._direct = member.is_direct  # the order's inputs go to the machine
        self._nodes, self._everybody = member.current.view.nodes, member.current.view.everybody
        self._places: dict[int, int] = {}  # of the current view, by nodes, of those that occurred
        self._outbox, self._inbox, self._transport = outbox, inbox, transport
        self.recorder, self._counts, self._owner = recorder, counts, owner
        recorder.on_caught_up = self.pump
        self._pace = Pace(member.epoch.config.timing, measures=measures_rounds)
        # Where nobody hurries to acknowledge, a round is from sending a packet to having it with its number.
        self._acknowledges = highest_level > Level.PREACKNOWLEDGED
        self._timers = Timers(self._fire, before=self._receive_all, drained=self.pump, paused=self.pump)
        self._next_message = 0  # the number of the next message that is given to the machine
        self._submitted: dict[int, OutgoingBatch] = {}  # given to the machine, not numbered yet, by first message
        self._unstable: dict[int, OutgoingBatch] = {}  # numbered, below the highest level, by first message
        self._in_flight: dict[int, int] = {}  # bytes of those without a place in the order yet, by first message
        self.bytes_in_flight = 0
        """The sum of these."""
        self.max_bytes_in_flight = MAX_BYTES_IN_FLIGHT if flight is None else flight.limit
        self._flight, self._flow = flight, flow
        self._sent_at: dict[int, float] = {}  # those in flight, if there is a `flight`
        self.latencies = LatencySamples()
        self.closed = False
        self._stopped_for_view = False
        self._failed = False  # the machine raised: its state means nothing, and it is given no input any more
        self._handlers = self._output_handlers()
        self._use_pace(len(self._nodes))
        value = member.current.value
        self._record_view(member.current.view, value, "founded" if value is None else value.why)
        if not member.current.has_state:
            recorder.expect_state()

    def _output_handlers(self) -> dict[type[Any], Callable[[Any], None]]:
        """What is done for each kind of output."""
        return {
            Send: self._send,
            Numbered: self._numbered,
            Reached: self._reached,
            Deliver: self._deliver,
            Discard: self._discard,
            SetTimer: self._timers.set,
            CancelTimer: self._timers.cancel,
            Stopped: self._stopped,
            Resumed: self._resumed,
            Abort: self._abort,
            SendControl: self._send_control,
            SendOutside: self._send_outside,
            InstallView: self._install,
            Withdrawn: self._withdrawn,
            LeftGroup: self._left,
            Excluded: self._excluded,
            Blocked: self._blocked,
            Unblocked: self._unblocked,
            Retired: lambda _: None,
        }

    # --- inputs ---

    def begin(self) -> None:
        """The first view of a member that joined."""
        for output in self.member.handle(Begin()):
            if isinstance(output, InstallView):
                self._owner.view_installed(output)
            else:
                self._handlers[type(output)](output)
        self._direct = self.member.is_direct
        self.pump()

    def receive(self, unit: Unit) -> None:
        """A unit arrived. What follows may wait for `drained`."""
        if not self.closed:
            self.recorder.arrive(unit)
            self.handle(Receive(unit))

    def drained(self) -> None:
        """Nothing more has arrived for now."""
        self._handle_drained()
        self.pump()

    def pump(self) -> None:
        """Gives the machine what it has room for, and sends everything that waits to be sent."""
        self._submit()
        while self._transport.flush():
            self._handle_drained()
            self._submit()

    def suspect(self, places: int) -> None:
        """These members seem to have failed: the group may continue without them."""
        self.change(Suspect(places))
        self.pump()

    def unheard(self, places: int) -> None:
        """Others hear these members, and this one does not: the group continues without one of them."""
        self.change(Unheard(places))
        self.pump()

    def leave(self, *, drain: bool) -> None:
        """The group is to continue without this member."""
        self.change(LeaveGroup(drain))
        self.pump()

    def give_up(self, why: str) -> None:
        """The group is over: what is certain is still delivered."""
        self.handle(GiveUp(why))

    def handle(self, event: Input) -> None:
        """Gives the machine one input, and carries out what follows."""
        if not self._direct:
            self.change(event)
        elif not (self.closed or self._failed):
            handlers = self._handlers
            try:
                for output in self.machine.handle(event):
                    handlers[type(output)](output)
            except Exception as error:  # an error of ours, whatever it is
                self._failed = True
                self._owner.protocol_failed(error)

    def change(self, event: MemberInput) -> None:
        """Gives the member one input, which may be the machine's. Who has left still answers the others."""
        member = self.member
        if self._failed or (self.closed and member.phase is not Phase.RETIRED):
            return
        self.recorder.turn()
        handlers = self._handlers
        try:
            outputs = member.handle(event)
            # What is reached before a view is told is reached because the view before ends.
            ends = max((at for at, output in enumerate(outputs) if isinstance(output, _ENDS)), default=0)
            for at, output in enumerate(outputs):
                if at < ends and type(output) is Reached:
                    self._reached(output, by_view=True)
                else:
                    handlers[type(output)](output)
        except Exception as error:  # an error of ours, whatever it is
            self._failed = True
            self._owner.protocol_failed(error)
        self._direct = member.is_direct

    def _handle_drained(self) -> None:
        if not self.closed:
            self.recorder.turn()
            self.handle(_DRAINED)

    def _submit(self) -> None:
        outbox, submitted = self._outbox, self._submitted
        if not self._direct and self.member.phase is not Phase.MEMBER:
            return  # it was just excluded: what is taken now would be lost
        while (
            not (submitted or self.closed or self.is_behind or self._transport.is_full)
            and self.bytes_in_flight < self.max_bytes_in_flight
            and not (self._flow is not None and self._flow.must_wait)
        ):
            batch = outbox.take()
            if batch is None:
                break
            places = self._places_of(batch.destinations)
            if not places:
                batch.give_up(Undelivered("no destination of the message is a member any more"))
                continue
            submitted[self._next_message] = batch
            self._next_message += len(batch.parts)
            self.recorder.turn()
            self.handle(batch.submission(places))

    def _places_of(self, nodes: int) -> int:
        """Those of the current view; what is to all goes to the members of the view in which it is numbered."""
        if nodes == TO_ALL:
            return self._everybody
        found = self._places.get(nodes)
        if found is None:
            found = mask_of(place for place, node in enumerate(self._nodes) if nodes >> node & 1)
            if len(self._places) < _CACHED_DESTINATIONS:
                self._places[nodes] = found
        return found

    def _receive_all(self) -> bool:
        """Before a timer fires: it must not ask for what has arrived. True if nothing is left."""
        drained = self._transport.read()
        if drained:
            self._handle_drained()
        return drained

    def _fire(self, name: str) -> None:
        if name.startswith("view."):
            self.change(TimerFired(name))
        elif not self.closed:
            self.recorder.timeout(name)
            self.handle(TimerFired(name))

    # --- state ---

    @property
    def is_behind(self) -> bool:
        """More waits for a disk than should: nothing more is sent, and no data is received."""
        return self.recorder.behind or (self._log is not None and self._log.behind)

    def is_idle(self) -> bool:
        """True if none of our messages is awaiting its position in the order."""
        return not (self._in_flight or self._submitted)

    def is_at_rest(self) -> bool:
        """True if everything that was sent is known to be stable, as far as the protocol reports it."""
        return not (self.has_unsent() or self.member.stopped or self.machine.waits_for())

    def has_unsent(self) -> bool:
        """True if one of our messages is not known to be stable, as far as the protocol reports it."""
        return bool(self._outbox or self._submitted or self._unstable)

    def is_drained(self) -> bool:
        """True if all of our messages are in every cut: a view delivers them, even if it is without this member."""
        return not (self._outbox or self._submitted) and self.member.leaving.is_drained()

    def unconfirmed(self) -> int:
        """Our messages that are not known to be stable, sent or not."""
        batches = (*self._unstable.values(), *self._submitted.values())
        lacking = sum(batch.messages for batch in batches if batch.level < Level.STABLE)
        return lacking + self._outbox.messages()

    def stop(self, why: BaseException) -> None:
        """Nothing happens any more; receipts that are waited for raise `why`."""
        if not self.closed:
            self._end(why)
        for batch in (*self._unstable.values(), *self._submitted.values(), *self._unlogged.values()):
            batch.give_up(why)
        self._outbox.give_up(why)

    def retire(self) -> None:
        """Excluded, and about to return: nothing happens here any more but answers to others."""
        if not self.closed:
            self._end(None)

    def forget(self) -> None:
        """Answers nobody any more: no timer is left."""
        self._timers.cancel_all()

    def settle(self, end: int | None) -> "Settled":
        """After the end: which own messages were delivered. `end`: own packets of the last view below it were.

        None: nobody knows.
        """
        unsettled = {**self._unstable, **self._submitted}
        self._unstable, self._submitted = {}, {}
        if end is None:
            return Settled([], [], list(unsettled.values()))
        again = self._submissions_from(end)
        settled = Settled([], [], [])
        for first, batch in sorted(unsettled.items()):
            if first in again:
                batch.restore(again[first])
                settled.not_delivered.append(batch)
            else:
                settled.delivered.append(batch)
        return settled

    def _submissions_from(self, end: int) -> dict[int, Submit]:
        """Own submissions that are in no packet below this one, by first message."""
        member, found = self.member, {}
        size, place = member.current.size, member.current.place
        cut = Cut(tuple(end if each == place else 0 for each in range(size)))
        flush = member.epoch.flush
        number = flush.next_message(cut)
        for submit in flush.left_over(cut):
            found[number + submit.skips] = submit
            number += submit.skips + len(submit.lengths)
        number += member.submissions.skips
        for submit in member.waiting:
            found[number + submit.skips] = submit
            number += submit.skips + len(submit.lengths)
        return found

    def _end(self, why: BaseException | None) -> None:
        self.closed = True
        self.recorder.turn()
        if isinstance(why, GroupAborted):
            self.recorder.abort(why.why)
        counts = self._counts
        self.recorder.end(
            {
                "sent": counts.numbered,
                "transmitted": counts.transmitted,
                "retransmitted": counts.retransmitted,
                "requests": counts.requests,
                "discarded": counts.discarded.total(),
                "recoveries": counts.recoveries,
            }
        )
        if self.member.phase is Phase.RETIRED:
            self._timers.cancel_others("view.")
        else:
            self._timers.cancel_all()

    # --- outputs ---

    def _send(self, output: Send) -> None:
        unit, counts = output.unit, self._counts
        counts.transmitted += 1
        if output.again:
            counts.retransmitted += 1
        elif unit.asks_for() is not None:
            counts.requests += 1
        self.recorder.transmit(unit, again=output.again)
        self._transport.send(unit, output.to)

    def _numbered(self, output: Numbered) -> None:
        packet = output.packet
        batch = self._submitted.pop(packet.first, None)
        if batch is None:  # it had a number in an earlier view: its receipt goes on
            self.recorder.renumber(packet, self.member.current.view.number)
            return
        self._counts.sent += batch.messages
        self._counts.numbered += len(packet.lengths)
        self.recorder.send(packet)
        self._unstable[packet.first] = batch
        if not self._acknowledges and self._pace.packet is None:
            self._pace.accepted(packet.source, packet.seq, time.monotonic_ns(), self._losses())
        if self._log is not None:
            self._unlogged[packet.first] = batch
        if self.latencies.followed < 0 or not packet.seq & _LOOKED_AT:  # it may be overdue
            ends = 1 << self._highest_level - Level.ACCEPTED | (packet.destinations >> self._me & 1) << DELIVERED
            self.latencies.numbered(packet.first, ends, time.monotonic_ns())
        self._in_flight[packet.first] = size = len(packet.payload)
        self.bytes_in_flight += size
        if self._flight is not None:
            self._sent_at[packet.first] = time.monotonic()
        batch.reached(Level.ACCEPTED)

    def _reached(self, output: Reached, *, by_view: bool = False) -> None:
        packet, level = output.packet, output.level
        self.recorder.level(level, packet, by_view=by_view)
        if self._acknowledges and level < Level.ACKNOWLEDGED:
            self._measure(packet, level)
        if packet.source == self._me:
            if packet.first == self.latencies.followed:
                self.latencies.reached(level - Level.ACCEPTED, time.monotonic_ns())
            if level > Level.ACCEPTED:
                self._has_position(packet)
            batch = self._unstable.get(packet.first)
            if batch is not None and level > batch.level:
                batch.reached(level)
                if level >= self._highest_level:
                    del self._unstable[packet.first]
                    batch.reached(Level.KNOWN_STABLE)

    def _measure(self, packet: Packet, level: Level) -> None:
        """Timers suit how long all members take to acknowledge a packet."""
        pace = self._pace
        if level < Level.PREACKNOWLEDGED:
            if pace.measures and pace.packet is None:
                pace.accepted(packet.source, packet.seq, time.monotonic_ns(), self._losses())
            if packet.destinations != self._everybody:
                self._transport.send_directly(_SELECTIVE_SECONDS)
        elif pace.packet == (packet.source, packet.seq):
            pace.acknowledged(packet.source, packet.seq, time.monotonic_ns(), self._losses())
            if pace.factor != self._timers.pace:
                self._timers.pace = pace.factor
                self._transport.set_pace(pace.factor)

    def _losses(self) -> int:
        """Changes whenever something is known to be lost."""
        counts = self._counts
        return counts.retransmitted + counts.requests + counts.recoveries

    def _deliver(self, output: Deliver) -> None:
        packet = output.packet
        if packet.source == self._me:
            if packet.first == self.latencies.followed:
                self.latencies.reached(DELIVERED, time.monotonic_ns())
            self._has_position(packet)
            if not self._acknowledges and self._pace.packet == (packet.source, packet.seq):
                self._pace.acknowledged(packet.source, packet.seq, time.monotonic_ns(), self._losses())
                self._timers.pace = self._pace.factor
        self.recorder.deliver(packet)
        self._inbox.put(packet)
        if self._log is not None:
            self._logged(packet, self._log)

    def _logged(self, packet: Packet, log: "MemberLog") -> None:
        """Own messages are durable when a majority has the log up to the position behind them."""
        if packet.source == self._me:
            batch = self._unlogged.pop(packet.first, None)
            if batch is not None and batch.durable is not None:
                log.durability.delivered(batch.durable, self._inbox.position)
        else:
            log.delivered(packet.source)

    def _has_position(self, packet: Packet) -> None:
        size = self._in_flight.pop(packet.first, 0)
        self.bytes_in_flight -= size
        if self._flight is not None and (sent := self._sent_at.pop(packet.first, 0.0)):
            now = time.monotonic()
            self._flight.placed(size, now - sent, now)
            self.max_bytes_in_flight = self._flight.limit

    def _discard(self, output: Discard) -> None:
        if not self.closed:
            self.recorder.discard(output.unit, output.why)
        self._counts.discarded[output.why] += 1

    def _stopped(self, output: Stopped) -> None:
        self.recorder.stopped(output.why)
        if output.why == "view":
            self._stopped_for_view = True
        else:
            self._counts.recoveries += 1
            self._owner.recovery_started(output.why)

    def _resumed(self, output: Resumed) -> None:
        self.recorder.resumed(output)

    def _send_outside(self, output: SendOutside) -> None:
        unit = output.unit
        if type(unit) is Welcome:
            welcome = replace(self._owner.welcome(unit), departed=unit.departed[-MAX_TOLD:])
            self._when_entered(welcome.view.number, lambda: self._transport.send_outside(welcome, output.address))
            return
        if type(unit) is Found:
            unit = self._owner.found(unit, output.address)
        self._transport.send_outside(unit, output.address)

    def _send_control(self, output: SendControl) -> None:
        def send() -> None:
            self._transport.send_membership(output.unit, output.to, output.view)

        if type(output.unit) is Install:
            self._when_entered(output.view + 1, send)
        elif self._log is None or type(output.unit) not in _PROMISES:
            send()
        elif output.view < self.member.current.view.number:
            self._when_entered(output.view + 1, send)
        else:
            acceptor = self.member.acceptor
            self._log.promise(output.view, acceptor.promised, acceptor.accepted, send)

    def _when_entered(self, view: int, send: Callable[[], None]) -> None:
        """With a log: what lets others enter a view is said when that is on the own disk, with all before it."""
        if self._log is None:
            send()
        else:
            self._log.say_when_entered(view, send)

    def _install(self, output: InstallView) -> None:
        """From here on outputs are of the machine of this view."""
        view = output.view
        self._timers.cancel_others("view.")
        self.machine, self._me = self.member.machine, output.place
        self._use_pace(len(view.nodes))
        self._nodes, self._everybody, self._places = view.nodes, view.everybody, {}
        if self._stopped_for_view:
            self._stopped_for_view = False
            self.recorder.resumed(Resumed(0, 0, 0))
        self._record_view(view, output.value, output.why)
        self._owner.view_installed(output)

    def _use_pace(self, members: int) -> None:
        self._pace.use(self.member.epoch.config.timing, members if self._acknowledges else 1)
        self._timers.pace = self._pace.factor

    def _record_view(self, view: GroupView, value: NextView | None, why: str) -> None:
        """`value`: what was agreed on; None: the founding view."""
        heard = mask_of(node for _, node in heard_members(view, value, self.member.current.departed))
        people = {node: person.name for node, person in zip(view.nodes, view.members, strict=True)}
        self.recorder.view(ViewInstalled(view.number, mask_of(view.nodes), why, heard, view.nodes), people)

    def _left(self, _: LeftGroup) -> None:
        """What is in the cut of the last view is with all members that go on."""
        self.recorder.leave(drained=not self.member.not_delivered())
        self._owner.left_group()

    def _excluded(self, output: Excluded) -> None:
        self.recorder.exclude(output.number, output.why)
        self._owner.excluded(output)

    def _blocked(self, output: Blocked) -> None:
        self.recorder.block(mask_of(self._nodes[place] for place in members(output.lacks)))
        self._owner.blocked(output.lacks)

    def _unblocked(self, _: Unblocked) -> None:
        self.recorder.unblock()
        self._owner.blocked(0)

    def _withdrawn(self, output: Withdrawn) -> None:
        first = output.first
        batch = self._submitted.pop(first, None) or self._unstable.pop(first, None)
        self.bytes_in_flight -= self._in_flight.pop(first, 0)
        self._sent_at.pop(first, None)
        if batch is not None:
            batch.give_up(Undelivered("all destinations of the message have left the group or failed"))

    def _abort(self, output: Abort) -> None:
        self.recorder.abort(output.why)
        self._owner.protocol_aborted(output.why)
