"""When a donor's traffic is so much that a state gives way to it."""

from ordercast.live.state_transfer.traffic import IDLE_RATE, WINDOW, Traffic


class Member:
    """Whose clock and datagrams a test has."""

    def __init__(self) -> None:
        self.now, self.arrived = 100.0, 7
        self.traffic = Traffic(lambda: self.arrived, lambda: self.now)

    def passes(self, seconds: float, rate: float) -> None:
        self.now += seconds
        self.arrived += round(rate * seconds)


def test_few_large_datagrams_are_traffic_and_heartbeats_are_none() -> None:
    member = Member()
    for rate, is_much in ((20, False), (IDLE_RATE - 1, False), (2 * IDLE_RATE, True), (10_000, True), (20, False)):
        member.passes(1.0, rate)
        assert member.traffic.is_much is is_much


def test_between_two_chunks_is_too_short_a_time_to_change_its_mind() -> None:
    member = Member()
    member.passes(1.0, 1000)
    assert member.traffic.is_much
    for _ in range(8):
        member.passes(WINDOW / 10, 0)
        assert member.traffic.is_much, "a chunk takes less than a millisecond, in which nothing may arrive"
    member.passes(WINDOW, 0)
    assert not member.traffic.is_much


def test_what_it_has_looked_at_before_does_not_hide_what_comes_now() -> None:
    member = Member()
    member.passes(3600.0, 1)
    member.traffic.look()
    member.passes(WINDOW, 3 / WINDOW)
    assert member.traffic.is_much, "an hour of silence does not count"
