"""Every order on networks that lose, delay, double and overtake: everything arrives, and the records are right."""

from typing import Any

import pytest

from tests.network.conftest import NewLab
from tests.network.results import ORDERS, everything_arrived, reports_of
from tests.network.switch import Weather

pytestmark = pytest.mark.network

ROUGH = Weather(loss=0.1, delay=0.002, jitter=0.002, duplicate=0.05, reorder=0.05)
MULTICAST = {4: "239.77.1.2", 6: "ff05::77:1"}


def jobs(**more: Any) -> list[dict[str, Any]]:
    """A group of each order, all at once."""
    return [{"group": order, "order": order, **more} for order in ORDERS]


def multicast_jobs(version: int, members: Any, **more: Any) -> list[dict[str, Any]]:
    host = MULTICAST[version] if version == 4 else f"[{MULTICAST[version]}]"
    return [
        {**job, "members": members(port, v6=version == 6), "options": {"multicast": f"{host}:{port + 400}"}}
        for port, job in enumerate(jobs(**more), start=7000)
    ]


def test_every_order_on_a_rough_network(new_lab: NewLab) -> None:
    lab = new_lab(3, ROUGH)
    ended = lab.start_all(*jobs(messages=40))
    everything_arrived(lab, ended)
    assert lab.switch.lost > 50, "there was weather"


@pytest.mark.parametrize("version", [4, 6])
def test_multicast(new_lab: NewLab, version: int) -> None:
    lab = new_lab(3, Weather(loss=0.05, delay=0.001))
    ended = lab.start_all(*multicast_jobs(version, lab.members, messages=30))
    everything_arrived(lab, ended)
    stats = reports_of(ended, "partial")["A"]["stats"]
    assert stats["datagrams_out"] < 1.5 * stats["units"] + 200, "one datagram for all, not one for each"


def test_real_overruns_of_small_buffers(new_lab: NewLab) -> None:
    lab = new_lab(3)
    ended = lab.start_all(*jobs(messages=150, size=1000, gap=0.0, buffers=8192))
    everything_arrived(lab, ended)
    copies = sum(report["stats"]["retransmissions"] for order in ORDERS for report in reports_of(ended, order).values())
    assert copies > 0, "nothing was lost, so nothing was proved"


WEATHERS = {
    "calm": Weather(delay=0.0005),
    "loss 5 %": Weather(loss=0.05, delay=0.001),
    "loss 20 %": Weather(loss=0.2, delay=0.001),
    "jitter, doubles": Weather(delay=0.01, jitter=0.02, duplicate=0.1, reorder=0.1),
    "50 ms": Weather(loss=0.01, delay=0.05),
    "100 ms": Weather(loss=0.01, delay=0.1),
    "1 Mbit/s": Weather(delay=0.005, rate=125_000),
}


@pytest.mark.soak
@pytest.mark.parametrize("multicast", [False, True], ids=["one by one", "multicast"])
@pytest.mark.parametrize("weather", WEATHERS)
@pytest.mark.parametrize("size", [3, 5, 8])
@pytest.mark.parametrize("order", ORDERS)
def test_the_whole_matrix(new_lab: NewLab, order: str, size: int, weather: str, multicast: bool) -> None:
    lab = new_lab(size, WEATHERS[weather])
    options = {"multicast": f"{MULTICAST[4]}:7400"} if multicast else {}
    job = {"group": order, "order": order, "messages": 100, "gap": 0.01, "selective": order in {"partial", "total"}}
    ended = lab.start_all({**job, "options": options})
    everything_arrived(lab, ended, within=180)
