"""ST while nothing is lost: transmission, acceptance, and the two levels above it, in the order of the channel.

From: Tachikawa and Takizawa, "Selective Total-Ordering Group Communication on Single High-Speed Channel", sections 3.1
to 3.4. What happens after a loss is in `st`.

**Lemma A.** If a packet is pre-acknowledged at a node, that node has accepted every packet for it that precedes the
packet on the channel. For each node it has accepted a unit that was sent when the packet had been heard there, so
after it; that unit was the next one of its sender for this node; so nothing that its sender sent to this node before
is missing. This needs two things: a packet waits for *all* nodes, not only its destinations; and only units that are
accepted count, one's own as the channel brings them back.
"""

from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Deliver, Discard, Level, Numbered, Output, Reached, Send, SetTimer, Submit
from ordercast.model.nodes import members
from ordercast.model.units import Packet
from ordercast.protocols.shared.timers import spread
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.protocols.st.state import LOG, OWN, StState

ACCEPTED, PREACKNOWLEDGED, ACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED


class StNormal(StState):
    """The rules of an epoch in which nothing is missing."""

    # --- transmission (3.2) ---

    def _submit(self, event: Submit) -> None:
        if not event.destinations or event.destinations & ~self._everybody:
            raise LocalProtocolError(f"a message must go to at least one of the {self._nodes} nodes, and to no others")
        self.waiting.append(event)

    def _can_send(self) -> bool:
        """Flow condition. The window may close altogether: units without data pass it and open it again."""
        under_way = len(self.accepted.rows[OWN])
        if under_way >= self.config.window:
            return False
        return under_way < min(self._free(), *self.free) // self._nodes

    def _send_waiting(self, out: list[Output]) -> None:
        while self.again and self._can_send():
            self._transmit(self.again.popleft(), out, again=True)
        while self.waiting and not self.again and self._can_send():
            self._send(self.waiting.popleft(), out)

    def _send(self, event: Submit, out: list[Output]) -> None:
        """Transmission action. It is heard, here too, when the channel brings it."""
        seq_to, first = tuple(self.next_seq_to), self.next_message
        packet = Packet(
            self.me, event.destinations, self.next_seq, seq_to, first, event.lengths, event.payload, event.priority
        )
        for node in members(event.destinations):
            self.next_seq_to[node] += 1
        self.next_message += len(event.lengths)
        self.next_seq += 1
        out.append(Numbered(packet))
        self._transmit(packet, out, again=False)

    def _transmit(self, packet: Packet, out: list[Output], *, again: bool) -> None:
        out.append(Send(Data(packet, self._status()), again))
        own = self.accepted.rows[OWN]
        own.append(packet)
        if len(own) == 1:
            self._release(out)

    def _status(self) -> Status:
        """What I know now. Whoever hears it is owed nothing more."""
        self.stamp += 1
        self.owes, self.news, self.status_paid = False, False, True
        self.unsaid = [0] * self._nodes
        expected = self.expected
        below = tuple([seqs[0] if seqs else expected[source] for source, seqs in enumerate(self.unpreacknowledged)])
        return Status(self.stamp, tuple(expected), below, self._free(), self.epoch)

    def _send_ready(self, out: list[Output], *, asks: bool = False) -> None:
        """RR; it asks everybody for theirs as long as I wait for anything."""
        wants = self._everybody if asks or self.unfinished() else 0
        out.append(Send(Ready(self.me, *self.next_numbers(), self._status(), wants)))

    def _free(self) -> int:
        return max(0, self.config.quota * self._nodes - self.held())

    # --- acceptance (3.2) ---

    def _receive_data(self, unit: Data, out: list[Output]) -> bool:
        """ACC action. False: something for me is missing before it; it is kept at the place where it came."""
        packet = unit.packet
        source, seq, number = packet.source, packet.seq, packet.seq_to[self.me]
        for_me = packet.destinations & self._my_bit
        if seq < self.expected[source] or number < self.expected_to_me[source]:
            out.append(Discard(unit, "duplicate"))
            return True
        if for_me and self.held() >= self.config.quota * self._nodes:
            out.append(Discard(unit, "full"))
            return True
        if number > self.expected_to_me[source]:
            if for_me:
                self.log.append(packet)
                self.holds_last = True
            return False
        self.expected[source] = seq + 1
        self.owes = self.news = True
        if for_me:
            self.expected_to_me[source] = number + 1
            self.unsaid[source] += 1
            self.places += 1
            self.log.append(packet)
            self.unpreacknowledged[source].append(seq)
            if (source, seq) in self.once_accepted:
                self.once_accepted.remove((source, seq))
            else:
                out.append(Reached(ACCEPTED, packet))
            rrl = self.accepted.rows[LOG]
            rrl.append(packet)
            if len(rrl) == 1:
                self._preacknowledge(out)
        else:
            out.append(Discard(unit, "foreign"))
        self._learn(source, unit.status, out)
        return True

    def _receive_ready(self, unit: Ready, out: list[Output]) -> bool:
        """The same for a status without data: it shows what was sent before it."""
        source, number = unit.source, unit.next_seq_to[self.me]
        if unit.next_seq < self.expected[source] or number < self.expected_to_me[source]:
            return True
        if number > self.expected_to_me[source]:
            return False
        self.expected[source] = unit.next_seq
        if unit.wants:
            self.owes = True
        self._learn(source, unit.status, out)
        return True

    def _learn(self, source: int, status: Status, out: list[Output]) -> None:
        """Takes the facts of a unit that was accepted, and of no other (Lemma A)."""
        if status.stamp <= self.stamps[source]:
            return
        self.stamps[source] = status.stamp
        self.free[source] = status.free
        self.accepted.columns[source] = status.expects
        if source != self.me:
            self.preacknowledged.columns[source] = status.preacknowledged_below
        if self.accepted.watchers[source]:
            for row in self.accepted.wake(source):
                if row == LOG:
                    self._preacknowledge(out)
                else:
                    self._release(out)
        if self.preacknowledged.watchers[source]:
            for row in self.preacknowledged.wake(source):
                self._acknowledge(row, out)
        if self.config.hearsay and not self.hearsay_timer and self.heard_of_more():
            self.hearsay_timer = True
            self._set_timer("hearsay", self.config.timing.hearsay, out)

    # --- pre-acknowledgment and acknowledgment (3.3, 3.4) ---

    def _preacknowledge(self, out: list[Output]) -> None:
        """PACK action, over all nodes (Lemma A)."""
        for packet in self.accepted.rise(LOG):
            self.moved = self.news = True
            self.preacknowledged_count += 1
            self.unpreacknowledged[packet.source].popleft()
            out.append(Reached(PREACKNOWLEDGED, packet))
            self._climb(LOG, packet, out)

    def _release(self, out: list[Output]) -> None:
        """What everybody has heard leaves the sending log; if I am no destination, that is all I hear of it."""
        for packet in self.accepted.rise(OWN):
            self.moved = True
            if not packet.destinations & self._my_bit:
                out.append(Reached(PREACKNOWLEDGED, packet))
                self._climb(OWN, packet, out)

    def _climb(self, row: int, packet: Packet, out: list[Output]) -> None:
        log = self.preacknowledged.rows[row]
        log.append(packet)
        if len(log) == 1:
            self._acknowledge(row, out)

    def _acknowledge(self, row: int, out: list[Output]) -> None:
        """ACK action, over the destinations.

        Nothing of finished epochs is left then: what is acknowledged, everybody has spoken of in this one.
        """
        for packet in self.preacknowledged.rise(row):
            self.moved = True
            out.append(Reached(ACKNOWLEDGED, packet))
            if row == LOG:
                self.acknowledged_count += 1
                self.places -= 1
                out.append(Deliver(packet))

    def _deliver_old(self, out: list[Output]) -> None:
        """A unit of a later epoch proves that its sender has finished the one before: nobody lacks anything of it."""
        finished_below = min(self.epoch_seen)
        while self.old and self.old[0][0] < finished_below:
            _, packet = self.old.popleft()
            self.moved = True
            out.append(Reached(ACKNOWLEDGED, packet))
            if packet.destinations & self._my_bit:
                self.places -= 1
                out.append(Deliver(packet))

    # --- timers ---

    def _set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        out.append(SetTimer(name, self._spread(duration)))

    def _spread(self, duration: int) -> int:
        """Drawn anew with every transmission, and, when nothing is sent, with every step of patience."""
        return spread(duration, self.me, self.stamp + (self.patience << 16))
