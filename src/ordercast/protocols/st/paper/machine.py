"""ST as printed: the rules of the paper, with their misprints corrected and nothing else.

From: Tachikawa and Takizawa, "Selective Total-Ordering Group Communication on Single High-Speed Channel", sections 3
and 4. It is here for the paper's examples, evaluation and counterexamples: after one lost unit, common destinations may
deliver in different orders, or a group may wait forever. For the service use `st.machine`, which lists why.

Misprints corrected, and gaps filled in the way that fits the paper's own examples:
 1. 3.3: `<` as in the action, not `≤`. 3.4: PAL_hj. 3.2: H is at least 1.
 2. 3.1: a receive-ready unit (RR) takes no number, so it needs no recovery and passes a closed window. As it goes to
    everybody, part (2) of acceptance holds for it; then TREQ_j becomes its TSEQ.
 3. 4.1: PREQ_j. Agreement (1): the unit *received* shows the loss, by PSEQ_i > PREQ_j.
 4. Agreement (2) to (4): what is agreed on is a variable of its own, or p and q of example 2 would be expected again;
    T_h includes f. (5): PR_ij and PS_ij both speak of what E_j sent to E_i. FAIL counts pairs.
 5. RET (2): PREQ_j and PSEQ_i; what comes out of order is asked for again. Its ACK is old, so AL is left alone.
 6. A node that has stopped sends neither data nor RR. Until step (6) packets are still acknowledged, since nothing
    forbids it; from then until it lacks nothing they are not, or a sort would come too late.
 7. No node answers a second RST before it has recovered from the first (unspecified; S6, S12).
 8. What all destinations have accepted leaves SL (as in the examples of SPO); what has not in time is sent again (4.1),
    once: if that is lost too, RR shows it.
 9. RR, "every pre-defined period", is omitted while no node waits for anything, so that an idle group is silent.
ABORT is not a unit: a node that has all RST_ACKs sees the disagreement itself.
Where the paper leaves a reading open, it is an option: see `PaperRules`.

Not here: units of recovery are never repeated (the paper has no rule for that; S9), membership, the network.
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
from ordercast.model.nodes import members, name_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.shared.destinations import check_subset
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest, Status
from ordercast.protocols.st.paper.recovery import is_lacking, lacking_pairs, lowered, sort_point, sorted_log
from ordercast.protocols.st.paper.state import Stage, StPaperState, is_below
from ordercast.protocols.st.units import Reset, ResetAgreement, ResetOrder


class StPaper(StPaperState):
    """The printed protocol at one node. See the module for the sources of its rules."""

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all outputs that follow from it."""
        if self.aborted:
            return []
        out: list[Output] = []
        match event:
            case Submit():
                check_subset(event.destinations, self.nodes)
                self.waiting.append(event)
            case Receive(unit=unit):
                self._receive(unit, out)
            case TimerFired(name=name):
                self._expire(name, out)
        if self.stage is Stage.NORMAL and not self.aborted:
            while self.waiting and self._can_send():
                self._send(self.waiting.popleft(), out)
            self._start_period(out)
        return out

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        match unit:
            case Data():
                self._receive_data(unit, out)
            case Ready():
                self._receive_ready(unit, out)
            case RetransmitRequest():
                self._answer(unit, out)
            case Reset():
                self._find_first(unit, out)
            case ResetAgreement() if self.stage is not Stage.RECOVERING:
                self._lower(unit, out)
            case ResetOrder() if self.stage is not Stage.RECOVERING:
                self.orders[unit.source] = unit
                self._compare(out)
            case _:
                out.append(Discard(unit, "stray"))

    # --- transmission (3.1, 3.2) ---

    def _can_send(self) -> bool:
        """Condition of the transmission action (3.2)."""
        lowest = min(self.accepted_below[self.me])  # minAL
        buffers = min(self.free) / (self.config.paper.buffer_divisor * self.nodes)
        return lowest <= self.next_seq < lowest + min(self.config.window, buffers)

    def _send(self, event: Submit, out: list[Output]) -> None:
        """Transmission action (3.2)."""
        seq_to, first = tuple(self.next_seq_to), self.next_message
        packet = Packet(
            self.me, event.destinations, self.next_seq, seq_to, first, event.lengths, event.payload, event.priority
        )
        self.next_seq += 1
        self.next_message += len(event.lengths)
        for node in members(event.destinations):
            self.next_seq_to[node] += 1
        unit = Data(packet, self._status())
        self.sent.append(unit)
        out += [Numbered(packet), Send(unit)]
        if self.config.paper.sends_again_in_time:
            out.append(SetTimer(_wait(packet), self.config.timing.poll))

    def _status(self) -> Status:
        self.stamp += 1
        self.status_due, self.transmitted = False, True
        held = len(self.accepted) + len(self.preacknowledged)
        return Status(self.stamp, tuple(self.expected), free=max(0, self.config.paper.initial_buffers - held))

    def _start_period(self, out: list[Output]) -> None:
        if not self.ready_timer and (self.status_due or self.unfinished()):
            self.ready_timer, self.transmitted = True, False
            out.append(SetTimer("ready", self.config.timing.status))

    def _send_ready(self, out: list[Output]) -> None:
        """RR, if there was no data to send in this period (3.1)."""
        self.ready_timer = False
        if self.stage is Stage.NORMAL and not self.transmitted and (self.status_due or self.unfinished()):
            wants = self.everybody if self.unfinished() else 0
            out.append(Send(Ready(self.me, self.next_seq, tuple(self.next_seq_to), self._status(), wants)))

    # --- acceptance (3.2) ---

    def _receive_data(self, unit: Data, out: list[Output]) -> None:
        packet, source = unit.packet, unit.source
        number, for_me = packet.seq_to[self.me], packet.destinations & self.my_bit
        if (
            self.stage is Stage.RECOVERING
            and for_me
            and self.expected_to_me[source] <= number < self.sent_below[source]
        ):
            self._insert(unit, out)
        elif packet.seq == self.expected[source] or (number == self.expected_to_me[source] and for_me):
            self._accept(unit, out)
        elif self.expected_to_me[source] < number:
            self._detect_loss(unit, source, packet.seq + 1, out)
        else:  # old; or to others after a loss of others, though its number shows that nothing to me is missing (S11)
            out.append(Discard(unit, "duplicate" if packet.seq < self.expected[source] else "rejected"))

    def _accept(self, unit: Data, out: list[Output]) -> None:
        """Acceptance (ACC) action (3.2)."""
        packet, source = unit.packet, unit.source
        self.expected[source] = packet.seq + 1
        self.status_due = True
        if packet.destinations & self.my_bit:
            self.expected_to_me[source] = packet.seq_to[self.me] + 1
            self.accepted.append(unit)
            out.append(Reached(Level.ACCEPTED, packet))
        else:
            out.append(Discard(unit, "foreign"))
        self._take_status(source, unit.status, out)

    def _receive_ready(self, unit: Ready, out: list[Output]) -> None:
        """ACC for a unit without data, which is to everybody."""
        source, number = unit.source, unit.next_seq_to[self.me]
        self.status_due = self.status_due or bool(unit.wants & self.my_bit)
        if number == self.expected_to_me[source] and unit.next_seq >= self.expected[source]:
            self.expected[source] = unit.next_seq
            self._take_status(source, unit.status, out)
        elif self.expected_to_me[source] < number:
            self._detect_loss(unit, source, unit.next_seq, out)

    def _take_status(self, source: int, status: Status, out: list[Output]) -> None:
        """The second half of the ACC action: takes the acknowledgments, and applies what follows from them."""
        for of, seq in enumerate(status.expects):
            self.accepted_below[of][source] = seq  # if beyond TREQ: loss inferred from peers (4.1, (2)), which waits
            self.known_below[of] = max(self.known_below[of], seq)
        self.free[source] = status.free
        self._release(out)
        self._acknowledge_levels(out)

    def _release(self, out: list[Output]) -> None:
        kept = [unit for unit in self.sent if not is_below(unit.packet, self.accepted_below[self.me])]
        if len(kept) < len(self.sent):
            out += [CancelTimer(_wait(unit.packet)) for unit in self.sent if unit not in kept]
            self.sent = kept

    # --- pre-acknowledgment and acknowledgment (3.3, 3.4) ---

    def _acknowledge_levels(self, out: list[Output]) -> None:
        if self.stage is not Stage.RECOVERING:
            self._preacknowledge(out)
            self._acknowledge(out)

    def _preacknowledge(self, out: list[Output]) -> None:
        """PACK action (3.3): only over destinations, so a packet before it on the channel may be missing here (S3)."""
        while self.accepted and is_below(self.accepted[0].packet, self.accepted_below[self.accepted[0].source]):
            unit = self.accepted.pop(0)
            self.preacknowledged.append(unit)
            for of, seq in enumerate(unit.status.expects):
                self.preacknowledged_below[of][unit.source] = seq
            out.append(Reached(Level.PREACKNOWLEDGED, unit.packet))
            if self.config.paper.preacknowledged_time_out:
                out.append(SetTimer(_held(unit.packet), self.config.timing.poll))

    def _acknowledge(self, out: list[Output]) -> None:
        """ACK action (3.4). No RR is ever pre-acknowledged, so none moves PAL (S10)."""
        log = self.preacknowledged
        while log and is_below(log[0].packet, self.preacknowledged_below[log[0].source]):
            self._deliver(log.pop(0).packet, out)

    def _deliver(self, packet: Packet, out: list[Output]) -> None:
        if self.config.paper.preacknowledged_time_out:
            out.append(CancelTimer(_held(packet)))
        out += [Reached(Level.ACKNOWLEDGED, packet), Deliver(packet)]

    # --- time-outs ---

    def _expire(self, name: str, out: list[Output]) -> None:
        if name == "ready":
            self._send_ready(out)
        elif name == "request" and self.stage is Stage.RECOVERING:
            self._request(out)
        else:
            self._resend_unaccepted(name, out)
            if self.config.paper.preacknowledged_time_out:
                self._acknowledge_by_time_out(name, out)

    def _resend_unaccepted(self, name: str, out: list[Output]) -> None:
        """4.1, the end: what is not pre-acknowledged in time is sent again, by its sender only.

        A node that had lost it without noticing puts it at the end of its log.
        """
        if self.stage is Stage.NORMAL:
            out += [Send(self._copy(unit), again=True) for unit in self.sent if _wait(unit.packet) == name]

    def _copy(self, unit: Data) -> Data:
        return unit if self.config.paper.verbatim_copies else Data(unit.packet, self._status())

    def _acknowledge_by_time_out(self, name: str, out: list[Output]) -> None:
        """3.4, the end: acknowledges a packet of PRL, and those before it, after a time-out.

        It delivers without knowing that others have pre-acknowledged (S13).
        """
        names = [_held(unit.packet) for unit in self.preacknowledged]
        if name in names:
            for unit in self.preacknowledged[: names.index(name) + 1]:
                self._deliver(unit.packet, out)
            self.preacknowledged = self.preacknowledged[names.index(name) + 1 :]

    # --- detection (4.1) and the agreement procedure (4.4) ---

    def _detect_loss(self, unit: Data | Ready, source: int, known_below: int, out: list[Output]) -> None:
        """Detection (1) of 4.1, and agreement (1)."""
        self.known_below[source] = max(self.known_below[source], known_below)
        if isinstance(unit, Data) and not self._keep(unit):
            out.append(Discard(unit, "gap"))
        if self.stage is Stage.NORMAL and not self.reset_sent:
            self.reset_sent = True
            out.append(Send(Reset(self.me, tuple(self.expected))))

    def _keep(self, unit: Data) -> bool:
        """Keeps a packet to me at the place at which it came, though it is not accepted."""
        keeps = self.config.paper.keeps_behind_gap and self.stage is not Stage.RECOVERING
        if not keeps or not unit.packet.destinations & self.my_bit or self._holds(unit.packet):
            return False
        self.accepted.append(unit)
        return True

    def _holds(self, packet: Packet) -> bool:
        return any(held.packet == packet for held in self.accepted)

    def _find_first(self, reset: Reset, out: list[Output]) -> None:
        """Agreement (2). Only the first RST is answered, so another loss may be outside the sort line (S6)."""
        if self.stage is not Stage.NORMAL:
            return
        self.stage, self.reset_sent = Stage.AGREEING, False
        numbers = lowered(self.expected, self.accepted, sort_point(self.accepted, reset.expects))
        out += [Stopped(f"a reset of {name_of(reset.source)}"), Send(ResetAgreement(self.me, numbers))]

    def _lower(self, unit: ResetAgreement, out: list[Output]) -> None:
        """Agreement (3) and (4)."""
        self.sort_from = list(map(min, self.sort_from or self.expected, unit.expects))
        if unit.source not in self.order:
            self.order.append(unit.source)
        if len(self.order) == self.nodes and self.stage is Stage.AGREEING and not self.order_sent:
            self.order_sent = True
            to_me, sent_to = tuple(self.expected_to_me), tuple(self.next_seq_to)
            out.append(Send(ResetOrder(self.me, tuple(self.sort_from), to_me, sent_to, tuple(self.order))))
            self._compare(out)

    def _compare(self, out: list[Output]) -> None:
        """Agreement (5)."""
        orders = [unit for unit in self.orders if unit is not None]
        if not self.order_sent:
            return
        for unit in orders:
            if unit.expects != tuple(self.sort_from) or unit.order != tuple(self.order):
                self.aborted = True
                out.append(Abort(f"{name_of(unit.source)} found another sort line or order"))
                return
        if len(orders) == self.nodes:
            self._acknowledge_before_sort_point(out)
            self._retransmit(orders, out)
            self._begin_recovery(orders, out)

    def _acknowledge_before_sort_point(self, out: list[Output]) -> None:
        """Agreement (6), and the end of example 2. PRL is acknowledged too, whatever others sort (S4)."""
        place = sort_point(self.accepted, self.sort_from)
        before, self.accepted = self.accepted[:place], self.accepted[place:]
        for unit in self.preacknowledged:
            self._deliver(unit.packet, out)
        for unit in before:
            out.append(Reached(Level.PREACKNOWLEDGED, unit.packet))
            self._deliver(unit.packet, out)
        self.preacknowledged = []

    # --- retransmission, insertion and sorting (4.4) ---

    def _retransmit(self, orders: list[ResetOrder], out: list[Output]) -> None:
        """RET procedure (1)."""
        lacking = [unit for unit in self.sent if is_lacking(unit.packet, orders)]
        out += [Send(self._copy(unit), again=True) for unit in lacking]

    def _begin_recovery(self, orders: list[ResetOrder], out: list[Output]) -> None:
        self.stage, self.pairs, self.inserted = Stage.RECOVERING, lacking_pairs(orders), 0
        self.sent_below = [sender.next_seq_to[self.me] for sender in orders]
        pairs = zip(self.expected_to_me, self.sent_below, strict=True)
        self.lacked = sum(max(0, below - number) for number, below in pairs)
        if self.lacked:
            out.append(SetTimer("request", self.config.timing.repeat))
        else:
            self._resume(out)

    def _insert(self, unit: Data, out: list[Output]) -> None:
        """RET procedure (2). The sort point, now the head of the log, is not always the right place (S1, S2)."""
        packet, source = unit.packet, unit.source
        if packet.seq_to[self.me] != self.expected_to_me[source]:
            out.append(Discard(unit, "gap"))
            return
        self.expected_to_me[source] += 1
        self.expected[source] = max(self.expected[source], packet.seq + 1)
        if not self._holds(packet):
            place = self.inserted if self.pairs == 1 else len(self.accepted)
            self.accepted.insert(place, unit)
            self.inserted += 1
        out.append(Reached(Level.ACCEPTED, packet))
        if all(map(int.__ge__, self.expected_to_me, self.sent_below)):
            out.append(CancelTimer("request"))
            self._resume(out)

    def _request(self, out: list[Output]) -> None:
        """4.4: requests what has not come in time."""
        request = RetransmitRequest(self.me, tuple(self.expected))
        out += [Send(request), SetTimer("request", self.config.timing.repeat)]

    def _answer(self, request: RetransmitRequest, out: list[Output]) -> None:
        start, asking = request.expects[self.me], request.source
        asked = [unit for unit in self.sent if unit.packet.seq >= start and unit.packet.destinations >> asking & 1]
        out += [Send(self._copy(unit), again=True) for unit in asked]

    def _resume(self, out: list[Output]) -> None:
        """4.4: several losses are sorted; then normal operation resumes."""
        resorted = 0
        if self.pairs > 1:
            resorted = len(self.accepted)
            self.accepted = sorted_log(self.accepted, self.me, self.order, self.sent_below)
        out.append(Resumed(self.lacked, self.inserted, resorted))
        self.stage, self.order_sent, self.sort_from, self.order = Stage.NORMAL, False, [], []
        self.orders = [None] * self.nodes
        self.status_due = True
        self._acknowledge_levels(out)


def _wait(packet: Packet) -> str:
    """The name of the timer of an own packet that not all its destinations have accepted."""
    return f"wait-{packet.seq}"


def _held(packet: Packet) -> str:
    """The name of the timer of a packet in PRL."""
    return f"held-{packet.source}-{packet.seq}"
