"""Recovery (section 4.2, which only cites the agreement): go-back-n for the whole group, by agreement on a cut.

A node that lacks something stops and sends an **epoch vector**: what it has accepted of each source. All that receive
one stop and send their own. A vector never changes, so all nodes that have the vectors of all compute the same **cut**:
the minimum for each source. Everything below the cut all nodes have accepted, and keep, in channel order (what group
communication calls a virtually synchronous cut); everything above it all nodes discard, and its source sends it
again under new numbers. A node that has rolled back to the cut announces it, and the new epoch begins when all have.
"""

from enum import Enum
from typing import Final

from ordercast.model.nodes import everybody
from ordercast.model.state import DeclaredState
from ordercast.model.units import Packet
from ordercast.protocols.to.units import CarryingVector, EpochVector, Vector, vector_of


class Mode(Enum):
    """How far this node is in a recovery."""

    NORMAL = "normal"
    COLLECTING = "collecting"
    """It has stopped, and collects the vectors of all."""
    INSTALLED = "installed"
    """It has rolled back to the cut, and waits until all have."""


class EpochAgreement(DeclaredState):
    """The vectors of a recovery, and who has rolled back."""

    me: Final[int]
    nodes: Final[int]
    everybody: Final[int]
    epoch: int
    """The number of recoveries so far."""
    mode: Mode
    vectors: list[Vector | None]
    """VEC: by node; all None in normal operation."""
    installed: int
    """INST: the set of the nodes that have rolled back to the cut."""

    def __init__(self, me: int, nodes: int) -> None:
        self.me, self.nodes, self.everybody = me, nodes, everybody(nodes)
        self.epoch, self.mode = 0, Mode.NORMAL
        self.vectors, self.installed = [None] * nodes, 0

    def stop(self, expected: list[int], carried: tuple[int, Packet] | None) -> None:
        """Fixes the vector of this node; `carried` is a packet that goes with it, and its seq."""
        self.mode, self.installed = Mode.COLLECTING, 0
        vector = EpochVector(self.me, self.epoch + 1, tuple(expected), installed=False, wants=0)
        self.vectors[self.me] = CarryingVector(carried[1], vector, carried[0]) if carried else vector

    def own_vector(self, wants: int) -> Vector:
        """The vector of this node, to be sent now."""
        own = self.vectors[self.me]
        assert own is not None
        fixed = vector_of(own)
        vector = EpochVector(self.me, fixed.epoch, fixed.expects, self.mode is Mode.INSTALLED, wants)
        return CarryingVector(own.packet, vector, own.seq) if isinstance(own, CarryingVector) else vector

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

    def install(self) -> None:
        """Notes that this node has rolled back to the cut."""
        self.epoch += 1
        self.mode = Mode.INSTALLED

    def note_installed(self, nodes: int) -> bool:
        """These nodes have rolled back; True if any of them was not known to have."""
        known = self.installed
        self.installed |= nodes
        return self.installed != known

    def begin(self) -> int:
        """The new epoch begins; returns how many units others had accepted and this node had not."""
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
