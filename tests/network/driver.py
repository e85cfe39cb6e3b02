"""Runs members as processes, lets things happen to them, and looks at what all of them were given.

Each process takes part in a group of each order, so that whatever happens, happens to every order. What a driver
expects of a group is its list of members after each event, within so many seconds. Time for which a process, or the
switch, was ready to run and got no processor is granted besides: it says how busy the machine is, and nothing of them.

With the variable NETWORK_LOGS, a folder, what all processes logged is written there in the end.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGUSR1
from threading import Thread
from typing import Any, NamedTuple

from tests.network.lab import ROOT, Lab
from tests.network.results import ORDERS, holds

TIMEOUT = 1.5
"""The failure timeout of these groups, in seconds."""
SLACK = 2.0
"""Seconds that are granted besides; not to those that survive others."""
SURVIVORS = 2 * TIMEOUT
"""Seconds within which those that survive others go on."""


def waited_for_processor(process: int) -> float:
    """Seconds for which a thread of the process was ready to run, and others ran: of the one that waited longest."""
    longest = 0
    for told in Path(f"/proc/{process}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            longest = max(longest, int(told.read_text().split()[1]))
    return longest / 1e9


class Actor:
    """One process, and what it has told."""

    def __init__(self, name: str, life: int, command: list[str]) -> None:
        self.name, self.life = name, life
        self.events: list[dict[str, Any]] = []
        self.child = subprocess.Popen(  # noqa: S603
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.errors = ""
        self._threads = [Thread(target=read, daemon=True) for read in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def __repr__(self) -> str:
        return f"{self.name}/{self.life}"

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            if line.endswith("\n"):  # the last one of a process that is killed may be cut short
                self.events.append(json.loads(line))

    def _read_errors(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.errors += line

    def say(self, what: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(what + "\n")
        self.child.stdin.flush()

    def of(self, group: str, *kinds: str) -> list[dict[str, Any]]:
        """What it has told of a group."""
        return [event for event in tuple(self.events) if event["group"] == group and event["event"] in kinds]

    def last(self, group: str, *kinds: str) -> dict[str, Any]:
        found = self.of(group, *kinds)
        return found[-1] if found else {}

    def log(self, group: str) -> list[str | int | None]:
        """What it was delivered: messages, numbers of views, and None where the others went on without it."""
        return [entry for told in self.of(group, "log") for entry in told["entries"]]

    def members(self, group: str) -> list[str]:
        """Of its last view."""
        return list(self.last(group, "view").get("members", ()))

    def is_blocked(self, group: str) -> bool:
        return self.last(group, "blocked", "excluded", "view", "end").get("event") in {"blocked", "excluded"}

    def end(self) -> None:
        """Whatever it is doing."""
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(10)
        for thread in self._threads:
            thread.join(10)
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


class Driver:
    """A group of each order in a laboratory."""

    def __init__(
        self, lab: Lab, *, gap: float = 0.05, orders: Iterable[str] = ORDERS, options: dict[str, Any] | None = None
    ) -> None:
        self.lab, self.gap, self.orders = lab, gap, tuple(orders)
        self.options = {"failure_timeout": TIMEOUT, "timeout": 30, **(options or {})}
        self.actors: dict[str, Actor] = {}
        """The last process of each name."""
        self.all: list[Actor] = []
        self.took: list[tuple[str, float]] = []
        """What happened, and the seconds until all were in the next view."""

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self.all:
            actor.end()
        if folder := os.environ.get("NETWORK_LOGS"):
            for actor in self.all:
                Path(folder, f"{actor.name}-{actor.life}.log").write_text(actor.errors)

    # --- what happens ---

    def start(self, name: str, **options: Any) -> Actor:
        """A process of this name, which founds the groups with all others or joins them."""
        life = sum(actor.name == name for actor in self.all)
        groups = {
            order: {
                "order": order,
                **({"resilience": 2} if order == "sequenced" else {}),  # what anybody delivered is with a majority
                "key": str(self.lab.key),
                "record": str(self.lab.records),
                **({} if options else {"members": self.lab.members(port)}),
                **self.options,
                **{key: value(port) if callable(value) else value for key, value in options.items()},
            }
            for port, order in enumerate(self.orders, start=7000)
        }
        task = {"name": name, "life": life, "groups": groups, "gap": self.gap}
        command = [sys.executable, "-m", "tests.network.participant", json.dumps(task)]
        actor = Actor(name, life, self.lab.at_home(name, command))
        self.actors[name] = actor
        self.all.append(actor)
        return actor

    def start_all(self) -> None:
        """Comes back when all groups are open and everybody has been given something."""
        for name in self.lab.names:
            self.start(name)
        self.expect("start", self.lab.names, 30)

    def kill(self, *names: str) -> None:
        for name in names:
            self.actors[name].child.send_signal(SIGKILL)

    def stop(self, name: str) -> None:
        self.actors[name].child.send_signal(SIGSTOP)

    def go_on(self, name: str) -> None:
        self.actors[name].child.send_signal(SIGCONT)

    # --- what is to follow ---

    def wait(self, what: str, is_so: Callable[[], str | None], within: float) -> float:
        """Seconds until `is_so` has no objection; an AssertionError with the last one if that takes too long."""
        began, before = time.monotonic(), self._waited()
        while (objection := is_so()) is not None:
            for actor in self.actors.values():
                assert actor.child.poll() in {None, 0, -SIGKILL}, f"{actor} failed: {actor.errors or 'no words'}"
            if time.monotonic() > began + within:
                lost = self._lost(before)
                busy = f", {lost:.1f} s of which were lost to a busy machine" if lost else ""
                took = time.monotonic() - began
                assert took < within + lost, f"{what}: {objection} after {took:.1f} s{busy}{self._standing()}"
            time.sleep(0.01)
        return time.monotonic() - began

    def _lost(self, before: dict[int, float]) -> float:
        """Seconds that the process waited for a processor since then that waited longest."""
        return max(waited - before.get(process, 0.0) for process, waited in self._waited().items())

    def _waited(self) -> dict[int, float]:
        """For a processor, by process: those that live, and this one, which has the switch."""
        processes = [actor.child.pid for actor in self.actors.values() if actor.child.poll() is None]
        return {process: waited_for_processor(process) for process in (os.getpid(), *processes)}

    def _standing(self) -> str:
        """What processes have logged as errors of their own, and where those are that live."""
        found = [(actor, actor.errors.find("Traceback")) for actor in self.all]
        errors = "".join(f"\n{actor}: {actor.errors[at : at + 5000]}" for actor, at in found if at >= 0)
        living = {actor: len(actor.errors) for actor in self.actors.values() if actor.child.poll() is None}
        for actor in living:
            actor.child.send_signal(SIGUSR1)
        time.sleep(1.0)
        return errors + "".join(f"\n{actor} is here: {actor.errors[at:][-5000:]}" for actor, at in living.items())

    def expect(self, what: str, members: Iterable[str], within: float | None = None) -> None:
        """All of these are in a view of themselves, in every group, and deliver messages in it."""
        wanted = sorted(members)

        def objection() -> str | None:
            for name in wanted:
                for order in self.orders:
                    actor = self.actors[name]
                    if sorted(actor.members(order)) != wanted or actor.is_blocked(order):
                        return f"{name} in {order} is in {actor.last(order, 'view', 'blocked', 'end')}, not {wanted}"
            return None

        took = self.wait(what, objection, SURVIVORS if within is None else within)
        self.took.append((what, took))
        self.flowing(what, wanted, TIMEOUT + SLACK if within is None else within)

    def flowing(self, what: str, names: Iterable[str], within: float = TIMEOUT + SLACK) -> None:
        """Everybody's own messages become stable from now on."""
        since = time.monotonic()

        def objection() -> str | None:
            for name in names:
                for order in self.orders:
                    if self.actors[name].last(order, "stable").get("at", 0) < since:
                        return f"no message of {name} becomes stable in {order}"
            return None

        self.wait(what, objection, within)

    def expect_blocked(self, what: str, names: Iterable[str], *, blocked: bool = True) -> None:
        """These say that they are blocked, in every group, or that they are not any more."""

        def objection() -> str | None:
            for name in names:
                for order in self.orders:
                    if self.actors[name].is_blocked(order) is not blocked:
                        return f"{name} in {order} is {'not ' if blocked else ''}blocked"
            return None

        self.took.append((what, self.wait(what, objection, 4 * TIMEOUT + SLACK)))

    def expect_end(self, what: str, name: str, why: str, within: float = 4 * TIMEOUT + SLACK) -> None:
        """This process is not a member any more, in any group, and says so."""

        def objection() -> str | None:
            actor = self.actors[name]
            found = [actor.last(order, "end") for order in self.orders]
            return None if all(why in end.get("why", "-") for end in found) else f"{name} ended with {found}"

        self.wait(what, objection, within)

    # --- the end ---

    def finish(self, members: Iterable[str]) -> None:
        """These close all groups together; then everything that anybody was given is compared, and audited.

        One that got no processor for as long as half a failure timeout may be excluded meanwhile: then it does not
        return, and says so.
        """
        wanted, before, lost = list(members), self._waited(), 0.0

        def open_yet() -> str | None:
            nonlocal lost
            lost = max(lost, self._lost(before))
            return next((f"{name} has not ended" for name in wanted if self.actors[name].child.poll() is None), None)

        for name in wanted:
            self.actors[name].say("close")
        self.wait("close", open_yet, 60)
        for actor in self.all:
            actor.end()
        for order in self.orders:
            for name in wanted:
                end = self.actors[name].last(order, "end")
                excluded = lost > TIMEOUT / 2 and "was about to return" in end.get("why", "")
                assert end.get("status") == 0 or excluded, f"{name} in {order}: {end} {self.actors[name].errors}"
            check_group(order, self.all)
        holds(self.lab)


