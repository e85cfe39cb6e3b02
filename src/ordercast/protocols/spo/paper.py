"""SPO as printed: the rules of the papers, with their misprints corrected and nothing else.

From: Nakamura and Takizawa, "Selective Broadcast Service for Distributed Systems" (EN, sections 4.1 to 4.5) and
"Data Transmission Procedure of Selective Broadcast Protocol on Multi-Channel" (JP, sections 3.1 to 3.5). They are
here for the papers' examples, evaluation and counterexamples: even without a loss a group may wait forever. For the
service use `machine`, which lists why.

Misprints corrected, and gaps filled in the only way that fits the papers' own examples:
 1. EN accept action: TREQ_j becomes p.TSEQ + 1, as JP has it.
 2. EN accept and PACK actions: the indices are AL_hj := p.ACK_h and PAL_hj := p.ACK_h, for all h.
 3. Both, initial values: PSEQ_j is a node's own ISS for every j; PAL starts like AL, and F_j at IBF_j.
 4. Both, ACK action: top(PPR) is top(PPL).
 5. JP example 3.2: a node drops from SL what all destinations have accepted; no action specifies it.
 6. JP example 3.4: every source answers a request from its own entry of ACK, not only the one that lost a unit.
 7. The flow condition divides real numbers: with integers a group could be unable to send at all.
 8. BUF, which neither paper explains, is IBF less the packets in RPL and PPL, and never below zero.
 9. A timer that runs is not started again, and a duplicate, being neglected, does not stop one.
Where the two papers or their parts disagree, the reading is an option: see `PaperRules`.

Not here: receive-ready units and repeated requests (the papers have none), membership, the network. A node receives its
own units from a loop-back that loses nothing; it does not answer its own requests.
"""

from collections import deque
from typing import ClassVar, Final

from ordercast.model.config import GroupConfig, LossInference
from ordercast.model.declared_state import DeclaredState
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
    Submit,
    TimerFired,
)
from ordercast.model.nodes import mask_of, members, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.shared.destinations import check_subset
from ordercast.protocols.spo.units import Data, RetransmitRequest, Status


