"""TO: total order broadcast on one lossy channel: all nodes deliver everything, in one order.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", sections 2.2, 4.1 and 4.2,
without the priorities, which are a delivery policy (`prito`); the papers compare other protocols with it. Its parts:
`transmission` (numbers, window), `reception` (acceptance, pre-acknowledgment, acknowledgment), `loss_detection` (what
shows a loss), `recovery` (go-back-n after a loss), `delivery` (what is delivered when). Here is how they work together.

Departures from the paper:
 1. The cut is what *all* have accepted, and everything below it is pre-acknowledged before the epoch begins (F2: to
    reject what follows the lost unit *at each node* leaves the nodes with different logs).
 2. No node sends in a new epoch before all have rolled back; else the nodes that have not lose what is sent, again and
    again (F7: livelock).
 3. When an epoch begins, everything that was kept is acknowledged: all nodes are known to have pre-acknowledged it.
 4. A loss shows in the acknowledgments of others (the test of ACK), and in statuses that are sent while any node
    waits; a group in which no node waits is silent.
 5. A status is sequenced only if its position matters, which is so when it acknowledges data; else its loss would cause
    a recovery for nothing.
 6. A packet that was discarded once and may be discarded again is carried by the vector of its source. A node with
    all vectors has it too: each recovery makes progress, whatever the loss rate and the size of the group.
 7. A node whose packets were discarded halves the number that it has under way, and adds one for each that is
    pre-acknowledged (additive increase, multiplicative decrease): everything sent after a loss is discarded.

Not here: membership. A group that is given up delivers what the policy allows and stops; no node goes on alone.
"""

