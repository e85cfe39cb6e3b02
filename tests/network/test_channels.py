"""A channel that is a process of its own, on networks that lose and reorder: it is passed through, and missed."""

import sys
import time
from signal import SIGKILL
from typing import Any

import pytest

from tests.network.conftest import NewLab
from tests.network.lab import Lab, Process
from tests.network.results import everything_arrived, holds, reports_of
from tests.network.switch import Weather
from tests.network.test_deaths import LATEST, SILENCE

pytestmark = pytest.mark.network

ORDERS = ("total", "priority")
ROUGH = Weather(loss=0.2, delay=0.002, jitter=0.002, reorder=0.1)


def socket_address(port: int) -> str:
    """Of the channel of the group with this port: where the last member is at home."""
    return f"10.77.0.4:{port + 100}"


def start_channels(lab: Lab) -> dict[str, Process]:
    return {order: start_channel(lab, order, port) for port, order in enumerate(ORDERS, start=7000)}


def start_channel(lab: Lab, order: str, port: int) -> Process:
    members = ",".join(f"{name}={address}" for name, address in lab.members(port).items())
    told = ["relay", socket_address(port), "--group", order, "--members", members, "--key", str(lab.key)]
    return lab.run("D", [sys.executable, "-m", "ordercast.cli", *told])


def jobs(silence: float = SILENCE, **more: Any) -> list[dict[str, Any]]:
    return [
        {"group": order, "order": order, "options": {"relay": socket_address(port), "failure_timeout": silence}, **more}
        for port, order in enumerate(ORDERS, start=7000)
    ]


@pytest.mark.soak
def test_nobody_is_given_up_wrongly(new_lab: NewLab) -> None:
    lab = new_lab(8, ROUGH)
    start_channels(lab)
    ended = lab.start_all(*jobs(messages=60, gap=0.02))
    everything_arrived(lab, ended, within=120)


@pytest.mark.soak
def test_a_channel_that_comes_back_is_not_missed(new_lab: NewLab) -> None:
    lab = new_lab(4, Weather(delay=0.001, loss=0.02))
    channels = start_channels(lab)
    ended = lab.start_all(*jobs(messages=150, gap=0.02))
    for port, order in enumerate(ORDERS, start=7000):
        channels[order].signal(SIGKILL)
        channels[order].wait(10)
        time.sleep(SILENCE / 2)
        start_channel(lab, order, port)
    everything_arrived(lab, ended)


def test_a_channel_that_is_killed_ends_its_group(new_lab: NewLab) -> None:
    lab = new_lab(4, Weather(delay=0.001, loss=0.02))
    channels = start_channels(lab)
    ended = lab.start_all(*jobs(silence=1, messages=150, gap=0.02))
    time.sleep(0.5)
    for channel in channels.values():
        channel.signal(SIGKILL)
    killed = time.monotonic()
    for process in ended.values():
        process.wait(60)
    for port, order in enumerate(ORDERS, start=7000):
        for report in reports_of(ended, order).values():
            assert report["status"] == 1, report
            assert f"the relay at {socket_address(port)} is unreachable" in report["why"]
            assert 1.8 < report["over"] - killed < LATEST
    holds(lab)
