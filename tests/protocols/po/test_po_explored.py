"""PO in every schedule of small groups: what SPO's searches ask, with everything to everybody."""

from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.model.runs import Channel
from ordercast.protocols.po.machine import Po
from tests.explorer.groups import spo
from tests.explorer.random_walk import random_walk

PAIR, THREE = "{1,2}", "{1,2,3}"

SEARCHES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "one packet": ((f"a{PAIR}", ""), {"losses": 2, "firings": 3}),
    "one packet, four timers": ((f"a{PAIR}", ""), {"losses": 2, "firings": 4}),
    "two packets": ((f"a{PAIR} b{PAIR}", ""), {"losses": 2, "firings": 2}),
    "two packets, three timers": ((f"a{PAIR} b{PAIR}", ""), {"losses": 2, "firings": 3}),
    "three packets": ((f"a{PAIR} b{PAIR} c{PAIR}", ""), {"losses": 2, "firings": 2}),
    "both send": ((f"a{PAIR}", f"b{PAIR}"), {"losses": 1, "firings": 2}),
    "both send, three timers": ((f"a{PAIR}", f"b{PAIR}"), {"losses": 1, "firings": 3}),
    "a window of one": ((f"a{PAIR} b{PAIR}", f"c{PAIR}"), {"window": 1, "losses": 1, "firings": 2}),
    "one place": ((f"a{PAIR} b{PAIR} c{PAIR}", ""), {"quota": 1, "losses": 1, "firings": 3}),
    "duplicates": ((f"a{PAIR} b{PAIR}", ""), {"losses": 1, "duplicates": 1, "firings": 2}),
    "three nodes": ((f"a{THREE}", "", ""), {"losses": 2, "firings": 1}),
    "three nodes, two timers": ((f"a{THREE}", "", ""), {"losses": 2, "firings": 2}),
    "three nodes, two packets": ((f"a{THREE} b{THREE}", "", ""), {"losses": 1, "firings": 1}),
    "one channel": ((f"a{THREE} b{THREE}", "", ""), {"losses": 1, "firings": 0, "channel": Channel.ONE}),
    "one channel, two losses": ((f"a{THREE} b{THREE}", "", ""), {"losses": 2, "firings": 1, "channel": Channel.ONE}),
}


SLOW = {
    *("three packets", "a window of one", "one packet, four timers", "two packets, three timers"),
    *("both send, three timers", "three nodes, two timers", "one channel, two losses"),
}
NAMES = [pytest.param(name, marks=[pytest.mark.soak] if name in SLOW else []) for name in SEARCHES]


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_keeps_the_promises(name: str) -> None:
    lines, how = SEARCHES[name]
    report = explore(spo(*lines, machine=Po, **how))
    assert report.exhausted, str(report)


@pytest.mark.parametrize("seed", range(20))
def test_walks_through_larger_groups_keep_them_too(seed: int) -> None:
    lines = [" ".join(f"{letter}{THREE}" for letter in line) for line in ("abcd", "efg", "hi")]
    how: dict[str, Any] = {"losses": 10, "duplicates": 3, "firings": 50, "window": 1 + seed % 4, "quota": 2 + seed % 3}
    counterexample = random_walk(spo(*lines, machine=Po, **how), seed, length=200)
    assert counterexample is None, str(counterexample)
