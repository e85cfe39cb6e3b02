"""Reception: sequence numbers in order, the history buffer, and what may be delivered.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), Figure 5. A number
is old, the next, or ahead of a gap. What is ahead is buffered; what is missing is requested (`loss_detection`).
"""

from collections import deque
from collections.abc import Collection
from itertools import repeat
from typing import Final

from ordercast.model.config import GroupConfig, SequencerConfig
from ordercast.model.machine import Deliver, Discard, Level, Output, Reached, ViewInstalled
from ordercast.model.nodes import name_of
from ordercast.model.units import Packet, PacketId
from ordercast.protocols.sequencer.loss_detection import MAX_COPIES, LossDetection, Ranges, first_of
from ordercast.protocols.sequencer.timers import Timers
from ordercast.protocols.sequencer.units import Broadcast, NextView, NumberAnnouncement, Offer
from ordercast.protocols.sequencer.view import CurrentView
from ordercast.protocols.sequencer.window import SendWindow
from ordercast.protocols.shared.gaps import missing_ranges

ACCEPTED, PREACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED


def _most_direct(config: SequencerConfig) -> int:
    """How many packets that their senders broadcast the history can hold."""
    if not (config.history_bytes and config.direct_from):
        return config.history
    return min(config.history, config.history_bytes // config.direct_from + 1)


class Reception(LossDetection):
    """The log of numbered broadcasts at one node, the sequencer's among them."""

    me: Final[int]
    view: Final[CurrentView]
    window: Final[SendWindow]
    max_ahead: Final[int]  # how far a sender may be ahead of what is received here: its window, and the history

    delivered_below: int  # everything below this number is delivered
    commit_below: int  # may be delivered, where resilience asks for more than having received them
    stable_below: int  # received by every member
    history: dict[int, Packet]  # History, at every node: from stable_below to received_below
    ordered_below: list[int]  # MessageNr + 1, by source: of the broadcasts received
    unnumbered: dict[PacketId, Packet]  # broadcast by their senders, number not known yet
    announced: dict[PacketId, int]  # numbers whose packets have not arrived from their senders
    pending_views: deque[NextView]  # to be reported to the application behind all deliveries of the views before
    progressed: bool  # something was received or became stable since the need timer was set

    def __init__(self, me: int, config: GroupConfig, view: CurrentView, window: SendWindow, timers: Timers) -> None:
        super().__init__(timers, config.timing.cooldown)
        self.me, self.view, self.window = me, view, window
        self.max_ahead = config.window + _most_direct(config.sequencer)
        self.delivered_below = self.commit_below = self.stable_below = 0
        self.history = {}
        self.ordered_below = list(config.first_seqs())
        self.unnumbered, self.announced = {}, {}
        self.pending_views = deque()
        self.progressed = False

    # --- numbered broadcasts ---

    def receive_broadcast(self, unit: Broadcast, out: list[Output]) -> None:
        """A packet with its number."""
        number = unit.number
        if number == self.received_below and not self.ahead:  # the usual case
            if number >= self.known_below:
                self.known_below = number + 1
            self.store(unit.packet, out)
        elif not self.take(number, unit.packet, out):
            out.append(Discard(unit, "duplicate"))
        self.update_bounds(unit.source, unit.commit_below, unit.stable_below, out)

    def receive_announcement(self, unit: NumberAnnouncement, out: list[Output]) -> None:
        """Numbers of packets that their senders broadcast: they are here already, or will arrive."""
        for number, name in enumerate(unit.packets, unit.number):
            if number < self.received_below or number in self.ahead:
                continue
            packet = self.unnumbered.get(name)
            if packet is None and name[0] == self.me:
                packet = self.window.find(name[1])
            if packet is None:
                self.announced[name] = number
                self.detect_loss(number + 1, out, lacks=self.known_below <= number)
            else:
                self.take(number, packet, out)
        self.update_bounds(unit.source, unit.commit_below, unit.stable_below, out)

    def keep_unnumbered(self, unit: Offer, out: list[Output]) -> None:
        """A packet that its sender broadcast waits for its number, across views too: a packet never changes."""
        packet = unit.packet
        name = (packet.source, packet.seq)
        ordered = self.ordered_below[packet.source]
        if name in self.announced:
            self.take(self.announced[name], packet, out)
            self.deliver(out)
        elif name in self.unnumbered or not ordered <= packet.seq < ordered + self.max_ahead:
            out.append(Discard(unit, "duplicate" if packet.seq < ordered or name in self.unnumbered else "ahead"))
        else:
            self.unnumbered[name] = packet

    def take(self, number: int, packet: Packet, out: list[Output]) -> bool:
        """Old, next or ahead, where Figure 5 has two cases; False if it is a duplicate."""
        if number < self.received_below or number in self.ahead:
            return False
        self.detect_loss(number + 1, out, lacks=self.known_below < number)
        if number > self.received_below:
            self.ahead[number] = packet
            return True
        self.store(packet, out)
        self._store_ahead(out)
        return True

    def _store_ahead(self, out: list[Output]) -> None:
        while self.received_below in self.ahead and not self.view.closed:
            self.store(self.ahead.pop(self.received_below), out)

    def store(self, packet: Packet, out: list[Output]) -> None:
        """Appends the broadcast that is next; aborts if its number contradicts its sender's numbers."""
        source, seq = packet.source, packet.seq
        ordered_below = self.ordered_below
        if seq != ordered_below[source]:
            due = ordered_below[source]
            self.view.abort(f"packet {seq} of {name_of(source)} was numbered, but {due} is its next", out)
            return
        if source == self.me and seq >= self.window.next_seq:
            name = name_of(source)
            self.view.abort(f"packet {seq} of {name} was numbered, but {name} never sent it", out)
            return
        number = self.received_below
        self.history[number] = packet
        self.received_below = number + 1
        ordered_below[source] = seq + 1
        self.progressed = True
        if self.unnumbered:
            self.unnumbered.pop((source, seq), None)
        if self.announced:
            self.announced.pop((source, seq), None)
        out.append(Reached(ACCEPTED, packet))

    # --- stability and delivery ---

    def update_bounds(self, source: int, commit_below: int, stable_below: int, out: list[Output]) -> None:
        """What may be delivered and what is stable in the current view, which is therefore reported first."""
        if commit_below > self.commit_below:
            self.commit_below = commit_below
        if stable_below <= self.stable_below:
            self.deliver(out)
            return
        if stable_below > self.received_below:
            has = f"everybody has {stable_below} broadcasts, but I have {self.received_below}"
            self.view.abort(f"{name_of(source)} says that {has}", out)
            return
        if stable_below > self.commit_below:
            self.commit_below = stable_below
        self.deliver(out)
        if not self.pending_views:
            self.stabilise(stable_below, out)

    def stabilise(self, below: int, out: list[Output]) -> list[Packet]:
        """Every member has these and they are delivered here: they leave the history. Returns them."""
        stable = list(map(self.history.pop, range(self.stable_below, below)))
        out += map(Reached, repeat(PREACKNOWLEDGED), stable)
        self.stable_below = below
        self.progressed = True
        return stable

    def deliver(self, out: list[Output]) -> None:
        """Delivers in order what is received and, with resilience, committed; views in their places."""
        until = self.received_below
        if self.view.resilience and self.commit_below < until:
            until = self.commit_below
        number = self.delivered_below
        views = self.pending_views
        while True:
            if views and views[0].cut_below == number:
                view = views.popleft()
                out.append(ViewInstalled(view.number, view.members, view.why))
            elif number < until:
                packet = self.history[number]
                number += 1
                out.append(Deliver(packet))
                if packet.source == self.me:
                    self.window.outstanding.popleft()
            else:
                break
        self.delivered_below = number

    # --- what a view agreement asks, and a new view ---

    def lacking(self, cut_below: int, supplied: Collection[int]) -> Ranges:
        """What is missing below the cut of a next view and not supplied; no more than one request asks for."""
        return first_of(missing_ranges(self.received_below, cut_below, {*self.ahead, *supplied}), MAX_COPIES)

    def first_within(self, most: int) -> int:
        """The first number from which on the history takes no more bytes than that."""
        number = self.received_below
        while number > self.stable_below and (most := most - self.history[number - 1].body_size()) >= 0:
            number -= 1
        return number

    def packet(self, number: int) -> Packet | None:
        """A broadcast that is here, in the history or ahead of a gap."""
        return self.history.get(number) or self.ahead.get(number)

    def end_view(self, value: NextView, supplied: dict[int, Packet], out: list[Output]) -> None:
        """The current view ends at the cut: below it what was supplied is taken, beyond it everything is dropped.

        What is still missing below the cut will be requested in the new view.
        """
        found = {**supplied, **self.ahead}
        self.ahead = {number: packet for number, packet in found.items() if number < value.cut_below}
        self.known_below, self.requested_below = value.cut_below, 0
        self.announced.clear()
        self.unnumbered = {name: packet for name, packet in self.unnumbered.items() if value.members >> name[0] & 1}
        if self.received_below > value.cut_below:
            why = f"view {value.number} takes back what {name_of(self.me)} has of the one before"
            self.view.abort(why, out)
            return
        self._store_ahead(out)

    def start_view(self, value: NextView) -> None:
        """The old view's broadcasts may all be delivered, and the new view is reported behind them."""
        self.gap_below = 0
        self.progressed = False
        self.commit_below = max(self.commit_below, value.cut_below)
        self.pending_views.append(value)
