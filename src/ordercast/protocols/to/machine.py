"""TO: everything to everybody in one order, on one channel that loses units. The group goes back after a loss.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", sections 2.2, 4.1 and 4.2,
without the priorities (`prito` adds them); the papers compare others with it. `to_normal` has the rules while nothing
is missing, here is what happens then (4.2, which only cites the agreement).

Going back. A node that misses something stops, and says up to where it has accepted each source (EpochVector); whoever
hears that stops too. A vector never changes, so all who have the vectors of all find the same **cut**: the lowest
of them, for each source. What lies below it everybody has, and keeps, in the order of the channel; what lies above it
is thrown away by all, gets new numbers, and is sent again by its source. A node that knows the cut says so, and a new
epoch begins when all are known to have said so.

Departures from the paper:
 1. The cut is what *all* have accepted, and everything below it counts as pre-acknowledged before the epoch begins
    (F2: to reject what follows the lost unit *at each node* leaves the nodes with different logs).
 2. Nobody sends in a new epoch before all have its cut; else those who lack it lose what is sent, for ever (F7).
 3. A new epoch acknowledges all that was kept: everybody is known to have pre-acknowledged it.
 4. What somebody lost shows in what others say they have accepted (the test of ACK), and in statuses that are sent
    while anybody waits; when nobody waits, nobody speaks.
 5. A status takes a number only if its place matters, which is so when it says of data that they are accepted; else its
    loss would send the group back for nothing.
 6. A packet that was thrown away once and is about to be again travels with the vector of its source. Who has all
    vectors has it too: each going back makes some progress, however much is lost and however many nodes there are.
 7. A node whose packets were thrown away sends half as many at a time, and one more for each that gets through. What
    is sent behind a loss is sent in vain.

What is not there: a group that is given up delivers what is pre-acknowledged, an exact prefix of the common
sequence, and stops; nobody goes on without the others.
"""

from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    GiveUp,
    Input,
    Output,
    Receive,
    Resumed,
    Send,
    Stopped,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import members, name_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.to.normal import ToNormal
from ordercast.protocols.to.state import Mode
from ordercast.protocols.to.units import (
    CarryingVector,
    EpochVector,
    Heading,
    OrderedData,
    OrderedReady,
    RunMarker,
    Sequenced,
    Standing,
    Vector,
    vector_of,
)

MOST_PATIENT = 4
"""Polls and vectors back off by doubling while nothing moves, up to this many times their duration."""


