"""SPO as printed: for the papers' worked examples, for the evaluation, and for the counterexamples. Do not build on it.

From: Nakamura and Takizawa, "Selective Broadcast Service for Distributed Systems" (EN, sections 4.1 to 4.5) and
"Data Transmission Procedure of Selective Broadcast Protocol on Multi-Channel" (JP, sections 3.1 to 3.5).

Only misprints are mended, so that what is printed can be run:
 1. EN's accept action sets TREQ_j to p.TSEQ; JP's to p.TSEQ + 1, which Example 3.1 needs.
 2. AL_hj and PAL_hj are n times n: what E_j expects from E_h; the indices of EN's actions are mended so.
 3. All of PSEQ starts at one's own first number (Example 3.1), and PAL starts as AL does.
 4. The ACK action looks at top(PPL), not top(PPR).
 5. The test for duplicates comes first: printed last, it lets TREQ go backwards (D1).
 6. The flow condition divides real numbers: with whole ones nothing could ever be sent.
 7. "If q satisfies the accept condition" in the lost PDU action (2) is void: q never does.

What is printed and does not hold is kept: acceptance condition (2), acknowledgment by inference, no unit without data,
no repeated request. `config.paper` chooses other readings. `spo` has the sound rules.

Free buffers (BUF) are those that the packets in RPL and PPL have left. A node hears its own units by a loop-back.
"""

from collections import deque
from operator import attrgetter
from typing import Any, ClassVar

