"""The sequencer's broadcast, receiving: numbers in order, what is missing, what may be delivered.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), Figure 5. A number
is old, the next, or ahead of a gap; what is ahead is kept, and what is missing is asked for once, then by timer.
"""

from ordercast.model.machine import Deliver, Discard, Level, Output, Reached, Send, View
from ordercast.model.nodes import name_of
from ordercast.model.units import Packet
from ordercast.protocols.sequencer.state import SequencerState
from ordercast.protocols.sequencer.units import Broadcast, Bulletin, Have, Offer, Order, Synchronise, Synchronised

ACCEPTED, PREACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED


class SequencerReceiving(SequencerState):
    """What a node does with what the sequencer says."""

    # --- broadcasts ---

    def _receive_broadcast(self, unit: Broadcast, out: list[Output]) -> None:
        number = unit.number
        if number == self.received_below and not self.ahead:  # as most are
            if number >= self.known_below:
                self.known_below = number + 1
            self._store(unit.packet, out)
        elif not self._take(number, unit.packet, out):
            out.append(Discard(unit, "duplicate"))
        self._learn(unit.source, unit.commit_below, unit.stable_below, out)

    def _receive_order(self, unit: Order, out: list[Output]) -> None:
        """The numbers of packets that came, or will come, from their senders."""
        for number, name in enumerate(unit.packets, unit.number):
            if number < self.received_below or number in self.ahead:
                continue
            packet = self.unordered.get(name)
            if packet is None and name[0] == self.me:
                packet = next((mine for mine in self.outstanding if mine.seq == name[1]), None)
            if packet is None:
                self.awaited[name] = number
                self._know_of(number + 1, out, lacks=self.known_below <= number)
            else:
                self._take(number, packet, out)
        self._learn(unit.source, unit.commit_below, unit.stable_below, out)

    def _keep_unordered(self, unit: Offer, out: list[Output]) -> None:
        """What a sender broadcasts itself waits for its number, across views too: a packet never changes.

        Its sender may be ahead of me by all that the sequencer keeps.
        """
        packet = unit.packet
        name = (packet.source, packet.seq)
        ordered = self.ordered_below[packet.source]
        if name in self.awaited:
            self._take(self.awaited[name], packet, out)
            self._deliver(out)
        elif name in self.unordered or not ordered <= packet.seq < ordered + self._most_ahead:
            out.append(Discard(unit, "duplicate" if packet.seq < ordered or name in self.unordered else "ahead"))
        else:
            self.unordered[name] = packet

    def _take(self, number: int, packet: Packet, out: list[Output]) -> bool:
        """One of three cases, where Figure 5 has two; False: it was here before."""
        if number < self.received_below or number in self.ahead:
            return False
        self._know_of(number + 1, out, lacks=self.known_below < number)
        if number > self.received_below:
            self.ahead[number] = packet
            return True
        self._store(packet, out)
        while self.received_below in self.ahead and not self.closed:
            self._store(self.ahead.pop(self.received_below), out)
        return True

    def _store(self, packet: Packet, out: list[Output]) -> None:
        """The next broadcast is here."""
        source, seq = packet.source, packet.seq
        if seq != self.ordered_below[source]:
            due = self.ordered_below[source]
            self.abort(f"packet {seq} of {name_of(source)} was numbered, but {due} is its next", out)
            return
        if source == self.me and seq >= self.next_seq:
            self.abort(f"packet {seq} of {name_of(source)} was numbered, but {name_of(source)} never sent it", out)
            return
        self.history[self.received_below] = packet
        self.received_below += 1
        self.ordered_below[source] = seq + 1
        self.moved = True
        if self.unordered:
            self.unordered.pop((source, seq), None)
        if self.awaited:
            self.awaited.pop((source, seq), None)
        out.append(Reached(ACCEPTED, packet))

    # --- what is known ---

    def _know_of(self, below: int, out: list[Output], *, lacks: bool) -> None:
        """So many broadcasts exist. What I lack of them may still be under way: it is asked for a little later."""
        self.known_below = max(self.known_below, below)
        if lacks and not self.gap_timer:
            self._set_gap_timer(out)

    def _set_gap_timer(self, out: list[Output]) -> None:
        self.gap_timer, self.gap_below = True, self.known_below
        self.set_timer("gap", self.config.timing.cooldown, out)

    def _gap_due(self, out: list[Output]) -> None:
        """Asks once for what was newly missed; the need timer asks again."""
        self.gap_timer = False
        missing = self.missing(self.asked_below, self.gap_below)
        if missing:
            self._say(missing, out)
        self.asked_below = self.gap_below
        if self.missing(self.gap_below):
            self._set_gap_timer(out)

    def _learn(self, source: int, commit_below: int, stable_below: int, out: list[Output]) -> None:
        """What may be delivered, and what everybody has. That is about the present view, so its beginning is first."""
        if commit_below > self.commit_below:
            self.commit_below = commit_below
        if stable_below <= self.stable_below:
            self._deliver(out)
            return
        if stable_below > self.received_below:
            has = f"everybody has {stable_below} broadcasts, but I have {self.received_below}"
            self.abort(f"{name_of(source)} says that {has}", out)
            return
        if stable_below > self.commit_below:
            self.commit_below = stable_below
        self._deliver(out)
        if not self.markers:
            self._stabilise(stable_below, out)

    def _stabilise(self, below: int, out: list[Output]) -> None:
        """Everybody has these, and I have delivered them: nobody can ask for them any more."""
        history = self.history
        out += [Reached(PREACKNOWLEDGED, history[number]) for number in range(self.stable_below, below)]
        self.stable_below = below
        self.moved = True
        self._forget(below)

    def _deliver(self, out: list[Output]) -> None:
        """In order; and, where more must hold a broadcast before it is delivered, when they do."""
        until = self.received_below
        if self.resilience and self.commit_below < until:
            until = self.commit_below
        number = self.delivered_below
        while True:
            if self.markers and self.markers[0].cut_below == number:
                view = self.markers.popleft()
                out.append(View(view.number, view.members, view.why))
            elif number < until:
                packet = self.history[number]
                number += 1
                out.append(Deliver(packet))
                if packet.source == self.me:
                    self.outstanding.popleft()
            else:
                break
        self.delivered_below = number

    def _forget(self, below: int) -> None:
        """What everybody has is kept no longer."""
        while self.kept_from < below:
            packet = self.history.pop(self.kept_from)
            self.kept_from += 1
            if self.number_of:
                self.number_of.pop((packet.source, packet.seq), None)

    # --- what the sequencer asks ---

    def _say(self, missing: tuple[tuple[int, int], ...], out: list[Output], *, asks: bool = False) -> None:
        """What I have, and what I lack."""
        self.said_below = self.received_below
        self.asked |= asks or bool(missing)
        out.append(Send(Have(self.view, self.me, self.received_below, missing, asks), to=self.sequencer))

    def _receive_bulletin(self, unit: Bulletin, out: list[Output]) -> None:
        self._know_of(unit.next_number, out, lacks=self.known_below < unit.next_number)
        self._learn(unit.source, unit.commit_below, unit.stable_below, out)
        if unit.wants & self._my_bit and not self.closed:
            self._answer(unit.next_number, out)

    def _answer(self, wanted_below: int, out: list[Output]) -> None:
        """Says that I have so much, at once or when I do. What was missed long ago is asked for again."""
        self.wanted_below = max(self.wanted_below, wanted_below)
        missing = self.missing(stop=self.asked_below)
        if missing or self.received_below >= wanted_below:
            self._say(missing, out)

    def _receive_synchronise(self, unit: Synchronise, out: list[Output]) -> None:
        """PHASE1 stops me until PHASE2, or a later broadcast; an old one does not."""
        if unit.round < self.sync_round:
            out.append(Discard(unit, "old"))
            return
        self._know_of(unit.next_number, out, lacks=self.known_below < unit.next_number)
        if unit.phase == 1:
            if unit.round > self.sync_round:
                self.sync_round, self.in_sync_until = unit.round, unit.next_number
            if unit.wants & self._my_bit:
                self._answer(unit.next_number, out)
            return
        self.sync_round, self.in_sync_until = unit.round, -1
        self._learn(unit.source, 0, unit.stable_below, out)
        if unit.wants & self._my_bit:
            out.append(Send(Synchronised(self.view, self.me, unit.round, self.received_below), to=self.sequencer))
