"""`ordercast audit --follow` as an operator runs it: a process beside the processes of a group, members that are killed
and join, and logs of members that went astray.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import indent
from typing import Any

import msgspec
import pytest

from ordercast.log import Log
from ordercast.log.disk import FolderDisk
from ordercast.log.files import LogFiles
from ordercast.log.format import Kind, Packet, View
from ordercast.log.segments import read_segment, segment_names
from ordercast.pipeline.log_stream.reading import frames_of
from tests.live.ports import free_group, free_port
from tests.pipeline.log_stream.campaign import MEMBER
from tests.pipeline.log_stream.member_logs import MEMBERS, packet, write_log, write_logs
from tests.pipeline.log_stream.streams_page import blocks

PACKETS = [packet(number) for number in range(40)]
SECONDS = 5.0
"""Within so many a disagreement must be told; on a quiet machine it takes two."""
Content = list[Packet | View]


class Audit:
    """The command, and what it says."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.port = free_port()
        self._out, self._errors = folder / f"out{self.port}", folder / f"errors{self.port}"
        command = [sys.executable, "-m", "ordercast.cli", "audit", "--follow", *arguments]
        with self._out.open("wb") as out, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=out, stderr=errors)  # noqa: S603

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    def metric(self, name: str, **labels: str) -> int:
        """A value of now; -1 if there is none."""
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            wanted = "".join(f'(?=[^}}]*{label}="{value}")' for label, value in labels.items())
            found = re.search(
                rf"^ordercast_audit_{name}{{{wanted}[^}}]*}} (\d+)$", answer.read().decode(), re.MULTILINE
            )
            return int(found[1]) if found is not None else -1
        return -1

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert self.process.poll() is None, self.errors
            assert time.monotonic() < deadline, f"waited in vain for {what}; {self.errors}"
            time.sleep(0.05)

    def ended(self) -> int:
        """The exit status, after an interrupt if it stays."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@contextmanager
def audit_of(folder: Path, *arguments: str) -> Iterator[Audit]:
    audit = Audit(folder, *arguments)
    try:
        yield audit
    finally:
        audit.process.kill()
        audit.process.wait()


def test_logs_that_grow_by_other_orders(tmp_path: Path) -> None:
    """An alarm by Prometheus, an exit status when it is interrupted."""
    logs = tmp_path / "logs"
    write_logs(logs, PACKETS[:10])
    members = ",".join(f"{name}={logs / name}" for name in MEMBERS)
    port = free_port()
    with audit_of(tmp_path, "--members", members, "--metrics", str(port)) as audit:
        audit.port = port
        audit.wait_for(lambda: audit.metric("agreed_position") == 30, "the first messages")
        write_logs(logs, PACKETS[10:20])
        audit.wait_for(lambda: audit.metric("agreed_position") == 60, "more messages")
        assert audit.metric("disagreements", kind="order") == 0
        write_logs(logs, PACKETS[20:22], "A", "B")
        write_log(logs / "C", [PACKETS[21], PACKETS[20]])
        audit.wait_for(lambda: audit.metric("disagreements", kind="order") in {1, 2}, "an alarm")  # with A, and with B
        assert audit.ended() == 1
    assert "order: the logs of C and A have different orders below position 63\n" in audit.out


@contextmanager
def prometheus_of(folder: Path, scraped: int) -> Iterator[int]:
    """A Prometheus with the rules of the guide; its port."""
    port, folder = free_port(), folder / "prometheus"
    folder.mkdir()
    [rules] = blocks("Audit a group while it runs", "yaml")
    (folder / "rules.yml").write_text(f"groups:\n- name: audit\n  interval: 1s\n  rules:\n{indent(rules, '  ')}")
    targets = f"scrape_configs:\n- job_name: audit\n  static_configs:\n  - targets: ['127.0.0.1:{scraped}']\n"
    limits = "global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\n"
    (folder / "prometheus.yml").write_text(f"{limits}rule_files: [rules.yml]\n{targets}")
    place = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    command = [str(shutil.which("prometheus")), *place, f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)  # noqa: S603
    try:
        yield port
    finally:
        process.terminate()
        process.wait(30)


def asked(port: int, path: str) -> Any:
    """What Prometheus answers; None while it starts."""
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=5) as answer:
        return json.loads(answer.read())["data"]
    return None


@pytest.mark.soak
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
def test_prometheus_raises_the_alarm_of_the_guide(tmp_path: Path) -> None:
    """With the rules as they stand there: silent while the members agree, and firing when they do not."""
    logs = tmp_path / "logs"
    write_logs(logs, PACKETS[:10])
    port = free_port()
    with audit_of(tmp_path, str(logs), "--metrics", str(port)) as audit, prometheus_of(tmp_path, port) as prometheus:
        agreed = "query?query=ordercast_audit_agreed_position"

        def alarms() -> set[tuple[str, str, str]]:
            """The name, the kind and the state of each."""
            found = asked(prometheus, "alerts") or {"alerts": []}
            labels = ((each["labels"], each["state"]) for each in found["alerts"])
            return {(each["alertname"], each["kind"], state) for each, state in labels}

        audit.wait_for(lambda: (asked(prometheus, agreed) or {}).get("result"), "a scrape")
        assert asked(prometheus, agreed)["result"][0]["value"][1] == "30"
        assert alarms() == set()
        write_logs(logs, PACKETS[20:22], "A", "B")
        write_log(logs / "C", [PACKETS[21], PACKETS[20]])
        audit.wait_for(lambda: alarms() == {("MembersDisagree", "order", "firing")}, "an alarm")
        assert audit.ended() == 1


class Processes:
    """Members of a group that send all the time, each a process with a log."""

    def __init__(self, logs: Path) -> None:
        self.logs, self.group = logs, free_group("audited", (*MEMBERS, "D"))
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *, joins: bool = False) -> None:
        how = "joins" if joins else "opens"
        place = [self.group, name, str(self.logs / name), how, "0.005", "sequenced"]
        command = [sys.executable, "-c", MEMBER, *place]
        self._running[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603

    def kill(self, name: str) -> Path:
        """By SIGKILL; its log, cut where it is whole."""
        process = self._running.pop(name)
        process.kill()
        process.wait()
        Log(self.logs / name, self.group).close()
        return self.logs / name

    def let_go_on_alone(self, name: str, audit: Audit) -> None:
        """The sequencer writes what it has numbered, and the others, which stand still, are sent it and do not read."""
        for other in set(self._running) - {name}:
            self._running[other].send_signal(signal.SIGSTOP)
        reached = audit.metric("agreed_position")
        audit.wait_for(lambda: audit.metric("position", member=name) > reached + 20, f"messages that {name} alone has")

    def run(self) -> set[str]:
        return {name for name, process in self._running.items() if process.poll() is None}

    def stop(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


@contextmanager
def processes(logs: Path) -> Iterator[Processes]:
    found = Processes(logs)
    try:
        for name in MEMBERS:
            found.start(name)
        yield found
    finally:
        found.stop()


def content(folder: Path) -> Content:
    """All packets of a log, and where its views begin."""
    disk, found = FolderDisk(folder, write=False), Content()
    for name in segment_names(disk.names()):
        segment = read_segment(disk, name)
        found += [] if found else [segment.header.context.view]
        for frame, view, _ in frames_of(disk, segment):
            if frame.header.kind == Kind.VIEW:
                found.append(view)
            found += (msgspec.structs.replace(each, payload=bytes(each.payload)) for each in frame.packets())
    disk.close()
    return found


def replace_log(folder: Path, group: str, new: Iterable[Packet | View]) -> None:
    """Another log is at this place at once."""
    made = folder.parent.parent / "made"
    disk = FolderDisk(made, write=True)
    log = LogFiles(disk, group)
    for each in new:
        if isinstance(each, View):
            log.view(each)
        else:
            log.packets([each])
    log.sync()
    log.close()
    disk.close()
    shutil.rmtree(folder)
    made.rename(folder)


def swapped(logged: Content) -> Content:
    """Two packets of the first view in the other order."""
    first, second = (logged.index(each) for each in [each for each in logged if isinstance(each, Packet)][4:6])
    found = list(logged)
    found[first], found[second] = found[second], found[first]
    return found


def changed(logged: Content) -> Content:
    """One letter of one message: only the running hash can tell."""
    place = logged.index([each for each in logged if isinstance(each, Packet)][4])
    old = logged[place]
    assert isinstance(old, Packet)
    new = Packet(old.source, old.first, old.lengths, b"!" + bytes(old.payload)[1:], old.priority)
    return [*logged[:place], new, *logged[place + 1 :]]


def viewed(logged: Content) -> Content:
    """The last view with one more member."""
    last = [each for each in logged if isinstance(each, View)][-1]
    other = msgspec.structs.replace(last, members=(*last.members, "X"))
    return [other if each == last else each for each in logged]


@pytest.mark.soak
def test_a_group_whose_processes_are_killed_and_join_agrees_until_one_goes_astray(tmp_path: Path) -> None:
    logs, port, written = tmp_path / "logs", free_port(), tmp_path / "found.json"
    with processes(logs) as group:
        while not all(any((logs / name).glob("0*")) for name in MEMBERS):
            time.sleep(0.01)
        with audit_of(tmp_path, str(logs), "--metrics", str(port), "--json", str(written)) as audit:
            audit.port = port
            audit.wait_for(lambda: audit.metric("agreed_position") > 50, "messages")
            group.let_go_on_alone("A", audit)
            for name in MEMBERS:
                group.kill(name)
            for name in "BC":  # a majority of the last view
                group.start(name)
            audit.wait_for(lambda: audit.metric("left_behind_messages", member="A") > 0, "the others' next view")
            assert re.search("the group went on to view [0-9]+ without A, and without what it has from", audit.errors)
            group.start("D", joins=True)
            group.start("A")
            audit.wait_for(lambda: audit.metric("left_behind_messages", member="A") == 0, "the return of A")
            reached = audit.metric("agreed_position")
            for name in "ABCD":
                audit.wait_for(lambda: audit.metric("position", member=name) > reached, name)  # noqa: B023
            counts = {kind: audit.metric("disagreements", kind=kind) for kind in ("order", "view", "group", "damage")}
            assert counts == dict.fromkeys(counts, 0)
            logged = content(group.kill("C"))
            replace_log(logs / "C", group.group, swapped(logged))
            begun = time.monotonic()
            audit.wait_for(lambda: audit.metric("disagreements", kind="order") > 0, "an alarm")
            assert time.monotonic() - begun < SECONDS
            assert audit.ended() == 1
        [*told] = re.findall("order: the logs of (.) and (.) have different orders below position", audit.out)
        assert told
        assert all("C" in pair for pair in told), "the others agree"
        assert {each["kind"] for each in json.loads(written.read_bytes())["disagreements"]} == {"order"}
        for new, sentence in (
            (changed, "order: the logs of [ABCD] and [ABCD] have different orders below position"),
            (viewed, "view: view [0-9]+ has the members [A-D, ]*, X in the log of C, and [A-D, ]* in that of"),
        ):
            replace_log(logs / "C", group.group, new(logged))
            with audit_of(tmp_path, str(logs)) as audit:  # without metrics it ends by itself
                assert audit.process.wait(60) == 1
            assert re.match(sentence, audit.out)
        assert group.run() == {"A", "B", "D"}
