"""TO while nothing is missing: transmission, acceptance, and the two levels above it, in the order of the channel.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", sections 2.2 and 4.1,
without the priorities. What happens after a loss is in `to`.

**Prefix lemma.** If a unit is pre-acknowledged at a node, that node has accepted, in the order of the channel, every
unit in sequence that precedes it on the channel in this epoch. For each node it has accepted something that was said
when the unit had been accepted there; that came next after all that its sender had put in sequence before; so none of
that is missing. It needs three things: only what is accepted here counts; one's own units are accepted as the channel
brings them back; and the first that is not pre-acknowledged holds back all behind it.

**Second lemma.** Acknowledgment follows the same order: who acknowledges a packet accepted, at that time, everything
before it. So a packet is acknowledged when for each node a unit *in sequence* that covers it is pre-acknowledged,
and the place of the last of these is the same at all nodes. What only pre-acknowledges need not be in sequence.
"""

from operator import gt

from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Deliver, Discard, Level, Numbered, Output, Reached, Send, SetTimer, Submit
from ordercast.model.nodes import names_of
from ordercast.model.units import Packet
from ordercast.protocols.shared.timers import spread
from ordercast.protocols.to.state import ToState
from ordercast.protocols.to.units import Heading, OrderedData, OrderedReady, RunMarker, Sequenced, Standing

ACCEPTED, PREACKNOWLEDGED, ACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED


