"""Less is sent at once where units are lost, then in shorter datagrams; and more again where none is."""

import asyncio

import pytest

from ordercast.live.host.congestion import (
    MAX_BYTES_BY_LINKS,
    MAX_BYTES_IN_FLIGHT,
    MIN_BYTES_BY_LINKS,
    CongestionControl,
    DatagramSizes,
    FlightWindow,
)
from ordercast.live.host.parameters import INITIAL_SEGMENTS, MAX_SIZE_BY_LINKS, Parameters, parameters_for
from ordercast.live.settings import NETWORK_MTU, Settings
from tests.live.groups import group_of, member_of, run

MULTICAST = Settings(order="spo", multicast="239.77.1.2:7400")
"""Without links: datagrams travel in fragments."""
SIZES = parameters_for(MULTICAST, 3, loopback=False).datagram_sizes(1 << 20)
LEAST, FIRST, MOST = SIZES


class Counts:
    def __init__(self) -> None:
        self.transmitted = self.retransmitted = self.requests = self.sent = 0


class Sender:
    """Sends a hundred units at a time; some of them are copies, or ask for copies."""

    def __init__(self, sizes: DatagramSizes = SIZES) -> None:
        self.pace, self.counts = CongestionControl(sizes), Counts()

    def send(self, copies: int = 0, requests: int = 0, units: int = 100, sent: int = 50) -> tuple[int, int]:
        self.counts.transmitted += units
        self.counts.sent += sent if units else 0
        self.counts.retransmitted += copies
        self.counts.requests += requests
        self.pace.adapt(self.counts)
        return self.pace.bytes_in_flight, self.pace.datagram


