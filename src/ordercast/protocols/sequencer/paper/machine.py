"""The sequencer's broadcast as printed: Figures 2 to 5 and the synchronization phase, mended only where it cannot run.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), section 2. It is
here for the paper's numbers and counterexamples: as it stands, no first message is ever broadcast (S1). Whoever wants
the service takes `sequencer`, which says why.

Mended or filled in, because without it nothing could be run:
 1. Figure 3 leaves SenderID and DestID empty; RETRANSMIT and RETRANS are one.
 2. A null pointer that the code follows (GetFromHistory finds nothing) ends the sequencer's kernel: it is given up.
 3. `block()` ends when the node's own message is passed to its application. One message is under way at a time; the
    others wait. What the timer of Figure 3 sends again is the same message.
 4. Nobody prints what the sequencer does with RETRANS. It sends the message asked for and all that follow to the node,
    if it still has that one; and it believes the acknowledgment in it, as in all that is sent to it point-to-point.
 5. After a certain number of tries a node takes the sequencer for dead. With no election, which the paper only hints at
    (`elects`, see `sequencer_paper_election`), the group is given up.
 6. A node that had missed something at PHASE1 says ACK_COMMIT when it has caught up, or phase 1 would not end. In the
    synchronization phase timers of Figure 3 run on without sending.
 7. A timer of Figure 5 that runs out when nothing is missing any more does nothing.
Readings that take out one flaw at a time are options: see `SequencerReadings`.

Not here: units of the synchronization phase are never repeated (the paper has no rule for that, and one lost unit stops
the group), membership, the network.
"""

from ordercast.model.errors import LocalProtocolError
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


