"""Where the rules of congestion control begin and end: measurements, probes, and shares of loss. Times are exact."""

import pytest

from ordercast.live.host.congestion import (
    _LEAST_INTERVAL,
    _PROBE_SECONDS,
    _SHORTEST_FOR,
    MAX_BYTES_IN_FLIGHT,
    MIN_BYTES_BY_LINKS,
    CongestionControl,
    FlightWindow,
)
from tests.live.test_congestion import FIRST, LEAST, SIZES, Counts, Sender

QUARTER = 0.25  # of a second: from being sent to a place in the order


def measured(*times: float) -> FlightWindow:
    """A kilobyte got its place at each of these times, and before at 0."""
    window = FlightWindow()
    for time in (0.0, *times):
        window.placed(1000, QUARTER, time)
    return window


def test_a_measurement_is_over_after_the_shortest_time_and_no_earlier() -> None:
    assert list(measured(QUARTER - _LEAST_INTERVAL).rates) == []
    assert list(measured(QUARTER).rates) == [2000 / QUARTER]


@pytest.mark.parametrize(("time", "counts"), [(1.0, True), (1.499, True), (1.5, False), (2.0, False)])
def test_a_measurement_of_twice_the_shortest_time_and_a_second_is_of_a_pause(time: float, counts: bool) -> None:
    window = measured(time)
    assert (len(window.rates) == 1) is counts
    window.placed(1000, QUARTER, time + QUARTER)
    assert window.rates[-1] == 1000 / QUARTER, "the next one begins there"


def test_the_shortest_time_is_measured_again_when_it_is_old() -> None:
    """Less is in flight meanwhile; then the least of what was measured is the shortest time."""
    window = measured()
    window.placed(1000, 0.5, _SHORTEST_FOR)
    assert not window.probe_until
    begun = _SHORTEST_FOR + QUARTER
    window.placed(1000, 0.5, begun)
    until = begun + _PROBE_SECONDS + 2 * 0.5
    assert window.probe_until == until
    for seconds in (0.75, 0.5, 0.625):
        window.placed(1000, seconds, until)
        assert window.probe_until, "its time is not over"
    window.placed(1000, 1.0, until + QUARTER)
    assert (window.probe_until, window.shortest, window.shortest_at) == (0.0, 0.5, until + QUARTER)


def test_a_quarter_is_in_flight_while_the_shortest_time_is_measured() -> None:
    window = FlightWindow()
    window.placed(0, QUARTER, 0.0)
    window.placed(40 << 20, QUARTER, 1.0)  # 40 MiB in a second, each on its way for a quarter of one
    assert window.limit == 20 << 20
    window.probe_until = 2.0
    window.update()
    assert window.limit == 5 << 20


def test_one_in_five_lost_is_not_very_much() -> None:
    sender = Sender()
    assert sender.send(copies=20) == (MAX_BYTES_IN_FLIGHT // 2, FIRST)
    assert sender.send(copies=21) == (MAX_BYTES_IN_FLIGHT // 4, max(LEAST, FIRST // 4))


def test_where_links_limit_what_is_under_way_datagrams_stay_as_they_are() -> None:
    control, counts = CongestionControl(SIZES, has_links=True), Counts()
    assert control.flight is not None
    assert (control.bytes_in_flight, control.datagram) == (MIN_BYTES_BY_LINKS, FIRST)
    control.flight.limit = 7 << 20
    counts.transmitted, counts.retransmitted = 100, 50
    control.adapt(counts)
    counts.sent = 1
    control.adapt(counts)
    assert (control.bytes_in_flight, control.datagram) == (7 << 20, FIRST)
