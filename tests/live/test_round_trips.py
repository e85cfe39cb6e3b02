"""The round trip as the opening tells it, and the timers that follow from it."""

from random import Random

import pytest

from ordercast.live.host.parameters import parameters_for
from ordercast.live.host.round_trips import MAX_PACE, REMEMBERED, Pace, RoundTrips
from ordercast.live.settings import Settings
from ordercast.model.config import MICROSECOND, MILLISECOND, SECOND, Timing
from ordercast.model.errors import ConfigError
from ordercast.wire.control import Join, LastJoin
from tests.live.groups import group_of, join, member_of, run

ME = 7


def said(incarnation: int, round_: int, *heard: LastJoin) -> Join:
    return Join(incarnation, round_, 0, 0, heard, "")


def test_the_shortest_time_of_each_and_the_member_in_the_middle() -> None:
    trips = RoundTrips(0, 4)
    assert trips.typical() is None
    for round_, now in ((1, 0), (2, 1000), (3, 2000)):
        trips.sent(said(ME, round_), now)
    trips.received(1, said(1, 1, LastJoin(ME, 1)), 900)
    assert trips.typical() == 900
    trips.received(1, said(1, 2, LastJoin(ME, 2)), 1100)  # 100
    trips.received(2, said(1, 2, LastJoin(ME, 3)), 2200)  # 200
    assert trips.typical() == 100, "the nearer of two"
    trips.received(3, said(1, 2, LastJoin(ME, 1)), 2200)  # 2200: it had waited before it spoke
    assert trips.typical() == 200


def test_what_says_nothing_about_us_is_no_time() -> None:
    trips = RoundTrips(1, 3)
    trips.sent(said(ME, 1), 0)
    trips.received(0, said(1, 1), 5)  # a list of another length
    trips.received(0, said(1, 1, LastJoin(), LastJoin(ME + 1, 1)), 5)  # another life of ours
    trips.received(0, said(1, 1, LastJoin(), LastJoin(ME, 99)), 5)  # what we never said
    assert trips.typical() is None


def test_answers_without_end_do_not_fill_the_memory() -> None:
    """Whoever says old joins again is answered: each answer is a join of ours."""
    trips = RoundTrips(0, 2)
    for round_ in range(1, 3 * REMEMBERED):
        trips.sent(said(ME, round_), now=round_)
    assert len(trips._sent) == REMEMBERED
    trips.received(1, said(1, 1, LastJoin(ME, 3 * REMEMBERED - 10)), now=3 * REMEMBERED)
    assert trips.typical() == 10


@pytest.mark.parametrize("seed", range(20))
def test_timers_follow_a_long_round_trip_and_nothing_else_changes(seed: int) -> None:
    agreed = parameters_for(Settings(order="sequencer"), 3, loopback=False)
    measured = Random(seed).randrange(1, 3 * SECOND)
    config = agreed.config_for(measured)
    if measured <= 20 * MILLISECOND:
        assert config is agreed.config
    else:
        assert config.timing.guard == min(measured, SECOND)
        assert config.polls_to_abort <= agreed.config.polls_to_abort, "a silent member is not waited for much longer"
        assert config.sequencer.suspect_after <= agreed.config.sequencer.suspect_after
        assert (config.nodes, config.window, config.quota) == (3, agreed.config.window, agreed.config.quota)
        assert config.sequencer.history == agreed.config.sequencer.history


def test_nothing_is_measured_on_one_machine_or_where_it_was_said() -> None:
    for agreed in (
        parameters_for(Settings(order="st"), 3, loopback=True),
        parameters_for(Settings(order="st", round_trip=0.03), 3, loopback=False),
    ):
        assert agreed.config_for(SECOND) is agreed.config
    assert parameters_for(Settings(order="st", round_trip=1.0), 3, loopback=False).config.timing.guard == SECOND


def test_what_was_overtaken_is_waited_for_half_a_round_trip_at_most() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial", round_trip=0.02) as groups:
            assert member_of(groups["A"]).transport.streams[1].max_hold == 10 * MILLISECOND

    run(test)


