"""Members as processes that are stopped, killed, and cut off, at random; with logs, all of them are killed, too.

What their clients saw must be linearizable, each increment counted once or not at all, and a caller must be able to
find out which. HOSTILE_SECONDS says for how long, HOSTILE_SEEDS which seeds.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ordercast.model.history import Operation
from tests.live.ports import free_group
from tests.replicated.histories import violations
from tests.replicated.hostile_member import MEMBERS

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("HOSTILE_SECONDS", "20"))
SEEDS = [int(each) for each in os.environ.get("HOSTILE_SEEDS", "1,2").split(",")]


class Processes:
    """Members, and who harms them."""

    def __init__(self, folder: Path, *, logged: bool) -> None:
        self.folder, self.group, self.logged = folder, free_group("hostile"), logged
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.events: list[str] = []

    def start(self, *names: str) -> None:
        for name in names:
            arguments = [name, self.group, str(self.folder), "1" if self.logged else "0"]
            line = [sys.executable, "-m", "tests.replicated.hostile_member", *arguments]
            pipe = subprocess.PIPE
            with (self.folder / f"{name}.err").open("a") as error:
                pipes = {"stdin": pipe, "stdout": pipe, "stderr": error}
                self.running[name] = subprocess.Popen(line, cwd=ROOT, text=True, **pipes)  # type: ignore[call-overload] # noqa: S603

    def opened(self, *names: str) -> None:
        for name in names:
            pipe = self.running[name].stdout
            assert pipe is not None
            assert pipe.readline() == "open\n", (name, (self.folder / f"{name}.err").read_text()[-2000:], self.events)

    def kill(self, *names: str) -> None:
        for name in names:
            self.running[name].kill()
        for name in names:
            self.running.pop(name).communicate()

    def say(self, name: str, line: str) -> None:
        pipe = self.running[name].stdin
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.write(line + "\n")
            pipe.flush()

    def harm(self, rng: random.Random) -> None:
        """One thing, and its end."""
        name, seconds = rng.choice(MEMBERS), rng.choice([0.2, 1.0, 2.5])
        kinds = ["stop", "kill", "deaf", "mute", "cut off", *(["kill all", "kill two"] if self.logged else [])]
        kind = rng.choice(kinds)
        self.events.append(f"{time.monotonic():.1f} {kind} {name} {seconds}")
        if kind == "stop":
            self.running[name].send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            self.running[name].send_signal(signal.SIGCONT)
        elif kind in {"kill", "kill all", "kill two"}:
            names = MEMBERS if kind == "kill all" else tuple(set(MEMBERS) - {name}) if kind == "kill two" else (name,)
            self.kill(*names)
            time.sleep(rng.choice([0.0, seconds]))
            self.start(*names)
            self.opened(*names)
        else:
            words = {"deaf": ["deaf"], "mute": ["mute"], "cut off": ["deaf", "mute"]}[kind]
            for word in words:
                self.say(name, word)
            time.sleep(seconds)
            for word in words:
                self.say(name, {"deaf": "hear", "mute": "speak"}[word])


class Written(NamedTuple):
    """What clients have written down."""

    operations: list[Operation]
    open: list[tuple[Any, ...]]
    """The ids of increments whose end is not known."""
    done: set[tuple[Any, ...]]
    """Those of the others."""


def written(folder: Path) -> Written:
    """By all processes that there were."""
    found, ids, done = list[Operation](), list[tuple[Any, ...]](), set[tuple[Any, ...]]()
    for path in sorted(folder.glob("*.jsonl")):
        calls: dict[int, dict[str, Any]] = {}
        for line in path.read_text().splitlines():
            with suppress(json.JSONDecodeError):  # it was killed while it wrote
                fields = json.loads(line)
                calls.setdefault(fields["number"], {}).update(fields)
        for each in calls.values():
            returned = each.get("returned")
            shape = (each["process"], each["model"], "", each["key"], each["kind"], tuple(each["arguments"]))
            found.append(Operation(*shape, each.get("result", ""), each["number"], returned))
            if each["model"] == "counter":
                if returned is None:
                    ids.append(tuple(each["id"]))
                else:
                    done.add(tuple(each["id"]))
    return Written([*found, *lost(found)], ids, done)


def lost(operations: list[Operation]) -> list[Operation]:
    """What was given, and not given back as far as its client knows, may be taken by the group at any time."""
    ends = {"release", "done"}
    back = {(each.model, each.arguments[0]) for each in operations if each.kind in ends and each.result == "true"}
    found = []
    for each in operations:
        if each.kind in {"acquire", "get"} and each.model in {"lock", "queue"}:
            token = each.result.split(" ")[0] or str(-each.called)
            if (each.model, token) not in back:
                found.append(Operation(each.process, each.model, "", "", "lost", (token,), "", each.called, None))
    return found


@pytest.mark.soak
@pytest.mark.parametrize("logged", [False, True], ids=["memory", "logs"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_is_done_to_processes_breaks_locks_reads_or_exactly_once(
    seed: int, logged: bool, tmp_path: Path
) -> None:
    rng, processes = random.Random(seed), Processes(tmp_path, logged=logged)
    try:
        processes.start(*MEMBERS)
        processes.opened(*MEMBERS)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(0.5 + rng.random())
            processes.harm(rng)
            gone = [name for name in MEMBERS if processes.running[name].poll() is not None]
            assert not gone, (gone, processes.events, [(tmp_path / f"{name}.err").read_text()[-1500:] for name in gone])
        time.sleep(3.0)
        for name in "BC":
            processes.say(name, "end")
            processes.running[name].wait(30)
        ids = written(tmp_path).open
        processes.say("A", json.dumps(["ask", *ids], separators=(",", ":")))
        output, _ = processes.running["A"].communicate(timeout=60)
        applied, value, _ = json.loads(output.splitlines()[-1])
        found, last, done = written(tmp_path)
        answers = dict(zip(ids, applied, strict=True))
        assert not [each for each in done if answers.get(each) is False], processes.events
        counted = done | {each for each, was_applied in answers.items() if was_applied}
        unknown = {each for each in last if answers.get(each) is None}  # of A, which was still at work
        assert len(counted) <= value <= len(counted | unknown), processes.events
        assert len([each for each in found if each.returned is not None]) > 100
        assert violations(found) == [], processes.events
        tokens = [each.result for each in found if each.kind == "acquire" and each.result]
        assert len(set(tokens)) == len(tokens)
    finally:
        for process in processes.running.values():
            process.kill()
            process.communicate()