class SequencerPaper(SequencerPaperState):
    """The printed protocol at one node. See the module for where its rules come from."""

    # --- the one door ---

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        if self.aborted:
            return []
        out: list[Output] = []
        match event:
            case Submit():
                if event.destinations != self._everybody:
                    raise LocalProtocolError(f"a broadcast must go to all of the {self._nodes} nodes")
                self.waiting.append(event)
            case Receive(unit=unit):
                self._receive(unit, out)
            case TimerFired(name=name):
                self._expire(name, out)
        if self.waiting and self.outstanding is None and self.sync_through < 0 and not self.aborted:
            self._broadcast(self.waiting.popleft(), out)
        return out

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        match unit:
            case PaperBroadcast() if unit.source != self.me:
                self._accept_broadcast(unit, out)
            case PaperData() if self.is_sequencer:
                self._data_message(unit, out)
            case PaperRetransmit() if self.is_sequencer:
                self._believe(unit.source, unit.number)
                self._retransmit(unit, out)
            case PaperDummy() if self.is_sequencer:
                self._believe(unit.source, unit.number)
            case PaperCommitted() if self.is_sequencer:
                self._believe(unit.source, unit.number)
                self._count_reply(unit, out)
            case PaperPhase() if not self.is_sequencer:
                self._enter_phase(unit, out)
            case PaperElection() if self._readings.elects:
                claim(self, unit, out)
            case PaperElected() if self._readings.elects:
                give_way(self, unit, out)
            case _:
                out.append(Discard(unit, "stray"))

    # --- the sender (Figure 3) ---

    def _broadcast(self, event: Submit, out: list[Output]) -> None:
        """broadcast(): DATA to the sequencer, which may be this very node."""
        lengths, payload = event.lengths, event.payload
        packet = Packet(self.me, self._everybody, self.message_id, (), self.next_message, lengths, payload)
        self.outstanding = PaperData(packet, self.said(), self.message_id)
        self.message_id += 1
        self.next_message += len(lengths)
        self.data_tries = 0
        out.append(Numbered(packet))
        self._send_data(out)

    def _send_data(self, out: list[Output], *, again: bool = False) -> None:
        assert self.outstanding is not None
        self.unspoken = 0
        out.append(Send(self.outstanding, again=again, to=self.sequencer))
        out.append(SetTimer("data", self.config.timing.poll))

    # --- the sequencer (Figure 4) ---

    def _data_message(self, unit: PaperData, out: list[Output]) -> None:
        """DataMessage(). In the synchronization phase the sequencer accepts none."""
        sender = unit.source
        if self.phase:
            out.append(Discard(unit, "synchronising"))
        elif self._is_duplicate(unit):
            self._tell_sender(unit, out)
        else:
            self._believe(sender, unit.last)
            if self._full_history():
                out.append(Discard(unit, "full"))
                self._enter_sync_phase(out)
            else:
                self.last_message[sender] = unit.message
                self._number(unit, out)

    def _is_duplicate(self, unit: PaperData) -> bool:
        """Equality only, so that an older copy counts as new (S4); and the first message as old (S1)."""
        last = self.last_message[unit.source]
        return unit.message <= last if self._readings.older_are_duplicates else unit.message == last

    def _tell_sender(self, unit: PaperData, out: list[Output]) -> None:
        """The header and no data: whoever misses the broadcast takes that for it (S3)."""
        out.append(Discard(unit, "duplicate"))
        for stored in self.history:
            if (stored.packet.source, stored.message) == (unit.source, unit.message):
                answer = stored if self._readings.whole_answers else stored.without_data()
                out.append(Send(answer, again=True, to=unit.source))
                return
        if not self._readings.whole_answers:
            self._give_up(
                f"GetFromHistory finds nothing for the duplicate {unit.message} of {name_of(unit.source)}, "
                "and a null pointer is followed",
                out,
            )

    def _number(self, unit: PaperData, out: list[Output]) -> None:
        broadcast = PaperBroadcast(unit.packet, self.me, self.next_number, unit.message)
        self.history.append(broadcast)  # StoreInHistory
        self.next_number += 1
        if self._readings.advances_own_row:
            self.expected = self.heard_below = self.next_number
            self.acknowledged[self.me] = self.said()
        self._pass_to_application(unit.packet, out)
        out.append(Send(broadcast))

    def _believe(self, source: int, number: int) -> None:
        """SequenceNr[] takes what comes, even if it is older than what is there."""
        highest = max(number, self.acknowledged[source]) if self._readings.older_are_duplicates else number
        self.acknowledged[source] = highest

    def _full_history(self) -> bool:
        """FullHistory(): what everybody has received may go, if there is no room."""
        if len(self.history) >= self._history_size:
            received_through = min(self.acknowledged)  # what is expected next, if it says so (S2)
            self.history = [stored for stored in self.history if stored.number > received_through]
        return len(self.history) >= self._history_size

    def _retransmit(self, unit: PaperRetransmit, out: list[Output]) -> None:
        """Everything from the number on, each time that somebody asks (S5)."""
        first = unit.number + 1 if self._readings.acknowledges_last else unit.number
        if any(stored.number == first for stored in self.history):
            out += [Send(stored, again=True, to=unit.source) for stored in self.history if stored.number >= first]

    # --- the receiver (Figure 5) ---

    def _accept_broadcast(self, unit: PaperBroadcast, out: list[Output]) -> None:
        """AcceptBroadcast()."""
        self.heard_below = max(self.heard_below, unit.number + 1)
        if unit.number == self.expected:
            self._take(unit, out)
            while self.expected in self.held:
                self._take(self.held.pop(self.expected), out)
            self._acknowledge(out)
        elif not self._readings.asks_once:
            out.append(Discard(unit, "gap" if unit.number > self.expected else "duplicate"))
            self._request(out)
        elif unit.number > self.expected:
            self.held[unit.number] = unit
            if self.asked != self.expected:
                self._request(out)
        else:
            out.append(Discard(unit, "duplicate"))

    def _take(self, unit: PaperBroadcast, out: list[Output]) -> None:
        self.expected += 1
        self.unspoken += 1
        self.request_tries = 0
        if self._readings.elects:
            self.history.append(unit)
        if self.expected == self.heard_below:
            out.append(CancelTimer("request"))
        self._pass_to_application(unit.packet, out)

    def _pass_to_application(self, packet: Packet, out: list[Output]) -> None:
        """An upcall; and the sender of the message is blocked no more."""
        out += [Reached(Level.ACCEPTED, packet), Deliver(packet)]
        mine = self.outstanding
        if mine is not None and (packet.source, packet.seq) == (self.me, mine.message):
            self.outstanding = None
            out.append(CancelTimer("data"))

    def _request(self, out: list[Output]) -> None:
        """RETRANS, unless a certain number of them has not brought what is missing."""
        self.asked, self.unspoken = self.expected, 0
        self.request_tries += 1
        if self.request_tries > self.config.polls_to_abort:
            self._suspect(out)
            return
        out.append(Send(PaperRetransmit(self.me, self.said()), to=self.sequencer))
        out.append(SetTimer("request", self.config.timing.repeat))

    def _acknowledge(self, out: list[Output]) -> None:
        """The dummy message counts messages, so whoever receives none sends none (S6)."""
        if 0 <= self.sync_through < self.expected:
            self._commit(out)
        elif self.unspoken >= self._dummy_after:
            self.unspoken = 0
            out.append(Send(PaperDummy(self.me, self.said()), to=self.sequencer))

    # --- time-outs ---

    def _expire(self, name: str, out: list[Output]) -> None:
        if name == "data" and self.outstanding is not None:
            self.data_tries += self.sync_through < 0
            if self.data_tries > self.config.polls_to_abort:
                self._suspect(out)
            elif self.sync_through >= 0:
                out.append(SetTimer("data", self.config.timing.poll))
            else:
                self._send_data(out, again=True)
        elif name == "request" and self.expected < self.heard_below:
            self._request(out)
        elif name == "election":
            decide(self, out)

    def _suspect(self, out: list[Output]) -> None:
        """A certain number of tries has brought nothing."""
        if not self._readings.elects:
            self._give_up(f"{name_of(self.sequencer)} does not answer, and there is no other sequencer", out)
            return
        self.data_tries = self.request_tries = 0
        if self.outstanding is not None:
            out.append(SetTimer("data", self.config.timing.poll))
        if self.expected < self.heard_below:
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
        """At a node. Nothing tells an old PHASE1 from a new one (S7)."""
        if unit.phase == 2:
            self.sync_through = -1
            self._commit(out)
            return
        self.sync_through = unit.number
        self.heard_below = max(self.heard_below, unit.number + 1)
        if self.expected <= unit.number:
            self._request(out)
        else:
            self._commit(out)

    def _commit(self, out: list[Output]) -> None:
        self.unspoken = 0
        out.append(Send(PaperCommitted(self.me, self.said()), to=self.sequencer))

    def _count_reply(self, unit: PaperCommitted, out: list[Output]) -> None:
        """An ACK_COMMIT counts for whatever phase there is now (S7)."""
        if not self.phase:
            return
        self.replied |= 1 << unit.source
        if self.replied | 1 << self.me != self._everybody:
            return
        if self.phase == 1:
            self.history = []
            self._begin_phase(2, out)
        else:
            self.phase, self.sync_through = 0, -1
