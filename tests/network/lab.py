"""A laboratory: namespaces with a network card each, on one switch, and a process of a group in each."""

import itertools
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from ordercast.audit.reference import audit
from ordercast.audit.verdict import Verdict
from ordercast.wire.keys import new_key
from tests.network.switch import Switch, Weather

ROOT = Path(__file__).parent.parent.parent
_NUMBERS = itertools.count()
_DRAWN = secrets.token_hex(3)  # others may make networks at the same time, also from containers on this machine


def why_not() -> str | None:
    """What is missing on this machine to make networks."""
    if shutil.which("ip") is None:
        return "the command ip is missing (package iproute2)"
    if os.geteuid() != 0:
        return "only root may make namespaces"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun"
    name = f"ordercast-{_DRAWN}-try"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except subprocess.CalledProcessError as error:
        return f"namespaces cannot be made: {error.stderr.strip()}"
    return None


def _ip(*arguments: str, told: str = "") -> None:
    subprocess.run(["ip", *arguments], input=told, check=True, capture_output=True, text=True)  # noqa: S603, S607


class Process:
    """One member. Its reports are what it printed last."""

    def __init__(self, name: str, command: list[str], told: str) -> None:
        """`told`: its standard input."""
        self.name = name
        self._child = subprocess.Popen(  # noqa: S603
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._child.stdin is not None
        self._child.stdin.write(told)
        self._child.stdin.close()
        self._child.stdin = None  # all is said: `communicate` has nothing to write
        self.status: int | None = None
        self.reports: dict[str, dict[str, Any]] = {}
        """By group."""
        self.said = self.errors = ""

    def wait_open(self, groups: int) -> None:
        """Comes back when so many groups are open."""
        assert self._child.stdout is not None
        for _ in range(groups):
            line = self._child.stdout.readline()
            if not line.startswith("open "):
                self.wait(10)
                raise AssertionError(f"{self.name} did not open: {line}{self.errors}")

    def signal(self, number: signal.Signals) -> None:
        """To the process itself: `ip netns exec` becomes it."""
        self._child.send_signal(number)

    def wait(self, seconds: float) -> Self:
        """Comes back when it has ended."""
        if self.status is None:
            self.said, self.errors = self._child.communicate(timeout=seconds)
            self.status = self._child.returncode
            lines = [line for line in self.said.splitlines() if line.startswith("{")]
            self.reports = json.loads(lines[-1]) if lines else {}
        return self

    def end(self) -> None:
        """Whatever it is doing."""
        if self._child.poll() is None:
            self._child.kill()
        self.wait(10)


class Lab:
    """Members are A, B, C… with addresses that follow from their places."""

    def __init__(self, size: int, folder: Path, switch: Switch, prefix: str) -> None:
        self.size, self.folder, self.switch, self._prefix = size, folder, switch, prefix
        self.names = [chr(ord("A") + place) for place in range(size)]
        self.key = folder / "key"
        self.key.touch(0o600)
        self.key.write_text(new_key())
        self.records = folder / "records"
        self._processes: list[Process] = []
        self._groups = itertools.count()

    def members(self, port: int = 7000, *, v6: bool = False) -> dict[str, str]:
        """All names with their addresses."""
        return {
            name: f"[fd77::{place}]:{port}" if v6 else f"10.77.0.{place}:{port}"
            for place, name in enumerate(self.names, start=1)
        }

    def set_weather(self, weather: Weather) -> None:
        """For all alike."""
        self.switch.weather = [weather] * self.size

    def cut_off(self, name: str) -> None:
        """Nothing comes from it any more, and nothing reaches it."""
        self.split(name)

    def split(self, *sides: str) -> None:
        """Nothing passes between members on different sides; those that are not named are on one more side."""
        side_of = {name: number for number, side in enumerate(sides) for name in side}
        ports = list(enumerate(self.names))
        self.switch.cut = frozenset(
            (by, to) for by, one in ports for to, other in ports if side_of.get(one, -1) != side_of.get(other, -1)
        )

    def heal(self) -> None:
        """Everything passes again."""
        self.switch.cut, self.switch.link_loss = frozenset(), {}

    def lose(self, by: str, to: str, loss: float) -> None:
        """A link that loses so much in one direction."""
        self.switch.link_loss = {**self.switch.link_loss, (self.names.index(by), self.names.index(to)): loss}

    def start(self, name: str, *jobs: dict[str, Any]) -> Process:
        """A member with something to do in each of some groups: see `member.Job`."""
        common = {"group": "lab", "name": name, "key": str(self.key), "record": str(self.records)}
        told = [{**common, **job} for job in jobs]
        return self.run(name, [sys.executable, "-m", "tests.network.member", json.dumps(told)])

    def at_home(self, name: str, command: list[str]) -> list[str]:
        """A command where a member is at home."""
        # Ahead of others: a member that gets no turn for seconds on a busy machine would be taken for dead.
        return ["nice", "-n", "-10", "ip", "netns", "exec", f"{self._prefix}-{self.names.index(name)}", *command]

    def run(self, name: str, command: list[str], told: str = "") -> Process:
        """Any command where a member is at home."""
        process = Process(name, self.at_home(name, command), told)
        self._processes.append(process)
        return process

    def start_all(self, *jobs: dict[str, Any]) -> dict[str, Process]:
        """Every member; comes back when all groups are open. Each group has a port of its own."""
        told = [{"members": self.members(port), **job} for port, job in enumerate(jobs, start=7000)]
        started = {name: self.start(name, *told) for name in self.names}
        for process in started.values():
            process.wait_open(len(jobs))
        return started

    def end_all(self) -> None:
        """Nothing that was started goes on."""
        for process in self._processes:
            process.end()

    def audit(self) -> Verdict:
        """What `ordercast audit` says of all records together."""
        return audit([self.records])


@contextmanager
def laboratory(size: int, folder: Path, weather: Weather | None = None) -> Iterator[Lab]:
    """Everything that is made is taken away, by its name."""
    number = next(_NUMBERS)
    prefix = f"ordercast-{_DRAWN}-{number}"
    devices = [f"oc{_DRAWN}{chr(97 + number % 26)}{place}" for place in range(size)]
    spaces = [f"{prefix}-{place}" for place in range(size)]
    switch = Switch(devices)
    lab = Lab(size, folder, switch, prefix)
    try:
        for place, (device, space) in enumerate(zip(devices, spaces, strict=True), start=1):
            _furnish(device, space, place)
        switch.start()
        lab.set_weather(weather or Weather())
        yield lab
    finally:
        lab.end_all()
        for space in spaces:
            with suppress(subprocess.CalledProcessError):  # it was not made
                _ip("netns", "del", space)
        switch.close()


def _furnish(device: str, space: str, place: int) -> None:
    """A namespace with a card that has two addresses."""
    _ip("netns", "add", space)
    _ip("link", "set", device, "netns", space)
    orders = f"""
        link set lo up
        link set {device} name net0
        link set net0 address 02:00:00:00:00:{place:02x}
        addr add 10.77.0.{place}/24 dev net0
        addr add fd77::{place}/64 dev net0 nodad
        link set net0 up
    """
    _ip("-n", space, "-batch", "-", told=orders)
