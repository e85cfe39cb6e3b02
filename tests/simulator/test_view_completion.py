"""When a run of a group with views is complete, and when too few remain."""

from ordercast.model.units import Packet
from ordercast.simulator.view_completion import ViewCompletion


def sent_by(source: int, destinations: int, first: int = 0) -> Packet:
    return Packet(source, destinations, first, (), first, (1,), b"x")


def a_group(*packets: Packet, founders: tuple[int, ...] = (0, 1, 2), nodes: int = 4) -> ViewCompletion:
    completion = ViewCompletion(nodes, [0] * nodes, founders)
    for node in founders:
        completion.enters(node, 0, founders)
    for packet in packets:
        completion._unsent[packet.source] += 1
        completion.numbered(packet)
    return completion


def test_all_members_of_the_view_that_it_is_for_must_have_a_packet() -> None:
    packet = sent_by(0, 0b1111)
    completion = a_group(packet)
    for node in (0, 1):
        completion.delivered(node, packet)
        assert not completion.is_complete()
    completion.delivered(2, packet)
    assert completion.is_complete(), "node 3 is no member of the view in which it is delivered"


def test_those_that_join_must_have_what_is_delivered_in_their_views() -> None:
    packet = sent_by(0, 0b1011)
    completion = a_group(packet)
    completion.joins(3)
    assert not completion.is_complete(), "one that has begun to join is awaited"
    for node in (0, 1, 2, 3):
        completion.enters(node, 1, (0, 1, 2, 3))
    completion.delivered(0, packet)
    completion.delivered(1, packet)
    assert not completion.is_complete()
    completion.left(3)
    assert completion.is_complete()


def test_what_the_gone_sent_is_for_all_that_remain_or_for_none() -> None:
    one, other = sent_by(2, 0b011), sent_by(2, 0b111, first=1)
    completion = a_group(one, other)
    completion.left(2)
    for node in (0, 1):
        completion.enters(node, 1, (0, 1))
    assert completion.is_complete()
    completion.delivered(0, one)
    assert not completion.is_complete()
    completion.delivered(1, one)
    assert completion.is_complete()


def test_what_is_not_sent_is_not_awaited() -> None:
    packet = sent_by(0, 0b100)
    completion = a_group(packet)
    completion.left(2)
    assert completion.is_complete(), "it was for nobody that remains"
    completion._unsent[0] += 3
    assert not completion.is_complete()
    completion.not_sent(0, 3, None)
    assert completion.is_complete()
    completion.not_sent(0, 1, first=0)
    completion.not_sent(0, 1, first=0)
    assert completion.is_complete(), "it was sent once, and counted then"


def test_a_group_is_blocked_without_a_quorum_of_its_latest_view() -> None:
    completion = a_group(founders=(0, 1, 2, 3))
    assert not completion.is_blocked(0)
    completion.left(3)
    completion.left(2)
    assert not completion.is_blocked(0), "half, with the first"
    assert completion.is_blocked(1), "a sequencer needs all but one"
    completion.left(0)
    assert completion.is_blocked(0)


def test_a_view_that_only_one_entered_that_crashed_counts_too() -> None:
    completion = a_group(founders=(0, 1, 2, 3))
    completion.enters(0, 1, (0, 1))
    completion.left(0)
    assert completion.is_blocked(0), "of view 1 there is no quorum"
