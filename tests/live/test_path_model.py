"""The model of a path, quantity by quantity, and its phases. A megabyte arrives in each round of 0.1 s, unless told."""

import pytest

from ordercast.live.transport.path_model import (
    ACK_DELAY,
    BURST_SECONDS,
    CYCLE,
    GRANULARITY,
    INITIAL_PACKETS,
    LATE_SECONDS,
    MAX_TIMEOUT,
    MIN_PACKETS,
    PROBE_SECONDS,
    ROUNDS,
    SHARING_PACKETS,
    SHORTEST_FOR,
    STARTUP_GAIN,
    PathModel,
)

PACKET, ROUND_TRIP, MEGABYTE = 1000, 0.1, 1_000_000
RATE = 1e7  # bytes a second
PRODUCT = RATE * ROUND_TRIP


class Path:
    """A model, and what is told to it: each round is sent at once and acknowledged at once."""

    def __init__(self) -> None:
        self.model, self.now = PathModel(PACKET, 0.02), 0.0

    def round(
        self,
        size: int = MEGABYTE,
        *,
        seconds: float = ROUND_TRIP,
        packets: int = 1000,
        lost: int = 0,
        left: int = 0,
        limited: bool = False,
    ) -> None:
        """`left`: bytes that are still under way; `limited`: there was no more to send."""
        if limited:
            self.model.ran_out(0)
        sample = self.model.sent(size, packets, self.now, 0)
        self.now += seconds
        self.model.measured(seconds, self.now)
        self.model.lost(lost)
        self.model.acknowledged(size, sample, self.now, left)

    def gain(self) -> float:
        """Of the rate at which packets are sent, over the bandwidth."""
        return round(self.model.burst() / BURST_SECONDS / self.model.bandwidth, 3)


def full_path() -> Path:
    """Its bandwidth is known."""
    path = Path()
    for _ in range(5):
        path.round()
    assert path.model.full
    return path


# --- the round trip ---


def test_a_timeout_is_that_of_rfc_6298_and_the_delay_of_acknowledgments() -> None:
    model = PathModel(PACKET, 0.02)
    assert model.timeout == pytest.approx(0.02 + 4 * 0.01 + 2 * ACK_DELAY)
    model.measured(0.1, 1.0)
    assert (model.smoothed, model.variation, model.latest) == (0.1, 0.05, 0.1)
    model.measured(0.2, 2.0)
    assert (model.smoothed, model.variation, model.latest) == pytest.approx((0.1125, 0.0625, 0.2))
    assert model.timeout == pytest.approx(0.1125 + 4 * 0.0625 + 2 * ACK_DELAY)
    for _ in range(100):
        model.measured(0.1, 3.0)
    assert model.timeout == pytest.approx(0.1 + GRANULARITY + 2 * ACK_DELAY, rel=0.01)
    model.measured(5.0, 4.0)
    assert model.timeout == MAX_TIMEOUT


def test_the_shortest_round_trip_is_the_first_that_is_measured_until_there_is_a_shorter_one() -> None:
    model = PathModel(PACKET, 0.02)
    for seconds, shortest in ((0.1, 0.1), (0.2, 0.1), (0.05, 0.05), (0.07, 0.05)):
        model.measured(seconds, 1.0)
        assert model.shortest == shortest


def test_the_shortest_round_trip_counts_for_some_seconds_and_is_then_measured_with_half_as_much_under_way() -> None:
    path = full_path()
    model, since = path.model, path.now
    model.measured(0.2, since + SHORTEST_FOR)
    assert model.shortest == ROUND_TRIP, "that long"
    path.now = since + SHORTEST_FOR
    path.round(2 * MEGABYTE, seconds=0.2)
    assert model.shortest == 0.2
    assert model.window == 2 * MEGABYTE // 2, "of the product"
    begun = path.now
    path.now = begun + PROBE_SECONDS  # and one round trip: the next round ends just then
    path.round(2 * MEGABYTE, seconds=0.2)
    assert model.window > 2 * 2 * MEGABYTE


def test_a_round_trip_that_is_as_short_makes_the_shortest_count_anew() -> None:
    path = full_path()
    since = path.now
    path.model.measured(ROUND_TRIP, since + 5)
    path.model.measured(0.2, since + SHORTEST_FOR + 1)
    assert path.model.shortest == ROUND_TRIP


def test_it_is_not_measured_again_before_the_bandwidth_is_known() -> None:
    model = PathModel(PACKET, 0.02)
    model.measured(0.1, 1.0)
    model.measured(0.2, 2 + SHORTEST_FOR)
    assert model.shortest == 0.1


# --- the bandwidth ---


def test_the_bandwidth_is_the_highest_rate_of_the_last_rounds() -> None:
    path = Path()
    path.round(2 * MEGABYTE)
    for _ in range(ROUNDS):
        path.round()
        assert path.model.bandwidth == pytest.approx(2 * RATE)
    path.round()
    assert path.model.bandwidth == pytest.approx(RATE)


