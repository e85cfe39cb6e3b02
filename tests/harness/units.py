"""Units of every kind, drawn: well-formed by the contract of a machine, and otherwise as absurd as they like.

Sources and destinations are within the group and vectors have an entry for each node: whoever reads bytes sees to that.
Every number may be anything up to 2⁶³: small ones come close to what is true, large ones to what overflows.
"""

from typing import Any

from hypothesis import strategies as st

from ordercast.model.nodes import everybody
from ordercast.model.units import Packet, Unit
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.sequencer.units import (
    Accepted,
    Acknowledgment,
    Broadcast,
    Fetch,
    Flush,
    Flushed,
    Install,
    NextView,
    NumberAnnouncement,
    Offer,
    Propose,
    Refused,
    SequencerStatus,
    Supply,
    Synchronise,
    Synchronised,
    ViewRequest,
)
from ordercast.protocols.spo.units import Data, Ready, RetransmitRequest, Status
from ordercast.protocols.st.units import (
    PacketPosition,
    PlacedCopy,
    PlacedData,
    PlacedReady,
    PlacedStatus,
    ResetDone,
    ResetNeed,
    ResetReply,
)
from ordercast.protocols.to.units import (
    CarryingVector,
    EpochVector,
    Heading,
    OrderedData,
    OrderedReady,
    UnorderedReady,
)

Units = st.SearchStrategy[Unit]

NUMBER = st.integers(0, 4) | st.integers(0, 1 << 63)
FEW = st.integers(0, 3)


def _tuples(values: st.SearchStrategy[Any], most: int = 3, **how: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=most, **how).map(tuple)


def _ranges() -> st.SearchStrategy[Any]:
    return _tuples(st.tuples(NUMBER, NUMBER))