def test_first_less_at_a_time_then_shorter_and_back() -> None:
    assert (LEAST, FIRST) == (NETWORK_MTU, INITIAL_SEGMENTS * NETWORK_MTU)
    sender = Sender()
    falling = [sender.send(copies=3) for _ in range(7)]
    assert falling[0] == (MAX_BYTES_IN_FLIGHT // 2, FIRST)
    assert [datagram for _, datagram in falling[:4]] == [FIRST, FIRST, FIRST, FIRST // 2]
    assert 2 * MOST < falling[3][0] == falling[-1][0] < MAX_BYTES_IN_FLIGHT / 7, "two datagrams must be under way"
    assert falling[-1][1] == sender.send(copies=50)[1] == LEAST, "and no less"
    rising = [sender.send() for _ in range(30)]
    assert rising[0] == (falling[-1][0] * 5 // 4, LEAST * 5 // 4)
    assert rising == sorted(rising)
    assert rising[-1] == (MAX_BYTES_IN_FLIGHT, MOST), "and no more"


@pytest.mark.parametrize(
    ("buffer", "sizes"),
    [
        (212_992, (1352, 10_816, 60_000)),  # what Linux gives if it is not asked to
        (60_000, (1352, 10_816, 30_000)),
        (16_384, (1352, 8192, 8192)),
        (2048, (1352, 1352, 1352)),
    ],
)
def test_two_datagrams_fit_into_the_buffer_of_a_receiver_like_us(buffer: int, sizes: DatagramSizes) -> None:
    assert parameters_for(MULTICAST, 3, loopback=False).datagram_sizes(buffer) == sizes
    least, _, most = sizes
    assert parameters_for(Settings(order="spo"), 3, loopback=False).datagram_sizes(buffer) == (
        least,
        min(most, MAX_SIZE_BY_LINKS),
        min(most, MAX_SIZE_BY_LINKS),
    ), "what is lost in links is repeated by itself: they are long at once"
    assert set(parameters_for(Settings(order="spo"), 3, loopback=True).datagram_sizes(buffer)) == {60_000}, (
        "nothing to choose"
    )
    assert set(
        parameters_for(Settings(order="spo", max_datagram_size=600), 3, loopback=False).datagram_sizes(buffer)
    ) == {600}


def test_requests_say_as_much_as_copies() -> None:
    assert Sender().send(requests=3) == Sender().send(copies=3) == (MAX_BYTES_IN_FLIGHT // 2, FIRST)


def test_if_very_much_is_lost_datagrams_are_short_at_once() -> None:
    sender = Sender()
    assert [sender.send(copies=25)[1] for _ in range(3)] == [FIRST // 4, LEAST, LEAST]


def test_while_nothing_new_is_sent_nothing_grows() -> None:
    sender = Sender()
    slower = sender.send(copies=20)
    assert [sender.send(sent=0) for _ in range(5)] == [slower] * 5
    assert sender.send(sent=1) > slower


def test_a_loss_now_and_then_changes_nothing() -> None:
    sender = Sender()
    slower = sender.send(copies=10)
    assert [sender.send(copies=1), sender.send(copies=2), sender.send(requests=1)] == [slower] * 3


def test_only_what_is_new_counts() -> None:
    sender = Sender()
    sender.send(copies=90)
    assert sender.send() == (MAX_BYTES_IN_FLIGHT // 2 * 5 // 4, FIRST // 4 * 5 // 4)


@pytest.mark.parametrize("copies", [0, 5])
def test_that_nothing_is_lost_of_nothing_says_nothing(copies: int) -> None:
    """But whoever sends nothing else may send copies."""
    sender = Sender()
    sender.send(copies=20)
    assert sender.send(units=copies, copies=copies)[0] == (
        MAX_BYTES_IN_FLIGHT // 4 if copies else MAX_BYTES_IN_FLIGHT // 2
    )


def test_where_the_network_has_no_packets_datagrams_stay_as_they_are() -> None:
    agreed = parameters_for(Settings(order="spo"), 3, loopback=True)
    sender = Sender(agreed.datagram_sizes(1 << 20))
    found = {sender.send(copies=90)[1] for _ in range(9)} | {sender.send()[1]}
    assert found == {agreed.max_datagram_size}


def test_a_member_looks_twice_in_a_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parameters, "has_links", False)  # as with multicast

    async def test() -> None:
        async with group_of("A", "B", order="partial", mtu=NETWORK_MTU) as groups:
            member = member_of(groups["A"])
            host, lines = member.host, member.transport
            assert host is not None
            assert lines.max_datagram_size == FIRST
            member.counts.retransmitted += 1000
            member._upkeep.tick()
            assert (host.own.max_bytes_in_flight, lines.max_datagram_size) == (MAX_BYTES_IN_FLIGHT // 2, FIRST // 4)
            assert 0.8 * lines.max_datagram_size < member.outbox.room < lines.max_datagram_size
            while lines.max_datagram_size <= FIRST:  # nothing more is lost
                await groups["A"].send(b"x")
                await asyncio.sleep(0.01)

    run(test)


def placed(window: FlightWindow, *, rate: float, seconds: float, begin: float, end: float) -> None:
    """So many bytes a second get their places, each after so many seconds."""
    at = begin
    while at < end:
        window.placed(10_000, seconds, at)
        at += 10_000 / rate


def test_twice_what_is_on_its_way_may_be_in_flight() -> None:
    window = FlightWindow()
    assert window.limit == MIN_BYTES_BY_LINKS
    placed(window, rate=20e6, seconds=0.3, begin=100, end=104)
    assert window.limit == pytest.approx(2 * 20e6 * 0.3, rel=0.05)
    placed(window, rate=1e6, seconds=0.3, begin=104, end=108)
    assert window.limit == MIN_BYTES_BY_LINKS, "only the last rates count"
    placed(window, rate=1e9, seconds=0.3, begin=108, end=109.5)
    assert window.limit == MAX_BYTES_BY_LINKS


def test_what_waits_on_the_way_does_not_make_the_window_grow() -> None:
    """It is measured again how long it takes without: with a quarter in flight."""
    window = FlightWindow()
    placed(window, rate=50e6, seconds=0.1, begin=100, end=101)
    placed(window, rate=50e6, seconds=0.2, begin=101, end=110)
    assert window.limit == pytest.approx(2 * 50e6 * 0.1, rel=0.05)
    placed(window, rate=50e6, seconds=0.2, begin=110, end=111.3)
    assert window.limit == MIN_BYTES_BY_LINKS, "it measures"
    placed(window, rate=50e6, seconds=0.15, begin=111.3, end=113)
    assert window.limit == pytest.approx(2 * 50e6 * 0.15, rel=0.05), "and goes on"


def test_the_time_in_which_nothing_was_sent_is_no_rate() -> None:
    window = FlightWindow()
    placed(window, rate=50e6, seconds=0.1, begin=100, end=101)
    window.placed(10_000, 0.1, 108)
    assert window.limit == pytest.approx(2 * 50e6 * 0.1, rel=0.05)


def test_no_more_is_under_way_than_may_be() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial", failure_timeout=60) as groups:
            member = member_of(groups["A"])
            host = member.host
            assert host is not None
            host.own.max_bytes_in_flight = 150_000
            for _ in range(40):
                groups["A"].send_nowait(bytes(50_000))
            most = 0
            while not host.is_at_rest():
                most = max(most, host.own.bytes_in_flight)
                await asyncio.sleep(0)
            assert 150_000 <= most < 150_000 + 60_000
            for _ in range(40):
                assert len((await groups["B"].receive()).payload) == 50_000

    run(test)
