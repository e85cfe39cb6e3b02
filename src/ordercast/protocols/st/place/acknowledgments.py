"""Packets on their way up: accepted, pre-acknowledged, acknowledged; and what others have acknowledged.

RRL is the channel's order of what is to this node, with gaps: a packet behind a gap of its source has its place, but is
not accepted (*held*), and what is missing is inserted later. A packet is pre-acknowledged when all nodes have accepted
it. Then nothing to this node before it is missing, and it never moves again (docs/protocols/st.md has the proof).
"""

from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Deliver, Level, Output, Reached
from ordercast.model.units import Packet, PacketId
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.shared.pending_acknowledgments import UNBOUNDED
from ordercast.protocols.st.channel_logs import OWN, RECEIVED, ChannelLogs
from ordercast.protocols.st.place.generations import Generations
from ordercast.protocols.st.place.positions import OwnPositions
from ordercast.protocols.st.units import PlacedStatus

ACCEPTED, PREACKNOWLEDGED, ACKNOWLEDGED = Level.ACCEPTED, Level.PREACKNOWLEDGED, Level.ACKNOWLEDGED


class Acknowledgments(ChannelLogs):
    """The logs of one node, and the newest status of each. RRL has what is held, too."""

    generations: Final[Generations]
    positions: Final[OwnPositions]

    stable_below: list[int]  # by source: the seq after the last one that is pre-acknowledged here
    places: dict[PacketId, tuple[int, int]]  # of packets in RRL: between which of the units that came
    held: dict[PacketId, PlacedStatus]  # in RRL behind a gap, with the status that came with them
    kept: dict[PacketId, Packet]  # accepted or held in an earlier generation, and to be received at a new place
    accepted_before: set[PacketId]  # of these, the ones that were accepted
    contradicted: bool  # all claim to have accepted what I have not

    def __init__(
        self, me: int, config: GroupConfig, generations: Generations, positions: OwnPositions, backoff: Backoff
    ) -> None:
        super().__init__(me, config, backoff)
        self.generations, self.positions = generations, positions
        self.stable_below = list(config.first_seqs())
        self.places, self.held, self.kept, self.accepted_before = {}, {}, {}, set()
        self.contradicted = False

    # --- RRL ---

    def append(self, packet: Packet, count: int, out: list[Output]) -> None:
        """Accepts a packet at the place at which it came; `count`: the units that have come."""
        received = self.accepted.logs[RECEIVED]
        received.append(packet)
        self.places[packet.source, packet.seq] = (count, count)
        self.accept(packet, out)
        if len(received) == 1:
            self.preacknowledge(out)

    def accept(self, packet: Packet, out: list[Output]) -> None:
        """A packet in RRL is accepted, perhaps once more: then only its place is another one."""
        key = packet.source, packet.seq
        self.buffered += 1
        self.unpreacknowledged[packet.source].append(packet.seq)
        self.acknowledgment_pending = True
        if self.kept and self.kept.pop(key, None) is not None and key in self.accepted_before:
            self.accepted_before.remove(key)
        else:
            out.append(Reached(ACCEPTED, packet))

    def hold(self, packet: Packet, count: int, status: PlacedStatus, out: list[Output]) -> None:
        """A packet behind a gap gets its place, and is accepted when the gap is filled."""
        key = packet.source, packet.seq
        received = self.accepted.logs[RECEIVED]
        received.append(packet)
        self.places[key], self.held[key] = (count, count), status
        if len(received) == 1:
            self.preacknowledge(out)

    def insert(self, at: int, packet: Packet, place: tuple[int, int], out: list[Output]) -> None:
        """Accepts a missing packet at its place. It is not pre-acknowledged at once: I have not told that I have it."""
        self.accepted.logs[RECEIVED].insert(at, packet)
        self.places[packet.source, packet.seq] = place
        self.accept(packet, out)
        self._check_again(out)

    def remove_from(self, source: int, first: int) -> list[Packet]:
        """Takes what the source sends again, from this seq on, from RRL; returns what was accepted of it."""
        log = self.accepted.logs[RECEIVED]
        moved = [packet for packet in log if packet.source == source and packet.seq >= first]
        accepted = []
        for packet in moved:
            key = source, packet.seq
            log.remove(packet)
            del self.places[key]
            self.kept[key] = packet
            if self.held.pop(key, None) is None:
                accepted.append(packet)
                self.accepted_before.add(key)
                self.buffered -= 1
                self.unpreacknowledged[source].pop()
        return accepted

    def lower(self, source: int, first: int, out: list[Output]) -> None:
        """Nobody is known to have accepted anything of the source from this seq on, in its new generation."""
        for pending in (self.accepted, self.preacknowledged):
            pending.acknowledged_below = [
                below if below[source] <= first or below[source] == UNBOUNDED else _with(below, source, first)
                for below in pending.acknowledged_below
            ]
        self._check_again(out)

    def _check_again(self, out: list[Output]) -> None:
        self.accepted.forget_checks()
        self.preacknowledged.forget_checks()
        self.acknowledge(RECEIVED, out)
        self.acknowledge(OWN, out)
        self.preacknowledge(out)
        self.release(out)

    # --- statuses ---

    def take_status(self, source: int, status: PlacedStatus, out: list[Output]) -> None:
        """Takes the acknowledgments of a unit that was accepted, and of no other (Lemma A)."""
        if status.stamp <= self.stamps[source]:
            return
        self.stamps[source], self.free[source] = status.stamp, status.free
        expects, preacknowledged = status.expects, status.preacknowledged_below
        known = self.generations.known
        if status.generations != known:  # acknowledgments in other generations say nothing in these
            same = [told == mine for told, mine in zip(status.generations, known, strict=True)]
            expects = _merged(self.accepted.acknowledged_below[source], expects, same)
            if source != self.me:
                preacknowledged = _merged(self.preacknowledged.acknowledged_below[source], preacknowledged, same)
        self.accepted.acknowledged_below[source] = expects
        if source != self.me:
            self.preacknowledged.acknowledged_below[source] = preacknowledged
        self.rise(source, out)

    # --- levels ---

    def send(self, packet: Packet, out: list[Output], *, to_all: bool) -> None:
        """Keeps an own packet until all nodes have accepted it."""
        if to_all:
            self.to_all.add(packet.seq)
        self.keep_own(packet, out)

    def preacknowledge(self, out: list[Output]) -> None:
        """PACK action: packets that all nodes have accepted or skipped."""
        for packet in self.accepted.take_acknowledged(RECEIVED):
            source, seq = packet.source, packet.seq
            if (source, seq) in self.held:  # nor by me: somebody is wrong
                self.contradicted = True
                return
            self.backoff.progress = True
            del self.places[source, seq]
            self.unpreacknowledged[source].popleft()
            self.stable_below[source] = seq + 1
            out.append(Reached(PREACKNOWLEDGED, packet))
            if self.config.delivers_stable:
                self.buffered -= 1
                out.append(Deliver(packet))
            else:  # others wait to hear of it, to deliver it
                self.acknowledgment_pending = True
            self.await_acknowledgment(RECEIVED, packet, out)

    def note_released(self, packet: Packet) -> None:
        """Nobody asks for it any more."""
        self.positions.forget(packet.seq)

    def acknowledge(self, log: int, out: list[Output]) -> None:
        """ACK action: packets that all their destinations have pre-acknowledged are delivered if they are to me."""
        for packet in self.preacknowledged.take_acknowledged(log):
            self.backoff.progress = True
            out.append(Reached(ACKNOWLEDGED, packet))
            if log == RECEIVED and not self.config.delivers_stable:
                self.buffered -= 1
                out.append(Deliver(packet))

    # --- inspection ---

    def buffers_in_use(self) -> int:
        """Packets that are not delivered, wherever they are kept."""
        return self.buffered + len(self.held) + len(self.kept)


def _with(vector: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*vector[:at], value, *vector[at + 1 :])


def _merged(old: tuple[int, ...], new: tuple[int, ...], same: list[bool]) -> tuple[int, ...]:
    return tuple([max(was, told) if same[at] else was for at, (was, told) in enumerate(zip(old, new, strict=True))])