class To(ToNormal):
    """The protocol at one node."""

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.aborted:
            return out
        if type(event) is GiveUp:
            self._abort(event.why, out)
            return out
        if type(event) is Receive:
            self._receive(event.unit, out)
        elif type(event) is Submit:
            self._submit(event)
        elif type(event) is TimerFired:
            self._fire(event.name, out)
        elif self.owes and self.mode is Mode.NORMAL:  # Drained
            self._say(out)
        if self.mode is Mode.NORMAL and not self.aborted:
            self._settle(out)
        return out

    def _settle(self, out: list[Output]) -> None:
        """What may be sent now, and what must be sent later."""
        if self.waiting or self.again:
            self._send_waiting(out)
        if self.unsaid >= self._prompt:
            self._say(out)
        if self.owes and not self.status_timer:
            self.status_timer = True
            self._set_timer("status", self.config.timing.status, out)
        if not self.poll_timer and self.unfinished():
            self.poll_timer, self.moved, self.patience = True, False, 1
            self._set_timer("poll", self.config.timing.poll, out)

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        kind = type(unit)
        if kind is OrderedData or kind is OrderedReady or kind is RunMarker or kind is Standing:
            self._hear(unit, out)  # type: ignore[arg-type]
        elif isinstance(unit, EpochVector | CarryingVector):
            self.unanswered[unit.source] = 0
            self._hear_vector(unit, vector_of(unit), out)
        else:
            out.append(Discard(unit, "stray"))

    def _hear(self, unit: Sequenced | Standing, out: list[Output]) -> None:
        heading = unit.heading
        self.unanswered[heading.source] = 0
        if heading.epoch != self.epoch:
            out.append(Discard(unit, "old" if heading.epoch < self.epoch else "early"))
        elif self.mode is Mode.RESET:
            out.append(Discard(unit, "stopped"))
        else:
            if self.mode is Mode.WAIT:  # its sender knows that all have the cut
                self._begin(out)
            wrong = self._hear_in_epoch(unit, heading, out)
            if wrong:
                out.append(Discard(unit, wrong))
                self._stop(wrong, out)

    # --- going back (4.2) ---

    def _stop(self, why: str, out: list[Output]) -> None:
        """Stops, and says what I have accepted; that never changes any more."""
        self.mode = Mode.RESET
        out.append(Stopped(why))
        self.vectors[self.me] = self._own_vector()
        self.installed = 0
        self.patience, self.moved = 1, False
        self._say_vector(0, out)

    def _own_vector(self) -> Vector:
        vector = EpochVector(self.me, self.epoch + 1, tuple(self.expected), installed=False, wants=0)
        if self.sent:
            seq, packet = self.sent[0]
        elif self.again:
            seq, packet = self.next_seq, self.again[0]
        else:
            return vector
        return CarryingVector(packet, vector, seq) if packet.seq < self.thrown_below else vector

    def _say_vector(self, wants: int, out: list[Output]) -> None:
        own = self.vectors[self.me]
        assert own is not None
        self.stamp += 1
        installed = self.mode is Mode.WAIT
        vector = EpochVector(self.me, vector_of(own).epoch, vector_of(own).expects, installed, wants)
        if isinstance(own, CarryingVector):
            out.append(Send(CarryingVector(own.packet, vector, own.seq), again=True))
        else:
            out.append(Send(vector))
        self._set_timer("reset", self.config.timing.reset * self.patience, out)

    def _hear_vector(self, unit: Vector, vector: EpochVector, out: list[Output]) -> None:
        if vector.epoch == self.epoch + 1:
            if self.mode is Mode.WAIT:  # only where the epoch had begun can it have ended
                self._begin(out)
            if self.mode is Mode.NORMAL:
                self._stop("told", out)
            self._take_vector(unit, vector, out)
        elif vector.epoch != self.epoch:
            out.append(Discard(unit, "old"))
        elif self.mode is Mode.WAIT:
            self._take_installed(1 << vector.source if vector.installed else 0, out)
        elif self.mode is Mode.NORMAL and vector.wants & self._my_bit:
            self.owes = True  # whatever I say in this epoch tells that all have the cut

    def _take_vector(self, unit: Vector, vector: EpochVector, out: list[Output]) -> None:
        if vector.installed:
            self.installed |= 1 << vector.source
        if self.vectors[vector.source] is None:
            self.vectors[vector.source] = unit
            self.moved = True
            if all(known is not None for known in self.vectors):
                self._install([known for known in self.vectors if known is not None], out)

    def _install(self, vectors: list[Vector], out: list[Output]) -> None:
        """All keep what lies below all vectors, and nothing else."""
        cut = [min(column) for column in zip(*[vector_of(unit).expects for unit in vectors], strict=True)]
        if self._contradicts(cut):
            self._abort("somebody says to lack what it said to have", out)
            return
        kept = [entry for entry in self.accepted.entries if entry[1] < cut[entry[0]]]
        self.accepted.refill(kept, [tuple(cut)] * self._nodes)
        for unit in self.accepted.rise():
            self._preacknowledge(unit, out)
        self.unpreacknowledged, self.expected = 0, cut
        if self.sent:
            self.thrown_below = max(self.thrown_below, self.sent[-1][1].seq + 1)
            self.again.extendleft([packet for _, packet in reversed(self.sent)])
            self.sent.clear()
            self.allowance = max(1, self.allowance // 2)
        self.epoch += 1
        self.mode = Mode.WAIT
        self._accept_carried(vectors, out)
        self.next_seq = self.expected[self.me]
        self.owes, self.unsaid = False, 0
        self.patience, self.moved = 1, False
        self._say_vector(0, out)
        self._take_installed(self._my_bit, out)

    def _contradicts(self, cut: list[int]) -> bool:
        """Whether somebody lacks what it has said to have: what is pre-acknowledged here lies below the cut."""
        preacknowledged_below = list(self.expected)
        for source, seq, _ in reversed(self.accepted.entries):
            preacknowledged_below[source] = seq
        return any(below < known for below, known in zip(cut, preacknowledged_below, strict=True))

    def _accept_carried(self, vectors: list[Vector], out: list[Output]) -> None:
        """What came with the vectors and is not kept comes first in the new epoch, by source, at all nodes."""
        cut = tuple(self.expected)
        for source, unit in enumerate(vectors):
            if isinstance(unit, CarryingVector) and unit.seq >= cut[source]:
                self.expected[source] += 1
                first = OrderedData(unit.packet, Heading(source, self.epoch, cut[source], cut, 0))
                self._accept(first, source, cut[source], out)
                if source == self.me:
                    self.sent.append((cut[source], self.again.popleft()))

    def _take_installed(self, node: int, out: list[Output]) -> None:
        if node & ~self.installed:
            self.moved = True
        self.installed |= node
        if self.installed == self._everybody:
            self._begin(out)

    def _begin(self, out: list[Output]) -> None:
        """All have the cut, so all have pre-acknowledged what was kept."""
        self.mode = Mode.NORMAL
        out.append(CancelTimer("reset"))
        kept = [packet for _, _, packet in self.preacknowledged.entries]
        self.preacknowledged.refill((), self.accepted.columns)
        self._acknowledge(kept, out)
        carried = len(self.accepted.entries)
        out.append(Resumed(self._lacked(), carried, 0))
        self.owes = self.owes_in_sequence = carried > 0
        self.moved = True

    def _lacked(self) -> int:
        """How many units others had and I had not."""
        columns = [vector_of(unit).expects for unit in self.vectors if unit is not None]
        mine = columns[self.me]
        self.vectors = [None] * self._nodes
        return sum(max(column) - own for own, column in zip(mine, zip(*columns, strict=True), strict=True))

    # --- timers ---

    def _fire(self, name: str, out: list[Output]) -> None:
        if name == "status":
            self.status_timer = False
            if self.owes and self.mode is Mode.NORMAL:
                self._say(out)
        elif name == "poll":
            self.poll_timer = False
            if self.mode is Mode.NORMAL and self.unfinished():
                self._poll(out)
        elif name == "reset" and self.mode is not Mode.NORMAL and self._be_patient(out):
            self._say_vector(self.blockers(), out)

    def _poll(self, out: list[Output]) -> None:
        """Nothing has risen for a while: those that I wait for are asked, and all see whether they lack something."""
        moved = self.moved
        if self._be_patient(out):
            if not moved:
                self._say(out, self.blockers())
            self.poll_timer = True
            self._set_timer("poll", self.config.timing.poll * self.patience, out)

    def _be_patient(self, out: list[Output]) -> bool:
        """Counts what is left unanswered while nothing moves; False: the group was given up."""
        if self.moved:
            self.patience, self.moved = 1, False
            return True
        self.patience = min(MOST_PATIENT, 2 * self.patience)
        for node in members(self.blockers()):
            self.unanswered[node] += 1
            if self.unanswered[node] > self.config.polls_to_abort:
                self._abort(f"{name_of(node)} left {self.config.polls_to_abort} questions in a row unanswered", out)
                return False
        return True

    def _abort(self, why: str, out: list[Output]) -> None:
        """Gives the group up; what can still be told to the application is a prefix of what others are told."""
        out += [Deliver(packet) for packet in self._safe()]
        self.aborted = True
        out.append(Abort(why))

    def _safe(self) -> list[Packet]:
        """All that is pre-acknowledged: an exact prefix of the order of the channel, which everybody has."""
        return [packet for _, _, packet in self.preacknowledged.entries]
