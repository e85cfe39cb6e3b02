"""Recovery of TO after a loss: go-back-n for the whole group, by agreement on a cut.

From: Nakamura and Takizawa, section 4.2, which only cites the agreement; with the departures that `machine` lists.

A node that lacks something stops and sends an **epoch vector**: what it has accepted of each source. All that receive
one stop and send their own. A vector never changes, so all nodes that have the vectors of all compute the same **cut**:
the minimum for each source. Everything below the cut all nodes have accepted, and keep, in channel order (what group
communication calls a virtually synchronous cut); everything above it all nodes discard, and its source sends it
again under new numbers. A node that has rolled back to the cut announces it, and the new epoch begins when all have.
"""

from enum import Enum
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import CancelTimer, Discard, Output, Resumed, Send, SetTimer, Stopped
from ordercast.model.nodes import everybody
from ordercast.model.units import Packet
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.shared.jitter import spread
from ordercast.protocols.shared.reasons import STOPPED_BY_PEER
from ordercast.protocols.to.reception import Reception
from ordercast.protocols.to.transmission import Transmission
from ordercast.protocols.to.units import CarryingVector, EpochVector, Heading, OrderedData, Vector, vector_of


class Mode(Enum):
    """How far this node is in a recovery."""

    NORMAL = "normal"
    COLLECTING = "collecting"
    """It has stopped, and collects the vectors of all."""
    INSTALLED = "installed"
    """It has rolled back to the cut, and waits until all have."""


