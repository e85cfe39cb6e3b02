"""What an order must offer so that a view can end and the next one begin.

Each view runs a machine of the order of its own: an *epoch*. To end it, every member stops giving inputs to its
machine and reports what it has (`Flush.report`). From the reports of those that answered, one of them computes the
*cut*: for each source, where its packets end in this view (`Flush.cut`). Whoever goes on delivers what it has below
the cut and did not deliver yet (`Flush.finish`), and submits its own packets from the cut on again in the next epoch
(`Flush.left_over`). The rules that make a cut safe are in docs/explanation/view-changes.md.

An order's own recoveries (the epochs of ST and TO) are called *rounds* here.
"""

from collections.abc import Mapping, Sequence
from operator import le

import msgspec

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Output, Submit
from ordercast.model.nodes import mask_of, members
from ordercast.model.units import Packet

Ranges = tuple[tuple[int, int], ...]
"""Ranges [start, stop) of numbers."""


class EpochReport(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a member has of an epoch. It never changes once the member has stopped, whoever asks for it."""

    expected: tuple[int, ...]
    """By source: its packets below are here. Sequencer: its packets below have numbers below `numbered_below`."""
    stable: tuple[int, ...] = ()
    """SPO, PO, by source: all its packets below are with all their destinations."""
    round: int = 0
    """ST, TO, PriTO, PriO: the recoveries completed."""
    base: tuple[int, ...] = ()
    """By source: ST: what the next round begins with, if nothing of this one is lacking here. TO, PriTO, PriO: the unit
    with which this round begins, as long as it is not known that all have begun it. ST that places: the generation that
    is known."""
    units: tuple[int, ...] = ()
    """TO, PriTO, PriO, by source: its units below are here. ST that places: three numbers for each generation that some
    member may not know, its source, itself, and the first packet that it has moved."""
    numbered_below: int = 0
    """Sequencer: all numbers below were received."""


class Cut(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Where an epoch ends, for all that go on: what is below is delivered in it, what is not is in no view before."""

    ends: tuple[int, ...]
    """By source: its packets end here (exclusive)."""
    round: int = 0
    """ST, TO, PriTO, PriO: the round in which the epoch ends."""
    base: tuple[int, ...] = ()
    """TO, PriTO, PriO: the units with which that round begins; empty if all have begun it."""
    units: tuple[int, ...] = ()
    """TO, PriTO, PriO, by source: its units end here."""
    numbered_below: int = 0
    """Sequencer: the epoch's numbers end here."""


class Flush:
    """Ends the epoch of one member, whose machine it is made with. It has no state of its own.

    While it is used, the machine must be given no inputs; after `finish` it must not be given any more.
    """

    def report(self) -> EpochReport:
        """What the member has; pure."""
        raise NotImplementedError

    @staticmethod
    def cut(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        """The cut that follows from the reports, by place, of a quorum of a view with so many members; pure."""
        raise NotImplementedError

    @staticmethod
    def reports_needed(config: GroupConfig) -> int:
        """How many must have reported, besides that they are a quorum. Fewer would not know all that was delivered."""
        del config
        return 1

    @staticmethod
    def is_report(report: EpochReport, nodes: int) -> bool:
        """Whether a member of a view of this size can report this, whose vectors have an entry for each or none."""
        raise NotImplementedError

    @staticmethod
    def agree(reports: Mapping[int, EpochReport]) -> bool:
        """Whether these can all be true; only then there is a cut."""
        del reports
        return True

    def problem(self, cut: Cut) -> str | None:
        """What contradicts what this member has, if its report is among those that made the cut; None: nothing.

        All below a cut is here, or can be fetched, and what is stable here is below it. Only a unit that is wrong can
        make another cut: a member must not finish at it.
        """
        raise NotImplementedError

    def lacks(self, cut: Cut) -> Ranges:
        """The numbers below the cut that are to be fetched before `finish`. Only the sequencer's order has any."""
        del cut
        return ()

    def supply(self, ranges: Ranges) -> tuple[tuple[int, Packet], ...]:
        """Of these numbers, those that are here, with their packets. Only for the sequencer's order."""
        del ranges
        return ()

    def finish(self, cut: Cut, supplied: Mapping[int, Packet]) -> list[Output]:
        """Delivers what is below the cut and was not delivered yet: `Reached` and `Deliver` only, in order.

        All of it is acknowledged thereby. `supplied`: what was fetched, by number. The machine is spent then.
        """
        raise NotImplementedError

    def left_over(self, cut: Cut) -> list[Submit]:
        """What the next epoch must send: own packets from the cut on, then what waits for the window, in order.

        Destinations are places of the view that ends. It may be asked before `finish` or after it.
        """
        held, end, first = self.own_packets(), cut.ends[self.place()], self.next_message(cut)
        again = []
        for seq in sorted(held):
            if seq >= end:
                packet = held[seq]
                skips, first = packet.first - first, packet.first + len(packet.lengths)
                to, to_all = packet.destinations, self.is_to_all(seq)
                again.append(Submit(to, packet.lengths, packet.payload, packet.priority, skips, to_all))
        return [*again, *self.waiting()]

    def next_message(self, cut: Cut) -> int:
        """The message number of the first message left over, or of the next one: the next epoch goes on with it."""
        held, end = self.own_packets(), cut.ends[self.place()]
        return min([packet.first for seq, packet in held.items() if seq >= end], default=self.message_count())

    def start(self, next_message: int) -> None:
        """Tells a machine that was given no input yet the number of its first message."""
        raise NotImplementedError

    # --- what an order implements of the above ---

    def place(self) -> int:
        """The member's own place."""
        raise NotImplementedError

    def own_packets(self) -> dict[int, Packet]:
        """Own packets that are not known to be in every cut, by seq."""
        raise NotImplementedError

    def is_to_all(self, seq: int) -> bool:
        """Whether an own packet that is not in every cut was submitted to all. Only where some are not it is asked."""
        del seq
        return False

    def waiting(self) -> Sequence[Submit]:
        """What was submitted and has no number."""
        raise NotImplementedError

    def message_count(self) -> int:
        """The number of the next message."""
        raise NotImplementedError


def moved(left_over: Sequence[Submit], places: Mapping[int, int]) -> tuple[list[Submit], int]:
    """What is left over, for the members that go on: `places` are their new places, by their old ones.

    What has no destination any more is left out, but keeps its message numbers. Also returns how many of these the next
    submission must skip, in whichever view it is made.
    """
    kept, skips = [], 0
    for event in left_over:
        skips += event.skips
        to = mask_of(places[old] for old in members(event.destinations) if old in places)
        if to:
            kept.append(Submit(to, event.lengths, event.payload, event.priority, skips))
            skips = 0
        else:
            skips += len(event.lengths)
    return kept, skips


def is_below(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether no entry is higher than that of the other, which has as many."""
    return len(one) == len(other) and all(map(le, one, other))


def lowest(vectors: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The lowest of each entry."""
    return tuple([min(column) for column in zip(*vectors, strict=True)])


def highest(vectors: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The highest of each entry."""
    return tuple([max(column) for column in zip(*vectors, strict=True)])
