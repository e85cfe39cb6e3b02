"""The sequencer's part: numbering offers, the table of acknowledgments, and synchronisation when the history is full.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), Figure 4 and section
2.2. Offers that cannot be numbered yet are kept; each sender's offers are numbered in the order of its own numbers; the
history never holds more than its size. When it is full, the sequencer first waits for acknowledgments that may be under
way, then requests them, and then synchronises.
"""

from collections import deque
from enum import IntEnum
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard, Level, Output, Reached, Send
from ordercast.model.nodes import members
from ordercast.model.units import Packet, PacketId
from ordercast.protocols.sequencer.loss_detection import MAX_COPIES
from ordercast.protocols.sequencer.reception import Reception
from ordercast.protocols.sequencer.timers import MAX_BACKOFF, MAX_BACKOFF_UNANSWERED, Timers
from ordercast.protocols.sequencer.units import (
    Acknowledgment,
    Broadcast,
    NumberAnnouncement,
    Offer,
    SequencerStatus,
    Synchronise,
    Synchronised,
)
from ordercast.protocols.sequencer.view import CurrentView
from ordercast.protocols.shared.backoff import next_factor


class FullHistory(IntEnum):
    """What was done about a full history while offers wait for room; synchronisation is the next step."""

    NOTHING = 0
    WAITED = 1
    """Acknowledgments may be under way."""
    REQUESTED = 2
    """The members that keep the history full were asked for theirs."""