class Recovery(DeclaredState):
    """The vectors of a recovery, and who has rolled back."""

    me: Final[int]
    nodes: Final[int]
    everybody: Final[int]
    reset_interval: Final[int]
    transmission: Final[Transmission]
    reception: Final[Reception]
    backoff: Final[Backoff]
    epoch: int
    """The number of recoveries so far."""
    mode: Mode
    """Normal; collecting: it has stopped, and collects the vectors of all; installed: it waits for the others."""
    vectors: list[Vector | None]
    """VEC: by node; all None in normal operation."""
    installed: int
    """INST: the set of the nodes that have rolled back to the cut."""

    def __init__(
        self, me: int, config: GroupConfig, transmission: Transmission, reception: Reception, backoff: Backoff
    ) -> None:
        self.me, self.nodes, self.everybody = me, config.nodes, everybody(config.nodes)
        self.reset_interval = config.timing.reset
        self.transmission, self.reception, self.backoff = transmission, reception, backoff
        self.epoch, self.mode = 0, Mode.NORMAL
        self.vectors, self.installed = [None] * config.nodes, 0

    # --- stopping and agreeing on the cut ---

    def start(self, why: str, out: list[Output]) -> None:
        """Stops, and sends what this node has accepted."""
        out.append(Stopped(why))
        self.fix_vector(self.reception.expected, self.transmission.discarded_before())
        self.backoff.restart()
        self.send_vector(0, out)

    def fix_vector(self, expected: list[int], carried: tuple[int, Packet] | None) -> None:
        """The vector of this node from now on; `carried` is a packet that goes with it, and its seq."""
        self.mode, self.installed = Mode.COLLECTING, 0
        vector = EpochVector(self.me, self.epoch + 1, tuple(expected), installed=False, wants=0)
        self.vectors[self.me] = CarryingVector(carried[1], vector, carried[0]) if carried else vector

    def send_vector(self, wants: int, out: list[Output]) -> None:
        """Broadcasts the vector of this node, and sets the timer that repeats it; `wants`: the nodes it waits for."""
        self.transmission.stamp += 1
        vector = self.own_vector(wants)
        out.append(Send(vector, again=isinstance(vector, CarryingVector)))
        duration = self.reset_interval * self.backoff.factor
        out.append(SetTimer("reset", spread(duration, self.me, self.transmission.stamp)))

    def own_vector(self, wants: int) -> Vector:
        """The vector of this node, to be sent now."""
        own = self.vectors[self.me]
        assert own is not None
        fixed = vector_of(own)
        vector = EpochVector(self.me, fixed.epoch, fixed.expects, self.mode is Mode.INSTALLED, wants)
        return CarryingVector(own.packet, vector, own.seq) if isinstance(own, CarryingVector) else vector

    def receive(self, unit: Vector, vector: EpochVector, out: list[Output]) -> str:
        """A vector of this recovery, or of the one before; returns why the group must be aborted, else empty."""
        if vector.epoch == self.epoch + 1:
            if self.mode is Mode.INSTALLED:  # only where the epoch had begun can it have ended
                self.begin_epoch(out)
            if self.mode is Mode.NORMAL:
                self.start(STOPPED_BY_PEER, out)
            if self.collect(unit, vector):
                self.backoff.progress = True
                vectors = self.collected()
                if vectors:
                    return self._roll_back(vectors, out)
        elif vector.epoch != self.epoch:
            out.append(Discard(unit, "old"))
        elif self.mode is Mode.INSTALLED:
            self._take_installed(1 << vector.source if vector.installed else 0, out)
        elif self.mode is Mode.NORMAL and vector.wants >> self.me & 1:
            self.reception.pending = True  # any unit of this epoch implies that all have rolled back
        return ""

    def collect(self, unit: Vector, vector: EpochVector) -> bool:
        """Takes a vector of the recovery that is under way; False if this node has that vector already."""
        if vector.installed:
            self.installed |= 1 << vector.source
        if self.vectors[vector.source] is not None:
            return False
        self.vectors[vector.source] = unit
        return True

    def collected(self) -> list[Vector]:
        """The vectors of all nodes; empty as long as one is missing."""
        found = [vector for vector in self.vectors if vector is not None]
        return found if len(found) == self.nodes else []

    # --- going back to the cut ---

    def _roll_back(self, vectors: list[Vector], out: list[Output]) -> str:
        """Rolls back: all nodes keep what lies below the cut, and nothing else. Returns why that is impossible."""
        cut = cut_of(vectors)
        if self.reception.contradicts(cut):
            return "inconsistent acknowledgments: a node lacks what it has acknowledged"
        self.reception.roll_back(cut, out)
        self.transmission.roll_back()
        self.install()
        self._accept_carried(vectors, out)
        self.transmission.next_seq = self.reception.expected[self.me]
        self.reception.pending, self.reception.unreported = False, 0
        self.backoff.restart()
        self.send_vector(0, out)
        self._take_installed(1 << self.me, out)
        return ""

    def _accept_carried(self, vectors: list[Vector], out: list[Output]) -> None:
        """What vectors carried and is not kept comes first in the new epoch, by source, at all nodes."""
        expected = self.reception.expected
        cut = tuple(expected)
        for source, unit in enumerate(vectors):
            if isinstance(unit, CarryingVector) and unit.seq >= cut[source]:
                expected[source] += 1
                first = OrderedData(unit.packet, Heading(source, self.epoch, cut[source], cut, 0))
                self.reception.accept(first, source, cut[source], out)
                if source == self.me:
                    self.transmission.sent.append((cut[source], self.transmission.resend.popleft()))

    def install(self) -> None:
        """Notes that this node has rolled back to the cut."""
        self.epoch += 1
        self.mode = Mode.INSTALLED

    # --- the new epoch ---

    def _take_installed(self, nodes: int, out: list[Output]) -> None:
        if self.note_installed(nodes):
            self.backoff.progress = True
        if self.installed == self.everybody:
            self.begin_epoch(out)

    def note_installed(self, nodes: int) -> bool:
        """These nodes have rolled back; True if any of them was not known to have."""
        known = self.installed
        self.installed |= nodes
        return self.installed != known

    def begin_epoch(self, out: list[Output]) -> None:
        """All nodes have rolled back to the cut: normal operation resumes."""
        lacked = self.finish()
        out.append(CancelTimer("reset"))
        carried = self.reception.begin_epoch(out)
        out.append(Resumed(lacked, carried, 0))
        self.backoff.progress = True

    def finish(self) -> int:
        """Drops the vectors; returns how many units others had accepted and this node had not."""
        self.mode = Mode.NORMAL
        columns = [vector_of(unit).expects for unit in self.vectors if unit is not None]
        mine = columns[self.me]
        self.vectors = [None] * self.nodes
        return sum(max(column) - own for own, column in zip(mine, zip(*columns, strict=True), strict=True))

    def blockers(self) -> int:
        """The nodes that a recovery waits for."""
        if self.mode is Mode.COLLECTING:
            return sum(1 << node for node, vector in enumerate(self.vectors) if vector is None)
        return self.everybody & ~self.installed


def cut_of(vectors: list[Vector]) -> list[int]:
    """By source: all nodes have accepted everything below this."""
    return [min(column) for column in zip(*[vector_of(unit).expects for unit in vectors], strict=True)]
