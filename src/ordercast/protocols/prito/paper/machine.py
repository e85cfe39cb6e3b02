"""PriTO as printed: the rules of the paper with their misprints corrected and nothing else.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", sections 4 and 5. It is
here for the paper's examples, evaluation and counterexamples: one lost unit may leave the nodes with different orders,
and so may a run synchronisation without any loss. For the service use `prito.machine`, which says why.

Misprints corrected, and gaps filled in the way that fits the paper's own examples:
 1. 4.1: AL_jk and PEQ_j refer to what E_j sent. Priority-based insert: before the *first* of lower priority.
 2. PACK: PAL_hj becomes ACK_h of the unit that is moved; an empty RRL ends the loop.
 3. ACK: what is deleted is the pseudo-PDU of what was just dequeued. The loop ends at an empty PRL and at a top that is
    not acknowledged; as printed it never ends there, since its `else` belongs to the outer `if`.
 4. Pseudo-PDUs of units without data leave when they are pre-acknowledged; ACK would never delete them.
 5. PACK and ACK run until nothing moves after every single acceptance, and at no other time: orders depend on it.
 6. A node sends a unit without data (RR) if it waits for something, or was polled, and has sent nothing for a while;
    else nothing would ever be acknowledged. It has a number like any other. A group in which no node waits is silent.
 7. The window of the companion papers: so many data units of a source that not all are known to have accepted.
 8. 4.2, whose sentence is broken off: all broadcast their REQ; then from which number of each source on they reject,
    that is, what follows the first unit in their logs that some node lacks; then all reject from the lowest numbers
    on, and sources broadcast again what was rejected, under the numbers that it had and with the ACK of that moment.
    What a source has not pre-acknowledged may be rejected: it stays in SL as long. REQ and AL are reduced too.
 9. 5: a timer runs for what is acknowledged and not delivered. TOSEQ and PEQ grow to the highest that any node reports,
    and TOSEQ is NIL again afterwards. What has timed out in the meantime begins another synchronisation. Unchanged
    while a node has stopped is not AL, as the text has it, but PAL.

Kept as printed, and why it is wrong: acceptance looks at SEQ alone; data are inserted by priority when they are
accepted, and recovery undoes that without a common end of the run (F2: CE1, CE2); the initiator of a run
synchronisation stops when its timer expires, and the others when they receive its unit (F6); units of recovery and of
synchronisation are never repeated, so that the loss of one stops the group for good.
Other readings of the text, each with orders of its own (F1, F3, F4), are options: see `PriorityReadings`.
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
    Resumed,
    Send,
    SetTimer,
    Stopped,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import name_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.prito.paper.state import Entry, PritoPaperState, Stage, first_rejected, insert_by_priority
from ordercast.protocols.prito.paper.units import (
    NIL,
    Lost,
    Printed,
    PrintedData,
    PrintedReady,
    Rejected,
    RunSync,
    RunSyncAck,
    RunSyncPack,
)
from ordercast.protocols.shared.destinations import check_broadcast
from ordercast.protocols.shared.jitter import spread


class PritoPaper(PritoPaperState):
    """The printed protocol at one node."""

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns everything that follows from it."""
        out: list[Output] = []
        if self.aborted:
            return out
        match event:
            case Submit():
                self._submit(event)
            case Receive(unit=unit):
                self._receive(unit, out)
            case TimerFired(name="ready"):
                self.ready_timer = False
                if self._readings.rises_in_silence:
                    self._rise(out)
                if self.stage is Stage.NORMAL and (self.pending or self.unfinished()):
                    self._broadcast(PrintedReady(self.me, self.next_seq, *self._heading()), out)
            case TimerFired(name=name):
                self.time_out(name, out)
        if self.stage is Stage.NORMAL and not self.aborted:
            while self.waiting and self._window_is_open():
                self._send(self.waiting.popleft(), out)
            if not self.ready_timer and (self.pending or self.unfinished()):
                self._set_ready_timer(out)
        return out

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        match unit:
            case PrintedData() | PrintedReady():
                self._receive_numbered(unit, out)
            case Lost() if self.stage is not Stage.REJECTING:
                self._receive_lost(unit, out)
            case Rejected() if self.stage is Stage.REJECTING:
                self._receive_rejected(unit, out)
            case RunSync():
                self._receive_run_sync(unit, out)
            case RunSyncPack() if self.synchronising:
                self._receive_stopped(unit, out)
            case RunSyncAck() if self.ack_sent:
                self._receive_agreed(unit, out)
            case _:
                out.append(Discard(unit, "stray"))

    # --- transmission procedure (4.1) ---

    def _submit(self, event: Submit) -> None:
        check_broadcast(event.destinations, self._nodes)
        self.waiting.append(event)

    def _window_is_open(self) -> bool:
        known = min(self.accepted_below[self.me])  # minAL
        return sum(isinstance(unit, PrintedData) and unit.seq >= known for unit in self.sent) < self.config.window

    def _send(self, event: Submit, out: list[Output]) -> None:
        packet = Packet(
            self.me, self._everybody, self.next_seq, (), self.next_message, event.lengths, event.payload, event.priority
        )
        self.next_message += len(event.lengths)
        self.last_data = self.next_seq
        out.append(Numbered(packet))
        self._broadcast(PrintedData(packet, *self._heading()), out)

    def _heading(self) -> tuple[tuple[int, ...], bool]:
        return tuple(self.expected), self.unfinished()

    def _broadcast(self, unit: Printed, out: list[Output]) -> None:
        """Sends a numbered unit, and starts the timer of the next RR anew."""
        self.next_seq += 1
        self.pending = False
        self.sent.append(unit)
        out.append(Send(unit))
        self._set_ready_timer(out)
        if self._readings.accepts_own_at_once:
            self._receive_numbered(unit, out)

    def _set_ready_timer(self, out: list[Output]) -> None:
        self.ready_timer = True
        out.append(SetTimer("ready", spread(self.config.timing.status, self.me, self.next_seq)))

    # --- accept procedure (4.1) ---

    def _receive_numbered(self, unit: Printed, out: list[Output]) -> None:
        source = unit.source
        if unit.wants and source != self.me:
            self.pending = True
        if self.stage is not Stage.NORMAL:
            out.append(Discard(unit, "stopped"))
        elif unit.seq < self.expected[source]:
            out.append(Discard(unit, "duplicate"))
        elif unit.seq > self.expected[source]:
            out.append(Discard(unit, "gap"))
            self._stop(f"number {self.expected[source]} of {name_of(source)} is missing", out)
        else:
            self._accept(unit, out)
            if not self._readings.rises_in_silence:
                self._rise(out)

    def _accept(self, unit: Printed, out: list[Output]) -> None:
        source = unit.source
        self.accepted.append(Entry(unit, pseudo=True))
        if isinstance(unit, PrintedData):
            if self._readings.sorts_preacknowledged:
                self.accepted.append(Entry(unit, pseudo=False))
            else:
                insert_by_priority(Entry(unit, pseudo=False), self.preacknowledged, self.accepted)
            if unit.seq >= self.reported_accepted[source]:
                self.reported_accepted[source] = unit.seq + 1
                out.append(Reached(Level.ACCEPTED, unit.packet))
        self.expected[source] = unit.seq + 1
        for of, seq in enumerate(unit.expects):
            self.accepted_below[of][source] = seq

    # --- pre-acknowledgment and acknowledgment (4.1) ---

    def accepted_minima(self) -> list[int]:
        """By source, minAL."""
        return list(map(min, self.accepted_below))

    def _rise(self, out: list[Output]) -> None:
        if not self.synchronising:
            self.preacknowledge(self.accepted_minima(), out)
            self.acknowledge(out)

    def preacknowledge(self, below: list[int], out: list[Output]) -> None:
        """PACK procedure. Only pseudo-PDUs are tested: they stand in channel order, and all data before them."""
        log = self.accepted
        while log and (not log[0].pseudo or log[0].unit.seq < below[log[0].unit.source]):
            entry = log.pop(0)
            unit, source = entry.unit, entry.unit.source
            if isinstance(unit, PrintedData):
                if self._readings.sorts_preacknowledged:
                    insert_by_priority(entry, self.preacknowledged)
                else:
                    self.preacknowledged.append(entry)
            if entry.pseudo:
                self.own_preacknowledged_below[source] = unit.seq + 1
                for of, seq in enumerate(unit.expects):
                    self.preacknowledged_below[of][source] = seq
                if isinstance(unit, PrintedData):
                    out.append(Reached(Level.PREACKNOWLEDGED, unit.packet))
            if self._readings.acknowledges_each and not (entry.pseudo and isinstance(unit, PrintedData)):
                self.acknowledge(out)  # the data of a pseudo-PDU follow it
        while self.sent and self.sent[0].seq < self.own_preacknowledged_below[self.me]:
            self.sent.pop(0)

    def acknowledge(self, out: list[Output]) -> None:
        """ACK procedure; sets a timer for what is acknowledged and is queued behind something that is not."""
        log = self.preacknowledged
        while log and not log[0].pseudo and self.is_acknowledged(log[0].unit):
            self._deliver(log[0], out)
        for unit in [entry.unit for entry in log]:  # data first, in their order, and again as pseudo-PDUs
            if (unit.source, unit.seq) not in self.acknowledged and self.is_acknowledged(unit):
                self._note_acknowledged(unit, out)
                if self.config.priority.synchronises:
                    out.append(SetTimer(_run_timer(unit), self.config.timing.run))

    def _note_acknowledged(self, unit: Printed, out: list[Output]) -> None:
        self.acknowledged.add((unit.source, unit.seq))
        if isinstance(unit, PrintedData):
            out.append(Reached(Level.ACKNOWLEDGED, unit.packet))

    def _deliver(self, entry: Entry, out: list[Output]) -> None:
        """Delivers an entry of PRL, and removes it with its pseudo-PDU."""
        unit, key = entry.unit, (entry.unit.source, entry.unit.seq)
        self.preacknowledged[:] = [other for other in self.preacknowledged if other.unit != unit]
        if key not in self.acknowledged:
            self._note_acknowledged(unit, out)
        elif self.config.priority.synchronises:
            out.append(CancelTimer(_run_timer(unit)))
        self.acknowledged.remove(key)
        self.expired.discard(key)
        if isinstance(unit, PrintedData):
            out.append(Deliver(unit.packet))

    # --- failure (4.2) ---

    def _stop(self, why: str, out: list[Output]) -> None:
        self.stage = Stage.AGREEING
        out += [Stopped(why), Send(Lost(self.me, tuple(self.expected)))]

    def _receive_lost(self, unit: Lost, out: list[Output]) -> None:
        """All nodes send what they expect; with the last of these, all know what some node lacks."""
        if self.stage is Stage.NORMAL:
            self._stop(f"{name_of(unit.source)} has lost something", out)
        self.expectations[unit.source] = unit.expects
        if all(self.expectations):
            self.stage = Stage.REJECTING
            received_by_all = [min(numbers) for numbers in zip(*self.expectations, strict=True)]
            receipts = [entry for entry in (*self.preacknowledged, *self.accepted) if entry.pseudo]
            out.append(Send(Rejected(self.me, first_rejected(receipts, self.expected, received_by_all))))

    def _receive_rejected(self, unit: Rejected, out: list[Output]) -> None:
        """All nodes send from where on they reject; with the last of these, all do, and sources broadcast again."""
        self.rejections[unit.source] = unit.below
        if not all(self.rejections):
            return
        lacked = sum(max(numbers) for numbers in zip(*self.expectations, strict=True)) - sum(self.expected)
        below = [min(numbers) for numbers in zip(*self.rejections, strict=True)]
        if any(map(int.__lt__, below, self.own_preacknowledged_below)):
            self.aborted = True
            out.append(Abort("inconsistent acknowledgments: a node rejects what it has acknowledged"))
            return
        self._roll_back(below)
        self.stage = Stage.NORMAL
        self.expectations, self.rejections = [()] * self._nodes, [()] * self._nodes
        out.append(Resumed(lacked, 0, 0))
        self._broadcast_again(out)

    def _roll_back(self, below: list[int]) -> None:
        """Forgets everything from these numbers on, and its acknowledgments; no node has pre-acknowledged any of it."""
        self.preacknowledged = [entry for entry in self.preacknowledged if entry.unit.seq < below[entry.unit.source]]
        self.accepted = [entry for entry in self.accepted if entry.unit.seq < below[entry.unit.source]]
        self.expected = list(map(min, self.expected, below))
        self.accepted_below = [
            [min(seq, limit) for seq in row] for row, limit in zip(self.accepted_below, below, strict=True)
        ]

    def _broadcast_again(self, out: list[Output]) -> None:
        """Sends what was rejected, under the same numbers; nodes that kept a unit discard it as a duplicate."""
        rejected = [unit for unit in self.sent if unit.seq >= self.expected[self.me]]
        expects, wants = self._heading()
        for unit in rejected:
            if isinstance(unit, PrintedData):
                out.append(Send(PrintedData(unit.packet, expects, wants), again=True))
            else:
                out.append(Send(PrintedReady(self.me, unit.seq, expects, wants)))

    # --- run synchronisation (5) ---

    def time_out(self, name: str, out: list[Output]) -> None:
        """Step (1). The initiator stops at once, wherever its Run-Sync will stand on the channel (F6)."""
        self.expired |= {key for key in self.acknowledged if _timer_of(*key) == name}
        if self.expired and not self.synchronising:
            self.synchronising = True
            self._note_expired()
            out.append(Send(RunSync(self.me, tuple(self.timed_out), tuple(self.own_preacknowledged_below))))

    def _note_expired(self) -> None:
        for source, seq in self.expired:
            self.timed_out[source] = max(self.timed_out[source], seq)

    def _receive_run_sync(self, unit: RunSync, out: list[Output]) -> None:
        """Step (2): stops, and answers."""
        self.synchronising = True
        self._note_expired()
        self._merge(unit)
        if unit.source != self.me and not self.pack_sent:
            self.pack_sent = True
            out.append(Send(RunSyncPack(self.me, tuple(self.timed_out), tuple(self.own_preacknowledged_below))))
        self._receive_stopped(unit, out)

    def _receive_stopped(self, unit: RunSync | RunSyncPack, out: list[Output]) -> None:
        """Step (3): when all have stopped, broadcasts that."""
        self._merge(unit)
        self.stopped |= 1 << unit.source
        if self.stopped == self._everybody and not self.ack_sent:
            self.ack_sent = True
            out.append(Send(RunSyncAck(self.me, tuple(self.timed_out), tuple(self.highest_preacknowledged))))

    def _receive_agreed(self, unit: RunSyncAck, out: list[Output]) -> None:
        """Step (4): when all know that all have stopped, ends the run."""
        self._merge(unit)
        self.agreed |= 1 << unit.source
        if self.agreed != self._everybody:
            return
        self.preacknowledge(self.highest_preacknowledged, out)
        self.end_run(out)
        self.synchronising = self.pack_sent = self.ack_sent = False
        self.stopped = self.agreed = 0
        self.timed_out = [NIL] * self._nodes
        self.preacknowledge(self.accepted_minima(), out)
        self.acknowledge(out)
        self.time_out("", out)

    def _merge(self, unit: RunSync | RunSyncPack | RunSyncAck) -> None:
        self.timed_out = list(map(max, self.timed_out, unit.timed_out))
        self.highest_preacknowledged = list(map(max, self.highest_preacknowledged, unit.preacknowledged_below))

    def end_run(self, out: list[Output]) -> None:
        """Delivers what has timed out and what is acknowledged before it, in the order of PRL; skips the rest."""
        log = [entry for entry in self.preacknowledged if not entry.pseudo and self.is_acknowledged(entry.unit)]
        late = [place for place, entry in enumerate(log) if entry.unit.seq <= self.timed_out[entry.unit.source]]
        for entry in log[: late[-1] + 1] if late else ():
            self._deliver(entry, out)


def _run_timer(unit: Printed) -> str:
    return _timer_of(unit.source, unit.seq)


def _timer_of(source: int, seq: int) -> str:
    """The timer of a packet that is acknowledged and not delivered."""
    return f"run-{source}-{seq}"
