"""The fixed-sequencer broadcast as printed: Figures 2 to 5 and the synchronization phase.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), section 2. It serves
to reproduce the paper's numbers and to show counterexamples: as printed, no first message is ever broadcast (S1). For
the service use `sequencer`, which lists what it does differently.

Filled in, because without it nothing could be run:
 1. Figure 3 leaves SenderID and DestID empty; RETRANSMIT and RETRANS are one.
 2. A null pointer that the code follows (GetFromHistory finds nothing) ends the sequencer's kernel: it aborts.
 3. `block()` ends when the node's own message is passed to its application. One message is outstanding at a time; the
    others wait. What the timer of Figure 3 sends again is the same message.
 4. No figure shows what the sequencer does with RETRANS. It sends the node the message asked for and all that follow,
    if it still has that one; and it takes the acknowledgment in it, as in all that is sent to it point-to-point.
 5. After a certain number of tries a node takes the sequencer for failed. Without an election, which the paper only
    sketches (`elects`, see `election`), the group is aborted.
 6. A node that had missed something at PHASE1 sends ACK_COMMIT when it has caught up, or phase 1 would not end. In the
    synchronization phase timers of Figure 3 run on without sending.
 7. A timer of Figure 5 that expires when nothing is missing any more has no effect.
Readings that take out one flaw at a time are options: see `SequencerReadings`.

Not included: units of the synchronization phase are never repeated (the paper has no rule for that, and one lost unit
stops the group), membership, the network.
"""

from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
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
from ordercast.model.nodes import name_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.sequencer.paper.election import claim, decide, give_way
from ordercast.protocols.sequencer.paper.state import SequencerPaperState
from ordercast.protocols.sequencer.paper.units import (
    PaperBroadcast,
    PaperCommitted,
    PaperData,
    PaperDummy,
    PaperElected,
    PaperElection,
    PaperPhase,
    PaperRetransmit,
)
from ordercast.protocols.shared.destinations import check_broadcast


