"""Retransmission in SPO and PO: what a receiver requests, and what a source sends again.

From: EN section 4.5 and JP section 3.5 (see `machine`), the RETRANS procedure. What is missing (`loss_detection`) is
requested at once, then again with exponential back-off until it comes (C4).

What the two protocols do differently is a policy, a parameter of the machine: `SelectiveRepeat` here, and
`GoBackN` in `ordercast.protocols.po.go_back_n`.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard, Output
from ordercast.model.units import Packet
from ordercast.protocols.shared.backoff import next_factor
from ordercast.protocols.shared.gaps import missing_ranges
from ordercast.protocols.shared.sending_log import SendingLog
from ordercast.protocols.spo.units import Data, Missing, Ranges


class Node(Protocol):
    """What a retransmission policy reads and uses of the machine that it belongs to."""

    expected_to_me: list[int]
    seen_to_me: list[int]
    buffered: list[int]
    sent: SendingLog

    @property
    def me(self) -> int:
        """The node."""
        ...

    @property
    def config(self) -> GroupConfig:
        """What all nodes agree on."""
        ...

    def send_status(self, out: list[Output], wants: int = 0, missing: Missing = ()) -> None:
        """Transmits a status that requests what is missing."""
        ...

    def retransmit(self, packet: Packet, out: list[Output]) -> None:
        """Transmits a copy of a packet with a new status."""
        ...

    def set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        """Sets a timer to about this duration."""
        ...


class Retransmission(DeclaredState):
    """Requests and retransmissions of one node, whatever the policy."""

    node: Final[Node]
    out_of_order: list[dict[int, Packet]]  # received ahead of a gap: by source, by number to me
    requested_below: list[int]  # the numbers to me that were requested, by source
    cooling_down: bool  # a request for new gaps was just sent
    gap_while_cooling_down: bool  # another gap was noticed meanwhile: it is requested at once afterwards
    repeat_timer: bool  # runs while something requested is missing: then it is requested again
    progress: bool  # something missing came since the repeat timer was set
    repeat_backoff: int  # how many times its usual duration the repeat timer lasts
    just_retransmitted: set[int]  # own seqs; no copy is sent twice in a short time, whichever node asks

    def __init__(self, node: Node) -> None:
        self.node = node
        self.out_of_order = [{} for _ in range(node.config.nodes)]
        self.requested_below = list(node.config.first_seqs())
        self.cooling_down = self.gap_while_cooling_down = self.repeat_timer = self.progress = False
        self.repeat_backoff = 1
        self.just_retransmitted = set()

    # --- the policy ---

    def receive_ahead(self, unit: Data, number: int, out: list[Output]) -> None:
        """A unit came whose number to me is not the next."""
        raise NotImplementedError

    def request_gap(self, source: int, out: list[Output]) -> None:
        """Packets of this source to me are missing (`loss_detection`): requests them at once, if it is time."""
        raise NotImplementedError

    def received_status(self, source: int, out: list[Output]) -> None:
        """A status without data was received, and everything else that follows from it was done."""
        raise NotImplementedError

    def missing(self, since: Sequence[int]) -> Missing:
        """What to request of each source, from the numbers `since` on; nothing for which there is no buffer."""
        raise NotImplementedError

    def mark_requested(self, missing: Missing) -> None:
        """Notes that all gaps known now were requested, with this result of `missing`."""
        raise NotImplementedError

    def answer_request(self, node: int, ranges: Ranges, out: list[Output]) -> None:
        """RETRANS procedure (2): a node requests these ranges of my packets to it."""
        raise NotImplementedError

    # --- what all policies share ---

    def request_unless_cooling_down(self, out: list[Output]) -> None:
        """Requests new gaps, of all sources in one unit, at most once per cool-down."""
        if self.cooling_down:
            self.gap_while_cooling_down = True
        else:
            self.request_new(out)

    def request_new(self, out: list[Output]) -> None:
        """RETRANS procedure (1): everything that is missing and was not requested yet."""
        missing = self.missing(self.requested_below)
        self.mark_requested(missing)
        if missing:
            self.cooling_down = True
            self.node.send_status(out, missing=missing)
            self.node.set_timer("cooldown", self.node.config.timing.cooldown, out)

    def start_repeating(self, out: list[Output]) -> None:
        """From now on, what is missing is requested again until it comes; for when the repeat timer does not run."""
        self.repeat_timer, self.progress, self.repeat_backoff = True, False, 1
        self.node.set_timer("repeat", self.node.config.timing.repeat, out)

    def repeat_requests(self, out: list[Output]) -> None:
        """Requests everything that is missing, whether it was requested before or not."""
        node = self.node
        self.repeat_timer = False
        if node.expected_to_me == node.seen_to_me:
            return
        self.repeat_backoff = next_factor(self.repeat_backoff, progress=self.progress)
        self.repeat_timer, self.progress = True, False
        missing = self.missing(node.expected_to_me)
        if missing:
            node.send_status(out, missing=missing)
        node.set_timer("repeat", node.config.timing.repeat * self.repeat_backoff, out)

    def fire(self, name: str, out: list[Output]) -> None:
        """One of the policy's timers fired; other names have no effect."""
        if name == "cooldown":
            self.cooling_down = False
            if self.gap_while_cooling_down:
                self.gap_while_cooling_down = False
                self.request_new(out)
        elif name == "repeat":
            self.repeat_requests(out)
        elif name == "guard":
            self.just_retransmitted.clear()

    def note_retransmission(self, packet: Packet, out: list[Output]) -> None:
        """Remembers for a short time that a copy was sent."""
        if not self.just_retransmitted:
            self.node.set_timer("guard", self.node.config.timing.guard, out)
        self.just_retransmitted.add(packet.seq)