@pytest.mark.parametrize("round_trip", [0, -1, 11])
def test_a_round_trip_that_cannot_be_is_refused(round_trip: float) -> None:
    with pytest.raises(ConfigError, match="round_trip must be above 0 and at most 10 seconds, not"):
        join("x", members=["A", "B"], round_trip=round_trip)


def _pace(members: int, status: int = MILLISECOND) -> Pace:
    pace = Pace(Timing(status=status, poll=8 * status))
    pace.use(Timing(status=status, poll=8 * status), members)
    return pace


def _measure(pace: Pace, *rounds: int) -> None:
    for seq, taken in enumerate(rounds):
        pace.accepted(1, seq, 100)
        pace.accepted(2, seq, 150)  # one is being measured
        pace.acknowledged(2, seq, 160)
        pace.acknowledged(1, seq, 100 + taken)


def test_timers_grow_with_the_members_and_less_where_they_are_long_anyway() -> None:
    assert _pace(3).factor == 1.0
    assert _pace(16).factor == pytest.approx(4.6)
    assert _pace(16, 50 * MILLISECOND).factor == pytest.approx(1.072)


def test_timers_follow_the_shortest_of_the_last_rounds() -> None:
    pace = _pace(3)
    _measure(pace, 100 * MICROSECOND)
    assert pace.factor == 1.0, "never shorter than agreed"
    _measure(pace, *[40 * MILLISECOND] * 7)
    assert pace.factor == 1.0, "a loss makes rounds longer, and one was short"
    _measure(pace, 10 * MILLISECOND)
    assert pace.factor == 5.0
    _measure(pace, *[SECOND] * 8)
    assert pace.factor == MAX_PACE
    _measure(pace, MILLISECOND)
    assert pace.factor == 1.0


def test_rounds_with_losses_do_not_count_and_none_where_they_are_not_measured() -> None:
    pace = _pace(3)
    pace.accepted(1, 0, 0, 5)
    pace.acknowledged(1, 0, SECOND, 6)
    assert pace.factor == 1.0
    pace.accepted(1, 1, 0, 6)
    pace.acknowledged(1, 1, 8 * MILLISECOND, 6)
    assert pace.factor == 4.0
    timing = Timing(status=MILLISECOND, poll=8 * MILLISECOND)
    pace = Pace(timing, measures=False)
    pace.use(timing, 3)
    _measure(pace, *[SECOND] * 8)
    assert pace.factor == 1.0


@pytest.mark.parametrize(
    ("settings", "loopback", "measures"),
    [(Settings(), True, True), (Settings(round_trip=0.05), True, False), (Settings(), False, False)],
)
def test_rounds_are_measured_on_one_machine(settings: Settings, *, loopback: bool, measures: bool) -> None:
    assert parameters_for(settings, 3, loopback=loopback).measures_rounds is measures


def test_a_view_begins_with_measuring_anew() -> None:
    pace = _pace(3)
    _measure(pace, *[20 * MILLISECOND] * 8)
    assert pace.factor == 10.0
    pace.accepted(1, 50, 100)
    pace.use(Timing(status=MILLISECOND, poll=8 * MILLISECOND), 4)
    assert pace.factor == 1.0
    pace.acknowledged(1, 50, SECOND)  # of the view before
    assert pace.factor == 1.0


def test_a_list_that_ends_just_before_us_is_no_time() -> None:
    trips = RoundTrips(1, 3)
    trips.sent(said(ME, 1), 0)
    trips.received(0, said(1, 1, LastJoin(ME, 1)), 5)
    assert trips.typical() is None


def test_timers_are_extended_by_rounds_of_this_view_only_and_never_shortened() -> None:
    timing = parameters_for(Settings(order="st"), 3, loopback=False).config.timing
    pace = Pace(timing)
    assert pace.factor == 1.0
    pace.accepted(0, 1, now=0)
    pace.acknowledged(0, 1, now=1)
    assert pace.factor == 1.0, "a quick round"
    for view in range(2):
        pace.use(timing, 3)
        pace.accepted(0, view, now=0)
        pace.acknowledged(0, view, now=2 * timing.status * (3 + view))
        assert pace.factor == pytest.approx(3 + view)
