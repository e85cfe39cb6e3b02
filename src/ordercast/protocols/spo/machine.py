"""SPO: selective multicast in FIFO order, over channels that lose units.

Each message goes to any subset of the group; every destination delivers the messages of one sender in the order in
which they were sent.

From: Nakamura and Takizawa, "Selective Broadcast Service for Distributed Systems" (EN, sections 4.1 to 4.5) and
"Data Transmission Procedure of Selective Broadcast Protocol on Multi-Channel" (JP, sections 3.1 to 3.5). These are
the `sound` rules; the printed ones are in `paper`, and why they fail is in docs/protocols/spo.md.

Departures from the papers, each with the counterexample that requires it:
 1. Every status says what its sender has pre-acknowledged (PACK); acknowledgment uses that alone (A1, A2, R1).
 2. A packet is accepted if its number to me is the next one; what it acknowledges does not matter (C0, C1, C2, C6).
 3. A packet ahead of a gap is buffered; exactly the missing ranges are requested, again until they come (C4).
 4. A status without data (RR) has no sequence number and is not subject to flow control. A node sends one when peers
    may wait for what it knows; a node that waits polls by name those it waits for (C3, C5, C7). A group in which
    nothing is outstanding is silent.
 5. The window counts packets that some destination has not accepted, so that no other node can close it (C5).
 6. Receive buffers are separate for each source: a shared pool deadlocks when it is full.
 7. Statuses are stamped, and the newest replaces older ones; retransmitted packets carry a new one.
 8. A node accepts its own packet when it sends it; a packet to the node itself alone is not transmitted.
 9. In a group with views a packet is pre-acknowledged only behind packets that are settled (`settlement`).

Not here: membership, group establishment, batching (a host hands over ready batches), the network.
"""

from collections.abc import Callable

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    Deliver,
    Discard,
    GiveUp,
    Input,
    Level,
    Numbered,
    Output,
    Reached,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import members, name_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.shared.destinations import check_subset
from ordercast.protocols.shared.jitter import spread
from ordercast.protocols.shared.numbering import numbered
from ordercast.protocols.shared.reasons import INFERRED_LOSS
from ordercast.protocols.spo.loss_detection import LossDetection
from ordercast.protocols.spo.retransmission import Node, Retransmission, SelectiveRepeat
from ordercast.protocols.spo.units import Data, Missing, Ready, Status

_PATIENCE = 4
"""Multiple of the poll timer after which acknowledgments of what is delivered are asked for."""
ACCEPTED, PREACKNOWLEDGED, ACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED


