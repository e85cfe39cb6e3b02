"""What happens to groups of five, and what must follow; each runs in every order at once.

`python -m tests.network.scenarios [NAME…]` runs them and prints how long it took until all were in the next view; the
names may be `SEED:EVENTS`, for so many events drawn by chance.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from signal import SIGTERM, signal

from tests.network.driver import TIMEOUT, Driver
from tests.network.lab import laboratory, why_not
from tests.network.member import say
from tests.network.results import ORDERS
from tests.network.switch import Weather

CALM = Weather(delay=0.0005)
RETURNS = 10 * TIMEOUT
"""Seconds within which one that was excluded or restarted is a member again."""
Scenario = Callable[[Driver], None]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def nothing_changed(driver: Driver) -> None:
    """All are in the view that they opened with."""
    for actor in driver.all:
        for order in driver.orders:
            views = actor.of(order, "view")
            assert [view["number"] for view in views] == [0], f"{actor} in {order}: {views}"


@scenario
def the_oldest_is_killed_then_two_at_once(driver: Driver) -> None:
    """The oldest one is the relay, the sequencer, and who would coordinate."""
    driver.kill("A")
    driver.expect("A is killed", "BCDE")
    driver.kill("C", "E")
    driver.expect("C and E are killed", "BD")
    driver.finish("BD")


@scenario
def two_of_five_are_killed_at_once(driver: Driver) -> None:
    driver.kill("A", "D")
    driver.expect("A and D are killed", "BCE")
    driver.finish("BCE")


@scenario
def one_after_the_other_is_killed(driver: Driver) -> None:
    for gone, left in (("E", "ABCD"), ("A", "BCD"), ("B", "CD"), ("D", "C")):
        driver.kill(gone)
        driver.expect(f"{gone} is killed", left)
    driver.finish("C")


@scenario
def the_coordinator_is_killed_meanwhile(driver: Driver) -> None:
    driver.kill("A")
    time.sleep(TIMEOUT + 0.02)  # others begin to suspect it
    driver.kill("B")
    driver.expect("A and then B are killed", "CDE")
    driver.finish("CDE")


@scenario
def they_are_killed_while_a_tenth_is_lost(driver: Driver) -> None:
    driver.lab.set_weather(CALM._replace(loss=0.1))
    driver.kill("A")
    driver.expect("A is killed", "BCDE")
    driver.kill("D")
    driver.expect("D is killed", "BCE")
    driver.finish("BCE")


@scenario
def short_pauses_change_nothing(driver: Driver) -> None:
    for name in "AC":
        driver.stop(name)
        time.sleep(TIMEOUT * 0.6)
        driver.go_on(name)
        driver.flowing(f"{name} was paused", "ABCDE")
    nothing_changed(driver)
    driver.finish("ABCDE")


@scenario
def who_is_paused_for_long_returns(driver: Driver) -> None:
    for name in "AC":
        driver.stop(name)
        driver.expect(f"{name} is paused", set("ABCDE") - {name})
        time.sleep(0.5)
        driver.go_on(name)
        driver.expect(f"{name} returns", "ABCDE", RETURNS)
    driver.finish("ABCDE")


@scenario
def a_minority_blocks_and_returns(driver: Driver) -> None:
    driver.lab.split("AB")
    driver.expect("A and B are cut off", "CDE")
    driver.expect_blocked("A and B are blocked", "AB")
    driver.lab.heal()
    driver.expect("A and B return", "ABCDE", RETURNS)
    driver.finish("ABCDE")


@scenario
def without_a_majority_all_block_and_then_go_on_together(driver: Driver) -> None:
    driver.lab.split("AB", "CD")
    driver.expect_blocked("nobody has a majority", "ABCDE")
    driver.lab.heal()
    driver.expect("all go on", "ABCDE", RETURNS)
    for actor in driver.all:
        for order in driver.orders:
            assert not actor.of(order, "excluded"), f"{actor} was excluded in {order}"
    driver.finish("ABCDE")


@scenario
def cuts_that_are_short_change_nothing(driver: Driver) -> None:
    for side in ("AB", "C", "ADE"):
        driver.lab.split(side)
        time.sleep(TIMEOUT * 0.5)
        driver.lab.heal()
        time.sleep(TIMEOUT * 0.3)
    driver.flowing("cuts", "ABCDE")
    nothing_changed(driver)
    driver.finish("ABCDE")


@scenario
def nobody_is_suspected_while_a_third_is_lost(driver: Driver) -> None:
    driver.lab.set_weather(CALM._replace(loss=0.3))
    time.sleep(10 * TIMEOUT)
    nothing_changed(driver)
    driver.lab.set_weather(CALM)
    driver.finish("ABCDE")


@scenario
def some_leave(driver: Driver) -> None:
    driver.actors["A"].say("leave")
    driver.expect("A leaves", "BCDE")
    for name in "CD":
        driver.actors[name].say("leave")
    driver.expect("C and D leave", "BE")
    driver.finish("BE")


@scenario
def all_are_killed_and_restarted_in_turn(driver: Driver) -> None:
    for name in "ABCDE":
        driver.kill(name)
        time.sleep(0.3)
        driver.start(name)
        driver.expect(f"{name} is killed and starts again", "ABCDE", RETURNS)
    driver.finish("ABCDE")


@scenario
def all_leave_and_come_back_in_turn(driver: Driver) -> None:
    for name in "ABCDE":
        leave(driver, name)
        driver.start(name)
        driver.expect(f"{name} leaves and starts again", "ABCDE", RETURNS)
    driver.finish("ABCDE")


@scenario
def hundred_leave_and_join(driver: Driver) -> None:
    for number in range(100):
        name = "EDCBA"[number % 5]
        leave(driver, name)
        driver.start(name)
        driver.expect(f"{name} leaves and starts again", "ABCDE", 4 * RETURNS)
    driver.finish("ABCDE")


def leave(driver: Driver, name: str) -> None:
    """Comes back when the process has ended."""
    actor = driver.actors[name]
    actor.say("leave")

    def still_there() -> str | None:
        if actor.child.poll() is not None:
            return None
        groups = [
            f"{order}, view {actor.last(order, 'view').get('number')} of {', '.join(actor.members(order))}"
            for order in driver.orders
            if not actor.of(order, "end")
        ]
        return f"it is still in {'; '.join(groups) or 'no group, and has not ended'}"

    driver.wait(f"{name} leaves", still_there, RETURNS)


def anything(driver: Driver, seed: int, count: int) -> None:
    """So many events, drawn by chance; all five are members after each of them."""
    chance = Random(seed)
    for number in range(count):
        name = chance.choice("ABCDE")
        others = sorted(set("ABCDE") - {name})
        what = chance.choice(("kill", "kill", "leave", "pause", "pause for long", "cut", "cut in two", "loss"))
        match what:
            case "kill":
                driver.kill(name)
                time.sleep(chance.choice((0.0, 0.3, TIMEOUT + 0.02)))
                driver.start(name)
            case "leave":
                leave(driver, name)
                driver.start(name)
            case "pause":
                driver.stop(name)
                time.sleep(TIMEOUT * 0.5)
                driver.go_on(name)
            case "pause for long":
                driver.stop(name)
                time.sleep(TIMEOUT * 2)
                driver.go_on(name)
            case "cut":
                driver.lab.split(name)
                time.sleep(TIMEOUT * chance.choice((0.5, 1.0, 2.0, 4.0)))
                driver.lab.heal()
            case "cut in two":
                driver.lab.split("".join(chance.sample(others, 2)))
                time.sleep(TIMEOUT * chance.choice((0.5, 1.0, 2.0, 4.0)))
                driver.lab.heal()
            case _:
                driver.lab.set_weather(CALM._replace(loss=0.1))
                time.sleep(TIMEOUT)
                driver.lab.set_weather(CALM)
        driver.expect(f"event {number}, {what} of {name}", "ABCDE", 4 * RETURNS)
    driver.finish("ABCDE")


def run(happens: Scenario, gap: float = 0.05, orders: Sequence[str] = ORDERS) -> list[tuple[str, float]]:
    """In a laboratory of its own: what happened, and the seconds until the next view. `gap`: see `Driver`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        laboratory(5, Path(folder), CALM) as lab,
        Driver(lab, gap=gap, orders=orders) as driver,
    ):
        driver.start_all()
        time.sleep(0.3)
        happens(driver)
        return driver.took


def named(name: str) -> Scenario:
    """A scenario, or events drawn by chance."""
    if name in SCENARIOS:
        return SCENARIOS[name]
    seed, _, events = name.partition(":")
    return lambda driver: anything(driver, int(seed), int(events))


def main(names: list[str]) -> int:
    signal(SIGTERM, lambda *_: sys.exit(1))  # whoever ends us ends what we made, too
    reason = why_not()
    if reason is not None:
        sys.exit(f"no network can be made here: {reason}")
    failed = 0
    for name in names or SCENARIOS:
        try:
            took = ", ".join(f"{what}: {seconds:.2f} s" for what, seconds in run(named(name))[1:])
        except AssertionError as error:
            failed += 1
            took = f"FAILED: {str(error)[:2000]}"
        say(f"{name}: {took}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
