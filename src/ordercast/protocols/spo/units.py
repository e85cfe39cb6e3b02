"""SPO's units. PO and ST send the same ones; ST adds those of its recovery (`st.units`).

A data unit carries a **packet**, the same in every copy, and a **status**: the acknowledgments and free buffers of the
sender at the moment of transmission. The newest status of a node implies all its older ones.
"""

import msgspec

from ordercast.model.nodes import name_of
from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, Unit, header_size

_RANGE_SIZE = 10  # a missing range: source and two numbers

Ranges = tuple[tuple[int, int], ...]
"""Ranges [start, stop) of numbers."""
Missing = tuple[tuple[int, Ranges], ...]
"""By source, the ranges of its numbers that are missing."""


class Status(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Cumulative acknowledgments and free buffers of a node when it transmitted."""

    stamp: int
    """Counts all transmissions of the sender; of two statuses the one with the higher stamp is the newer."""
    expects: tuple[int, ...]
    """ACK_j: the seq that the sender expects next from j; all below it is accepted."""
    preacknowledged_below: tuple[int, ...] = ()
    """PACK_j: the sender has pre-acknowledged all packets to it that j sent below this seq."""
    free: int = 0
    """BUF: free receive buffers of the sender, for the source that has fewest."""
    epoch: int = 0
    """ST: the number of recoveries that the sender has completed. SPO and PO, with views: `settled_below`."""

    @property
    def settled_below(self) -> int:
        """SPO and PO, with views: all packets of the sender below this are with all their destinations."""
        return self.epoch


class Data(DataUnit, frozen=True, gc=False, tag=1):
    """DT: a packet and the sender's status."""

    status: Status

    @property
    def source(self) -> int:
        """SRC."""
        return self.packet.source

    def size(self) -> int:
        """With the vectors of its packet and its status."""
        return header_size(len(self.packet.seq_to)) + self.packet.body_size()


class Ready(Unit, frozen=True, gc=False, tag=2):
    """RR: receive-ready, a status without data. It has no sequence number and is never retransmitted.

    With `missing` it is a request for retransmission (RETRANS), with `wants` a poll.
    """

    source: int
    next_seq: int
    """TSEQ of the sender's next packet."""
    next_seq_to: tuple[int, ...]
    """PSEQ_j of the sender's next packet."""
    status: Status
    wants: int = 0
    """The nodes that are asked for their status, a bit mask."""
    missing: Missing = ()
    """By source, the ranges of seq_to[sender] that the sender lacks."""

    def size(self) -> int:
        """That of a data unit without data, and the ranges."""
        return header_size(len(self.next_seq_to)) + _RANGE_SIZE * sum(len(ranges) for _, ranges in self.missing)

    def label(self) -> str:
        """A poll if it asks for statuses."""
        return "poll" if self.wants else "status"

    def can_wait(self) -> bool:
        """Unless it asks for something that is missing."""
        return not self.missing

    def needs_place(self) -> bool:
        """Only if it asks for something: it shows losses then."""
        return bool(self.missing or self.wants)

    def asks_for(self) -> str | None:
        """The missing ranges."""
        if not self.missing:
            return None  # as nearly always
        return ", ".join(
            f"{name_of(source)} {'+'.join(str(a) if b == a + 1 else f'{a}-{b - 1}' for a, b in ranges)}"
            for source, ranges in self.missing
        )


class RetransmitRequest(Unit, frozen=True, gc=False, tag=3):
    """RETRANS as printed: everything for the sender from these numbers on. Only the `paper` rules send it."""

    source: int
    expects: tuple[int, ...]
    """ACK_j."""

    def size(self) -> int:
        """A vector."""
        return FIXED_SIZE + NUMBER_SIZE * len(self.expects)

    def label(self) -> str:
        """The same whatever it asks for."""
        return "request"

    def asks_for(self) -> str | None:
        """Everything from some numbers on."""
        return f"all to me from {list(self.expects)} on"