class Segment(NamedTuple):
    """What a member was given in one view."""

    view: int
    messages: list[str]
    joined: bool
    """It was not in the view before."""
    closed: bool
    """It was in the next view, too."""


def check_group(order: str, actors: list[Actor]) -> None:
    """What all were given fits together."""
    names: dict[int, list[str]] = {}
    for actor in actors:
        for view in actor.of(order, "view"):
            known = names.setdefault(view["number"], view["members"])
            assert known == view["members"], f"{order}: two views {view['number']}: {known}, {view['members']}"
    given: dict[int, dict[Actor, Segment]] = defaultdict(dict)
    for actor in actors:
        end = actor.last(order, "end")
        for segment in split_log(actor.log(order)):
            if segment.closed or (segment.view == max(names) and end.get("status") == 0):
                given[segment.view][actor] = segment  # of others the record is audited
    everything: list[str] = []
    for number in sorted(given):
        everything += same_messages(order, number, given[number])
    assert len(everything) == len(set(everything)), f"{order}: delivered twice"
    in_order: dict[str, list[int]] = defaultdict(list)
    for message in everything:
        sender, _, count = message.rpartition("/")
        in_order[sender].append(int(count))
    for actor in actors:
        check_sender(order, actor, in_order[str(actor)])


def same_messages(order: str, number: int, given: dict[Actor, Segment]) -> list[str]:
    """All were given the same in a view; who joined with it lacks what was sent before, where messages have names."""
    whole = max(given.values(), key=lambda segment: (not segment.joined, len(segment.messages))).messages
    for actor, segment in given.items():
        found, wanted = segment.messages, whole
        if segment.joined and order in {"partial", "total"}:
            wanted = [message for message in whole if message in set(found)]
        same = sorted(found) == sorted(wanted) if order == "partial" else found == wanted
        lacks = sorted(set(found) ^ set(wanted))[:20]
        assert same, f"{order}: {actor} was given other messages in view {number}, or in another order: {lacks}"
    return whole


def check_sender(order: str, actor: Actor, found: list[int]) -> None:
    """Its messages are complete as far as they were given, and those that were stable are among them."""
    if order != "priority":
        assert found == list(range(len(found))), f"{order}: messages of {actor} are missing or out of order: {found}"
    lost = {event["number"] for event in actor.of(order, "stable")} - set(found)
    assert not lost, f"{order}: {actor} was told that {sorted(lost)} are stable, and they are lost"
    end = actor.last(order, "end")
    if end.get("status") == 0:
        assert len(found) == end["sent"], f"{order}: {actor} sent {end['sent']}, {len(found)} were delivered"


def split_log(log: list[str | int | None]) -> list[Segment]:
    """What was given in each view."""
    found: list[Segment] = []
    joins = True
    for entry in log:
        if entry is None:
            joins = True
        elif isinstance(entry, str):
            found[-1].messages.append(entry)
        elif not found or found[-1].view != entry:  # a joiner is told its first view twice
            if found and not joins:
                found[-1] = found[-1]._replace(closed=True)
            found.append(Segment(entry, [], joins and entry > 0, closed=False))
            joins = False
    return found
