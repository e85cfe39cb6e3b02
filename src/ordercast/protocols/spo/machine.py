"""SPO: each message to any subset of the group, each sender's order kept, over channels that lose units.

From: Nakamura and Takizawa, "Selective Broadcast Service for Distributed Systems" (EN, sections 4.1 to 4.5) and
"Data Transmission Procedure of Selective Broadcast Protocol on Multi-Channel" (JP, sections 3.1 to 3.5). These are
the `sound` rules; the printed ones, and why they do not do, are in `spo_paper` and in docs/protocols/spo.md.

Departures from the papers, each with the counterexample that asks for it:
 1. Every status says what its sender has pre-acknowledged (PACK); acknowledgment rests on that alone (A1, A2, R1).
 2. Acceptance asks only for the next number to me; others' acknowledgments never hold a packet up (C0, C1, C2, C6).
 3. A packet ahead of a gap is held, and only the ranges that are missing are asked for, until they come (C4).
 4. A status without data (RR) consumes no number and passes every window; who knows more than it has said owes one,
    and who waits asks those it waits for by name (C3, C5, C7). When nobody waits, nobody speaks.
 5. A window counts packets that some destination has not accepted, so that nobody else can close it (C5).
 6. Places are kept for each source apart: a pool that all share locks up when it is full.
 7. Facts come with a stamp and the newest status replaces the older ones; copies carry a fresh one.
 8. A node counts its own packet as heard when it sends it; what is for itself alone is not transmitted.

Not here: membership, establishment of a group, batching (a host hands over ready batches), the network.
"""

from ordercast.model.errors import LocalProtocolError
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
from ordercast.model.nodes import members, name_of, names_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.shared.timers import spread
from ordercast.protocols.spo.state import Missing, SpoState
from ordercast.protocols.spo.units import Data, Ready, Status

ACCEPTED, PREACKNOWLEDGED, ACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED

MOST_PATIENT = 4
"""Polls and repeats back off by doubling, up to this many times their duration."""


