"""Normal operation of ST, within an epoch: transmission, acceptance, pre-acknowledgment and acknowledgment.

From: Tachikawa and Takizawa, "Selective Total-Ordering Group Communication on Single High-Speed Channel", sections 3.1
to 3.4. How a loss is detected is in `loss_detection`, what follows it in `recovery`.

**Lemma A.** If a packet is pre-acknowledged at a node, that node has accepted every packet to it that precedes the
packet on the channel. For each node it has accepted a unit that was sent when the packet had been received there, so
after it; that unit was the next one of its sender to this node; so nothing that its sender sent to this node before
is missing. This needs two things: a packet waits for *all* nodes, not only its destinations; and only the statuses of
units that are accepted count, own ones as the channel brings them back.
"""

from ordercast.model.machine import (
    Abort,
    Deliver,
    Discard,
    Level,
    Numbered,
    Output,
    Reached,
    Send,
    SetTimer,
    Submit,
)
from ordercast.model.nodes import name_of
from ordercast.model.units import Packet
from ordercast.protocols.shared.alone import alone
from ordercast.protocols.shared.destinations import check_subset
from ordercast.protocols.shared.jitter import spread
from ordercast.protocols.shared.numbering import numbered
from ordercast.protocols.shared.reasons import INFERRED_LOSS
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.loss_detection import LossDetection

_PATIENCE = 32
"""Multiple of the status timer for which acknowledgments of what is delivered wait for something to carry them."""
ACCEPTED, PREACKNOWLEDGED, ACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED


