"""The units of the printed PriTO; used by the `paper` rules alone.

Data and receive-ready units share one numbering (SEQ), and the number of a data unit is that of its packet: what is
rejected is broadcast again under the number that it had. The units of recovery and of run synchronisation have no
number, and no rule repeats them.
"""

from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, Unit

NIL = -1
"""Nothing of a source has timed out; below every number."""


class PrintedData(DataUnit, frozen=True, gc=False):
    """DT: data with a priority."""

    expects: tuple[int, ...]
    """ACK_j."""
    wants: bool = False
    """Its sender waits for acknowledgments."""

    @property
    def source(self) -> int:
        """SRC."""
        return self.packet.source

    @property
    def seq(self) -> int:
        """SEQ."""
        return self.packet.seq

    def size(self) -> int:
        """Number, priority and vector, and the messages."""
        return FIXED_SIZE + NUMBER_SIZE * (2 + len(self.expects)) + self.packet.body_size()


class PrintedReady(Unit, frozen=True, gc=False):
    """RR: no data, but a number, so that it can be pre-acknowledged like any other."""

    source: int
    seq: int
    """SEQ."""
    expects: tuple[int, ...]
    """ACK_j."""
    wants: bool = False
    """Its sender waits for acknowledgments."""

    def size(self) -> int:
        """Number and vector."""
        return FIXED_SIZE + NUMBER_SIZE * (1 + len(self.expects))

    def label(self) -> str:
        """Its kind in traces: a poll if it wants an answer."""
        return "poll" if self.wants else "status"


Printed = PrintedData | PrintedReady
"""Units with a number."""


class Lost(Unit, frozen=True, gc=False):
    """REQ, which all nodes broadcast when one has detected a loss."""

    source: int
    expects: tuple[int, ...]
    """REQ_j."""

    def size(self) -> int:
        """A vector."""
        return FIXED_SIZE + NUMBER_SIZE * len(self.expects)

    def label(self) -> str:
        """Its kind in traces."""
        return "reset"


class Rejected(Unit, frozen=True, gc=False):
    """The numbers from which on the sender rejects what it received, by source."""

    source: int
    below: tuple[int, ...]
    """By source: what it keeps."""

    def size(self) -> int:
        """A vector."""
        return FIXED_SIZE + NUMBER_SIZE * len(self.below)

    def label(self) -> str:
        """Its kind in traces."""
        return "reply"


class _RunSynchronisation(Unit, frozen=True, gc=False):
    """The fields of the three units of run synchronisation."""

    source: int
    timed_out: tuple[int, ...]
    """TOSEQ_j: the highest number of each source that has timed out, or NIL."""
    preacknowledged_below: tuple[int, ...]
    """PEQ_j."""

    def size(self) -> int:
        """Two vectors."""
        return FIXED_SIZE + NUMBER_SIZE * 2 * len(self.timed_out)


class RunSync(_RunSynchronisation, frozen=True, gc=False):
    """Run-Sync: a packet has timed out at the sender, which has stopped PACK and ACK."""

    def label(self) -> str:
        """Its kind in traces."""
        return "marker"


class RunSyncPack(_RunSynchronisation, frozen=True, gc=False):
    """Run-Sync-Pack: the sender has stopped too."""

    def label(self) -> str:
        """Its kind in traces."""
        return "reply"


class RunSyncAck(_RunSynchronisation, frozen=True, gc=False):
    """Run-Sync-Ack: the sender knows that all have stopped."""

    def label(self) -> str:
        """Its kind in traces."""
        return "done"