from ordercast.model.config import GroupConfig, HearsayRule
from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import (
    CancelTimer,
    Deliver,
    Discard,
    Echo,
    Input,
    Level,
    LogSizes,
    Numbered,
    Output,
    Reached,
    Receive,
    Send,
    SetTimer,
    Snapshot,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody, members, name_of
from ordercast.model.units import Data, Packet, RetransmitRequest, Status

_WAIT = "wait-"
_VECTORS = ("next_seq_to", "expected", "expected_to_me", "free_buffers", "waits")
_vectors = attrgetter(*_VECTORS)


class SpoPaper:
    """The printed protocol at one node."""

    echo: ClassVar[Echo] = Echo.SAFE

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self._nodes, self._my_bit = nodes, 1 << me
        self.stamp = 0
        self.next_message = 0
        self.waiting: deque[Submit] = deque()  # submitted, but the flow condition does not hold
        self.next_seq = first[me]  # TSEQ
        self.next_seq_to = [first[me]] * nodes  # PSEQ_j
        self.expected = list(first)  # TREQ_j
        self.expected_to_me = list(first)  # PREQ_j
        self.accepted_below = [[seq] * nodes for seq in first]  # AL[source][node]
        self.preacknowledged_below = [[seq] * nodes for seq in first]  # PAL[source][node]
        self.free_buffers = [config.paper.initial_buffers] * nodes  # F_j
        self.sent: deque[Data] = deque()  # SL
        self.accepted: list[deque[Data]] = [deque() for _ in range(nodes)]  # RPL_j
        self.preacknowledged: list[deque[Data]] = [deque() for _ in range(nodes)]  # PPL_j
        self.waits = [False] * nodes  # whose timer of the lost PDU action (2) runs

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if isinstance(event, Submit):
            self._submit(event)
        elif isinstance(event, Receive):
            if isinstance(event.unit, Data):
                self._receive(event.unit, out)
            elif isinstance(event.unit, RetransmitRequest):
                self._retransmit(event.unit, out)
            else:
                out.append(Discard(event.unit, "stray"))
        elif isinstance(event, TimerFired) and event.name.startswith(_WAIT):
            self._wait_is_over(int(event.name.removeprefix(_WAIT)), out)
        while self.waiting and self.flow_condition():
            self._transmit(self.waiting.popleft(), out)
        return out

    # --- transmission (EN 4.2 B, JP 3.2) ---

    def _submit(self, event: Submit) -> None:
        if not event.destinations or event.destinations & ~everybody(self._nodes):
            raise LocalProtocolError(f"a message must go to at least one of the {self._nodes} nodes, and to no others")
        self.waiting.append(event)

    def flow_condition(self) -> bool:
        """MinAL_i <= TSEQ < minAL_i + min(W, minF / (H n²)), over all nodes."""
        lowest = min(self.accepted_below[self.me])
        room = min(self.free_buffers) / (self.config.paper.buffer_divisor * self._nodes**2)
        return lowest <= self.next_seq < lowest + min(self.config.window, room)

    def _transmit(self, event: Submit, out: list[Output]) -> None:
        """Transmission action (1) to (5)."""
        seq_to, first = tuple(self.next_seq_to), self.next_message
        packet = Packet(self.me, event.destinations, self.next_seq, seq_to, first, event.lengths, event.payload)
        self.next_seq += 1
        self.next_message += len(event.lengths)
        for node in members(event.destinations):
            self.next_seq_to[node] += 1
        unit = Data(packet, self._status())
        self.sent.append(unit)
        out += [Numbered(packet), Send(unit)]

    def _status(self) -> Status:
        self.stamp += 1
        held = sum(map(len, self.accepted)) + sum(map(len, self.preacknowledged))
        return Status(self.stamp, tuple(self.expected), free=max(0, self.config.paper.initial_buffers - held))

    # --- receipt (EN 4.2 A and 4.5, JP 3.2 and 3.5) ---

    def _receive(self, unit: Data, out: list[Output]) -> None:
        source = unit.packet.source
        waited = self.waits[source]
        if waited:  # lost PDU action (2-2): the timer is stopped whatever the unit is
            self.waits[source] = False
            out.append(CancelTimer(f"{_WAIT}{source}"))
        if self.config.paper.duplicates_first and self.is_duplicate(unit):
            out.append(Discard(unit, "duplicate"))
        elif self.accept_condition_1(unit) and self.accept_condition_2(unit):
            self._accept(unit, out)
        else:
            self._lose(unit, out, waited=waited)

    def is_duplicate(self, unit: Data) -> bool:
        """Duplicate PDU condition: p.TSEQ < TREQ_j, or p.PSEQ_i < PREQ_j."""
        packet = unit.packet
        return packet.seq < self.expected[packet.source] or packet.seq_to[self.me] < self.expected_to_me[packet.source]

    def accept_condition_1(self, unit: Data) -> bool:
        """(1-1) p.TSEQ = TREQ_j, or (1-2) p.PSEQ_i = PREQ_j."""
        packet = unit.packet
        return (
            packet.seq == self.expected[packet.source] or packet.seq_to[self.me] == self.expected_to_me[packet.source]
        )

    def accept_condition_2(self, unit: Data) -> bool:
        """(2) p.ACK_h <= TREQ_h for h = 1..n. Every hint of reordering or of a loss discards p (C0, C1, C2)."""
        rule, source = self.config.paper.condition_2, unit.packet.source
        if rule is HearsayRule.NONE:
            return True
        return all(
            says <= expects
            for h, (says, expects) in enumerate(zip(unit.status.expects, self.expected, strict=True))
            if rule is HearsayRule.ALL or h != source
        )

    def _accept(self, unit: Data, out: list[Output]) -> None:
        """Accept action (1) to (3), and what then rises."""
        packet = unit.packet
        source = packet.source
        self.expected[source] = packet.seq + 1
        for h, says in enumerate(unit.status.expects):
            self.accepted_below[h][source] = says
        self.free_buffers[source] = unit.status.free
        if packet.destinations & self._my_bit:
            self.expected_to_me[source] = packet.seq_to[self.me] + 1
            self.accepted[source].append(unit)
            out.append(Reached(Level.ACCEPTED, packet))
        else:
            out.append(Discard(unit, "foreign"))
        self._preacknowledge(out)
        self._acknowledge(out)
        self._release()

    def failure_condition_1(self, unit: Data) -> bool:
        """PREQ_j < p.PSEQ_i: something for me, before p, is missing."""
        return self.expected_to_me[unit.packet.source] < unit.packet.seq_to[self.me]

    def failure_condition_2(self, unit: Data) -> list[int]:
        """The E_h other than the source with TREQ_h < q.ACK_h: something of theirs, perhaps not for me, is missing."""
        return [h for h, says in enumerate(unit.status.expects) if h != unit.packet.source and self.expected[h] < says]

    def _lose(self, unit: Data, out: list[Output], *, waited: bool) -> None:
        """Lost PDU action: (1) request at once; (2) wait for E_h; (2-2) request if what came is not accepted."""
        doubted = self.failure_condition_2(unit)
        missing = self.failure_condition_1(unit)
        out.append(Discard(unit, "gap" if missing else "hearsay"))
        if missing or waited:
            self._request(out)
        for h in doubted:
            if not self.waits[h]:
                self.waits[h] = True
                out.append(SetTimer(f"{_WAIT}{h}", self.config.timing.hearsay))

    def _wait_is_over(self, source: int, out: list[Output]) -> None:
        """Lost PDU action (2-1)."""
        if self.waits[source]:
            self.waits[source] = False
            self._request(out)

    def _request(self, out: list[Output]) -> None:
        """RETRANS procedure (1). It is never repeated (C4)."""
        out.append(Send(RetransmitRequest(self.me, tuple(self.expected))))

    def _retransmit(self, request: RetransmitRequest, out: list[Output]) -> None:
        """RETRANS procedure (2): everything for the requester from its number on."""
        if request.source == self.me:
            return
        for unit in self.sent:
            packet = unit.packet
            if packet.seq >= request.expects[self.me] and packet.destinations >> request.source & 1:
                copy = unit if self.config.paper.verbatim_copies else Data(packet, self._status())
                out.append(Send(copy, again=True))

    # --- pre-acknowledgment, acknowledgment, release (EN 4.3 and 4.4, JP 3.3 and 3.4) ---

    def lowest(self, bounds: list[list[int]], packet: Packet) -> int:
        """MinAL_j(p) or minPAL_j(p): the lowest bound over the destinations."""
        return min(bounds[packet.source][node] for node in members(packet.destinations))

    def _preacknowledge(self, out: list[Output]) -> None:
        """PACK action. PAL_hj takes p.ACK_h: an inference that does not hold (A1, R1)."""
        for source, log in enumerate(self.accepted):
            while log and log[0].packet.seq < self.lowest(self.accepted_below, log[0].packet):
                unit = log.popleft()
                for h, says in enumerate(unit.status.expects):
                    self.preacknowledged_below[h][source] = says
                self.preacknowledged[source].append(unit)
                out.append(Reached(Level.PREACKNOWLEDGED, unit.packet))

    def _acknowledge(self, out: list[Output]) -> None:
        """ACK action."""
        for log in self.preacknowledged:
            while log and log[0].packet.seq < self.lowest(self.preacknowledged_below, log[0].packet):
                packet = log.popleft().packet
                out += [Reached(Level.ACKNOWLEDGED, packet), Deliver(packet)]

    def _release(self) -> None:
        """JP Example 3.2 (4): what all its destinations have accepted leaves SL."""
        self.sent = deque(
            unit for unit in self.sent if unit.packet.seq >= self.lowest(self.accepted_below, unit.packet)
        )

    # --- looking at it from outside ---

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        return (
            (self.stamp, self.next_message, self.next_seq),
            tuple(map(tuple, _vectors(self))),
            tuple(map(tuple, self.accepted_below)),
            tuple(map(tuple, self.preacknowledged_below)),
            tuple(self.waiting),
            tuple(self.sent),
            tuple(map(tuple, self.accepted)),
            tuple(map(tuple, self.preacknowledged)),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        parts: tuple[Any, ...] = snapshot
        scalars, vectors, accepted_below, preacknowledged_below, waiting, sent, accepted, preacknowledged = parts
        self.stamp, self.next_message, self.next_seq = scalars
        for name, values in zip(_VECTORS, vectors, strict=True):
            setattr(self, name, list(values))
        self.accepted_below = [list(row) for row in accepted_below]
        self.preacknowledged_below = [list(row) for row in preacknowledged_below]
        self.waiting, self.sent = deque(waiting), deque(sent)
        self.accepted = [deque(log) for log in accepted]
        self.preacknowledged = [deque(log) for log in preacknowledged]

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.sent),
            held=0,
            accepted=sum(map(len, self.accepted)),
            preacknowledged=sum(map(len, self.preacknowledged)),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words."""
        sizes, lines = self.log_sizes(), []
        if sizes.waiting:
            lowest = min(self.accepted_below[self.me])
            slow = ",".join(name_of(k) for k, below in enumerate(self.accepted_below[self.me]) if below == lowest)
            lines.append(f"{sizes.waiting} submissions wait: {slow} said to expect my number {lowest} at last")
        lines += [f"a unit of {name_of(h)} may be missing; its timer runs" for h, runs in enumerate(self.waits) if runs]
        for count, verb in (
            (sizes.sent, "sent packets are not known to be accepted by all their destinations"),
            (sizes.accepted, "packets are not known to be accepted by all their destinations"),
            (sizes.preacknowledged, "packets are not known to be pre-acknowledged by all their destinations"),
        ):
            if count:
                lines.append(f"{count} {verb}")
        return tuple(lines)