def test_what_was_sent_when_there_was_too_little_to_send_counts_only_if_it_was_more() -> None:
    path = Path()
    path.round()
    for _ in range(ROUNDS + 1):
        path.round(MEGABYTE // 2, limited=True)
        assert path.model.bandwidth == pytest.approx(RATE)
    path.round(2 * MEGABYTE, limited=True)
    assert path.model.bandwidth == pytest.approx(2 * RATE)


def test_a_rate_is_what_arrived_since_it_was_sent_in_the_longer_of_the_times_of_sending_and_arriving() -> None:
    """What arrives together was not faster than it was sent, and what was sent at once not faster than it arrived."""
    model = PathModel(PACKET, 0.02)
    first = model.sent(1000, 1, 0.0, 0)
    second = model.sent(1000, 1, 1.0, 1000)
    model.acknowledged(1000, first, 2.0, 1000)
    assert model.bandwidth == 500
    model.acknowledged(1000, second, 2.0, 0)  # 2000 in 2 s since all was idle
    assert model.bandwidth == 1000
    third = model.sent(1000, 1, 3.0, 0)
    assert third.delivered == 2000
    fourth = model.sent(7000, 7, 7.0, 1000)
    model.acknowledged(1000, third, 7.5, 7000)
    model.acknowledged(7000, fourth, 8.0, 0)  # 8000 since third was sent: in 5 s, and it took 4 s to send them
    assert model.bandwidth == 1600


def test_what_is_sent_is_marked_until_all_has_arrived_that_was_under_way_when_there_was_no_more() -> None:
    model = PathModel(PACKET, 0.02)
    first = model.sent(1000, 1, 0.0, 0)
    assert not first.limited
    model.ran_out(1000)
    second = model.sent(1000, 1, 1.0, 1000)
    assert second.limited
    model.acknowledged(999, first, 2.0, 1001)
    assert model.sent(1, 1, 2.0, 1001).limited
    model.acknowledged(2, second, 3.0, 1001)
    assert not model.sent(1, 1, 3.0, 1000).limited


def test_what_is_sent_alone_is_marked_the_first_as_any_later() -> None:
    """A question now and then says nothing of what the path can carry."""
    model = PathModel(PACKET, 0.02)
    for now in range(3):
        model.ran_out(0)
        sample = model.sent(1000, 1, float(now), 0)
        assert sample.limited
        model.acknowledged(1000, sample, now + 0.1, 0)


# --- phases ---


def test_at_first_the_rate_doubles_until_three_rounds_brought_less_than_a_quarter_more() -> None:
    path = Path()
    assert path.model.burst() == path.model.window == INITIAL_PACKETS * PACKET, "nothing is known yet"
    for _ in range(4):
        path.round()
        assert not path.model.full
        assert path.gain() == STARTUP_GAIN
        assert path.model.window == pytest.approx(2 * PRODUCT)
    path.round()
    assert path.model.full


def test_a_quarter_more_is_growth_and_is_counted_from() -> None:
    path, size = Path(), MEGABYTE
    for _ in range(8):
        path.round(size)
        size = size * 5 // 4
    assert not path.model.full
    for full in (False, False, False, True):
        path.round(size // 2)
        assert path.model.full is full


def test_rounds_without_enough_to_send_say_nothing_of_a_path() -> None:
    path = Path()
    for _ in range(9):
        path.round(limited=True)
    assert not path.model.full


@pytest.mark.parametrize(("seconds", "full"), [(0.1265, False), (0.1275, True)])
def test_the_first_phase_ends_with_a_round_that_was_longer_throughout(seconds: float, full: bool) -> None:
    """By a quarter of the shortest, and two milliseconds."""
    path = Path()
    path.round()
    path.round(limited=True, seconds=seconds)
    assert path.model.full is full


def test_one_short_round_trip_in_a_round_is_enough_to_go_on() -> None:
    path = Path()
    path.round()
    path.model.measured(0.2, path.now)
    path.model.measured(ROUND_TRIP, path.now)
    path.round(limited=True, seconds=0.2)
    assert not path.model.full
    path.round(limited=True, seconds=0.2)
    assert path.model.full, "the next round is another one"


def test_then_what_was_sent_too_much_drains_and_the_rate_goes_in_cycles() -> None:
    path = Path()
    for _ in range(4):
        path.round()
    path.round(left=int(PRODUCT) + 1)
    assert path.gain() == round(1 / STARTUP_GAIN, 3)
    path.round(left=int(PRODUCT))
    gains = []
    for _ in range(2 * len(CYCLE)):
        gains.append(path.gain())
        path.round(seconds=ROUND_TRIP * 1.01, size=int(MEGABYTE * 1.01))
    assert gains == [*CYCLE[2:], *CYCLE, *CYCLE[:2]]


def test_a_gain_lasts_for_more_than_a_shortest_round_trip() -> None:
    path = Path()
    for _ in range(5):
        path.round(left=int(PRODUCT) + 1)
    path.round(left=0)
    while path.gain() < 1.1:
        path.round(seconds=ROUND_TRIP * 1.01)
    sample = path.model.sent(1000, 1, path.now, 0)
    path.model.acknowledged(1000, sample, path.now + ROUND_TRIP * 0.9, 0)
    assert path.gain() > 1.1


# --- what may be under way ---


def test_on_a_path_that_is_known_somewhat_more_than_twice_the_product_may_be_under_way() -> None:
    """For acknowledgments that come late, and 32 packets for its share of a line."""
    assert full_path().model.window == pytest.approx(2 * PRODUCT + RATE * (ACK_DELAY + LATE_SECONDS) + 32 * PACKET)
    assert SHARING_PACKETS == 32


def test_on_a_slow_path_a_few_packets_may_be_under_way() -> None:
    path = Path()
    for _ in range(5):
        path.round(500, packets=1)
    assert path.model.full
    assert path.model.window == pytest.approx(2 * 500 + 5000 * (ACK_DELAY + LATE_SECONDS) + MIN_PACKETS * PACKET, abs=1)
    path.model.measured(ROUND_TRIP, path.now)
    assert path.model.burst() == 2 * PACKET


def with_queue() -> Path:
    """The round trips are twice as long as the shortest one."""
    path = full_path()
    for _ in range(9):
        path.round(2 * MEGABYTE, seconds=2 * ROUND_TRIP)
    return path


@pytest.mark.parametrize(
    ("packets", "lost", "counts"), [(1000, 50, False), (1000, 51, True), (9, 3, False), (9, 4, True)]
)
def test_losses_count_where_there_is_a_queue_and_if_there_are_many(packets: int, lost: int, counts: bool) -> None:
    path = with_queue()
    before = path.model.window
    path.round(2 * MEGABYTE, seconds=2 * ROUND_TRIP, packets=packets, lost=lost)
    assert (path.model.window < before) is counts
    if counts:
        assert path.model.window == pytest.approx(0.85 * 2 * PRODUCT, abs=1)


def test_losses_are_those_of_one_round_and_say_nothing_without_a_queue() -> None:
    path = full_path()
    before = path.model.window
    path.round(lost=900)
    assert path.model.window == before
    path = with_queue()
    before = path.model.window
    for _ in range(9):
        path.round(2 * MEGABYTE, seconds=2 * ROUND_TRIP, lost=30)
    assert path.model.window == before


def test_less_may_be_under_way_with_each_such_round_down_to_the_product_and_then_more_again() -> None:
    path, windows = with_queue(), []
    for lost in (900, 900, 900, 900, 900, 900, 0, 0, 0, 0, 0, 0, 0, 0, 0):
        path.round(2 * MEGABYTE, seconds=2 * ROUND_TRIP, lost=lost)
        windows.append(path.model.window / PRODUCT)
    falling = [2 * 0.85, 2 * 0.85**2, 2 * 0.85**3, 2 * 0.85**4, 1.0, 1.0]
    rising = [1.1**times for times in range(1, 8)]
    assert windows[:13] == pytest.approx([*falling, *rising], rel=1e-4)
    assert windows[13] > 2, "it is as if nothing had been lost"
    assert windows[14] == windows[13]


def test_losses_with_a_queue_end_the_first_phase() -> None:
    path = Path()
    path.round()
    path.model.smoothed = 2 * ROUND_TRIP
    path.round(limited=True, lost=900)
    assert path.model.full
    assert path.gain() <= 1


def test_who_hears_nothing_for_long_begins_again_with_a_few_packets() -> None:
    path = full_path()
    path.model.collapsed()
    assert (path.model.bandwidth, path.model.full, path.model.window) == (0, False, MIN_PACKETS * PACKET)
    for _ in range(4):
        path.round()
        assert not path.model.full
        assert path.gain() == STARTUP_GAIN
    path.round()
    assert path.model.full


# --- pacing ---


def test_packets_are_paced_once_a_rate_is_known_and_what_is_late_is_made_up_for() -> None:
    path = full_path()
    model, rate = path.model, path.model.burst() / BURST_SECONDS
    now = path.now
    model.sent(rate_size := 100_000, 100, now + 1, 5)
    begin = model.may_send_at()
    assert begin == pytest.approx(now + 1 - LATE_SECONDS + rate_size / rate)
    model.sent(rate_size, 100, now + 1, 5)
    assert model.may_send_at() == pytest.approx(begin + rate_size / rate)


def test_before_that_they_are_not() -> None:
    model = PathModel(PACKET, 0.02)
    model.sent(100_000, 100, 1.0, 0)
    assert model.may_send_at() == 0