class Spo(SpoState):
    """The protocol at one node. See the module for where its rules come from."""

    # --- the one door ---

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.aborted:
            return out
        self._opened = False
        if type(event) is GiveUp:
            self._abort(event.why, out)
            return out
        if type(event) is Receive:
            self._receive(event.unit, out)
        elif type(event) is Submit:
            self._submit(event)
        elif type(event) is TimerFired:
            self._fire(event.name, out)
        elif self.owes:  # Drained
            self._send_ready(out)
        if self._opened and self.waiting:
            self._send_waiting(out)
        if self.owes and not self.status_timer:
            self.status_timer, self.status_paid = True, False
            self._set_timer("status", self.config.timing.status, out)
        if not self.poll_timer and self.unfinished():
            self.poll_timer, self.stood, self.poll_patience = True, self.tops(), 1
            self._set_timer("poll", self.config.timing.poll, out)
        return out

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        if type(unit) is Data and unit.packet.source != self.me:
            self._receive_data(unit, out)
        elif type(unit) is Ready and unit.source != self.me:
            self._receive_ready(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    # --- transmission (EN 4.2 B, JP 3.2) ---

    def _submit(self, event: Submit) -> None:
        if not event.destinations or event.destinations & ~self._everybody:
            raise LocalProtocolError(
                f"a message must go to at least one of the {self._nodes} nodes, and to no others: "
                f"{names_of(event.destinations) if event.destinations > 0 else event.destinations} was asked for"
            )
        self.waiting.append(event)
        self._opened = True

    def _send_waiting(self, out: list[Output]) -> None:
        while self.waiting and self._can_send(self.waiting[0].destinations):
            self._send(self.waiting.popleft(), out)

    def _can_send(self, destinations: int) -> bool:
        """Flow condition: the window, closed further by the destination with the fewest free places."""
        if destinations & self._my_bit and self.places[self.me] >= self.config.quota:
            return False
        open_for = self.config.window
        for node in members(destinations & ~self._my_bit):
            open_for = min(open_for, self.free[node])
        return len(self.sent) < max(1, open_for) or destinations == self._my_bit

    def _send(self, event: Submit, out: list[Output]) -> None:
        """Transmission action. My own copy needs no channel: it counts as heard at once."""
        me, destinations = self.me, event.destinations
        seq_to, first = tuple(self.next_seq_to), self.next_message
        packet = Packet(me, destinations, self.next_seq, seq_to, first, event.lengths, event.payload, event.priority)
        for node in members(destinations):
            self.next_seq_to[node] += 1
        self.next_message += len(event.lengths)
        self.next_seq += 1
        self.expected[me] = self.seen[me] = self.next_seq
        self.expected_to_me[me] = self.seen_to_me[me] = self.next_seq_to[me]
        out.append(Numbered(packet))
        for_me = destinations & self._my_bit
        if for_me:
            out.append(Reached(ACCEPTED, packet))
            self.places[me] += 1
            self.accepted.rows[me].append(packet)
        if destinations != self._my_bit:
            self.sent.append(packet)
            out.append(Send(Data(packet, self._status())))
        if for_me and len(self.accepted.rows[me]) == 1:
            self._preacknowledge(me, out)

    def _status(self) -> Status:
        """What I know now. Whoever hears it is owed nothing more."""
        self.stamp += 1
        self.owes, self.status_paid = False, True
        self.unsaid = [0] * self._nodes
        self.said_free = self._free()
        expected = self.expected
        return Status(
            self.stamp,
            tuple(expected),
            tuple([log[0].seq if log else expected[source] for source, log in enumerate(self.accepted.rows)]),
            self.said_free,
        )

    def _send_ready(self, out: list[Output], wants: int = 0, missing: Missing = ()) -> None:
        out.append(Send(Ready(self.me, self.next_seq, tuple(self.next_seq_to), self._status(), wants, missing)))

    def _free(self) -> int:
        """Places left for the source that has fewest; my own packets are gated by `_can_send`."""
        others = self.places.copy()
        others[self.me] = 0
        return self.config.quota - max(others)

    # --- acceptance (EN 4.2 A, JP 3.2) ---

    def _receive_data(self, unit: Data, out: list[Output]) -> None:
        packet, status = unit.packet, unit.status
        source, seq = packet.source, packet.seq
        if status.stamp > self.stamps[source]:
            self._learn(source, status, out)
        self.unanswered[source] = 0
        if seq < self.expected[source]:  # the duplicate condition; it must come first (D1)
            out.append(Discard(unit, "duplicate"))
            return
        number = packet.seq_to[self.me]
        for_me = packet.destinations >> self.me & 1
        if seq >= self.seen[source]:
            self.seen[source], self.seen_to_me[source] = seq + 1, number + for_me
        if number != self.expected_to_me[source]:
            self._hold(unit, number, out)
        elif not for_me:
            self.expected[source] = seq + 1
            out.append(Discard(unit, "foreign"))
        elif self.places[source] >= self.config.quota:
            out.append(Discard(unit, "full"))
        else:
            self._accept(packet, out)
            held = self.held[source]
            while held and (number := self.expected_to_me[source]) in held:
                self._accept(held.pop(number), out)
        if self.expected_to_me[source] == self.seen_to_me[source]:
            self.expected[source] = self.seen[source]
        else:
            self._note_gap(source, out)
        if self.unsaid[source] >= self._prompt:
            self._send_ready(out)

    def _accept(self, packet: Packet, out: list[Output]) -> None:
        """Accept action for what is addressed to me."""
        source = packet.source
        self.expected[source] = packet.seq + 1
        self.expected_to_me[source] += 1
        self.owes = self.repaired = True
        self.unsaid[source] += 1
        self.places[source] += 1
        out.append(Reached(ACCEPTED, packet))
        log = self.accepted.rows[source]
        log.append(packet)
        if len(log) == 1:
            self._preacknowledge(source, out)

    def _hold(self, unit: Data, number: int, out: list[Output]) -> None:
        """Keeps what came ahead of a gap, if all those before it will find their places too."""
        packet = unit.packet
        source = packet.source
        held, ahead = self.held[source], number - self.expected_to_me[source]
        if not packet.destinations & self._my_bit:
            out.append(Discard(unit, "foreign"))
        elif number in held or ahead < 0:
            out.append(Discard(unit, "duplicate"))
        elif self.places[source] + ahead >= self.config.quota:
            out.append(Discard(unit, "full"))
        else:
            held[number] = packet
            self.repaired = True

    def _receive_ready(self, unit: Ready, out: list[Output]) -> None:
        source = unit.source
        if unit.status.stamp > self.stamps[source]:
            self._learn(source, unit.status, out)
        self.unanswered[source] = 0
        if unit.next_seq >= self.seen[source]:
            self.seen[source], self.seen_to_me[source] = unit.next_seq, unit.next_seq_to[self.me]
        if self.expected_to_me[source] == self.seen_to_me[source]:
            self.expected[source] = self.seen[source]
        else:
            self._note_gap(source, out)
        if unit.wants & self._my_bit:
            self.owes = True
        for asked, ranges in unit.missing:
            if asked == self.me:
                self._repair(source, ranges, out)

    def _learn(self, source: int, status: Status, out: list[Output]) -> None:
        """Takes the newest facts, from whatever unit they came with: they are true whoever hears them."""
        if self.takes_back(source, status):
            return
        self.stamps[source] = status.stamp
        if self.free[source] < self.config.window:
            self._opened = True
        self.free[source] = status.free
        self.accepted.columns[source] = status.expects
        self.preacknowledged.columns[source] = status.preacknowledged_below
        for packet in self.sent.accepted(source, status.expects[self.me]):
            self._opened = True
            if not packet.destinations & self._my_bit:
                out.append(Reached(PREACKNOWLEDGED, packet))
                self.receipts += 1
                self._climb(self._nodes, packet, out)
        if self.accepted.watchers[source]:
            for row in self.accepted.wake(source):
                self._preacknowledge(row, out)
        if self.preacknowledged.watchers[source]:
            for row in self.preacknowledged.wake(source):
                self._acknowledge(row, out)
        if self.config.hearsay and not self.hearsay_timer and self.unseen(source):
            self.hearsay_timer = True
            self._set_timer("hearsay", self.config.timing.hearsay, out)

    # --- pre-acknowledgment and acknowledgment (EN 4.3 and 4.4, JP 3.3 and 3.4) ---

    def _preacknowledge(self, source: int, out: list[Output]) -> None:
        """PACK action: everything at the top that every destination has said to have accepted."""
        for packet in self.accepted.rise(source):
            if packet.destinations != self._my_bit:
                self.owes = True
            out.append(Reached(PREACKNOWLEDGED, packet))
            self._climb(source, packet, out)

    def _climb(self, row: int, packet: Packet, out: list[Output]) -> None:
        log = self.preacknowledged.rows[row]
        log.append(packet)
        if len(log) == 1:
            self._acknowledge(row, out)

    def _acknowledge(self, row: int, out: list[Output]) -> None:
        """ACK action: everything at the top that every destination has said to have pre-acknowledged."""
        for packet in self.preacknowledged.rise(row):
            out.append(Reached(ACKNOWLEDGED, packet))
            if row == self._nodes:
                self.receipts -= 1
            else:
                self.places[row] -= 1
                if row == self.me:
                    self._opened = True
                out.append(Deliver(packet))
                if self.said_free < self.config.window and self._free() >= 2 * max(1, self.said_free):
                    self.owes = True  # whoever held back for me may go on

    # --- failures: gaps, requests and repairs (EN 4.5, JP 3.5) ---

    def _note_gap(self, source: int, out: list[Output]) -> None:
        """Failure condition (1), by my own numbers: asked for at once, and again until it comes."""
        if self.requested_below[source] < self.seen_to_me[source]:
            if self.cooling:
                self.new_gap = True
            else:
                self._request_new(out)
        if not self.repeat_timer:
            self.repeat_timer, self.repaired, self.repeat_patience = True, False, 1
            self._set_timer("repeat", self.config.timing.repeat, out)

    def _request_new(self, out: list[Output]) -> None:
        """RETRANS procedure (1): everything that is missing and was not asked for yet, of all sources in one unit."""
        missing = self.missing(self.requested_below)
        for source, high in enumerate(self.seen_to_me):
            if self.places[source] < self.config.quota:
                self.requested_below[source] = high
        if missing:
            self.cooling = True
            self._send_ready(out, missing=missing)
            self._set_timer("cooldown", self.config.timing.cooldown, out)

    def _repair(self, node: int, ranges: tuple[tuple[int, int], ...], out: list[Output]) -> None:
        """RETRANS procedure (2): exactly what is asked for, but no copy twice in a short while, whoever asks."""
        for packet in self.sent.find(node, ranges):
            if packet.seq not in self.guarded:
                if not self.guarded:
                    self._set_timer("guard", self.config.timing.guard, out)
                self.guarded.add(packet.seq)
                out.append(Send(Data(packet, self._status()), again=True))

    # --- timers ---

    def _set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        out.append(SetTimer(name, spread(duration, self.me, self.stamp)))

    def _fire(self, name: str, out: list[Output]) -> None:
        if name == "status":
            self._status_due(out)
        elif name == "poll":
            self._poll(out)
        elif name == "cooldown":
            self.cooling = False
            if self.new_gap:
                self.new_gap = False
                self._request_new(out)
        elif name == "repeat":
            self._request_again(out)
        elif name == "guard":
            self.guarded.clear()
        elif name == "hearsay":
            self.hearsay_timer = False
            wants = 0
            for node in range(self._nodes):
                wants |= self.unseen(node)
            if wants:
                self._send_ready(out, wants=wants)

    def _status_due(self, out: list[Output]) -> None:
        """A debt that grew only after something was sent gets the time that any debt gets."""
        self.status_timer = False
        if self.owes and not self.status_paid:
            self._send_ready(out)

    def _request_again(self, out: list[Output]) -> None:
        self.repeat_timer = False
        if self.expected_to_me == self.seen_to_me:
            return
        self.repeat_patience = 1 if self.repaired else min(MOST_PATIENT, 2 * self.repeat_patience)
        self.repeat_timer, self.repaired = True, False
        missing = self.missing(self.expected_to_me)
        if missing:
            self._send_ready(out, missing=missing)
        self._set_timer("repeat", self.config.timing.repeat * self.repeat_patience, out)

    def _poll(self, out: list[Output]) -> None:
        """Asks those for whom something has stood still since the last time; gives up if one of them never answers.

        What moves elsewhere must not put that off: a node with nothing to say would never be asked.
        """
        self.poll_timer = False
        if not self.unfinished():
            return
        tops = self.tops()
        wants = self.blockers([was == now for was, now in zip(self.stood, tops, strict=True)])
        for node in members(wants):
            self.unanswered[node] += 1
            if self.unanswered[node] > self.config.polls_to_abort:
                self._abort(f"{name_of(node)} left {self.config.polls_to_abort} polls in a row unanswered", out)
                return
        if wants:
            self._send_ready(out, wants=wants)
        self.poll_patience = min(MOST_PATIENT, 2 * self.poll_patience) if wants else 1
        self.poll_timer, self.stood = True, tops
        self._set_timer("poll", self.config.timing.poll * self.poll_patience, out)

    def _abort(self, why: str, out: list[Output]) -> None:
        """Delivers what is pre-acknowledged: what anybody delivered before, everybody has at least so far."""
        for row in range(self._nodes):
            out += [Deliver(packet) for packet in self.preacknowledged.rows[row]]
        self.aborted = True
        out.append(Abort(why))
