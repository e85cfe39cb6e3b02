"""What a member sends to the sequencer: offers, acknowledgments, retransmission requests, and all of these again.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), Figure 3. With a
window of 1 a node sends one packet at a time, as published; with more they are pipelined, and the sequencer keeps each
sender's order. Every unit to the sequencer carries a cumulative acknowledgment.
"""

from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard, Output, Send
from ordercast.model.units import Packet
from ordercast.protocols.sequencer.loss_detection import Ranges
from ordercast.protocols.sequencer.reception import Reception
from ordercast.protocols.sequencer.timers import MAX_BACKOFF, MAX_BACKOFF_UNANSWERED, Timers
from ordercast.protocols.sequencer.units import Acknowledgment, Offer, SequencerStatus, Synchronise, Synchronised
from ordercast.protocols.sequencer.view import CurrentView
from ordercast.protocols.sequencer.window import SendWindow
from ordercast.protocols.shared.backoff import next_factor

MAX_REPEATED_OFFERS = 4
"""Own packets that are offered again at once: the oldest, since the others may only be waiting for them."""


class Sender(DeclaredState):
    """A member's side of the traffic with the sequencer. At the sequencer itself it is idle."""

    me: Final[int]
    config: Final[GroupConfig]
    view: Final[CurrentView]
    window: Final[SendWindow]
    reception: Final[Reception]
    timers: Final[Timers]
    acknowledge_after: Final[int]  # receipts after which a node that sends nothing acknowledges (the dummy message)

    acknowledged_below: int  # what the sequencer was last sent
    wanted_below: int  # the sequencer wants an acknowledgment as soon as these are received
    due_below: int  # own packets below were offered before the need timer was last set
    overdue_below: int  # broadcasts below were known before the need timer was last set
    answered: bool  # something was received from the sequencer since the need timer was set
    asked: bool  # something was sent that the sequencer answers, since the need timer was set
    sync_round: int  # the latest synchronisation seen
    paused_through: int | None  # PHASE1 holds back own packets until this number, or PHASE2, is received

    def __init__(
        self, me: int, config: GroupConfig, view: CurrentView, window: SendWindow, reception: Reception, timers: Timers
    ) -> None:
        self.me, self.config, self.view, self.window, self.reception = me, config, view, window, reception
        self.timers = timers
        # A quiet node acknowledges before the history is full, and as rarely as that allows.
        self.acknowledge_after = config.sequencer.acknowledge_after or max(1, config.sequencer.history * 3 // 4)
        self.due_below = window.next_seq
        self.start_view()

    def start_view(self) -> None:
        """Acknowledgments and requests are those of one view."""
        self.acknowledged_below = self.wanted_below = self.overdue_below = 0
        self.answered = self.asked = False
        self.sync_round, self.paused_through = 0, None

    # --- offers ---

    def is_paused(self) -> bool:
        """True if the group synchronises and no new packet may be sent."""
        return self.paused_through is not None and self.reception.received_below <= self.paused_through

    def offer(self, packet: Packet, out: list[Output]) -> None:
        """To the sequencer; a large packet to everybody, so that it crosses the network once (the BB method)."""
        received_below = self.acknowledged_below = self.reception.received_below
        direct = 0 < self.config.sequencer.direct_from <= packet.body_size()
        offer = Offer(packet, self.view.number, received_below, direct)
        out.append(Send(offer, to=None if direct else self.view.sequencer))

    def offer_again(self, packets: list[Packet], out: list[Output]) -> None:
        """To the sequencer alone: nodes that lack a packet will request it."""
        received_below = self.acknowledged_below = self.reception.received_below
        number, sequencer = self.view.number, self.view.sequencer
        out += [Send(Offer(packet, number, received_below), again=True, to=sequencer) for packet in packets]

    def resume(self, out: list[Output]) -> None:
        """In a new view: reports what is received here to the sequencer, offers what the old view did not number."""
        mine = list(self.window.outstanding)
        missing = self.reception.missing()
        if missing or not mine:
            self.acknowledge(missing, out)
        self.offer_again(mine, out)
        self.asked |= bool(mine)

    # --- acknowledgments ---

    def acknowledge(self, missing: Ranges, out: list[Output], *, wants_status: bool = False) -> None:
        """What is received here; and a request for what is missing."""
        received_below = self.acknowledged_below = self.reception.received_below
        self.asked |= wants_status or bool(missing)
        unit = Acknowledgment(self.view.number, self.me, received_below, missing, wants_status)
        out.append(Send(unit, to=self.view.sequencer))

    def receive_status(self, unit: SequencerStatus, out: list[Output]) -> None:
        """Shows gaps, what may be delivered and what is stable; may ask for an acknowledgment."""
        reception = self.reception
        reception.detect_loss(unit.next_number, out, lacks=reception.known_below < unit.next_number)
        reception.update_bounds(unit.source, unit.commit_below, unit.stable_below, out)
        if unit.reply_from & self.view.my_bit and not self.view.closed:
            self._answer(unit.next_number, out)

    def _answer(self, wanted_below: int, out: list[Output]) -> None:
        """Acknowledges so much, now or as soon as it is received. What was requested before is requested again."""
        self.wanted_below = max(self.wanted_below, wanted_below)
        missing = self.reception.missing(stop=self.reception.requested_below)
        if missing or self.reception.received_below >= wanted_below:
            self.acknowledge(missing, out)

    def receive_synchronise(self, unit: Synchronise, out: list[Output]) -> None:
        """PHASE1 pauses sending until PHASE2 or a later broadcast; a unit of an older round has no effect."""
        if unit.round < self.sync_round:
            out.append(Discard(unit, "old"))
            return
        reception = self.reception
        reception.detect_loss(unit.next_number, out, lacks=reception.known_below < unit.next_number)
        if unit.phase == 1:
            if unit.round > self.sync_round:
                self.sync_round, self.paused_through = unit.round, unit.next_number
            if unit.reply_from & self.view.my_bit:
                self._answer(unit.next_number, out)
            return
        self.sync_round, self.paused_through = unit.round, None
        reception.update_bounds(unit.source, 0, unit.stable_below, out)
        if unit.reply_from & self.view.my_bit:
            reply = Synchronised(self.view.number, self.me, unit.round, reception.received_below)
            out.append(Send(reply, to=self.view.sequencer))

    def gap_timer_fired(self, out: list[Output]) -> None:
        """The gap timer has expired: requests what is missing, once."""
        missing = self.reception.due_gaps()
        if missing:
            self.acknowledge(missing, out)
        self.reception.gaps_requested(out)

    # --- the need timer ---

    def is_idle(self) -> bool:
        """True if nothing is awaited from the sequencer."""
        window, reception = self.window, self.reception
        return not (
            window.outstanding
            or window.waiting
            or reception.stable_below < reception.received_below
            or reception.received_below < reception.known_below
        )

    def settle(self, out: list[Output]) -> None:
        """At the end of each transition: sends an acknowledgment that is due, and sets the need timer if needed."""
        unacknowledged = self.reception.received_below - self.acknowledged_below
        if unacknowledged and (
            unacknowledged >= self.acknowledge_after
            or self.view.acknowledges_at_once
            or self.acknowledged_below < self.wanted_below <= self.reception.received_below
        ):
            self.acknowledge((), out)
        if not self.timers.need or self.timers.need_rests:
            self._set_need_timer(out)

    def _set_need_timer(self, out: list[Output]) -> None:
        """For what is awaited, or for the next heartbeat, unless it runs for that already."""
        timers, idle, heartbeat = self.timers, self.is_idle(), self.config.sequencer.heartbeat
        if idle and (timers.need or not heartbeat):
            return
        timers.need, timers.need_rests = True, idle
        duration = heartbeat if idle else self.config.timing.repeat * timers.need_backoff
        timers.set("need", duration, self.reception.received_below, out)

    def need_timer_fired(self, out: list[Output]) -> bool:
        """Asks again for what is awaited. True: the sequencer has left too many requests unanswered.

        Only requests after which nothing at all was received count: a sequencer that refuses to number because its
        history is full is up.
        """
        reception, timers = self.reception, self.timers
        timers.need = False
        answered, self.answered = self.answered, False
        if answered:
            timers.unanswered = 0
        elif self.asked and not (self.config.views and timers.unanswered > self.config.sequencer.suspect_after):
            timers.unanswered += 1
        if self.is_idle() and not self.config.sequencer.heartbeat:
            return False
        progressed, reception.progressed, self.asked = reception.progressed, False, False
        most = MAX_BACKOFF if answered else MAX_BACKOFF_UNANSWERED
        timers.need_backoff = next_factor(timers.need_backoff, progress=progressed, limit=most)
        overdue, missing = self._overdue(), reception.missing(stop=self.overdue_below)
        if missing:  # and nothing else: offers would take the place of the answers, where queues are short
            self.acknowledge(missing, out)
        elif overdue:
            self.asked = True
            self.offer_again(overdue, out)
        elif not (progressed or (answered and self.is_idle())):
            self.acknowledge((), out, wants_status=self.acknowledged_below == reception.received_below)
        self.due_below, self.overdue_below = self.window.next_seq, reception.known_below
        return timers.unanswered > self.config.sequencer.suspect_after

    def _overdue(self) -> list[Packet]:
        """Own packets that were offered some time ago and have not been seen with a number."""
        first = self.reception.ordered_below[self.me]
        if first >= self.due_below:
            return []
        seen = {packet.seq for packet in self.reception.ahead.values() if packet.source == self.me}
        overdue = [packet for packet in self.window.outstanding if first <= packet.seq < self.due_below]
        return [packet for packet in overdue if packet.seq not in seen][:MAX_REPEATED_OFFERS]
