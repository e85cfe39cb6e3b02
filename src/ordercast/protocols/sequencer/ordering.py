"""The sequencer's broadcast, ordering: what the sequencer does with offers, and how it knows who has what.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), Figure 4 and section
2.2. The sequencer keeps what it cannot number yet, numbers in the order of each sender's ids, and never has more in its
history than that holds. When it is full, it waits a little for acknowledgments that are under way, then asks who has
what; if that does not help, it synchronises.
"""

from ordercast.model.machine import Discard, Output, Send
from ordercast.model.nodes import members
from ordercast.model.units import MessageId, Packet
from ordercast.protocols.sequencer.receiving import SequencerReceiving
from ordercast.protocols.sequencer.state import MOST_COPIES, MOST_PATIENT, MOST_PATIENT_WITH_SILENCE, Fullness
from ordercast.protocols.sequencer.units import (
    Broadcast,
    Bulletin,
    Have,
    Offer,
    Order,
    Synchronise,
    Synchronised,
)


class SequencerOrdering(SequencerReceiving):
    """What the sequencer does."""

    # --- offers (Figure 4) ---

    def _receive_offer(self, unit: Offer, out: list[Output]) -> None:
        source = unit.packet.source
        self._note(source, unit.received_below, out)
        why = self._take_offer(unit.packet, out, direct=unit.direct)
        if why:
            out.append(Discard(unit, why))
            self._answer_duplicate(source, unit.packet.seq, out)

    def _take_offer(self, packet: Packet, out: list[Output], *, direct: bool) -> str:
        """Keeps an offer until its turn comes; says why not, if it does not."""
        source, seq = packet.source, packet.seq
        due = self.ordered_below[source]
        offers = self.held[source]
        if seq < due or seq in offers:
            return "duplicate"
        if seq >= due + self.config.window:
            return "ahead"
        offers[seq] = (packet, direct)
        if seq == due:
            self.turns.append(source)
            self._order(out)
        return ""

    def _answer_duplicate(self, source: int, seq: int, out: list[Output]) -> None:
        """Its sender lost the broadcast: the whole of it is sent again. Else it hears at least that I am there."""
        number = self.number_of.get((source, seq))
        if number is not None and number >= self.rows[source]:
            self._send_again(number, source, out)
        else:
            self._publish(out, to=source)

    def _order(self, out: list[Output]) -> None:
        """Numbers what has its turn, one of each sender after the other, as long as there is room."""
        direct: list[MessageId] = []
        while self.turns and not self.sync_phase and not self.is_full():
            source = self.turns.popleft()
            packet, was_direct = self.held[source].pop(self.ordered_below[source])
            number = self.received_below
            self._store(packet, out)
            self.known_below = self.rows[self.me] = number + 1
            self.number_of[source, packet.seq] = number
            if self.ordered_below[source] in self.held[source]:
                self.turns.append(source)
            if not self.resilience:
                self.commit_below = number + 1
            self.status_moved = True
            if was_direct:
                direct.append((source, packet.seq))
            else:
                self._send_order(direct, number, out)
                self._announce()
                out.append(Send(self._broadcast(number, packet)))
        self._send_order(direct, self.received_below, out)
        self._deliver(out)
        if self.turns and not self.sync_phase and self.fullness is Fullness.NOT:
            self.fullness, self.status_timer = Fullness.WAITS, True
            self.set_timer("status", self.config.timing.cooldown, out)

    def _holds_back(self) -> int:
        """Those that say too little too late: what they have keeps half of the history, or more, from being purged."""
        half = self.received_below - self.config.sequencer.history // 2
        return sum(1 << node for node in self.others if self.rows[node] < half)

    def _send_order(self, direct: list[MessageId], end: int, out: list[Output]) -> None:
        """The numbers, up to `end`, of what senders broadcast themselves."""
        if direct:
            self._announce()
            first = end - len(direct)
            out.append(
                Send(Order(self.view, self.me, first, tuple(direct), self.commit_below, self.stable_below))
            )  # fmt: skip
            direct.clear()

    def _broadcast(self, number: int, packet: Packet) -> Broadcast:
        return Broadcast(packet, self.view, self.me, number, self.commit_below, self.stable_below)

    def _send_again(self, number: int, to: int, out: list[Output]) -> None:
        out.append(Send(self._broadcast(number, self.history[number]), again=True, to=to))

    # --- who has what ---

    def _receive_have(self, unit: Have, out: list[Output]) -> None:
        self._note(unit.source, unit.received_below, out)
        copies = 0
        for start, stop in unit.missing:
            stop_here = min(stop, self.received_below, start + MOST_COPIES - copies)
            for number in range(max(start, self.kept_from), stop_here):
                self._send_again(number, unit.source, out)
                copies += 1
        if self.lowest == self.received_below > self.announced_stable:
            self._publish(out)
        elif unit.asks and not copies:
            self._publish(out, to=unit.source)

    def _note(self, node: int, below: int, out: list[Output]) -> None:
        """A node has everything below: the table, for every unit that says so, and never backwards."""
        self.unanswered[node] = 0
        row = self.rows[node]
        if below <= row:
            return
        self.rows[node] = below
        self.status_moved = True
        if self.resilience and below > self.commit_below:
            held = sorted((self.rows[other] for other in self.others), reverse=True)[self.resilience - 1]
            self.commit_below = max(self.commit_below, held)
        if row == self.lowest:
            self.lowest = min(self.rows[member] for member in members(self.members))
            if self.lowest > self.stable_below:
                self._deliver(out)
                self._stabilise(self.lowest, out)
                self.fullness = Fullness.NOT
            if self.sync_phase == 1 and self.lowest == self.received_below:
                self._synchronise(2, out)
        self._deliver(out)
        if self.turns:
            self._order(out)

    def _publish(self, out: list[Output], *, wants: int = 0, to: int | None = None) -> None:
        """STATUS, and COMMIT."""
        if to is None:
            self._announce()
        bulletin = Bulletin(self.view, self.me, self.received_below, self.commit_below, self.stable_below, wants)
        out.append(Send(bulletin, to=to))

    def _announce(self) -> None:
        self.announced_commit, self.announced_stable = self.commit_below, self.stable_below

    # --- synchronisation (2.2) ---

    def _synchronise(self, phase: int, out: list[Output]) -> None:
        self.sync_phase, self.replied = phase, self._my_bit
        if phase == 1:
            self.sync_round += 1
        self._say_phase(out)

    def _say_phase(self, out: list[Output]) -> None:
        number, phase, wants = self.sync_round, self.sync_phase, self._awaited_in_sync()
        unit = Synchronise(self.view, self.me, number, phase, self.received_below, self.stable_below, wants)
        out.append(Send(unit))

    def _awaited_in_sync(self) -> int:
        """Those that have not answered a phase: all at once would overrun me again and again."""
        return self.laggards() if self.sync_phase == 1 else self.members & ~self.replied

    def _receive_synchronised(self, unit: Synchronised, out: list[Output]) -> None:
        """Counts only for the running round: an answer to an older one says nothing about this one."""
        self._note(unit.source, unit.received_below, out)
        if self.sync_phase != 2 or unit.round != self.sync_round:
            out.append(Discard(unit, "old"))
            return
        self.replied |= 1 << unit.source
        self.status_moved = True
        if self.replied & self.members == self.members:
            self.sync_phase = 0
            self._order(out)

    # --- quiet times ---

    def _watches(self) -> bool:
        """Whether the sequencer waits for anything, be it only for a sign of life."""
        return bool(self._waits() or self.config.sequencer.heartbeat)

    def _waits(self) -> bool:
        return self.lowest < self.received_below or self.sync_phase > 0

    def _is_stuck(self) -> bool:
        """Whether nothing can be numbered before others have answered."""
        return self.sync_phase > 0 or (bool(self.turns) and self.is_full())

    def _status_due(self, out: list[Output]) -> int:
        """Asks those that are not known to have everything; gives back those who have not answered for too long."""
        self.status_timer = False
        if not self._watches():
            return 0
        if self.status_moved and not self._is_stuck():
            self.status_moved, self.status_patience = False, 1
            return 0
        if self._waits():
            asked = self._awaited_in_sync() if self.sync_phase else self.laggards()
        else:
            asked = self.members & ~self._my_bit
        suspects = 0
        for node in members(asked):
            if self.unanswered[node] > self.config.sequencer.suspect_after:
                suspects |= 1 << node
            self.unanswered[node] += 1
        if self.sync_phase:
            self._say_phase(out)
        elif not self._is_stuck():
            self._publish(out, wants=asked)
        elif self.fullness is Fullness.ASKED:
            self._synchronise(1, out)
        else:
            self.fullness = Fullness.ASKED
            self._publish(out, wants=self._holds_back())
        most = MOST_PATIENT_WITH_SILENCE if self._is_stuck() else MOST_PATIENT
        self.status_patience = 1 if self.status_moved else min(most, 2 * self.status_patience)
        self.status_moved = False
        return suspects

    def _watch(self, out: list[Output]) -> None:
        """Sets the timer, if there is anything to wait for."""
        if self.status_timer or not self._watches():
            return
        self.status_timer = True
        if not self._waits():
            duration = self.config.sequencer.heartbeat
        else:
            timing = self.config.timing
            duration = (timing.repeat if self._is_stuck() else 2 * timing.poll) * self.status_patience
        self.set_timer("status", duration, out)