class Orderer(DeclaredState):
    """What the sequencer of a view does. At the other nodes it is idle."""

    me: Final[int]
    config: Final[GroupConfig]
    view: Final[CurrentView]
    reception: Final[Reception]
    timers: Final[Timers]
    max_history: Final[int]
    max_bytes: Final[int]  # of the history; 0: any

    offers: list[dict[int, tuple[Packet, bool]]]  # not numbered yet, by source and seq; whether the sender broadcast it
    ready: deque[int]  # sources whose next offer is here, in the order of arrival
    number_of: dict[PacketId, int]  # of the packets in the history
    history_bytes: int  # that these take, if that is limited
    acknowledged: list[int]  # SequenceNr, by node: everything below has been received
    lowest: int  # of the members' acknowledgments
    unanswered: list[int]  # by node: requests since anything was received from it
    published_commit_below: int  # as last broadcast
    published_stable_below: int  # as last broadcast
    full_history: FullHistory  # what was done about a full history: nothing, waited, or requested
    sync_phase: int  # 0: normal operation
    sync_round: int  # the number of the latest synchronisation
    replied: int  # to this phase, one bit each
    progressed: bool  # something was numbered or acknowledged since the status timer was set

    def __init__(
        self, me: int, config: GroupConfig, view: CurrentView, reception: Reception, timers: Timers
    ) -> None:  # fmt: skip
        self.me, self.config, self.view, self.reception, self.timers = me, config, view, reception, timers
        self.max_history, self.max_bytes = config.sequencer.history, config.sequencer.history_bytes
        self.start_view()

    def start_view(self) -> None:
        """What a sequencer knows is of one view; its own broadcasts are those of the history."""
        nodes, reception = self.config.nodes, self.reception
        self.offers = [{} for _ in range(nodes)]
        self.ready = deque()
        self.number_of, self.history_bytes = {}, 0
        self.acknowledged, self.lowest = [0] * nodes, 0
        self.unanswered = [0] * nodes
        self.published_commit_below = self.published_stable_below = 0
        self.full_history = FullHistory.NOTHING
        self.sync_phase = self.sync_round = self.replied = 0
        self.progressed = False
        if self.view.is_sequencer:
            self.acknowledged[self.me] = reception.received_below
            self.number_of = {(packet.source, packet.seq): number for number, packet in reception.history.items()}
            if self.max_bytes:
                self.history_bytes = sum(map(Packet.body_size, reception.history.values()))

    # --- offers (Figure 4) ---

    def receive_offer(self, unit: Offer, out: list[Output]) -> None:
        """A packet to be numbered, and an acknowledgment."""
        packet = unit.packet
        self.note_acknowledged(packet.source, unit.received_below, out)
        why = self.take_offer(packet, out, direct=unit.direct)
        if why:
            out.append(Discard(unit, why))
            self._answer_duplicate(packet.source, packet.seq, out)

    def take_offer(self, packet: Packet, out: list[Output], *, direct: bool) -> str:
        """Keeps an offer until its turn; returns why not if it is refused."""
        source, seq = packet.source, packet.seq
        due = self.reception.ordered_below[source]
        offers = self.offers[source]
        if seq < due or seq in offers:
            return "duplicate"
        if seq >= due + self.config.window:
            return "ahead"
        offers[seq] = (packet, direct)
        if seq == due:
            self.ready.append(source)
            self.number_offers(out)
        return ""

    def _answer_duplicate(self, source: int, seq: int, out: list[Output]) -> None:
        """Retransmits the broadcast if its sender may have lost it; otherwise replies with the status."""
        number = self.number_of.get((source, seq))
        if number is not None and number >= self.acknowledged[source]:
            self._retransmit(number, source, out)
        else:
            self.publish(out, to=source)

    def number_offers(self, out: list[Output]) -> None:
        """Numbers one offer of each sender after the other, as long as the history has room."""
        reception, ready = self.reception, self.ready
        direct: list[PacketId] = []
        while ready and not self.sync_phase and not self.is_full():
            source = ready.popleft()
            offers = self.offers[source]
            packet, was_direct = offers.pop(reception.ordered_below[source])
            number = reception.received_below
            reception.store(packet, out)
            reception.known_below = self.acknowledged[self.me] = number + 1
            self.number_of[source, packet.seq] = number
            if self.max_bytes:
                self.history_bytes += packet.body_size()
            if reception.ordered_below[source] in offers:
                ready.append(source)
            if not self.view.resilience:
                reception.commit_below = number + 1
            self.progressed = True
            if was_direct:
                direct.append((source, packet.seq))
            else:
                self._announce(direct, number, out)
                self._note_published()
                if self.view.others:
                    out.append(Send(self._broadcast(number, packet)))
            if not self.view.others:  # so that it is stable now
                self._deliver_alone(out)
        self._announce(direct, reception.received_below, out)
        reception.deliver(out)
        if ready and not self.sync_phase and self.full_history is FullHistory.NOTHING:
            self.full_history, self.timers.status = FullHistory.WAITED, True
            self.timers.status_rests = False
            self._set_timer(self.config.timing.cooldown, out)

    def _deliver_alone(self, out: list[Output]) -> None:
        """Without other members whatever is numbered is stable."""
        reception = self.reception
        reception.commit_below = self.lowest = reception.received_below
        reception.deliver(out)
        out += [Reached(Level.ACKNOWLEDGED, packet) for packet in self._stabilise(out)]

    def _stabilise(self, out: list[Output]) -> list[Packet]:
        """What everybody has leaves the history."""
        stable = self.reception.stabilise(self.lowest, out)
        number_of = self.number_of
        for packet in stable:
            number_of.pop((packet.source, packet.seq), None)
        if self.max_bytes:
            self.history_bytes -= sum(map(Packet.body_size, stable))
        return stable

    def is_full(self) -> bool:
        """True if the history has no room."""
        reception = self.reception
        if self.max_bytes and self.history_bytes >= self.max_bytes:
            return True
        return reception.received_below - reception.stable_below >= self.max_history

    def _announce(self, direct: list[PacketId], end: int, out: list[Output]) -> None:
        """Broadcasts the numbers up to `end` of packets that their senders broadcast."""
        if direct:
            self._note_published()
            commit_below, stable_below = self.reception.commit_below, self.reception.stable_below
            first, packets = end - len(direct), tuple(direct)
            unit = NumberAnnouncement(self.view.number, self.me, first, packets, commit_below, stable_below)
            out.append(Send(unit))
            direct.clear()

    def _broadcast(self, number: int, packet: Packet) -> Broadcast:
        reception = self.reception
        return Broadcast(packet, self.view.number, self.me, number, reception.commit_below, reception.stable_below)

    def _retransmit(self, number: int, to: int, out: list[Output]) -> None:
        out.append(Send(self._broadcast(number, self.reception.history[number]), again=True, to=to))

    # --- acknowledgments ---

    def receive_acknowledgment(self, unit: Acknowledgment, out: list[Output]) -> None:
        """Retransmits what is missing, and replies with the status if asked for, or if everything is now stable."""
        self.note_acknowledged(unit.source, unit.received_below, out)
        reception = self.reception
        copies = 0
        for start, stop in unit.missing:
            stop_here = min(stop, reception.received_below, start + MAX_COPIES - copies)
            for number in range(max(start, reception.stable_below), stop_here):
                self._retransmit(number, unit.source, out)
                copies += 1
        if self.lowest == reception.received_below > self.published_stable_below:
            self.publish(out)
        elif unit.wants_status and not copies:
            self.publish(out, to=unit.source)

    def note_acknowledged(self, node: int, below: int, out: list[Output]) -> None:
        """A node has received everything below. The table never falls back; what follows from it is done at once."""
        self.unanswered[node] = 0
        before = self.acknowledged[node]
        if below <= before:
            return
        reception = self.reception
        self.acknowledged[node] = below
        self.progressed = True
        if self.view.resilience and below > reception.commit_below:
            highest = sorted((self.acknowledged[other] for other in self.view.others), reverse=True)
            reception.commit_below = max(reception.commit_below, highest[self.view.resilience - 1])
        if before == self.lowest:
            self.lowest = self._lowest_acknowledged()
            if self.lowest > reception.stable_below:
                reception.deliver(out)
                self._stabilise(out)
                self.full_history = FullHistory.NOTHING
            if self.sync_phase == 1 and self.lowest == reception.received_below:
                self._synchronise(2, out)
        reception.deliver(out)
        if self.ready:
            self.number_offers(out)

    def _lowest_acknowledged(self) -> int:
        return min([self.acknowledged[member] for member in members(self.view.members)])

    def publish(self, out: list[Output], *, reply_from: int = 0, to: int | None = None) -> None:
        """Sends the status, by default to everybody (STATUS and COMMIT)."""
        if to is None:
            self._note_published()
        reception, number = self.reception, self.view.number
        next_number, commit_below, stable_below = (
            reception.received_below,
            reception.commit_below,
            reception.stable_below,
        )
        out.append(Send(SequencerStatus(number, self.me, next_number, commit_below, stable_below, reply_from), to=to))

    def publish_commit(self, out: list[Output]) -> None:
        """Sends the status if more may be delivered than was last broadcast; for the end of each transition."""
        if self.view.resilience and self.reception.commit_below > self.published_commit_below:
            self.publish(out)

    def _note_published(self) -> None:
        self.published_commit_below = self.reception.commit_below
        self.published_stable_below = self.reception.stable_below

    def lagging(self) -> int:
        """Members that are not known to have received everything, as a set."""
        acknowledged, below = self.acknowledged, self.reception.received_below
        return sum(1 << node for node in self.view.others if acknowledged[node] < below)

    def _far_behind(self) -> int:
        """Members whose acknowledgments keep half of the history, or more, from being purged."""
        half = self.reception.received_below - self.max_history // 2
        if self.max_bytes:
            half = max(half, self.reception.first_within(self.max_bytes // 2))
        return sum(1 << node for node in self.view.others if self.acknowledged[node] < half)

    # --- synchronisation (2.2) ---

    def _synchronise(self, phase: int, out: list[Output]) -> None:
        self.sync_phase, self.replied = phase, self.view.my_bit
        if phase == 1:
            self.sync_round += 1
        self._send_phase(out)

    def _send_phase(self, out: list[Output]) -> None:
        next_number, stable_below = self.reception.received_below, self.reception.stable_below
        number, me, reply_from = self.view.number, self.me, self._awaited_in_sync()
        unit = Synchronise(number, me, self.sync_round, self.sync_phase, next_number, stable_below, reply_from)
        out.append(Send(unit))

    def _awaited_in_sync(self) -> int:
        """Members that have not replied to a phase. If all replied each time, they would overrun the sequencer."""
        return self.lagging() if self.sync_phase == 1 else self.view.members & ~self.replied

    def receive_synchronised(self, unit: Synchronised, out: list[Output]) -> None:
        """Counts for the current round only: a reply to an older one says nothing about this one."""
        self.note_acknowledged(unit.source, unit.received_below, out)
        if self.sync_phase != 2 or unit.round != self.sync_round:
            out.append(Discard(unit, "old"))
            return
        self.replied |= 1 << unit.source
        self.progressed = True
        if self.replied & self.view.members == self.view.members:
            self.sync_phase = 0
            self.number_offers(out)

    # --- the status timer ---

    def _waits(self) -> bool:
        return self.lowest < self.reception.received_below or self.sync_phase > 0

    def _is_stuck(self) -> bool:
        """True if nothing can be numbered before others have replied."""
        return self.sync_phase > 0 or (bool(self.ready) and self.is_full())

    def _set_timer(self, duration: int, out: list[Output]) -> None:
        self.timers.set("status", duration, self.reception.received_below, out)

    def start_status_timer(self, out: list[Output]) -> None:
        """Sets the status timer if replies, or heartbeats, are awaited; for the end of each transition."""
        if self.timers.status and not self.timers.status_rests:
            return
        waits = self._waits()
        if self.timers.status and not waits:
            return
        timing = self.config.timing
        if waits:
            duration = (timing.repeat if self._is_stuck() else 2 * timing.poll) * self.timers.status_backoff
        elif self.config.sequencer.heartbeat:
            duration = self.config.sequencer.heartbeat
        else:
            return
        self.timers.status, self.timers.status_rests = True, not waits
        self._set_timer(duration, out)

    def status_timer_fired(self, out: list[Output]) -> int:
        """Requests overdue acknowledgments; returns the members to suspect because they left too many unanswered."""
        self.timers.status = False
        if not (self._waits() or self.config.sequencer.heartbeat):
            return 0
        if self.progressed and not self._is_stuck():
            self.progressed, self.timers.status_backoff = False, 1
            return 0
        if self._waits():
            asked = self._awaited_in_sync() if self.sync_phase else self.lagging()
        else:
            asked = self.view.members & ~self.view.my_bit
        suspects = 0
        for node in members(asked):
            if self.unanswered[node] > self.config.sequencer.suspect_after:
                suspects |= 1 << node
            else:  # nobody may act on a suspicion, and then nothing else would end the count
                self.unanswered[node] += 1
        if self.sync_phase:
            self._send_phase(out)
        elif not self._is_stuck():
            self.publish(out, reply_from=asked)
        elif self.full_history is FullHistory.REQUESTED:
            self._synchronise(1, out)
        else:
            self.full_history = FullHistory.REQUESTED
            self.publish(out, reply_from=self._far_behind())
        most = MAX_BACKOFF_UNANSWERED if self._is_stuck() else MAX_BACKOFF
        self.timers.status_backoff = next_factor(self.timers.status_backoff, progress=self.progressed, limit=most)
        self.progressed = False
        return suspects