class SelectiveRepeat(Retransmission):
    """SPO's policy: packets ahead of a gap are kept, and exactly the missing ranges are sent again."""

    def receive_ahead(self, unit: Data, number: int, out: list[Output]) -> None:
        """Keeps the packet if buffers are left for it and for all those before it."""
        node, packet = self.node, unit.packet
        source = packet.source
        kept, ahead = self.out_of_order[source], number - node.expected_to_me[source]
        if not packet.destinations >> node.me & 1:
            out.append(Discard(unit, "foreign"))
        elif number in kept or ahead < 0:
            out.append(Discard(unit, "duplicate"))
        elif node.buffered[source] + ahead >= node.config.quota:
            out.append(Discard(unit, "full"))
        else:
            kept[number] = packet
            self.progress = True

    def request_gap(self, source: int, out: list[Output]) -> None:
        """Whatever was not requested yet is requested at once."""
        if self.requested_below[source] < self.node.seen_to_me[source]:
            self.request_unless_cooling_down(out)

    def received_status(self, source: int, out: list[Output]) -> None:
        """Nothing: `request_gap` was called for the gaps that it showed."""

    def missing(self, since: Sequence[int]) -> Missing:
        """The missing ranges of each source."""
        node, found = self.node, []
        for source, high in enumerate(node.seen_to_me):
            low = max(node.expected_to_me[source], since[source])
            if low < high and node.buffered[source] < node.config.quota:
                ranges = missing_ranges(low, high, self.out_of_order[source])
                if ranges:
                    found.append((source, ranges))
        return tuple(found)

    def mark_requested(self, missing: Missing) -> None:
        """Everything seen was requested, except where there is no buffer."""
        del missing
        for source, high in enumerate(self.node.seen_to_me):
            if self.node.buffered[source] < self.node.config.quota:
                self.requested_below[source] = high

    def answer_request(self, node: int, ranges: Ranges, out: list[Output]) -> None:
        """Sends exactly the requested packets again."""
        for packet in self.node.sent.find(node, ranges):
            if packet.seq not in self.just_retransmitted:
                self.note_retransmission(packet, out)
                self.node.retransmit(packet, out)