class ToNormal(ToState):
    """The rules of an epoch in which nothing is missing."""

    # --- transmission ---

    def _submit(self, event: Submit) -> None:
        if event.destinations != self._everybody:
            asked = names_of(event.destinations) if event.destinations > 0 else event.destinations
            raise LocalProtocolError(f"a broadcast goes to all {self._nodes} nodes: {asked} was asked for")
        self.waiting.append(event)

    def _can_send(self) -> bool:
        """Flow condition. Units without data pass it."""
        return len(self.sent) < self.allowance

    def _has_room(self) -> bool:
        """Whether everybody has a place for one more of mine: all have delivered all but a quota of them."""
        if self.unsettled >= self.config.quota and self.own_places:
            lowest = min([count for node, count in enumerate(self.delivered_by) if node != self.me])
            while self.own_places and self.own_places[0] < lowest:
                self.own_places.popleft()
                self.unsettled -= 1
        return self.unsettled < self.config.quota

    def _send_waiting(self, out: list[Output]) -> None:
        while self.again and self._can_send():
            self._transmit(self.again.popleft(), out, again=True)
        while self.waiting and self._can_send() and self._has_room():
            self._send(self.waiting.popleft(), out)

    def _send(self, event: Submit, out: list[Output]) -> None:
        first = self.next_message
        packet = Packet(
            self.me, event.destinations, self.next_packet, (), first, event.lengths, event.payload, event.priority
        )
        self.next_packet += 1
        self.next_message += len(event.lengths)
        self.unsettled += 1
        out.append(Numbered(packet))
        self._transmit(packet, out, again=False)

    def _transmit(self, packet: Packet, out: list[Output], *, again: bool) -> None:
        """It is accepted, here too, when the channel brings it."""
        self.sent.append((self.next_seq, packet))
        out.append(Send(OrderedData(packet, self._heading_in_sequence()), again))

    def _heading(self, wants: int = 0) -> Heading:
        """What I have accepted now. Whoever hears it is owed nothing more."""
        self.stamp += 1
        self.owes, self.unsaid = False, 0
        return Heading(self.me, self.epoch, self.next_seq, tuple(self.expected), self.delivered_count, wants)

    def _heading_in_sequence(self) -> Heading:
        heading = self._heading()
        self.next_seq += 1
        self.owes_in_sequence = False
        return heading

    def _say(self, out: list[Output], wants: int = 0) -> None:
        """In sequence only if it must be: a unit in sequence that somebody loses sends everybody back."""
        if self.owes_in_sequence:
            out.append(Send(OrderedReady(self._heading_in_sequence())))
            if not wants:
                return
        out.append(Send(Standing(self._heading(wants))))

    # --- acceptance ---

    def _hear_in_epoch(self, unit: Sequenced | Standing, heading: Heading, out: list[Output]) -> str:
        """ACC. Returns what is wrong: something is missing before it, and it is not accepted; empty if all is well."""
        source, seq, expected = heading.source, heading.seq, self.expected
        if seq < expected[source]:
            if type(unit) is not Standing:
                out.append(Discard(unit, "duplicate"))
            return ""
        if seq > expected[source]:
            return "gap"
        if any(map(gt, heading.expects, expected)):
            return "hearsay"
        if self._is_impossible(unit, heading):
            out.append(Discard(unit, "impossible"))
            return ""
        if type(unit) is Standing and self._has_said_more(heading):
            return ""
        if heading.wants & self._my_bit:
            self.owes = True
        self.delivered_by[source] = heading.delivered
        accepted = self.accepted
        accepted.columns[source] = heading.expects
        if not isinstance(unit, Standing):
            expected[source] = seq + 1
            self._accept(unit, source, seq, out)
        if accepted.holds_back == source:
            for risen in accepted.rise():
                self._preacknowledge(risen, out)
        return ""

    def _has_said_more(self, heading: Heading) -> bool:
        """Whether its source has said more than this since: then it came twice, and late. It has no number to tell."""
        known = self.accepted.columns[heading.source]
        return heading.delivered < self.delivered_by[heading.source] or any(map(gt, known, heading.expects))

    def _is_impossible(self, unit: Sequenced | Standing, heading: Heading) -> bool:
        """Whether it claims to be mine and I never sent it, or ends a run of packets that nobody has sent yet."""
        if type(unit) is RunMarker and unit.through > self.preacknowledged_count + self.unpreacknowledged:
            return True
        return heading.source == self.me and heading.seq >= self.next_seq and type(unit) is not Standing

    def _accept(self, unit: Sequenced, source: int, seq: int, out: list[Output]) -> None:
        self.accepted.entries.append((source, seq, unit))
        if type(unit) is OrderedData:
            self.unpreacknowledged += 1
            self.unsaid += 1
            self.owes = self.owes_in_sequence = True
            self._note_accepted(unit.packet, out)
        elif type(unit) is RunMarker:
            self.unpreacknowledged += 1
            self.owes = True

    def _note_accepted(self, packet: Packet, out: list[Output]) -> None:
        """What was thrown away is accepted a second time, and told once."""
        if packet.seq >= self.accepted_packets[packet.source]:
            self.accepted_packets[packet.source] = packet.seq + 1
            out.append(Reached(ACCEPTED, packet))

    # --- pre-acknowledgment and acknowledgment ---

    def _preacknowledge(self, unit: Sequenced, out: list[Output]) -> None:
        """PACK and ACK: one unit more of the common sequence, and all that follows from it."""
        heading = unit.heading
        source = heading.source
        if type(unit) is OrderedData:
            self.unpreacknowledged -= 1
            self.owes = True  # the others wait to hear that I have the units by which I know it
            if source == self.me and self.sent and self.sent[0][0] == heading.seq:
                self.sent.popleft()
                self.allowance = min(self.config.window, self.allowance + 1)
            self._enter(unit.packet, heading.seq, out)
        elif type(unit) is RunMarker:
            self.unpreacknowledged -= 1
            self.moved = True
        log = self.preacknowledged
        log.columns[source] = heading.expects
        if log.entries and log.holds_back == source:
            self._acknowledge(log.rise(), out)
        if type(unit) is RunMarker:
            self._close_run(unit.through, out)

    def _enter(self, packet: Packet, seq: int, out: list[Output]) -> None:
        """A packet takes its place in the common sequence."""
        self.moved = True
        out.append(Reached(PREACKNOWLEDGED, packet))
        self.preacknowledged_count += 1
        self.preacknowledged.entries.append((packet.source, seq, packet))

    def _acknowledge(self, risen: list[Packet], out: list[Output]) -> None:
        """ACK: in TO what is acknowledged is delivered."""
        for packet in risen:
            self.moved = True
            self.acknowledged_count += 1
            out.append(Reached(ACKNOWLEDGED, packet))
            self._deliver(packet, out)

    def _deliver(self, packet: Packet, out: list[Output]) -> None:
        if packet.source == self.me:
            self.own_places.append(self.delivered_count)
        self.delivered_count += 1
        out.append(Deliver(packet))

    def _close_run(self, through: int, out: list[Output]) -> None:
        """TO has no runs."""

    # --- timers ---

    def _set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        out.append(SetTimer(name, spread(duration, self.me, self.stamp)))
