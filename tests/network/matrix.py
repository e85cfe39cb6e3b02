"""Orders, sizes and weathers: `sudo python -m tests.network.matrix [ORDER…]` runs them all, and prints a table."""

import sys
import tempfile
from pathlib import Path
from signal import SIGTERM, signal
from typing import NamedTuple

from tests.network.lab import Lab, laboratory, why_not
from tests.network.member import say
from tests.network.results import ORDERS, everything_arrived, reports_of
from tests.network.switch import Weather

WEATHERS = {
    "loss 5 %": Weather(loss=0.05, delay=0.001),
    "loss 20 %": Weather(loss=0.2, delay=0.001),
    "loss 30 %": Weather(loss=0.3, delay=0.001),
    "10–30 ms, a tenth doubled, a tenth overtakes": Weather(delay=0.01, jitter=0.02, duplicate=0.1, reorder=0.1),
    "50 ms each way, loss 1 %": Weather(loss=0.01, delay=0.05),
    "100 ms each way, loss 1 %": Weather(loss=0.01, delay=0.1),
    "1 Mbit/s to each, queues of 100 ms": Weather(delay=0.005, rate=125_000),
}
MESSAGES = 100
"""Of each member, 10 ms apart, 100 bytes each."""


class Case(NamedTuple):
    """One run."""

    order: str
    members: int
    weather: str
    multicast: bool = False

    def __str__(self) -> str:
        return f"{self.order}, {self.members}, {self.weather}{', multicast' if self.multicast else ''}"


CASES = [
    case
    for order in ORDERS
    for case in (
        *(Case(order, 3, weather) for weather in WEATHERS),
        *(Case(order, members, "loss 20 %") for members in (5, 8)),
        Case(order, 16, "loss 30 %"),
        Case(order, 5, "loss 20 %", multicast=True),
    )
]


class Outcome(NamedTuple):
    """What is measured of a run in which everything arrived, and whose records hold."""

    seconds: float
    """From the opening until the last has closed."""
    datagrams: int
    copies: int
    lost: int


def run(case: Case, lab: Lab) -> Outcome:
    """Runs a case; an AssertionError tells what is not as it should be."""
    lab.set_weather(WEATHERS[case.weather])
    job = {"group": case.order, "order": case.order, "messages": MESSAGES, "gap": 0.01, "within": 120}
    job["selective"] = case.order in {"partial", "total"}
    ended = lab.start_all({**job, "options": {"multicast": "239.77.1.2:7400"} if case.multicast else {}})
    everything_arrived(lab, ended, within=180)
    reports = reports_of(ended, case.order).values()
    return Outcome(
        max(report["seconds"] for report in reports),
        sum(report["stats"]["datagrams_sent"] for report in reports),
        sum(report["stats"]["retransmissions"] for report in reports),
        lab.switch.lost + lab.switch.overrun,
    )


def main(orders: list[str]) -> int:
    signal(SIGTERM, lambda *_: sys.exit(1))  # whoever ends us ends what we made, too
    reason = why_not()
    if reason is not None:
        sys.exit(f"no network can be made here: {reason}")
    say("| order | members | network | messages | seconds | datagrams | copies | lost on the way | audit |")
    say("|---|---|---|---|---|---|---|---|---|")
    failed = 0
    for case in CASES:
        if orders and case.order not in orders:
            continue
        with tempfile.TemporaryDirectory() as folder, laboratory(case.members, Path(folder)) as lab:
            network = case.weather + (", multicast" if case.multicast else "")
            head = f"| {case.order} | {case.members} | {network} | {case.members * MESSAGES} |"
            try:
                seconds, datagrams, copies, lost = run(case, lab)
                say(f"{head} {seconds:.1f} | {datagrams:,} | {copies:,} | {lost:,} | holds |")
            except AssertionError as error:
                failed += 1
                say(f"{head} – | – | – | – | {error} |")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
