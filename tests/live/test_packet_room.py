"""Packets that become shorter where units are lost, and longer again where none is."""

import asyncio

import pytest

from ordercast.live.packet_room import PacketRoom
from ordercast.live.settings import NETWORK_MTU, SEGMENTS, Wishes, agreement
from tests.live.groups import group_of, run

AGREED = agreement("spo", 3, Wishes(), loopback=False)
LEAST, MOST = AGREED.least_room(), AGREED.packet_room()


class Counts:
    def __init__(self) -> None:
        self.transmitted = self.retransmitted = self.requests = 0


class Sender:
    """Sends a hundred units at a time; some of them are copies, or ask for copies."""

    def __init__(self, least: int = LEAST, most: int = MOST) -> None:
        self.room, self.counts = PacketRoom(least, most), Counts()

    def send(self, copies: int = 0, requests: int = 0, units: int = 100) -> int:
        self.counts.transmitted += units
        self.counts.retransmitted += copies
        self.counts.requests += requests
        return self.room.suit(self.counts)


def test_from_a_whole_train_to_one_packet_of_the_network_and_back() -> None:
    """A packet of the least room is in one segment with all that is around it, one of the most in all of a train."""
    assert NETWORK_MTU / 2 < LEAST < NETWORK_MTU
    assert (SEGMENTS - 1) * NETWORK_MTU < MOST < SEGMENTS * NETWORK_MTU
    sender = Sender()
    falling = [sender.send(copies=3) for _ in range(5)]
    assert falling[:2] == [MOST // 2, MOST // 4]
    assert falling[-1] == sender.send(copies=50) == LEAST, "and no less"
    rising = [sender.send() for _ in range(20)]
    assert rising[0] == LEAST * 5 // 4
    assert rising == sorted(rising)
    assert rising[-1] == MOST, "and no more"


def test_requests_say_as_much_as_copies() -> None:
    assert Sender().send(requests=3) == MOST // 2


def test_a_loss_now_and_then_changes_nothing() -> None:
    sender = Sender()
    shorter = sender.send(copies=10)
    assert [sender.send(copies=1), sender.send(copies=2), sender.send(requests=1)] == [shorter] * 3


def test_only_what_is_new_counts() -> None:
    sender = Sender()
    sender.send(copies=90)
    assert sender.send() == MOST // 2 * 5 // 4


@pytest.mark.parametrize("copies", [0, 5])
def test_who_sends_nothing_may_ask_for_copies(copies: int) -> None:
    sender = Sender()
    sender.send(copies=20)
    room = sender.send(units=copies, copies=copies)
    assert room == (MOST // 4 if copies else MOST // 2 * 5 // 4)


def test_where_packets_have_no_limit_nothing_changes() -> None:
    agreed = agreement("spo", 3, Wishes(), loopback=True)
    assert agreed.least_room() == agreed.packet_room()
    sender = Sender(agreed.least_room(), agreed.packet_room())
    assert {sender.send(copies=90), sender.send()} == {agreed.packet_room()}


def test_a_member_looks_twice_in_a_beat() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial", mtu=NETWORK_MTU) as groups:
            member = groups["A"]._member
            host, most = member._host, member.outbox.room
            assert host is not None
            host.retransmitted += 1000
            member._tick()
            assert member.outbox.room == most // 2
            while member.outbox.room < most:  # nothing more is lost
                await asyncio.sleep(0.01)

    run(test)