class NormalOperation(LossDetection):
    """The rules of an epoch, until a loss is detected."""

    # --- transmission and flow control (3.2) ---

    def submit(self, event: Submit) -> None:
        """Queues a submission; raises LocalProtocolError if its destinations are not nodes of the group."""
        check_subset(event.destinations, self.nodes)
        self.waiting.append(event)

    def can_send(self) -> bool:
        """Flow condition. The window may close completely: units without data are not subject to it and reopen it."""
        unacknowledged = len(self.accepted.logs[OWN])
        if unacknowledged >= self.config.window:
            return False
        return unacknowledged < min(self.free_buffers(), *self.free) // self.nodes

    def send_waiting(self, out: list[Output]) -> None:
        """Sends what the window allows: first what was discarded by go-back-n, then submissions in their order."""
        while self.to_resend and self.can_send():
            self.transmit(self.to_resend.popleft(), out, again=True)
        while self.waiting and not self.to_resend and self.can_send():
            self.send(self.waiting.popleft(), out)

    def send(self, event: Submit, out: list[Output]) -> None:
        """Transmission action. The packet is accepted, here too, when the channel brings it."""
        packet = numbered(event, self.me, self.next_seq, self.next_seq_to, self.next_message)
        self.next_message = packet.first + len(packet.lengths)
        self.next_seq += 1
        out.append(Numbered(packet))
        if self.nodes == 1:  # there is nobody to agree with on an order
            self.expected, self.expected_to_me = [self.next_seq], list(self.next_seq_to)
            out += alone(packet)
        else:
            if event.to_all:
                self.to_all.add(packet.seq)
            self.transmit(packet, out, again=False)

    def transmit(self, packet: Packet, out: list[Output], *, again: bool) -> None:
        """Sends a packet and keeps it until all nodes have acknowledged it."""
        out.append(Send(Data(packet, self.status()), again))
        self.keep_own(packet, out)

    def status(self) -> Status:
        """What I know now, for a unit that is transmitted: no acknowledgment is pending afterwards."""
        self.stamp += 1
        self.status_due, self.acknowledgment_pending, self.transmitted = False, False, True
        self.unreported = [0] * self.nodes
        below = self.preacknowledged_below(self.expected)
        return Status(self.stamp, tuple(self.expected), below, self.free_buffers(), self.epoch)

    def send_status(self, out: list[Output], *, polls: bool = False) -> None:
        """RR: a status without data; it polls everybody as long as I wait for anything (see `polls_late`)."""
        wants = self.everybody if polls or (not self.config.polls_late and self.unfinished()) else 0
        out.append(Send(Ready(self.me, *self.next_numbers(), self.status(), wants)))

    # --- acceptance (3.2) ---

    def receive_data(self, unit: Data, out: list[Output]) -> bool:
        """ACC action. True: a loss is detected."""
        packet = unit.packet
        source, seq, number = packet.source, packet.seq, packet.seq_to[self.me]
        if seq < self.expected[source] or number != self.expected_to_me[source]:
            return self.detect_loss(unit, out)
        to_me = packet.destinations & self.my_bit
        if to_me and self.buffers_in_use() >= self.config.quota * self.nodes:
            out.append(Discard(unit, "full"))
            return False
        self.expected[source] = seq + 1
        self.status_due = self.acknowledgment_pending = True
        if to_me:
            self.expected_to_me[source] = number + 1
            self.unreported[source] += 1
            self.buffered += 1
            self.log.append(packet)
            self.unpreacknowledged[source].append(seq)
            if (source, seq) in self.accepted_before:
                self.accepted_before.remove((source, seq))
            else:
                out.append(Reached(ACCEPTED, packet))
            received = self.accepted.logs[RECEIVED]
            received.append(packet)
            if len(received) == 1:
                self.preacknowledge(out)
        else:
            out.append(Discard(unit, "foreign"))
        self.take_status(source, unit.status, out)
        return False

    def receive_ready(self, unit: Ready, out: list[Output]) -> bool:
        """The same for a status without data, which shows what was sent before it. True: a loss is detected."""
        source, number = unit.source, unit.next_seq_to[self.me]
        if unit.next_seq < self.expected[source] or number != self.expected_to_me[source]:
            return self.shows_gap(source, unit.next_seq, number)
        self.expected[source] = unit.next_seq
        if unit.wants:
            self.status_due = True
        self.take_status(source, unit.status, out)
        return False

    def take_status(self, source: int, status: Status, out: list[Output]) -> None:
        """Takes the acknowledgments of a unit that was accepted, and of no other (Lemma A)."""
        if status.stamp <= self.stamps[source]:
            return
        self.stamps[source] = status.stamp
        self.free[source] = status.free
        self.accepted.acknowledged_below[source] = status.expects
        if source != self.me:
            self.preacknowledged.acknowledged_below[source] = status.preacknowledged_below
        self.rise(source, out)
        if self.config.infer_losses and not self.inferred_loss_timer and self.loss_inferred_from_peers():
            self.inferred_loss_timer = True
            self.set_timer(INFERRED_LOSS, self.config.timing.inferred_loss, out)

    # --- pre-acknowledgment and acknowledgment (3.3, 3.4) ---

    def preacknowledge(self, out: list[Output]) -> None:
        """PACK action: packets that all nodes have accepted or skipped (Lemma A)."""
        for packet in self.accepted.take_acknowledged(RECEIVED):
            self.backoff.progress = True
            self.preacknowledged_count += 1
            self.unpreacknowledged[packet.source].popleft()
            out.append(Reached(PREACKNOWLEDGED, packet))
            if self.config.delivers_stable:
                self.buffered -= 1
                out.append(Deliver(packet))
            else:  # others wait to hear of it, to deliver it
                self.acknowledgment_pending = True
            self.await_acknowledgment(RECEIVED, packet, out)

    def acknowledge(self, log: int, out: list[Output]) -> None:
        """ACK action: packets that all their destinations have pre-acknowledged are delivered if they are to me.

        With `delivers_stable` they have been. Nothing of finished epochs is left then: units of this epoch were
        received from all nodes.
        """
        for packet in self.preacknowledged.take_acknowledged(log):
            self.backoff.progress = True
            out.append(Reached(ACKNOWLEDGED, packet))
            if log == RECEIVED:
                self.log[self.acknowledged_count] = packet.without_messages()  # all have them, until the epoch ends
                self.acknowledged_count += 1
                if not self.config.delivers_stable:
                    self.buffered -= 1
                    out.append(Deliver(packet))

    def deliver_finished(self, out: list[Output]) -> None:
        """Acknowledges packets of epochs that all nodes have finished, and delivers those to me."""
        for packet in self.finished.take_acknowledged():
            self.backoff.progress = True
            out.append(Reached(ACKNOWLEDGED, packet))
            if self.finished.is_due(packet, self.me):
                self.buffered -= 1
                out.append(Deliver(packet))
            self.finished.delivered.discard((packet.source, packet.seq))

    # --- timers and giving up ---

    def set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        """Sets a timer, spread over [T, 2T)."""
        out.append(SetTimer(name, self.spread(duration)))

    def spread(self, duration: int) -> int:
        """Changes with every transmission, and with every step of back-off when nothing is sent."""
        return spread(duration, self.me, self.stamp + (self.backoff.factor << 16))

    def start_status_timer(self, out: list[Output]) -> None:
        """A status is due, or I wait for something: one is sent soon."""
        self.status_timer, self.transmitted, self.patient = True, False, self.is_in_no_hurry()
        self.backoff.restart()
        self.set_timer("status", self.status_time(), out)

    def status_time(self) -> int:
        """How long a status waits for something that carries it."""
        return self.config.timing.status * (_PATIENCE if self.patient else self.backoff.factor)

    def ask_about_inferred_loss(self, out: list[Output]) -> None:
        """Condition (2) of 4.1, after its waiting time: polls; the source's status shows whether the loss was mine."""
        if self.loss_inferred_from_peers():
            self.send_status(out, polls=True)

    def abort(self, why: str, out: list[Output]) -> None:
        """Delivers what is pre-acknowledged, in the order of the channel: an exact prefix of it (Lemma A)."""
        out += map(Deliver, self.finished.all_due(self.me))
        if not self.config.delivers_stable:
            out += [Deliver(packet) for packet in self.preacknowledged.logs[RECEIVED]]
        self.aborted = True
        out.append(Abort(why))

    def abort_if_unanswered(self, blockers: int, out: list[Output]) -> bool:
        """Counts an unanswered question to these nodes; True if one of them has left too many, and ends the group."""
        silent = self.backoff.count_unanswered(blockers)
        if silent is None:
            return False
        self.abort(f"{name_of(silent)} left {self.backoff.limit} questions in a row unanswered", out)
        return True