class SpoPaper(DeclaredState):
    """The printed protocol at one node. See the module for the sources of its rules."""

    echo: ClassVar[Echo] = Echo.SAFE
    needs: ClassVar[Channel] = Channel.MANY
    has_views: ClassVar[bool] = False

    me: Final[int]
    config: Final[GroupConfig]
    timers: Final[tuple[str, ...]]
    """The name of each source's waiting timer."""

    # Sending.
    next_seq: int  # TSEQ: the number of my next packet
    next_seq_to: list[int]  # PSEQ_j: the number of my next packet among those to E_j
    next_message: int  # the number of my next message
    stamp: int  # counts statuses; the printed rules never look at it
    waiting: deque[Submit]  # submitted, but the flow condition does not hold
    sent: list[Data]  # SL: own packets that may have to be sent again

    # Receiving, by source.
    expected: list[int]  # TREQ_j: the number of the packet that I expect next from E_j
    expected_to_me: list[int]  # PREQ_j: the same number among those to me: a higher one shows a gap
    accepted: list[deque[Data]]  # RPL_j: accepted from E_j and not pre-acknowledged
    preacknowledged: list[deque[Data]]  # PPL_j: pre-acknowledged and not acknowledged
    timer_running: list[bool]  # by source: the waiting timer runs
    known_below: list[int]  # numbers known to exist and not accepted here; only `waits_for` uses it

    # What the nodes acknowledged. Intended: preacknowledged_below <= accepted_below <= expected for each source.
    accepted_below: list[list[int]]  # AL: accepted_below[source][node]
    preacknowledged_below: list[list[int]]  # PAL: preacknowledged_below[source][node]
    free_buffers: list[int]  # F_j: the free receive buffers of E_j

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self.timers = tuple([f"wait-{source}" for source in range(nodes)])
        self.next_seq, self.next_seq_to, self.next_message, self.stamp = first[me], [first[me]] * nodes, 0, 0
        self.waiting, self.sent = deque(), []
        self.expected, self.expected_to_me, self.known_below = list(first), list(first), list(first)
        self.accepted, self.preacknowledged = [deque() for _ in first], [deque() for _ in first]
        self.timer_running = [False] * nodes
        self.accepted_below = [[seq] * nodes for seq in first]
        self.preacknowledged_below = [[seq] * nodes for seq in first]
        self.free_buffers = [config.paper.initial_buffers] * nodes

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all outputs that follow from it."""
        match event:
            case Submit():
                check_subset(event.destinations, self.config.nodes)
                self.waiting.append(event)
                return self._send_waiting()
            case Receive(unit=Data() as unit):
                return [*self._receive(unit), *self._send_waiting()]
            case Receive(unit=RetransmitRequest() as request):
                return self._resend(request) if request.source != self.me else []
            case Receive(unit=unit):
                return [Discard(unit, "stray")]
            case TimerFired(name=name) if name in self.timers:
                return self._expire(self.timers.index(name))
        return []

    def _receive(self, unit: Data) -> list[Output]:
        source, acceptable = unit.source, self._is_acceptable(unit)
        if self._is_duplicate(unit) and (self.config.paper.duplicates_first or not acceptable):
            return [Discard(unit, "duplicate")]  # duplicate PDU action (EN 4.5, JP 3.5)
        out = self._stop_timer(source)
        if acceptable:
            out += self._accept(unit) + self._preacknowledge() + self._acknowledge()
        else:
            self.known_below[source] = max(self.known_below[source], unit.packet.seq + 1)
            waited, gap = bool(out), self._shows_gap(unit)
            out.append(Discard(unit, "gap" if gap else "hearsay"))
            if gap or waited:  # lost PDU actions (1) and (2-2)
                out.append(self._request())
        return out + self._start_timers(unit)

    # --- transmission (EN 4.2 B, JP 3.2) ---

    def _send_waiting(self) -> list[Output]:
        out: list[Output] = []
        while self.waiting and self._can_send():
            out += self._send(self.waiting.popleft())
        return out

    def _can_send(self) -> bool:
        """Flow condition (EN 4.2 B, JP 3.2)."""
        lowest = min(self.accepted_below[self.me])  # minAL
        return lowest <= self.next_seq < lowest + min(self.config.window, self._buffers_for_me())

    def _buffers_for_me(self) -> float:
        """The share of the scarcest buffers that I may fill: minF / (H n^2)."""
        return min(self.free_buffers) / (self.config.paper.buffer_divisor * self.config.nodes**2)

    def _send(self, event: Submit) -> list[Output]:
        """Transmission action (EN 4.2 B, JP 3.2)."""
        packet = Packet(
            self.me,
            event.destinations,
            self.next_seq,
            tuple(self.next_seq_to),
            self.next_message,
            event.lengths,
            event.payload,
            event.priority,
        )
        self.next_seq += 1
        self.next_message += len(event.lengths)
        for node in members(event.destinations):
            self.next_seq_to[node] += 1
        unit = Data(packet, self._status())
        self.sent.append(unit)
        return [Numbered(packet), Send(unit)]

    def _status(self) -> Status:
        self.stamp += 1
        held = sum(map(len, self.accepted)) + sum(map(len, self.preacknowledged))
        return Status(self.stamp, tuple(self.expected), free=max(0, self.config.paper.initial_buffers - held))

    # --- acceptance (EN 4.2 A, JP 3.2) ---

    def _is_duplicate(self, unit: Data) -> bool:
        """Duplicate PDU condition (EN 4.5, JP 3.5)."""
        packet, source = unit.packet, unit.source
        return packet.seq < self.expected[source] or packet.seq_to[self.me] < self.expected_to_me[source]

    def _is_acceptable(self, unit: Data) -> bool:
        """Accept condition (EN 4.2 A, JP 3.2): (1-1) or (1-2), and (2) for the nodes of the chosen reading.

        Condition (2) takes mere reordering, and the loss of packets to others, for a loss here (C0, C1, C2).
        """
        packet, source, rule = unit.packet, unit.source, self.config.paper.condition_2
        if packet.seq != self.expected[source] and packet.seq_to[self.me] != self.expected_to_me[source]:
            return False
        return rule is LossInference.NONE or all(
            seq <= self.expected[node] or (node == source and rule is LossInference.OTHERS)
            for node, seq in enumerate(unit.status.expects)
        )

    def _accept(self, unit: Data) -> list[Output]:
        """Accept action (EN 4.2 A, JP 3.2), and the release of what everybody accepted (JP example 3.2)."""
        packet, source = unit.packet, unit.source
        self.expected[source] = packet.seq + 1
        for of, seq in enumerate(unit.status.expects):
            self.accepted_below[of][source] = seq
        self.free_buffers[source] = unit.status.free
        self.sent = [mine for mine in self.sent if not self._can_preacknowledge(mine)]
        if not packet.destinations >> self.me & 1:
            return [Discard(unit, "foreign")]
        self.expected_to_me[source] = packet.seq_to[self.me] + 1
        self.accepted[source].append(unit)
        return [Reached(Level.ACCEPTED, packet)]

    # --- pre-acknowledgment and acknowledgment (EN 4.3 and 4.4, JP 3.3 and 3.4) ---

    def _can_preacknowledge(self, unit: Data) -> bool:
        """PACK condition (EN 4.3, JP 3.3): p.TSEQ < minAL_j(p), every destination has accepted it."""
        return _is_below(unit.packet, self.accepted_below[unit.source])

    def _preacknowledge(self) -> list[Output]:
        """PACK action (EN 4.3, JP 3.3): while the head of a log satisfies the PACK condition.

        It infers that the destinations know what the packet acknowledged, which is not so (A1, R1).
        """
        out: list[Output] = []
        for source, log in enumerate(self.accepted):
            while log and self._can_preacknowledge(log[0]):
                unit = log.popleft()
                self.preacknowledged[source].append(unit)
                for of, seq in enumerate(unit.status.expects):
                    self.preacknowledged_below[of][source] = seq
                out.append(Reached(Level.PREACKNOWLEDGED, unit.packet))
        return out

    def _can_acknowledge(self, unit: Data) -> bool:
        """ACK condition (EN 4.4, JP 3.4): p.TSEQ < minPAL_j(p), the same for the next level."""
        return _is_below(unit.packet, self.preacknowledged_below[unit.source])

    def _acknowledge(self) -> list[Output]:
        """ACK action (EN 4.4, JP 3.4): while the head of a log satisfies the ACK condition."""
        out: list[Output] = []
        for log in self.preacknowledged:
            while log and self._can_acknowledge(log[0]):
                packet = log.popleft().packet
                out += [Reached(Level.ACKNOWLEDGED, packet), Deliver(packet)]
        return out

    # --- failures (EN 4.5, JP 3.5) ---

    def _shows_gap(self, unit: Data) -> bool:
        """Failure condition (1): something that the source sent to me before this is missing."""
        return self.expected_to_me[unit.source] < unit.packet.seq_to[self.me]

    def _loss_inferred_from_peers(self, unit: Data) -> list[int]:
        """Failure condition (2): the sources of which the sender has accepted something that I have not."""
        expects = enumerate(unit.status.expects)
        return [node for node, seq in expects if node != unit.source and self.expected[node] < seq]

    def _start_timers(self, unit: Data) -> list[Output]:
        """Lost PDU action (2): what is missing may not be to me, which the source's next unit will show."""
        out: list[Output] = []
        for node in self._loss_inferred_from_peers(unit):
            self.known_below[node] = max(self.known_below[node], unit.status.expects[node])
            if not self.timer_running[node]:
                self.timer_running[node] = True
                out.append(SetTimer(self.timers[node], self.config.timing.inferred_loss))
        return out

    def _expire(self, source: int) -> list[Output]:
        """Lost PDU action (2-1): nothing came within the waiting time."""
        if not self.timer_running[source]:
            return []
        self.timer_running[source] = False
        return [self._request()]

    def _stop_timer(self, source: int) -> list[Output]:
        """Lost PDU action (2-2), first half: the next unit of the source has come."""
        if not self.timer_running[source]:
            return []
        self.timer_running[source] = False
        return [CancelTimer(self.timers[source])]

    def _request(self) -> Send:
        """RETRANS procedure (1). It is never repeated (C4)."""
        return Send(RetransmitRequest(self.me, tuple(self.expected)))

    def _resend(self, request: RetransmitRequest) -> list[Output]:
        """RETRANS procedure (2): everything in SL from the requested number on that is to the node that asks."""
        start, asking = request.expects[self.me], request.source
        asked = [unit for unit in self.sent if unit.packet.seq >= start and unit.packet.destinations >> asking & 1]
        if not self.config.paper.verbatim_copies:
            asked = [Data(unit.packet, self._status()) for unit in asked]
        return [Send(unit, again=True) for unit in asked]

    # --- inspection ---

    def log_sizes(self) -> LogSizes:
        """The number of packets in each log."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.sent),
            held=0,
            accepted=sum(map(len, self.accepted)),
            preacknowledged=sum(map(len, self.preacknowledged)),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text that follows its name."""
        lines = []
        if self.waiting:
            lines.append(f"its window is closed: {self._closed_by()}")
        for source, (expected, known) in enumerate(zip(self.expected, self.known_below, strict=True)):
            if expected < known:
                lines.append(f"misses from {name_of(source)} its number {expected} on")
        if self.sent:
            lines.append(f"keeps its number {self._lacking('accepted', self.sent[0], self.accepted_below)}")
        for verb, logs, bounds in (
            ("accepted", self.accepted, self.accepted_below),
            ("pre-acknowledged", self.preacknowledged, self.preacknowledged_below),
        ):
            heads = [log[0] for log in logs if log]
            lines += [f"holds of {name_of(head.source)} number {self._lacking(verb, head, bounds)}" for head in heads]
        return tuple(lines)

    def _lacking(self, verb: str, unit: Data, bounds: list[list[int]]) -> str:
        packet, row = unit.packet, bounds[unit.source]
        silent = mask_of(node for node in members(packet.destinations) if row[node] <= packet.seq)
        return f"{packet.seq}, not known to be {verb} by {names_of(silent)}"

    def _closed_by(self) -> str:
        if self._buffers_for_me() < self.config.window:
            least = min(self.free_buffers)
            scarce = mask_of(node for node, free in enumerate(self.free_buffers) if free == least)
            return f"{names_of(scarce)} has only {least} buffers free for everybody"
        row = self.accepted_below[self.me]
        slow = mask_of(node for node, below in enumerate(row) if below == min(row))
        return f"{names_of(slow)} is known to have accepted only what is below its number {min(row)}"


def _is_below(packet: Packet, below: list[int]) -> bool:
    """True if every destination has acknowledged more than a packet's number: p.TSEQ < min over p.DST."""
    return all(packet.seq < below[node] for node in members(packet.destinations))
