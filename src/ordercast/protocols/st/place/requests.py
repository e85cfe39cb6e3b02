"""What this node lacks: gaps, requests for copies, and the place of each copy (NACK, REP).

The first missing packet of a source is put between what is known to come before it on the channel and what is known to
come after it. If there is more than one place left, and nothing more to be learned, because the source itself lost what
lies between, then this node takes no copy any more, and the source sends the packet again (the veto).
"""

from typing import Final, NamedTuple

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.nodes import mask_of, members
from ordercast.protocols.st.channel_logs import RECEIVED
from ordercast.protocols.st.place.acknowledgments import Acknowledgments
from ordercast.protocols.st.place.generations import Generations
from ordercast.protocols.st.place.positions import UNKNOWN
from ordercast.protocols.st.place.transmission import Transmission
from ordercast.protocols.st.units import PlacedCopy, Wanted

WITNESSES = 3
"""Nodes that are asked, one after the other, where a packet of mine is."""


class Place(NamedTuple):
    """Where in RRL a copy belongs: at `first`, if `last` is the same. Otherwise that is not determined."""

    first: int
    last: int
    final: bool
    """Nothing more can be learned of it."""


class Requests(DeclaredState):
    """The gaps at one node."""

    config: Final[GroupConfig]
    generations: Final[Generations]
    logs: Final[Acknowledgments]
    transmission: Final[Transmission]

    missing: list[dict[int, int]]
    """By source, by its number to me: the count of the unit that showed that it is missing."""
    shown: list[int]
    """By source: the number after the last one that is missing or held."""
    last_accepted: list[int]
    """By source: the count of the last unit that was accepted."""
    copies: list[dict[int, PlacedCopy]]
    """By source and number: copies that have no place yet."""
    vetoes: list[bool]
    """By source: I take no copy of it any more in this generation."""
    due: bool
    """Something is missing that was not asked for."""
    timer: bool
    """Runs while anything is missing."""
    factor: int
    """Back-off of the requests."""
    progress: bool
    """Something that was missing came since the last request."""
    asked: int
    """Witnesses asked for the place of the first packet of mine that did not come back."""

    def __init__(
        self, config: GroupConfig, generations: Generations, logs: Acknowledgments, transmission: Transmission
    ) -> None:
        nodes = config.nodes
        self.config, self.generations, self.logs, self.transmission = config, generations, logs, transmission
        self.missing, self.copies = [{} for _ in range(nodes)], [{} for _ in range(nodes)]
        self.shown, self.last_accepted = list(config.first_seqs()), [0] * nodes
        self.vetoes = [False] * nodes
        self.due = self.timer = self.progress = False
        self.factor, self.asked = 1, 0

    def show(self, source: int, number: int, count: int) -> bool:
        """A unit shows that its source has sent all numbers below to me; False: it cannot have sent so many."""
        expected = self.transmission.expected_to_me[source]
        if number - expected > self.config.window:
            return False
        missing, shown = self.missing[source], max(self.shown[source], expected)
        if number > shown:
            me = self.transmission.me
            held = {
                packet.seq_to[me]
                for packet in self.logs.accepted.logs[RECEIVED]
                if packet.source == source and (source, packet.seq) in self.logs.held
            }
            for lost in range(shown, number):
                if lost not in held:
                    missing[lost] = count
            self.shown[source] = number
            self.due = True
        return True

    def forget(self, source: int) -> None:
        """The source has begun a generation: what is missing, and since when, is shown anew."""
        self.missing[source].clear()
        self.copies[source].clear()
        self.vetoes[source] = False
        if source == self.transmission.me:
            self.asked = 0
        self.shown[source] = self.transmission.expected_to_me[source]
        self.progress = True

    def found(self, source: int, number: int) -> None:
        """It is missing no more."""
        self.missing[source].pop(number, None)
        self.copies[source].pop(number, None)
        self.progress = True
        if source == self.transmission.me:
            self.asked = 0

    def anything(self) -> bool:
        """True if anything is missing."""
        return any(self.missing)

    def sources(self) -> int:
        """Of whom something is missing, as a bit mask."""
        return mask_of(source for source, missing in enumerate(self.missing) if missing)

    def wanted(self) -> tuple[Wanted, ...]:
        """What is missing, for a request. Of what has come without a place only the first is asked for again."""
        wanted: list[Wanted] = []
        for source, missing in enumerate(self.missing):
            if not missing:
                continue
            first, has = min(missing), self.copies[source]
            numbers = [first] if self.vetoes[source] else [n for n in sorted(missing) if n == first or n not in has]
            wanted.append((source, self.generations.known[source], _ranges(numbers), self.vetoes[source]))
        return tuple(wanted)

    def next_witness(self) -> int | None:
        """Whom to ask where the first of my packets is that did not come back; None: nobody, or enough were asked."""
        me = self.transmission.me
        packet = self.transmission.own_packet(min(self.missing[me]))
        if packet is None:
            return None
        others = members(packet.destinations & ~(1 << me))
        if not others or self.asked >= WITNESSES:
            return None
        self.asked += 1
        return others[(packet.seq + self.asked) % len(others)]

    def keep(self, unit: PlacedCopy, number: int) -> bool:
        """A copy came; False: it is of no use."""
        packet, source = unit.packet, unit.packet.source
        if (
            unit.generation != self.generations.known[source]
            or self.vetoes[source]
            or number not in self.missing[source]
            or packet.seq < self.transmission.expected[source]
            or (source, packet.seq) in self.logs.places
        ):
            return False
        self.copies[source][number] = unit
        return True

    def place_of(self, unit: PlacedCopy, number: int) -> Place:
        """Between which packets of RRL a copy belongs."""
        packet, known = unit.packet, self.generations.known
        source, log = packet.source, self.logs.accepted.logs[RECEIVED]
        low, mark = self.last_accepted[source], self.missing[source][number]
        first, last = 0, len(log)
        undecided: list[tuple[int, bool]] = []
        for at, other in enumerate(log):
            since, until = self.logs.places[other.source, other.seq]
            whose, final = other.source, True
            if whose == source:
                before = other.seq < packet.seq
                after = not before
            else:
                same = unit.generations[whose] == known[whose]
                high = unit.high[whose]
                before = until <= low or (same and other.seq < unit.low[whose])
                after = since >= mark or (same and high != UNKNOWN and other.seq >= high)
                final = same and high != UNKNOWN
            if before:
                first = at + 1
            if after:
                last = min(last, at)
            elif not before:
                undecided.append((at, final))
        return Place(first, last, all(final for at, final in undecided if first <= at < last))

    def bounds(self, at: int, source: int, number: int) -> tuple[int, int]:
        """Between which units a packet came on the channel that is put at this place in RRL."""
        since = self.last_accepted[source]
        if at:
            before = self.logs.accepted.logs[RECEIVED][at - 1]
            since = max(since, self.logs.places[before.source, before.seq][0])
        return since, self.missing[source][number]


def _ranges(numbers: list[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return tuple(ranges)