from collections.abc import Callable
from typing import ClassVar, Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import (
    Abort,
    Deliver,
    Discard,
    Echo,
    GiveUp,
    Input,
    LogSizes,
    Numbered,
    Output,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.units import Packet, Unit
from ordercast.protocols.shared.alone import alone
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.shared.destinations import check_broadcast
from ordercast.protocols.shared.jitter import spread
from ordercast.protocols.to.delivery import ChannelOrder, Deliveries, DeliveryPolicy
from ordercast.protocols.to.reception import Reception
from ordercast.protocols.to.recovery import Mode, Recovery
from ordercast.protocols.to.transmission import Transmission
from ordercast.protocols.to.units import (
    CarryingVector,
    EpochVector,
    Heading,
    OrderedData,
    OrderedReady,
    Sequenced,
    UnorderedReady,
    vector_of,
)


class TotalOrderBroadcast(DeclaredState):
    """The protocol at one node, with a delivery policy."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    me: Final[int]
    config: Final[GroupConfig]
    _my_bit: Final[int]
    _everybody: Final[int]
    _report_at: Final[int]
    _normal_units: Final[frozenset[type[Unit]]]

    transmission: Transmission
    reception: Reception
    deliveries: Deliveries
    policy: DeliveryPolicy
    recovery: Recovery
    backoff: Backoff
    status_timer: bool
    """It runs while something that this node knows waits to be told: then a status is sent alone."""
    poll_timer: bool
    """It runs while this node waits for others: then it asks them what they have."""
    aborted: bool
    """It has given the group up."""

    def __init__(
        self, me: int, config: GroupConfig, make_policy: Callable[[GroupConfig, Deliveries], DeliveryPolicy]
    ) -> None:
        nodes = config.nodes
        self.me, self.config = me, config
        self._my_bit, self._everybody = 1 << me, everybody(nodes)
        self._report_at = max(1, config.window // 2)  # unreported data units after which a status is sent at once
        self.transmission = Transmission(me, config)
        self.deliveries = Deliveries(me, config)
        self.policy = make_policy(config, self.deliveries)
        self.backoff = Backoff(nodes, config.polls_limit(), config.timing.poll)
        self.reception = Reception(me, config, self.transmission, self.policy, self.backoff)
        self.recovery = Recovery(me, config, self.transmission, self.reception, self.backoff)
        self._normal_units = frozenset({OrderedData, OrderedReady, UnorderedReady, *self.policy.units})
        self.status_timer = self.poll_timer = self.aborted = False

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns everything that follows from it."""
        out: list[Output] = []
        if self.aborted:
            return out
        if type(event) is Receive:
            self._receive(event.unit, out)
        elif type(event) is Submit:
            self._submit(event)
        elif type(event) is TimerFired:
            self.fire(event.name, out)
        elif type(event) is GiveUp:
            self._abort(event.why, out)
        elif self.reception.pending and self.recovery.mode is Mode.NORMAL:  # Drained
            self._send_status(out)
        if self.recovery.mode is Mode.NORMAL and not self.aborted:
            self.settle(out)
        return out

    def settle(self, out: list[Output]) -> None:
        """Sends what may be sent now, and sets the timers for what must be sent later."""
        reception = self.reception
        if self.transmission.waiting or self.transmission.resend:
            self._send_waiting(out)
        if reception.unreported >= self._report_at:
            self._send_status(out)
        if reception.pending and not self.status_timer:
            self.status_timer = True
            self._set_timer("status", self.config.timing.status, out)
        if not self.poll_timer and self.unfinished():
            self.poll_timer = True
            self.backoff.restart()
            self._set_timer("poll", self.config.timing.poll, out)
        if self.policy.timer and (duration := self.policy.timer_to_set()):
            self._set_timer(self.policy.timer, duration, out)

    # --- sending ---

    def _submit(self, event: Submit) -> None:
        check_broadcast(event.destinations, self.config.nodes)
        self.transmission.waiting.append(event)

    def _send_waiting(self, out: list[Output]) -> None:
        transmission, deliveries = self.transmission, self.deliveries
        if self.config.nodes == 1:
            self._deliver_alone(out)
        while transmission.resend and transmission.window_is_open():
            self.transmit(transmission.resend.popleft(), out, again=True)
        while transmission.waiting and transmission.window_is_open() and deliveries.has_room():
            packet = transmission.number(transmission.waiting.popleft())
            deliveries.own_undelivered += 1
            out.append(Numbered(packet))
            self.transmit(packet, out, again=False)

    def _deliver_alone(self, out: list[Output]) -> None:
        """There is nobody to agree with on an order."""
        while self.transmission.waiting:
            packet = self.transmission.number(self.transmission.waiting.popleft())
            self.reception.accepted_packets[0] = self.reception.preacknowledged_packets[0] = packet.seq + 1
            self.deliveries.count += 1
            out += (Numbered(packet), *alone(packet))

    def transmit(self, packet: Packet, out: list[Output], *, again: bool) -> None:
        """Sends a packet; this node too accepts it when the channel brings it back."""
        self.transmission.sent.append((self.transmission.next_seq, packet))
        out.append(Send(OrderedData(packet, self.heading_in_sequence()), again))

    def _heading(self, wants: int = 0) -> Heading:
        """What this node has accepted now; no acknowledgment is pending any more."""
        transmission = self.transmission
        transmission.stamp += 1
        expects = self.reception.acknowledgment()
        return Heading(self.me, self.recovery.epoch, transmission.next_seq, expects, self.deliveries.count, wants)

    def heading_in_sequence(self) -> Heading:
        """The heading of the next sequenced unit."""
        heading = self._heading()
        self.transmission.next_seq += 1
        self.reception.pending_in_sequence = False
        return heading

    def _send_status(self, out: list[Output], wants: int = 0) -> None:
        """In sequence only if it must be: the loss of a sequenced unit causes a recovery."""
        if self.reception.pending_in_sequence:
            out.append(Send(OrderedReady(self.heading_in_sequence())))
            if not wants:
                return
        out.append(Send(UnorderedReady(self._heading(wants))))

    # --- receiving ---

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        if type(unit) in self._normal_units:
            self.receive_normal(unit, out)  # type: ignore[arg-type]  # the set has no other kinds
        elif isinstance(unit, EpochVector | CarryingVector):
            self.backoff.unanswered[unit.source] = 0
            contradiction = self.recovery.receive(unit, vector_of(unit), out)
            if contradiction:
                self._abort(contradiction, out)
        else:
            out.append(Discard(unit, "stray"))

    def receive_normal(self, unit: Sequenced | UnorderedReady, out: list[Output]) -> None:
        """A unit of normal operation; in the current epoch it is accepted, or shows a loss and stops this node."""
        heading, recovery = unit.heading, self.recovery
        self.backoff.unanswered[heading.source] = 0
        if heading.epoch != recovery.epoch:
            out.append(Discard(unit, "old" if heading.epoch < recovery.epoch else "early"))
        elif recovery.mode is Mode.COLLECTING:
            out.append(Discard(unit, "stopped"))
        else:
            if recovery.mode is Mode.INSTALLED:  # its sender knows that all have rolled back
                recovery.begin_epoch(out)
            loss = self.reception.receive(unit, heading, out)
            if loss:
                out.append(Discard(unit, loss))
                recovery.start(loss, out)

    # --- timers ---

    def _set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        out.append(SetTimer(name, spread(duration, self.me, self.transmission.stamp)))

    def fire(self, name: str, out: list[Output]) -> None:
        """A timer fired; one that is no longer needed has no effect."""
        normal = self.recovery.mode is Mode.NORMAL
        if name == "status":
            self.status_timer = False
            if self.reception.pending and normal:
                self._send_status(out)
        elif name == "poll":
            self.poll_timer = False
            if normal and self.unfinished():
                self._poll(out)
        elif name == "reset":
            if not normal and not (self.backoff.advance() and self._abort_if_unanswered(out)):
                self.recovery.send_vector(self.blockers(), out)
        elif name == self.policy.timer:
            self.policy.timer_fired()
            if normal and self.policy.has_unit():
                out.append(Send(self.policy.make_unit(self.heading_in_sequence())))

    def _poll(self, out: list[Output]) -> None:
        """Without progress since the last poll, asks the nodes that block it; all see whether they lack something."""
        if self.backoff.advance():
            if self._abort_if_unanswered(out):
                return
            self._send_status(out, self.blockers())
        self.poll_timer = True
        self._set_timer("poll", self.config.timing.poll * self.backoff.factor, out)

    def _abort_if_unanswered(self, out: list[Output]) -> bool:
        """Counts an unanswered poll of each node that blocks this one; True if one of them has left too many."""
        silent = self.backoff.count_unanswered(self.blockers())
        if silent is None:
            return False
        self._abort(f"{name_of(silent)} left {self.backoff.limit} polls in a row unanswered", out)
        return True

    def _abort(self, why: str, out: list[Output]) -> None:
        """Gives the group up; what is still delivered is what the policy knows that others deliver at this place."""
        preacknowledged = [packet for _, _, packet in self.reception.preacknowledged.entries]
        out += [Deliver(packet) for packet in self.policy.delivered_on_abort(preacknowledged)]
        self.aborted = True
        out.append(Abort(why))

    # --- inspection ---

    @property
    def accepted_packets(self) -> list[int]:
        """By source: packets below this have been accepted at least once."""
        return self.reception.accepted_packets

    @property
    def delivered_by(self) -> list[int]:
        """By node: the packets that it has delivered, by its last report."""
        return self.deliveries.delivered_by

    def unfinished(self) -> bool:
        """True if this node waits for anything from others."""
        transmission, reception = self.transmission, self.reception
        return bool(
            transmission.waiting
            or transmission.resend
            or transmission.sent
            or reception.unpreacknowledged
            or reception.preacknowledged.entries
        )

    def blockers(self) -> int:
        """The set of the nodes that this node waits for."""
        if self.recovery.mode is not Mode.NORMAL:
            return self.recovery.blockers() & ~self._my_bit
        accepted = self.reception.accepted
        mask = accepted.blockers() | self.reception.preacknowledged.blockers()
        if self.transmission.sent:
            seq, me = self.transmission.sent[0][0], self.me
            mask |= sum(1 << node for node, column in enumerate(accepted.acknowledged_below) if column[me] <= seq)
        if self.transmission.waiting:
            mask |= self.deliveries.behind()
        return mask & ~self._my_bit

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        return LogSizes(
            waiting=len(self.transmission.waiting),
            sent=len(self.transmission.sent) + len(self.transmission.resend),
            held=0,
            accepted=len(self.reception.accepted.entries),
            preacknowledged=self.policy.held(len(self.reception.preacknowledged.entries)),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text."""
        transmission, recovery = self.transmission, self.recovery
        lines: list[str] = []
        if transmission.waiting:
            lines.append(f"{len(transmission.waiting)} submissions wait for the window")
        if transmission.resend:
            lines.append(f"{len(transmission.resend)} packets wait to be sent again")
        who = names_of(self.blockers())
        if recovery.mode is Mode.COLLECTING:
            lines.append(f"recovery {recovery.epoch + 1}: waiting for the vectors of {who}")
        elif recovery.mode is Mode.INSTALLED:
            lines.append(f"recovery {recovery.epoch}: waiting for {who} to roll back")
        else:
            lines += self._waits_for_acknowledgments()
            lines += self.policy.waits_for()
        return tuple(lines)

    def _waits_for_acknowledgments(self) -> list[str]:
        reception, lines = self.reception, []
        if self.transmission.sent:
            lines.append(f"{len(self.transmission.sent)} packets sent are not known to be accepted by all")
        if reception.unpreacknowledged:
            who = names_of(reception.accepted.blockers())
            lines.append(f"{reception.unpreacknowledged} accepted units are not known to be accepted by {who}")
        if reception.preacknowledged.entries:
            number, who = len(reception.preacknowledged.entries), names_of(reception.preacknowledged.blockers())
            lines.append(f"{number} packets are not known to be pre-acknowledged by {who}")
        return lines


class To(TotalOrderBroadcast):
    """TO at one node: delivery in channel order."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config, ChannelOrder)
