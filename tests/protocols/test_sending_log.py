"""The sending log, against a plain list of packets and who lacks them."""

from collections.abc import Sequence
from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.nodes import members
from ordercast.model.units import Packet
from ordercast.protocols.shared.sending_log import SendingLog

NODES, ME = 4, 1
Ranges = Sequence[tuple[int, int]]


class PlainLog:
    """The same, by the definition."""

    def __init__(self) -> None:
        self.lacking: list[tuple[Packet, set[int]]] = []

    def append(self, packet: Packet) -> None:
        self.lacking.append((packet, set(members(packet.destinations)) - {ME}))
        self.lacking = [(packet, nodes) for packet, nodes in self.lacking if nodes]

    def acknowledge(self, node: int, below: int) -> list[Packet]:
        for packet, nodes in self.lacking:
            if packet.seq < below:
                nodes.discard(node)
        released = [packet for packet, nodes in self.lacking if not nodes]
        self.lacking = [(packet, nodes) for packet, nodes in self.lacking if nodes]
        return released

    def find(self, node: int, ranges: Ranges) -> list[Packet]:
        return [
            packet
            for start, stop in ranges
            for packet, nodes in self.lacking
            if node in nodes and start <= packet.seq_to[node] < stop
        ]

    def blockers(self) -> int:
        return sum(1 << node for node in range(NODES) if any(node in nodes for _, nodes in self.lacking))


class Numbering:
    """Packets numbered as a source numbers them."""

    def __init__(self, first: int) -> None:
        self.seq, self.seq_to = first, [first] * NODES

    def packet(self, destinations: int) -> Packet:
        made = Packet(ME, destinations, self.seq, tuple(self.seq_to), self.seq, (1,), b"x")
        self.seq += 1
        for node in members(destinations):
            self.seq_to[node] += 1
        return made


ranges = st.lists(st.tuples(st.integers(-2, 30), st.integers(-2, 30)), max_size=3)
deeds = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, (1 << NODES) - 1)),
        st.tuples(st.just("acknowledge"), st.sampled_from([0, 2, 3]), st.integers(0, 30)),
        st.tuples(st.just("find"), st.sampled_from([0, 2, 3]), ranges),
        st.tuples(st.just("restore")),
    ),
    max_size=40,
)


@given(first=st.integers(0, 9), deeds=deeds)
def test_it_does_what_a_plain_list_does(first: int, deeds: list[tuple[object, ...]]) -> None:
    numbering, log, plain = Numbering(first), SendingLog(ME, NODES), PlainLog()
    for deed in deeds:
        match deed:
            case ("append", int(destinations)):
                packet = numbering.packet(destinations)
                log.append(packet)
                plain.append(packet)
            case ("acknowledge", int(node), int(below)):
                assert log.acknowledge(node, below) == plain.acknowledge(node, below)
            case ("find", int(node), list(asked)):
                assert log.find(node, asked) == plain.find(node, asked)
            case _:
                snapshot = log.snapshot()
                log = SendingLog(ME, NODES)
                log.restore(snapshot)
                assert log.snapshot() == snapshot
        assert len(log) == len(plain.lacking)
        assert log.blockers() == plain.blockers()


def test_what_is_for_ourselves_alone_is_not_kept() -> None:
    log = SendingLog(ME, NODES)
    log.append(Numbering(0).packet(1 << ME))
    assert len(log) == 0
    assert log.blockers() == 0


def test_a_snapshot_is_not_touched_by_what_follows() -> None:
    numbering, log = Numbering(0), SendingLog(ME, NODES)
    log.append(numbering.packet(0b1101))
    snapshot = log.snapshot()
    copy = deepcopy(snapshot)
    log.acknowledge(0, 9)
    log.append(numbering.packet(0b0001))
    assert snapshot == copy


def test_a_refilled_log_releases_as_the_first_one_would() -> None:
    numbering, log = Numbering(0), SendingLog(ME, NODES)
    packet = numbering.packet(0b1101)
    log.append(packet)
    log.acknowledge(0, 1)
    other = SendingLog(ME, NODES)
    other.append(numbering.packet(0b0001))
    other.restore(log.snapshot())
    assert len(other) == 1
    assert other.acknowledge(2, 1) == []
    assert other.acknowledge(3, 1) == [packet]
