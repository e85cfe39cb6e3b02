"""Waiting awake: done where it pays, given up where it does not."""

from collections.abc import Callable

import pytest

from ordercast.live.host.busy_polling import BusyPolling
from tests.live.groups import group_of, run

Times = Callable[[bool], float]


def awake(lingering: BusyPolling, times: Times, messages: int = 320) -> list[bool]:
    """For which messages it stays awake, if they take so long awake and asleep."""
    found = []
    for _ in range(messages):
        found.append(lingering.begins())
        lingering.took(times(found[-1]))
    return found


def quick(is_awake: bool) -> float:
    return 80e-6 if is_awake else 170e-6


def slow(is_awake: bool) -> float:
    return 250e-6 if is_awake else 170e-6


def test_it_is_done_where_it_pays_and_doubted_now_and_then() -> None:
    found = awake(BusyPolling(cores=2), quick)
    assert found.count(False) <= 1 + len(found) // 32


def test_it_is_not_done_where_it_does_not_but_tried_now_and_then() -> None:
    for times in (slow, lambda _: 170e-6, lambda is_awake: 150e-6 if is_awake else 170e-6):
        found = awake(BusyPolling(cores=2), times)
        assert 5 <= found.count(True) <= 2 + len(found) // 32


def test_it_follows_what_changes() -> None:
    lingering = BusyPolling(cores=2)
    for times, expected in ((quick, 300), (slow, 150), (quick, 100)):
        found = awake(lingering, times)
        assert (found.count(True) > expected - 30) == (times is quick)


def test_one_message_that_slept_for_long_does_not_decide() -> None:
    lingering = BusyPolling(cores=2)
    awake(lingering, quick)
    while not lingering.begins():
        lingering.took(quick(False))
    lingering.took(1.0)
    assert awake(lingering, quick, 20).count(True) >= 19


def test_on_one_core_there_is_no_choice() -> None:
    assert not any(awake(BusyPolling(cores=1), quick))


@pytest.mark.parametrize("busy_poll", [True, False])
def test_a_group_polls_only_if_it_may(busy_poll: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    polls: list[float] = []
    monkeypatch.setattr("ordercast.live.host.busy_polling._cores", lambda: 2)
    monkeypatch.setattr("ordercast.live.transport.transport.Transport.poll", lambda _, seconds: polls.append(seconds))

    async def test() -> None:
        async with group_of("A", "B", order="sequenced", busy_poll=busy_poll) as groups:
            for _ in range(40):  # more than after which the other way is tried again
                await groups["B"].send(b"x")
                await groups["B"].receive()

    run(test)
    assert bool(polls) == busy_poll