class SequencerPaper(SequencerPaperState):
    """The printed protocol at one node."""

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        if self.aborted:
            return []
        out: list[Output] = []
        match event:
            case Submit():
                check_broadcast(event.destinations, self.config.nodes)
                self.waiting.append(event)
            case Receive(unit=unit):
                self._receive(unit, out)
            case TimerFired(name=name):
                self._expire(name, out)
        if self.waiting and self.outstanding is None and self.sync_through is None and not self.aborted:
            self._broadcast(self.waiting.popleft(), out)
        return out

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        match unit:
            case PaperBroadcast() if unit.source != self.me:
                self._accept_broadcast(unit, out)
            case PaperData() if self.is_sequencer:
                self._data_message(unit, out)
            case PaperRetransmit() if self.is_sequencer:
                self._note(unit.source, unit.number)
                self._retransmit(unit, out)
            case PaperDummy() if self.is_sequencer:
                self._note(unit.source, unit.number)
            case PaperCommitted() if self.is_sequencer:
                self._note(unit.source, unit.number)
                self._count_reply(unit, out)
            case PaperPhase() if not self.is_sequencer:
                self._enter_phase(unit, out)
            case PaperElection() if self.readings.elects:
                claim(self, unit, out)
            case PaperElected() if self.readings.elects:
                give_way(self, unit, out)
            case _:
                out.append(Discard(unit, "stray"))

    # --- the sender (Figure 3) ---

    def _broadcast(self, event: Submit, out: list[Output]) -> None:
        """broadcast(): DATA to the sequencer, which may be this very node."""
        lengths, payload = event.lengths, event.payload
        packet = Packet(self.me, self.everybody, self.message_id, (), self.next_message, lengths, payload)
        self.outstanding = PaperData(packet, self.acknowledgment(), self.message_id)
        self.message_id += 1
        self.next_message += len(lengths)
        self.data_tries = 0
        out.append(Numbered(packet))
        self._send_data(out)

    def _send_data(self, out: list[Output], *, again: bool = False) -> None:
        assert self.outstanding is not None
        self.unacknowledged = 0
        out.append(Send(self.outstanding, again=again, to=self.sequencer))
        out.append(SetTimer("data", self.config.timing.poll))

    # --- the sequencer (Figure 4) ---

    def _data_message(self, unit: PaperData, out: list[Output]) -> None:
        """DataMessage(). In the synchronization phase the sequencer accepts none."""
        sender = unit.source
        if self.phase:
            out.append(Discard(unit, "synchronising"))
        elif self._is_duplicate(unit):
            self._answer_duplicate(unit, out)
        else:
            self._note(sender, unit.last)
            if self.purge_if_full():
                out.append(Discard(unit, "full"))
                self._enter_sync_phase(out)
            else:
                self.last_message[sender] = unit.message
                self._number(unit, out)

    def _is_duplicate(self, unit: PaperData) -> bool:
        """Equality only: an older copy counts as new (S4), and the first message as a duplicate (S1)."""
        last = self.last_message[unit.source]
        return unit.message <= last if self.readings.older_are_duplicates else unit.message == last

    def _answer_duplicate(self, unit: PaperData, out: list[Output]) -> None:
        """The header and no data: a sender that has lost the broadcast takes that for it (S3)."""
        out.append(Discard(unit, "duplicate"))
        for stored in self.history:
            if (stored.packet.source, stored.message) == (unit.source, unit.message):
                answer = stored if self.readings.whole_answers else stored.without_data()
                out.append(Send(answer, again=True, to=unit.source))
                return
        if not self.readings.whole_answers:
            self._give_up(
                f"GetFromHistory finds nothing for the duplicate {unit.message} of {name_of(unit.source)}, "
                "and a null pointer is followed",
                out,
            )

    def _number(self, unit: PaperData, out: list[Output]) -> None:
        broadcast = PaperBroadcast(unit.packet, self.me, self.next_number, unit.message)
        self.history.append(broadcast)  # StoreInHistory
        self.next_number += 1
        if self.readings.advances_own_row:
            self.expected = self.known_below = self.next_number
            self.acknowledged[self.me] = self.acknowledgment()
        self._pass_to_application(unit.packet, out)
        out.append(Send(broadcast))

    def _note(self, source: int, number: int) -> None:
        """SequenceNr[] takes every acknowledgment, even one older than what is there."""
        highest = max(number, self.acknowledged[source]) if self.readings.older_are_duplicates else number
        self.acknowledged[source] = highest

    def purge_if_full(self) -> bool:
        """FullHistory(): purges what everybody has received if there is no room; True if there is still none."""
        if len(self.history) >= self.max_history:
            received_through = min(self.acknowledged)  # unless nodes send the next number expected (S2)
            self.history = [stored for stored in self.history if stored.number > received_through]
        return len(self.history) >= self.max_history

    def _retransmit(self, unit: PaperRetransmit, out: list[Output]) -> None:
        """Sends everything from the number on, for each request (S5)."""
        first = unit.number + 1 if self.readings.acknowledges_last else unit.number
        if any(stored.number == first for stored in self.history):
            out += [Send(stored, again=True, to=unit.source) for stored in self.history if stored.number >= first]

    # --- the receiver (Figure 5) ---

    def _accept_broadcast(self, unit: PaperBroadcast, out: list[Output]) -> None:
        """AcceptBroadcast()."""
        self.known_below = max(self.known_below, unit.number + 1)
        if unit.number == self.expected:
            self._take(unit, out)
            while self.expected in self.ahead:
                self._take(self.ahead.pop(self.expected), out)
            self._acknowledge(out)
        elif not self.readings.asks_once:
            out.append(Discard(unit, "gap" if unit.number > self.expected else "duplicate"))
            self._request(out)
        elif unit.number > self.expected:
            self.ahead[unit.number] = unit
            if self.requested != self.expected:
                self._request(out)
        else:
            out.append(Discard(unit, "duplicate"))

    def _take(self, unit: PaperBroadcast, out: list[Output]) -> None:
        self.expected += 1
        self.unacknowledged += 1
        self.request_tries = 0
        if self.readings.elects:
            self.history.append(unit)
        if self.expected == self.known_below:
            out.append(CancelTimer("request"))
        self._pass_to_application(unit.packet, out)

    def _pass_to_application(self, packet: Packet, out: list[Output]) -> None:
        """An upcall; the sender of the message is blocked no longer."""
        out += [Reached(Level.ACCEPTED, packet), Deliver(packet)]
        mine = self.outstanding
        if mine is not None and (packet.source, packet.seq) == (self.me, mine.message):
            self.outstanding = None
            out.append(CancelTimer("data"))

    def _request(self, out: list[Output]) -> None:
        """RETRANS, unless a certain number of them was in vain."""
        self.requested, self.unacknowledged = self.expected, 0
        self.request_tries += 1
        if self.request_tries > self.config.polls_to_abort:
            self._suspect(out)
            return
        out.append(Send(PaperRetransmit(self.me, self.acknowledgment()), to=self.sequencer))
        out.append(SetTimer("request", self.config.timing.repeat))

    def _acknowledge(self, out: list[Output]) -> None:
        """The dummy message is sent after a number of receipts, so a node that receives nothing sends none (S6)."""
        if self.sync_through is not None and self.sync_through < self.expected:
            self._commit(out)
        elif self.unacknowledged >= self.dummy_after:
            self.unacknowledged = 0
            out.append(Send(PaperDummy(self.me, self.acknowledgment()), to=self.sequencer))

    # --- time-outs ---

    def _expire(self, name: str, out: list[Output]) -> None:
        if name == "data" and self.outstanding is not None:
            self.data_tries += self.sync_through is None
            if self.data_tries > self.config.polls_to_abort:
                self._suspect(out)
            elif self.sync_through is not None:
                out.append(SetTimer("data", self.config.timing.poll))
            else:
                self._send_data(out, again=True)
        elif name == "request" and self.expected < self.known_below:
            self._request(out)
        elif name == "election":
            decide(self, out)

    def _suspect(self, out: list[Output]) -> None:
        """A certain number of tries was in vain."""
        if not self.readings.elects:
            self._give_up(f"{name_of(self.sequencer)} does not answer, and there is no other sequencer", out)
            return
        self.data_tries = self.request_tries = 0
        if self.outstanding is not None:
            out.append(SetTimer("data", self.config.timing.poll))
        if self.expected < self.known_below:
            out.append(SetTimer("request", self.config.timing.repeat))
        claim(self, PaperElection(self.me, self.expected), out)

    def _give_up(self, why: str, out: list[Output]) -> None:
        self.aborted, self.why = True, why
        out.append(Abort(why))

    # --- the synchronization phase (2.2) ---

    def _enter_sync_phase(self, out: list[Output]) -> None:
        self._begin_phase(1, out)
        self.sync_through = self.next_number - 1

    def _begin_phase(self, phase: int, out: list[Output]) -> None:
        self.phase, self.replied = phase, 0
        out.append(Send(PaperPhase(self.me, self.next_number - 1, phase)))

    def _enter_phase(self, unit: PaperPhase, out: list[Output]) -> None:
        """At a node. An old PHASE1 cannot be distinguished from a new one (S7)."""
        if unit.phase == 2:
            self.sync_through = None
            self._commit(out)
            return
        self.sync_through = unit.number
        self.known_below = max(self.known_below, unit.number + 1)
        if self.expected <= unit.number:
            self._request(out)
        else:
            self._commit(out)

    def _commit(self, out: list[Output]) -> None:
        self.unacknowledged = 0
        out.append(Send(PaperCommitted(self.me, self.acknowledgment()), to=self.sequencer))

    def _count_reply(self, unit: PaperCommitted, out: list[Output]) -> None:
        """An ACK_COMMIT counts for whichever phase is current (S7)."""
        if not self.phase:
            return
        self.replied |= 1 << unit.source
        if self.replied | 1 << self.me != self.everybody:
            return
        if self.phase == 1:
            self.history = []
            self._begin_phase(2, out)
        else:
            self.phase, self.sync_through = 0, None
