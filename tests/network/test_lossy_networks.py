"""Every order on networks that lose, delay, double and overtake: everything arrives, and the records are right."""

import itertools
import sys
from typing import Any

import pytest

from tests.network.conftest import NewLab
from tests.network.matrix import CASES, Case, run
from tests.network.results import ORDERS, everything_arrived, holds, reports_of
from tests.network.switch import Weather

pytestmark = pytest.mark.network

ROUGH = Weather(loss=0.1, delay=0.002, jitter=0.002, duplicate=0.05, reorder=0.05)
HOSTS = {4: "239.77.1.2", 6: "[ff05::77:1]"}
"""Multicast addresses."""


def jobs(**more: Any) -> list[dict[str, Any]]:
    """A group of each order, all at once."""
    return [{"group": order, "order": order, **more} for order in ORDERS]


def test_every_order_on_a_rough_network(new_lab: NewLab) -> None:
    lab = new_lab(3, ROUGH)
    ended = lab.start_all(*jobs(messages=40))
    everything_arrived(lab, ended)
    assert lab.switch.lost > 50, "there was weather"


def test_multicast(new_lab: NewLab) -> None:
    """Of both kinds, at once."""
    lab = new_lab(3, Weather(loss=0.05, delay=0.001))
    told = [
        {
            "group": f"{order}-{version}",
            "order": order,
            "messages": 30,
            "members": lab.members(port, v6=version == 6),
            "options": {"multicast": f"{HOSTS[version]}:{port + 400}"},
        }
        for port, (order, version) in enumerate(itertools.product(("partial", "total"), HOSTS), start=7000)
    ]
    ended = lab.start_all(*told)
    everything_arrived(lab, ended)
    for version in HOSTS:
        stats = reports_of(ended, f"partial-{version}")["A"]["stats"]
        assert stats["datagrams_sent"] < 1.5 * stats["units_sent"] + 200, "one datagram for all, not one for each"


@pytest.mark.parametrize("version", [4, pytest.param(6, marks=pytest.mark.soak)])
def test_members_find_each_other_by_multicast(new_lab: NewLab, version: int) -> None:
    lab = new_lab(3, Weather(loss=0.1, delay=0.001))
    options = {"size": 3, "multicast": f"{HOSTS[version]}:7400", "timeout": 30}
    started = {
        name: lab.start(
            name,
            {"group": "total", "messages": 20, "options": {**options, "bind": address.replace(":7000", ":0")}},
        )
        for name, address in lab.members(v6=version == 6).items()
    }
    everything_arrived(lab, started)


@pytest.mark.soak
def test_commands(new_lab: NewLab) -> None:
    """What a user types: `ordercast node` on each machine, and lines of text."""
    lab = new_lab(3, Weather(loss=0.05, delay=0.001))
    members = ",".join(f"{name}={address}" for name, address in lab.members().items())
    command = [sys.executable, "-m", "ordercast.cli", "node", "lab", "--members", members, "--key", str(lab.key)]
    started = {
        name: lab.run(
            name, [*command, "--name", name, "--record", str(lab.records)], told=f"one of {name}\ntwo of {name}\n"
        )
        for name in lab.names
    }
    for process in started.values():
        process.wait(60)
        assert process.status == 0, process.errors
        assert sorted(process.said.splitlines()) == [
            f"{name}\t{number} of {name}" for name in "ABC" for number in ("one", "two")
        ]
    assert len({process.said for process in started.values()}) == 1, "one order"
    holds(lab)


@pytest.mark.soak
@pytest.mark.parametrize("buffers", [2304, 4096, 8192, 32768])
def test_real_overruns_of_small_buffers(new_lab: NewLab, buffers: int) -> None:
    """The least that Linux gives holds one packet of the network."""
    lab = new_lab(3)
    ended = lab.start_all(*jobs(messages=150, size=1000, gap=0.0, buffers=buffers))
    everything_arrived(lab, ended)
    copies = sum(report["stats"]["retransmissions"] for order in ORDERS for report in reports_of(ended, order).values())
    assert copies > 0, "nothing was lost, so nothing was proved"


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_whole_matrix(new_lab: NewLab, case: Case) -> None:
    run(case, new_lab(case.members))