class Drawn:
    """What units of a group of so many nodes are made of."""

    def __init__(self, nodes: int) -> None:
        self.nodes, self.node = nodes, st.integers(0, nodes - 1)
        self.some = st.integers(1, everybody(nodes))
        self.any_of_them = st.integers(0, everybody(nodes))
        self.vector = st.tuples(*[NUMBER] * nodes)
        self.everybody = st.just(everybody(nodes))

    def packet(self, destinations: st.SearchStrategy[int], seq_to: st.SearchStrategy[Any]) -> st.SearchStrategy[Packet]:
        return st.builds(
            Packet, self.node, destinations, NUMBER, seq_to, NUMBER, st.just((1,)), st.just(b"x"), st.integers(0, 9)
        )

    def selective(self) -> Units:
        """SPO, PO and ST."""
        status = st.builds(Status, NUMBER, self.vector, self.vector, NUMBER, FEW)
        missing = _tuples(st.tuples(self.node, _ranges()))
        return st.one_of(
            st.builds(Data, self.packet(self.some, self.vector), status),
            st.builds(Ready, self.node, NUMBER, self.vector, status, self.any_of_them, missing),
            st.builds(RetransmitRequest, self.node, self.vector),
        )

    def resets(self) -> Units:
        """What ST adds."""
        log = _tuples(st.tuples(self.node, NUMBER, self.some), 4, unique_by=lambda entry: entry[:2])
        sent = _tuples(st.tuples(NUMBER, self.some), unique_by=lambda entry: entry[0])
        names = _tuples(st.tuples(self.node, NUMBER))
        return st.one_of(
            st.builds(ResetReply, self.node, FEW, NUMBER, self.vector, sent, log, NUMBER),
            st.builds(ResetNeed, self.node, FEW, self.any_of_them, names, self.any_of_them, NUMBER),
            st.builds(ResetDone, self.node, FEW),
        )

    def placed(self) -> Units:
        """ST that places."""
        starts = _tuples(st.tuples(FEW, NUMBER))
        known = st.tuples(*[FEW] * self.nodes)
        status = st.builds(PlacedStatus, NUMBER, self.vector, self.vector, NUMBER, FEW, known, starts)
        missing = _tuples(st.tuples(self.node, FEW, _ranges(), st.booleans()))
        witness = self.node | st.just(-1)
        high = st.tuples(*[NUMBER | st.just(-1)] * self.nodes)
        packet, names = self.packet(self.some, self.vector), st.tuples(self.node, NUMBER)
        return st.one_of(
            st.builds(PlacedData, packet, status),
            st.builds(PlacedReady, self.node, NUMBER, self.vector, status, self.any_of_them, missing, witness),
            st.builds(PlacedCopy, packet, NUMBER, FEW, known, self.vector, high),
            st.builds(PacketPosition, self.node, names, NUMBER, known, self.vector, high),
        )

    def ordered(self) -> Units:
        """TO, PriTO and PriO."""
        heading = st.builds(Heading, self.node, FEW, NUMBER, self.vector, NUMBER, self.any_of_them)
        vector = st.builds(EpochVector, self.node, FEW, self.vector, st.booleans(), self.any_of_them)
        packet = self.packet(self.everybody, st.just(()))
        return st.one_of(
            st.builds(OrderedData, packet, heading).map(_of_one_source),
            st.builds(OrderedReady, heading),
            st.builds(RunMarker, heading, NUMBER),
            st.builds(UnorderedReady, heading),
            vector,
            st.builds(CarryingVector, packet, vector, NUMBER).map(_of_one_source),
        )

    def sequenced(self) -> Units:
        """The sequencer's broadcast."""
        node, packet = self.node, self.packet(self.everybody, st.just(()))
        names, ballot = _tuples(st.tuples(node, NUMBER)), st.tuples(NUMBER, node)
        value = st.builds(NextView, FEW, self.some, node, NUMBER, st.just("why"))
        accepted = st.none() | st.tuples(ballot, value)
        phase = st.sampled_from([1, 2])
        return st.one_of(
            st.builds(Offer, packet, FEW, NUMBER, st.booleans()),
            st.builds(Broadcast, packet, FEW, node, NUMBER, NUMBER, NUMBER),
            st.builds(NumberAnnouncement, FEW, node, NUMBER, names, NUMBER, NUMBER),
            st.builds(Acknowledgment, FEW, node, NUMBER, _ranges(), st.booleans()),
            st.builds(SequencerStatus, FEW, node, NUMBER, NUMBER, NUMBER, self.any_of_them),
            st.builds(Synchronise, FEW, node, NUMBER, phase, NUMBER, NUMBER, self.any_of_them),
            st.builds(Synchronised, FEW, node, NUMBER, NUMBER),
            st.builds(Flush, FEW, node, ballot, self.any_of_them),
            st.builds(Flushed, FEW, node, ballot, NUMBER, accepted),
            st.builds(Refused, FEW, node, ballot, ballot),
            st.builds(Propose, FEW, node, ballot, value, self.any_of_them),
            st.builds(Accepted, FEW, node, ballot),
            st.builds(lambda source, value: Install(value.number, source, value), node, value),
            st.builds(Fetch, FEW, node, ballot, _ranges()),
            st.builds(Supply, packet, FEW, node, NUMBER),
            st.builds(ViewRequest, FEW, node),
        )


def _of_one_source(unit: Any) -> Unit:
    """The packet is its sender's own: another one's would not be well-formed."""
    packet = unit.packet
    mine = Packet(
        unit.source, packet.destinations, packet.seq, (), packet.first, packet.lengths, packet.payload, packet.priority
    )
    made: Unit = type(unit)(mine, *[getattr(unit, name) for name in unit.__struct_fields__ if name != "packet"])
    return made


def units_of(group: str, nodes: int) -> Units:
    """All kinds that a protocol knows, and now and then one that it does not."""
    drawn = Drawn(nodes)
    own = {
        "spo": drawn.selective(),
        "po": drawn.selective(),
        "st": drawn.placed() if group == "st place" else drawn.selective() | drawn.resets(),
        "to": drawn.ordered(),
        "prito": drawn.ordered(),
        "prio": drawn.ordered(),
        "sequencer": drawn.sequenced(),
    }[group.split(maxsplit=1)[0]]
    return own | own | own | st.builds(RetransmitRequest, drawn.node, drawn.vector)
