"""How many messages one after the other a change of the membership takes, and which timers; each takes as long."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.model.config import MILLISECOND
from ordercast.model.machine import Suspect
from ordercast.protocols.membership.events import LeaveGroup
from ordercast.protocols.membership.joiner import Joiner
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.view import Incarnation
from tests.protocols.membership.group import SETTINGS, Group, Process

HOP = MILLISECOND
SLOW = replace(
    SETTINGS, repeat=400 * HOP, failure_timeout=4_000 * HOP, gather=100 * HOP, guard=400 * HOP, grace=20 * HOP
)
"""Timers that are much longer than messages take: whatever waits for one is seen."""


class Even(Group):
    """A group in which every message takes one hop."""

    def __init__(self, name: str, founders: int = 5) -> None:
        super().__init__(order_of(name), founders, "even", settings=SLOW)

    def transmit(self, process: Process, address: str, arrive: Callable[[Process], None]) -> None:
        self.later(HOP, lambda: self.arrives(process, address, arrive))

    def joins(self, name: str, contact: str) -> Process:
        number, self.incarnations = self.incarnations, self.incarnations + 1
        me = Incarnation(name, number, f"{name}.{number}")
        process = Process(me, joiner=Joiner(me, "g", (contact,), number * 1000, self.settings))
        self.processes[me.address] = process
        assert process.joiner is not None
        self.carry_out(process, process.joiner.begin())
        return process

    def hops_until(self, happened: Callable[[], bool]) -> float:
        """From now."""
        began = self.now
        while not happened():
            self.run(self.now + HOP // 4)
            assert self.now < began + 1_000 * HOP
        return -(-(self.now - began) // HOP)

    def views_of(self, *names: str) -> set[Any]:
        found = [process for process in self.processes.values() if process.me.name in names]
        return {process.view.number if process.view else None for process in found}


ORDERS = ["spo", "to", "st", "prito", "sequencer"]


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("contact", ["n0.0", "n3.3"])
def test_one_that_joins_alone_waits_for_no_timer(name: str, contact: str) -> None:
    """Find, Found, Find (all), Found, Apply, Flush, Report, Propose, Accepted, Install and Welcome."""
    group = Even(name)
    group.run(HOP)
    joined = group.joins("joiner", contact)
    assert group.hops_until(lambda: group.views_of("n0") == {1}) == 9
    assert group.hops_until(lambda: joined.view is not None and joined.view.number == 1) == 1
    assert group.views_of("n0", "n1", "n2", "n3", "n4", "joiner") == {1}


def test_those_that_come_together_enter_one_view() -> None:
    group = Even("to")
    group.run(HOP)
    for number in range(4):
        group.later(number * HOP, partial(group.joins, f"j{number}", "n0.0"))
    everybody = tuple(process.me.name for process in group.processes.values())
    group.run(group.now + 6 * HOP)
    everybody += ("j0", "j1", "j2", "j3")
    hops = group.hops_until(lambda: group.views_of(*everybody) == {1})
    assert hops < 20, "the last one is ready when they are taken in"


@pytest.mark.parametrize("name", ORDERS)
def test_one_that_leaves_waits_for_no_timer(name: str) -> None:
    """Leave, Flush, Report, Propose, Accepted, Install."""
    group = Even(name)
    group.run(HOP)
    group.give(group.processes["n4.4"], LeaveGroup())
    others = ("n0", "n1", "n2", "n3")
    assert group.hops_until(lambda: group.views_of(*others) == {1}) == 6


@pytest.mark.parametrize("name", ORDERS)
def test_one_that_is_suspected_is_asked_once_more(name: str) -> None:
    """Suspicion, Flush, Report; the time in which it may answer after all; Propose, Accepted, Install."""
    group = Even(name)
    group.run(HOP)
    group.crash(group.processes["n4.4"])
    group.give(group.processes["n1.1"], Suspect(0b10000))
    others = ("n0", "n1", "n2", "n3")
    hops = group.hops_until(lambda: group.views_of(*others) == {1})
    grace = SLOW.grace // HOP
    assert 6 + grace <= hops <= 6 + 2 * grace
