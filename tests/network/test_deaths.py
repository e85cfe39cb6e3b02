"""Members that are paused or killed: the group goes on, or ends everywhere, in bounded time and with right records."""

import time
from signal import SIGCONT, SIGKILL, SIGSTOP
from typing import Any

import pytest

from tests.network.conftest import NewLab
from tests.network.lab import Lab, Process
from tests.network.results import ORDERS, everything_arrived, holds, reports_of
from tests.network.switch import Weather

pytestmark = pytest.mark.network

SILENCE = 3.0
LATEST = 20.0
"""On a machine that is busy with other tests: members that get no turn doubt themselves first. Else it is below 4."""


def talking(lab: Lab) -> dict[str, Process]:
    """A group of each order, all at once; comes back when they have talked for a while."""
    jobs: list[dict[str, Any]] = [
        {"group": order, "order": order, "messages": 150, "gap": 0.02, "within": 30, "options": {"rejoin": False}}
        for order in ORDERS
    ]
    started = lab.start_all(*jobs)
    time.sleep(1)
    return started


def went_on(lab: Lab, survivors: dict[str, Process], since: float) -> None:
    """The survivors have in time a view of themselves, and everything that they sent."""
    names = [name for name in lab.names if name in survivors]
    for order in ORDERS:
        reports = reports_of(survivors, order)
        for name, report in reports.items():
            assert report["status"] == 0, f"{name} in {order}: {report}"
            [[installed, members]] = report["views"]
            assert members == names
            assert SILENCE * 0.8 < installed - since < LATEST
            assert {other: report["heard"][other] for other in names} == dict.fromkeys(names, 150)
        if order != "partial":
            assert len({report["order"] for report in reports.values()}) == 1, f"{order}: not one order"


@pytest.mark.parametrize("victim", [pytest.param("C", marks=pytest.mark.soak), "A"])
def test_one_is_killed(new_lab: NewLab, victim: str) -> None:
    """A is the sequencer of one group, and the channel of two others; C is nobody in particular."""
    lab = new_lab(4, Weather(delay=0.001, loss=0.01))
    ended = talking(lab)
    ended.pop(victim).signal(SIGKILL)
    killed = time.monotonic()
    for process in ended.values():
        process.wait(60)
    went_on(lab, ended, killed)
    holds(lab)


@pytest.mark.soak
@pytest.mark.parametrize("victim", ["A", "C"])
def test_a_short_pause_changes_nothing(new_lab: NewLab, victim: str) -> None:
    lab = new_lab(4, Weather(delay=0.001))
    ended = talking(lab)
    ended[victim].signal(SIGSTOP)
    time.sleep(SILENCE / 2)
    ended[victim].signal(SIGCONT)
    everything_arrived(lab, ended)


@pytest.mark.soak
@pytest.mark.parametrize("victim", ["A", "C"])
def test_a_long_pause_is_a_death_and_who_wakes_is_told(new_lab: NewLab, victim: str) -> None:
    lab = new_lab(4, Weather(delay=0.001))
    ended = talking(lab)
    paused = ended.pop(victim)
    paused.signal(SIGSTOP)
    began = time.monotonic()
    for process in ended.values():
        process.wait(60)
    paused.signal(SIGCONT)
    woke = time.monotonic()
    paused.wait(60)
    went_on(lab, ended, began)
    for order in ORDERS:
        report = paused.reports[order]
        assert report["status"] == 1, f"{victim} in {order}: {report}"
        assert report["over"] - woke < LATEST
    holds(lab)


@pytest.mark.soak
@pytest.mark.parametrize("victim", ["A", "C"])
def test_one_is_cut_off(new_lab: NewLab, victim: str) -> None:
    """Nothing reaches it, and nothing comes from it: both sides notice by themselves."""
    lab = new_lab(4, Weather(delay=0.001))
    ended = talking(lab)
    lab.cut_off(victim)
    began = time.monotonic()
    for process in ended.values():
        process.wait(90)
    alone = ended.pop(victim)
    went_on(lab, ended, began)
    assert {order: alone.reports[order]["status"] for order in ORDERS} == dict.fromkeys(ORDERS, 1), alone.reports
    holds(lab)