class Spo(LossDetection):
    """The protocol at one node. See the module for the sources of its rules."""

    def __init__(
        self, me: int, config: GroupConfig, retransmission: Callable[[Node], Retransmission] = SelectiveRepeat
    ) -> None:
        """`retransmission`: makes the policy for requests and retransmissions."""
        super().__init__(me, config)
        self.retransmission = retransmission(self)

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all outputs that follow from it."""
        out: list[Output] = []
        if self.aborted:
            return out
        self.window_changed = False
        if type(event) is GiveUp:
            self.abort(event.why, out)
            return out
        if type(event) is Receive:
            self.receive(event.unit, out)
        elif type(event) is Submit:
            self.submit(event)
        elif type(event) is TimerFired:
            self.fire(event.name, out)
        elif self.status_due:  # Drained
            self.send_status(out)
        if self.window_changed and self.waiting:
            self.send_waiting(out)
        if self.status_due and not self.status_timer:
            self.status_timer, self.transmitted = True, False
            self.set_timer("status", self.config.timing.status, out)
        if (self.patient and not self.has_delivered_all()) or (not self.poll_timer and self.unfinished()):
            self.backoff.restart()
            self.start_poll_timer(self.heads(), out)
        return out

    def receive(self, unit: Unit, out: list[Output]) -> None:
        """Own units, and those of other protocols, are discarded."""
        if type(unit) is Data and unit.packet.source != self.me:
            self.receive_data(unit, out)
        elif type(unit) is Ready and unit.source != self.me:
            self.receive_ready(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    # --- transmission and flow control (EN 4.2 B, JP 3.2) ---

    def submit(self, event: Submit) -> None:
        """Queues a submission; raises LocalProtocolError if its destinations are not nodes of the group."""
        check_subset(event.destinations, self.nodes)
        self.waiting.append(event)
        self.window_changed = True

    def send_waiting(self, out: list[Output]) -> None:
        """Sends what the window allows, in the order of submission."""
        while self.waiting and self.can_send(self.waiting[0].destinations):
            self.send(self.waiting.popleft(), out)

    def can_send(self, destinations: int) -> bool:
        """Flow condition: the window, reduced to the free buffers of the fullest destination, but at least 1."""
        if destinations & self.my_bit and self.buffered[self.me] >= self.config.quota:
            return False
        window = self.config.window
        for node in members(destinations & ~self.my_bit):
            window = min(window, self.free[node])
        if self.views:
            return self.settlement.in_window(self.next_seq) < max(1, window)
        return len(self.sent) < max(1, window) or destinations == self.my_bit

    def send(self, event: Submit, out: list[Output]) -> None:
        """Transmission action. If I am a destination, my copy is accepted at once, without the channel."""
        me, destinations = self.me, event.destinations
        packet = numbered(event, me, self.next_seq, self.next_seq_to, self.next_message)
        self.next_message = packet.first + len(packet.lengths)
        self.next_seq += 1
        self.expected[me] = self.seen[me] = self.next_seq
        self.expected_to_me[me] = self.seen_to_me[me] = self.next_seq_to[me]
        out.append(Numbered(packet))
        to_me = destinations & self.my_bit
        if to_me:
            out.append(Reached(ACCEPTED, packet))
            self.buffered[me] += 1
            self.accepted.logs[me].append(packet)
        if destinations != self.my_bit:
            self.sent.append(packet)
        if self.views:
            self.settlement.keep(packet, to_all=event.to_all)
            self.settle(out)
        if destinations != self.my_bit:
            out.append(Send(Data(packet, self.status())))
        if to_me and len(self.accepted.logs[me]) == 1:
            self.preacknowledge(me, out)

    def retransmit(self, packet: Packet, out: list[Output]) -> None:
        """Transmits a copy of a packet with a new status."""
        out.append(Send(Data(packet, self.status()), again=True))

    def status(self) -> Status:
        """What I know now, for a unit that is transmitted: no acknowledgment is pending afterwards."""
        self.stamp += 1
        self.status_due, self.transmitted = False, True
        self.unreported = [0] * self.nodes
        self.reported_free = self.free_buffers()
        expected, logs, settled_below = self.expected, self.accepted.logs, 0
        if self.views:
            if any(self.settlement.held):
                logs = [held or log for held, log in zip(self.settlement.held, logs, strict=True)]
            settled_below = self.settlement.said_below = self.settlement.settled_below[self.me]
        return Status(
            self.stamp,
            tuple(expected),
            tuple([log[0].seq if log else expected[source] for source, log in enumerate(logs)]),
            self.reported_free,
            settled_below,
        )

    def send_status(self, out: list[Output], wants: int = 0, missing: Missing = ()) -> None:
        """RR: a status without data; it may poll nodes (`wants`) and request what is missing."""
        out.append(Send(Ready(self.me, self.next_seq, tuple(self.next_seq_to), self.status(), wants, missing)))

    # --- acceptance (EN 4.2 A, JP 3.2) ---

    def receive_data(self, unit: Data, out: list[Output]) -> None:
        """Takes the status of a data unit; accepts, buffers or discards its packet; detects gaps."""
        packet, status = unit.packet, unit.status
        source, seq = packet.source, packet.seq
        if status.stamp > self.stamps[source]:
            self.take_status(source, status, out)
        self.backoff.unanswered[source] = 0
        if seq < self.expected[source]:  # the duplicate condition; it must come first (D1)
            out.append(Discard(unit, "duplicate"))
            return
        number = packet.seq_to[self.me]
        to_me = packet.destinations >> self.me & 1
        if seq >= self.seen[source]:
            self.seen[source], self.seen_to_me[source] = seq + 1, number + to_me
        if number != self.expected_to_me[source]:
            self.retransmission.receive_ahead(unit, number, out)
        elif not to_me:
            self.expected[source] = seq + 1
            out.append(Discard(unit, "foreign"))
        elif self.buffered[source] >= self.config.quota:
            out.append(Discard(unit, "full"))
        else:
            self.accept(packet, out)
            kept = self.retransmission.out_of_order[source]
            while kept and (number := self.expected_to_me[source]) in kept:
                self.accept(kept.pop(number), out)
        if self.expected_to_me[source] == self.seen_to_me[source]:
            self.expected[source] = self.seen[source]
        else:
            self.detect_loss(source, out)
        if self.unreported[source] >= self.status_after:
            self.send_status(out)

    def accept(self, packet: Packet, out: list[Output]) -> None:
        """Accept action, for a packet to me."""
        source = packet.source
        self.expected[source] = packet.seq + 1
        self.expected_to_me[source] += 1
        self.status_due = self.retransmission.progress = True
        self.unreported[source] += 1
        self.buffered[source] += 1
        out.append(Reached(ACCEPTED, packet))
        log = self.accepted.logs[source]
        log.append(packet)
        if len(log) == 1:
            self.preacknowledge(source, out)

    def receive_ready(self, unit: Ready, out: list[Output]) -> None:
        """Takes a status without data; detects gaps; answers a poll and a request for retransmission."""
        source = unit.source
        if unit.status.stamp > self.stamps[source]:
            self.take_status(source, unit.status, out)
        self.backoff.unanswered[source] = 0
        if unit.next_seq >= self.seen[source]:
            self.seen[source], self.seen_to_me[source] = unit.next_seq, unit.next_seq_to[self.me]
        if self.expected_to_me[source] == self.seen_to_me[source]:
            self.expected[source] = self.seen[source]
        else:
            self.detect_loss(source, out)
        if unit.wants & self.my_bit:
            self.status_due = True
        for requested, ranges in unit.missing:
            if requested == self.me:
                self.retransmission.answer_request(source, ranges, out)
        self.retransmission.received_status(source, out)

    def take_status(self, source: int, status: Status, out: list[Output]) -> None:
        """Takes the acknowledgments of a peer's newest status, whatever becomes of the unit that carried it."""
        if self.is_regression(source, status):
            return
        self.stamps[source] = status.stamp
        if self.free[source] < self.config.window:
            self.window_changed = True
        self.free[source] = status.free
        self.accepted.acknowledged_below[source] = status.expects
        self.preacknowledged.acknowledged_below[source] = status.preacknowledged_below
        acknowledged = self.sent.acknowledge(source, status.expects[self.me])
        if acknowledged:
            self.note_accepted(acknowledged, out)
        if self.views:
            if self.settlement.hear(source, status.settled_below):
                self.note_preacknowledged(source, self.settlement.release(source, []), out)
            if acknowledged:
                self.settle(out)
        if self.accepted.waiting_for[source]:
            for log in self.accepted.unblocked_by(source):
                self.preacknowledge(log, out)
        if self.preacknowledged.waiting_for[source]:
            for log in self.preacknowledged.unblocked_by(source):
                self.acknowledge(log, out)
        if self.config.infer_losses and not self.inferred_loss_timer and self.losses_inferred_from_peer(source):
            self.inferred_loss_timer = True
            self.set_timer(INFERRED_LOSS, self.config.timing.inferred_loss, out)

    def note_accepted(self, packets: list[Packet], out: list[Output]) -> None:
        """All destinations of these own packets have accepted them; those to me are pre-acknowledged in their log."""
        self.window_changed = True
        for packet in packets:
            if not packet.destinations & self.my_bit:
                out.append(Reached(PREACKNOWLEDGED, packet))
                self.await_acknowledgment(self.nodes, packet, out)

    # --- pre-acknowledgment and acknowledgment (EN 4.3 and 4.4, JP 3.3 and 3.4) ---

    def preacknowledge(self, source: int, out: list[Output]) -> None:
        """PACK action: packets that all their destinations have accepted; with views, behind settled ones only."""
        packets = self.accepted.take_acknowledged(source)
        if packets and self.views:
            packets = self.settlement.release(source, packets)
        if packets:
            self.note_preacknowledged(source, packets, out)

    def settle(self, out: list[Output]) -> None:
        """With views: all that follows when own packets were sent, or accepted by all their destinations."""
        settlement = self.settlement
        if settlement.unsettled and settlement.settle_own(self.sent, self.next_seq):
            if settlement.held[self.me]:
                self.note_preacknowledged(self.me, settlement.release(self.me, []), out)
            if settlement.owes_status():
                self.status_due = True

    def note_preacknowledged(self, source: int, packets: list[Packet], out: list[Output]) -> None:
        """These packets are pre-acknowledged now."""
        stable, early, kept = self.config.delivers_stable, self.delivered_early, self.preacknowledged.logs[source]
        for packet in packets:
            out.append(Reached(PREACKNOWLEDGED, packet))
            if stable and packet.destinations == self.everybody and early[source] == len(kept):
                early[source] += 1
                self.deliver(source, packet, out)
            elif packet.destinations != self.my_bit:  # others wait to hear of it, to deliver it
                self.status_due = True
            kept.append(packet)
            if len(kept) == 1:
                self.acknowledge(source, out)

    def await_acknowledgment(self, log: int, packet: Packet, out: list[Output]) -> None:
        """Keeps a pre-acknowledged packet until it is acknowledged."""
        packets = self.preacknowledged.logs[log]
        packets.append(packet)
        if len(packets) == 1:
            self.acknowledge(log, out)

    def acknowledge(self, log: int, out: list[Output]) -> None:
        """ACK action: packets that all their destinations have pre-acknowledged are delivered if they are to me.

        With `delivers_stable` packets to all nodes are delivered when they are pre-acknowledged; but none overtakes an
        earlier one of its source.
        """
        for packet in self.preacknowledged.take_acknowledged(log):
            out.append(Reached(ACKNOWLEDGED, packet))
            if log != self.nodes:
                if self.delivered_early[log]:
                    self.delivered_early[log] -= 1
                else:
                    self.deliver(log, packet, out)
        if self.config.delivers_stable and log != self.nodes:
            kept = self.preacknowledged.logs[log]
            while (place := self.delivered_early[log]) < len(kept) and kept[place].destinations == self.everybody:
                self.delivered_early[log] += 1
                self.deliver(log, kept[place], out)

    def deliver(self, source: int, packet: Packet, out: list[Output]) -> None:
        """Delivers a packet, whose receive buffer is free then."""
        self.buffered[source] -= 1
        if source == self.me:
            self.window_changed = True
        out.append(Deliver(packet))
        if self.reported_free < self.config.window and self.free_buffers() >= 2 * max(1, self.reported_free):
            self.status_due = True  # a source that found no free buffer here may go on

    # --- timers: pending status, polls, losses inferred from peers (EN 4.5, JP 3.5) ---

    def set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        """Sets a timer, spread over [T, 2T)."""
        out.append(SetTimer(name, spread(duration, self.me, self.stamp)))

    def fire(self, name: str, out: list[Output]) -> None:
        """A timer fired."""
        if name == "status":
            self.status_timer_fired(out)
        elif name == "poll":
            self.poll(out)
        elif name == INFERRED_LOSS:
            self.ask_about_inferred_loss(out)
        else:
            self.retransmission.fire(name, out)

    def status_timer_fired(self, out: list[Output]) -> None:
        """Sends the pending status, unless something was transmitted since: then the timer runs once more."""
        self.status_timer = False
        if self.status_due and not self.transmitted:
            self.send_status(out)

    def ask_about_inferred_loss(self, out: list[Output]) -> None:
        """Failure condition (2), after its waiting time: polls sources whose packets only peers have acknowledged."""
        self.inferred_loss_timer = False
        wants = 0
        for node in range(self.nodes):
            wants |= self.losses_inferred_from_peer(node)
        if wants:
            self.send_status(out, wants=wants)

    def poll(self, out: list[Output]) -> None:
        """Polls the nodes that block a log whose head has not changed; aborts if one of them never answers.

        Progress of other logs does not count: a node that has nothing else to send would never be polled.
        """
        patient, self.poll_timer, self.patient = self.patient, False, False
        if not self.unfinished():
            return
        if self.has_delivered_all() and not patient:  # it was set for what has come meanwhile; a patient one follows
            return
        heads, backoff = self.heads(), self.backoff
        wants = self.blockers([before == now for before, now in zip(self.heads_at_poll, heads, strict=True)])
        backoff.progress = not wants
        if backoff.advance():
            silent = backoff.count_unanswered(wants)
            if silent is not None:
                self.abort(f"{name_of(silent)} left {backoff.limit} polls in a row unanswered", out)
                return
            self.send_status(out, wants=wants)
        self.start_poll_timer(heads, out)

    def start_poll_timer(self, heads: tuple[int, ...], out: list[Output]) -> None:
        """I wait for others; patiently, if only for acknowledgments of what is delivered."""
        self.poll_timer, self.heads_at_poll, self.patient = True, heads, self.has_delivered_all()
        factor = max(_PATIENCE, self.backoff.factor) if self.patient else self.backoff.factor
        self.set_timer("poll", self.config.timing.poll * factor, out)

    def abort(self, why: str, out: list[Output]) -> None:
        """Delivers what is pre-acknowledged: whatever any node delivered is pre-acknowledged at all destinations."""
        for log in range(self.nodes):
            out += [Deliver(packet) for packet in [*self.preacknowledged.logs[log]][self.delivered_early[log] :]]
        self.aborted = True
        out.append(Abort(why))
