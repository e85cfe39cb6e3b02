"""A protocol's machine in real time: inputs one at a time, outputs carried out in their order.

outbox → machine → transport        machine → inbox

The machine is that of the current view, and belongs to a member of the membership protocol, which replaces it at each
view. Inputs of the order are given to it directly, unless the member says otherwise: so views cost nothing while none
begins. The application's destinations are node numbers, which never change; a machine's are places of its view.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ordercast.live.host.batching import TO_ALL, Outbox
from ordercast.live.host.congestion import FlightWindow
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.host_owner import HostOwner
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.membership_sender import MembershipSender
from ordercast.live.host.own_batches import OwnBatches, Settled
from ordercast.live.host.pacing import Pacing
from ordercast.live.host.recording import MemberRecorder
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
    Suspect,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.nodes import mask_of, members
from ordercast.model.units import Packet, Unit
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
from ordercast.protocols.membership.view import GroupView, NextView, heard_members

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog

_DRAINED = Drained()
_ENDS = InstallView | LeftGroup
"""Outputs that come after everything that happens in a view."""
_CACHED_DESTINATIONS = 1024  # sets of destinations: most groups use few
_SAMPLED = 7  # own packets are timed whose numbers have none of these bits, and each behind which nothing waits
ACCEPTED, PREACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED


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
        self.member = member
        self.machine, self._me = member.machine, member.current.place
        self._direct = member.is_direct  # the order's inputs go to the machine
        self._nodes, self._everybody = member.current.view.nodes, member.current.view.everybody
        self._places: dict[int, int] = {}  # of the current view, by nodes, of those that occurred
        self._outbox, self._inbox, self._transport = outbox, inbox, transport
        self.recorder, self._counts, self._owner = recorder, counts, owner
        recorder.on_caught_up = self.pump
        self._records = type(recorder) is not MemberRecorder  # else the way of a message does without it
        self.may_be_behind = self._records or log is not None
        """`is_behind` may be True."""
        self.own = OwnBatches(highest_level, counts, flight, log)
        self._timers = Timers(self._fire, before=self._receive_all, drained=self.pump, paused=self.pump)
        self._pacing = Pacing(
            *(member.epoch.config.timing, self._timers, transport, counts),
            acknowledges=highest_level > PREACKNOWLEDGED,
            measures=measures_rounds,
        )
        self._flow = flow
        self.closed = False
        self._stopped_for_view = False
        self._failed = False  # the machine raised: its state means nothing, and it is given no input any more
        self._watches_levels = self._records or self._pacing.acknowledges
        self._handlers = self._output_handlers(MembershipSender(member, transport, owner, log))
        self._pacing.use(member.epoch.config.timing, len(self._nodes))
        value = member.current.value
        self._record_view(member.current.view, value, "founded" if value is None else value.why)
        if not member.current.has_state:
            recorder.expect_state()

    def _output_handlers(self, membership: MembershipSender) -> dict[type[Any], Callable[[Any], None]]:
        """What is done for each kind of output."""
        return {
            Send: self._send,
            Numbered: self._numbered,
            Reached: self._reached if self._watches_levels else self._own_reached,
            Deliver: self._deliver,
            Discard: self._discard,
            SetTimer: self._timers.set,
            CancelTimer: self._timers.cancel,
            Stopped: self._stopped,
            Resumed: self._resumed,
            Abort: self._abort,
            SendControl: membership.send_control,
            SendOutside: membership.send_outside,
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
            if self._records:
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

    def leave(self, *, drain: bool, may_stay: bool = False) -> None:
        """The group is to continue without this member; `may_stay`: unless too few others are left for a view."""
        self.change(LeaveGroup(drain, may_stay))
        self.pump()

    def give_up(self, why: str) -> None:
        """The group is over: what is certain is still delivered."""
        self.handle(GiveUp(why))

    def handle(self, event: Input) -> None:
        """Gives the machine one input, and carries out what follows."""
        if not self._direct:
            self.change(event)
            return
        handlers = self._handlers
        try:
            for output in self.machine.handle(event):
                handlers[type(output)](output)
        except Exception as error:  # an error of ours, whatever it is
            self._fail(error)

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
            self._fail(error)
        self._direct = member.is_direct and not (self.closed or self._failed)

    def _fail(self, error: Exception) -> None:
        self._failed, self._direct = True, False
        self._owner.protocol_failed(error)

    def _handle_drained(self) -> None:
        if not self.closed:
            if self._records:
                self.recorder.turn()
            self.handle(_DRAINED)

    def _submit(self) -> None:
        outbox, own = self._outbox, self.own
        if not self._direct and (self.member.leaves or self.member.phase is not Phase.MEMBER):
            return  # it says that it leaves, or was just excluded: what is taken now would be refused, or lost
        while outbox.pending_bytes and own.has_room() and self._may_send():
            batch = outbox.take()
            if batch is None:
                break
            places = self._places_of(batch.destinations)
            if not places:
                batch.give_up(Undelivered("no destination of the message is a member any more"))
                continue
            own.submit(batch)
            if self._records:
                self.recorder.turn()
            self.handle(batch.submission(places))

    def _may_send(self) -> bool:
        if self.closed or self._transport.is_full or (self.may_be_behind and self.is_behind):
            return False
        return self._flow is None or not self._flow.must_wait

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
        return self.own.is_idle()

    def is_at_rest(self) -> bool:
        """True if everything that was sent is known to be stable, as far as the protocol reports it."""
        return not (self.has_unsent() or self.member.stopped or self.machine.waits_for())

    def hurry(self) -> None:
        """The application waits until all is known: what would be asked for after a while is asked for now."""
        config = self.member.epoch.config
        if config.delivers_stable:
            self._timers.hurry("status", config.timing.status)
            self._timers.hurry("poll", config.timing.poll)

    def has_unsent(self) -> bool:
        """True if one of our messages is not known to be stable, as far as the protocol reports it."""
        return bool(self._outbox) or not self.own.is_stable()

    def is_drained(self) -> bool:
        """True if all of our messages are in every cut: a view delivers them, even if it is without this member."""
        return not (self._outbox or self.own.submitted) and self.member.leaving.is_drained()

    def unconfirmed(self) -> int:
        """Our messages that are not known to be stable, sent or not."""
        return self.own.unconfirmed() + self._outbox.messages()

    def stop(self, why: BaseException) -> None:
        """Nothing happens any more; receipts that are waited for raise `why`."""
        if not self.closed:
            self._end(why)
        self.own.give_up(why)
        self._outbox.give_up(why)

    def retire(self) -> None:
        """Excluded, and about to return: nothing happens here any more but answers to others."""
        if not self.closed:
            self._end(None)

    def forget(self) -> None:
        """Answers nobody any more: no timer is left."""
        self._timers.cancel_all()

    def settle(self, end: int | None) -> Settled:
        """After the end: which own messages were delivered. `end`: own packets of the last view below it were.

        None: nobody knows.
        """
        return self.own.settle(end, self.member)

    def _end(self, why: BaseException | None) -> None:
        self.closed, self._direct = True, False
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
        if self._records:
            self.recorder.transmit(unit, again=output.again)
        self._transport.send(unit, output.to)

    def _numbered(self, output: Numbered) -> None:
        packet, own = output.packet, self.own
        if not own.numbered(packet):  # its receipt goes on
            self.recorder.renumber(packet, self.member.current.view.number)
            return
        if self._records:
            self.recorder.send(packet)
        if not (packet.seq & _SAMPLED and self._outbox.pending_bytes):
            own.follow(packet, self._me)
            if self._pacing.begins_at_own:
                self._pacing.begin(packet)

    def _own_reached(self, output: Reached) -> None:
        """Where nobody wants to know of packets of others."""
        packet = output.packet
        if packet.source == self._me:
            self.own.reached(packet, output.level)

    def _reached(self, output: Reached, *, by_view: bool = False) -> None:
        packet, level = output.packet, output.level
        if self._records:
            self.recorder.level(level, packet, by_view=by_view)
        if level is ACCEPTED:
            if self._pacing.begins_at_accepted:
                self._pacing.begin(packet)
            if packet.destinations != self._everybody:
                self._pacing.accepted_by_some()
        elif level is PREACKNOWLEDGED and packet.seq == self._pacing.seq and self._pacing.acknowledges:
            self._pacing.ends(packet)
        if packet.source == self._me:
            self.own.reached(packet, level)

    def _deliver(self, output: Deliver) -> None:
        packet = output.packet
        if packet.source == self._me:
            self.own.delivered(packet)
            if packet.seq == self._pacing.seq and not self._pacing.acknowledges:
                self._pacing.ends(packet)
        if self._records:
            self.recorder.deliver(packet)
        self._inbox.put(packet)
        if self._log is not None:
            self._note_logged(packet)

    def _note_logged(self, packet: Packet) -> None:
        assert self._log is not None
        if packet.source == self._me:
            self.own.logged(packet, self._inbox.position)
        else:
            self._log.tellings.delivered(packet.source)

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

    def _install(self, output: InstallView) -> None:
        """From here on outputs are of the machine of this view."""
        view = output.view
        self._timers.cancel_others("view.")
        self.machine, self._me = self.member.machine, output.place
        self._pacing.use(self.member.epoch.config.timing, len(view.nodes))
        self._nodes, self._everybody, self._places = view.nodes, view.everybody, {}
        if self._stopped_for_view:
            self._stopped_for_view = False
            self.recorder.resumed(Resumed(0, 0, 0))
        self._record_view(view, output.value, output.why)
        self._owner.view_installed(output)

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
        self.own.withdrawn(output.first)

    def _abort(self, output: Abort) -> None:
        self.recorder.abort(output.why)
        self._owner.protocol_aborted(output.why)
