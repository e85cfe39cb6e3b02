"""Whole live groups in virtual time: they do what they promise, and the harness notices if they do not."""

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import ordercast.live
from ordercast.live.host.batching import OutgoingBatch
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.leaving import Leaving
from ordercast.live.stats import Stats
from ordercast.live.transport.link_sender import LinkSender
from ordercast.model.errors import GroupAborted
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.failure_detector import FailureDetector
from ordercast.protocols.sequencer.flush import SequencerFlush
from tests.live_harness.__main__ import main
from tests.live_harness.draw import ORDERS, draw, faults_apart
from tests.live_harness.plan import Plan, Setup, Weather, from_toml, to_toml
from tests.live_harness.run import Run, run_plan
from tests.live_harness.shrink import shrunk

SEEDS = sorted((Path(__file__).parent / "seeds").glob("*.toml"))
_COUNT = count()
TALKS = tuple(f"{0.1 + 0.02 * number:.2f} {'ABC'[number % 3]} sends 40" for number in range(9))
COMES_AND_GOES = (
    (0, "D starts contacts"),
    (0.05, "A sends 40"),
    (0.1, "D sends 40"),
    (0.15, "B sends 40"),
    (0.2, "D leaves"),
)
FAULTS = (*TALKS, "0.15 C dies", "0.4 D starts contacts", "0.9 B suspects A", "1.2 D leaves")


def kinds(plan: Plan) -> set[str]:
    return {failure.kind for failure in run_plan(plan).failures}


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_what_failed_once_holds(path: Path) -> None:
    assert not run_plan(from_toml(path)).failures


@pytest.mark.parametrize("number", range(21))
def test_random_groups_keep_their_promises(number: int) -> None:
    assert not run_plan(draw(number)).failures


@pytest.mark.soak
@pytest.mark.parametrize("order", ORDERS)
def test_a_hundred_join_and_leave_in_a_row(order: str) -> None:
    steps: list[str] = []
    for number in range(100):
        steps += [f"{0.1 + 0.4 * number + after:.3f} {step}" for after, step in COMES_AND_GOES]
    result = run_plan(Plan(seed=1, setup=Setup(order=order), steps=tuple(steps)))
    assert not result.failures
    assert result.settled
    assert result.views == 700, "three are in 200 views each, one life in one each"


def is_lost_or_wrong(plan: Plan) -> bool:
    result = run_plan(plan)
    return bool(result.failures) or not result.settled


@pytest.mark.parametrize("number", range(7))
def test_a_group_of_three_lives_through_any_faults_that_come_one_at_a_time(number: int) -> None:
    assert not is_lost_or_wrong(faults_apart(number))


@pytest.mark.parametrize("number", range(3))
def test_a_group_of_five_lives_through_any_faults_that_come_two_at_a_time(number: int) -> None:
    assert not is_lost_or_wrong(faults_apart(number, 5, founders=5, together=2))


RETURNS_TOO_LATE = """
    0.2 split C 0.75
    2.2 split C 0.75
    4.2 split C 0.75
    5.7 A dies
    6.0 A starts members
"""


def test_whom_the_others_need_does_not_wait_before_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that was excluded again and again is away while another one dies, and of two the older one is needed."""
    plan = Plan(steps=tuple(line.strip() for line in RETURNS_TOO_LATE.strip().splitlines()))
    assert not is_lost_or_wrong(plan)
    monkeypatch.setattr("ordercast.live.host.returning._ENOUGH", 0)
    assert is_lost_or_wrong(plan)


def test_what_a_sequencer_delivered_alone_is_sent_again_when_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(setup=Setup(order="sequenced"), steps=("0.2 A pauses 1.5", "0.2 A sends 20", "3.0 B sends 20"))
    assert not is_lost_or_wrong(plan)

    def own_packets(self: SequencerFlush) -> Any:
        return {packet.seq: packet for packet in self.machine.window.outstanding}

    monkeypatch.setattr(SequencerFlush, "own_packets", own_packets)
    assert kinds(plan) == {"receipt"}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("place", ["network", "machine"])
def test_a_group_lives_through_a_crash_a_join_a_suspicion_and_a_leave(order: str, place: str) -> None:
    result = run_plan(Plan(setup=Setup(order=order, place=place), steps=FAULTS))
    assert not result.failures
    assert result.settled
    assert result.views >= 6
    assert result.deliveries >= 20


def digest(plan: Plan) -> str:
    """Of each datagram and its time, and of all records."""
    run = Run(plan, remembers=True)
    run.carry_out()
    assert len(run.world.history) > 300
    assert len(run.records.rows()) > 3
    return blake2b(repr((run.world.history, run.records.rows())).encode()).hexdigest()


@pytest.mark.parametrize("number", [3, 5])
def test_a_run_is_the_same_to_the_last_byte_in_every_process(number: int) -> None:
    code = (
        "from tests.live_harness.draw import draw; from tests.live_harness.test_live_harness import digest; "
        f"print(digest(draw({number})))"
    )
    found = {
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {digest(draw(number)) + "\n"}


# --- what it notices ---


def _drops_its_third(put: Callable[..., Any]) -> Callable[..., Any]:
    """One member does: the first that gets anything."""
    counts: Counter[int] = Counter()

    def patched(self: Inbox, packet: Any) -> None:
        counts[id(self)] += 1
        if id(self) != next(iter(counts)) or counts[id(self)] != 3:
            put(self, packet)

    return patched


def _swaps(put: Callable[..., Any]) -> Callable[..., Any]:
    """One member hands out its second message after the third one."""
    kept: dict[int, list[Any]] = {}

    def patched(self: Inbox, packet: Any) -> None:
        mine = kept.setdefault(id(self), [])
        mine.append(packet)
        if id(self) != next(iter(kept)) or len(mine) not in {2, 3}:
            put(self, packet)
        elif len(mine) == 3:
            put(self, packet)
            put(self, mine[1])

    return patched


def _twice(put: Callable[..., Any]) -> Callable[..., Any]:
    def patched(self: Inbox, packet: Any) -> None:
        put(self, packet)
        put(self, packet)

    return patched


@pytest.mark.parametrize(
    ("kind", "owner", "name", "broken"),
    [
        ("twice", Inbox, "put", _twice(Inbox.put)),
        ("lost", Inbox, "put", _drops_its_third(Inbox.put)),
        ("order", Inbox, "put", _swaps(Inbox.put)),
        ("receipt", OutgoingBatch, "reached", lambda *_: None),
        ("not ended", Leaving, "say", lambda *_, **__: None),
        ("stuck", Coordinator, "begin", lambda *_: None),
        ("stats", Inbox, "delivered", property(lambda _: {})),
    ],
)
def test_broken_live_code_is_noticed(
    monkeypatch: pytest.MonkeyPatch, kind: str, owner: type, name: str, broken: Callable[..., Any]
) -> None:
    plan = Plan(steps=(*TALKS, "0.4 C dies"))
    assert not kinds(plan)
    monkeypatch.setattr(owner, name, broken)
    assert kind in kinds(plan)


@pytest.mark.parametrize(
    ("kind", "owner", "name", "broken"),
    [
        ("needless", FailureDetector, "_suspect", lambda self: self._silent_for(self.config.tick) & ~1),
        ("not silent", Stats, "units_sent", property(lambda _: next(_COUNT))),
    ],
)
def test_a_group_at_rest_is_noticed_that_is_not(
    monkeypatch: pytest.MonkeyPatch, kind: str, owner: type, name: str, broken: Any
) -> None:
    plan = Plan(steps=TALKS, weather=Weather(jitter=0.0))
    assert not kinds(plan)
    monkeypatch.setattr(owner, name, broken, raising=False)
    assert kind in kinds(plan)


def test_what_is_sent_again_after_a_member_was_left_out_is_counted_once() -> None:
    steps = ("0.08 split B 1.5", "0.1 A suspects C", "0.12 split A,C 0.7", "0.12 B sends 20", "0.27 C suspects B")
    assert not run_plan(Plan(setup=Setup(order="po"), steps=steps)).failures


def test_an_exception_that_reaches_an_event_loop_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(LinkSender, "tick", raises)
    assert "exception" in kinds(Plan(weather=Weather(loss=0.2), steps=TALKS))


def test_a_group_that_gives_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(self: Any, places: int) -> None:
        del places
        self._owner.ending.end_alone(GroupAborted("it was too much", {}, 0).why, 0)

    monkeypatch.setattr("ordercast.live.host.reachability.Reachability.suspect", gives_up)
    assert "gave up" in kinds(Plan(steps=(*TALKS, "0.4 C dies")))


# --- plans ---


def test_a_plan_is_what_is_read_from_its_file(tmp_path: Path) -> None:
    for number in range(30):
        path = tmp_path / f"{number}.toml"
        path.write_text(to_toml(draw(number)), encoding="utf-8")
        assert from_toml(path) == draw(number)


def test_a_plan_that_fails_is_shrunk_to_what_it_needs() -> None:
    plan = Plan(setup=Setup(encrypted=True, window=4), weather=Weather(loss=0.1), steps=FAULTS)

    def kind_of(tried: Plan) -> str | None:
        return "wrong" if "0.4 D starts contacts" in tried.steps and tried.setup.window == 4 else None

    smallest = shrunk(plan, kind_of)
    assert smallest == replace(plan, setup=Setup(window=4), weather=Weather(), steps=("0.4 D starts contacts",))


def test_the_command_tells_what_fails_and_writes_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(OutgoingBatch, "reached", lambda *_: None)
    monkeypatch.setattr("tests.live_harness.__main__.draw", lambda number, _: Plan(seed=number, steps=TALKS))
    arguments = ["live_harness", "--runs", "1", "--first", "7", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    assert main() == 1
    assert "1 failed" in capsys.readouterr().out
    path = tmp_path / "total-7.toml"
    assert len(from_toml(path).steps) < 2
    monkeypatch.setattr(sys, "argv", ["live_harness", str(path)])
    assert main() == 1
    monkeypatch.undo()
    monkeypatch.setattr(sys, "argv", ["live_harness", str(path)])
    assert main() == 0
    assert capsys.readouterr().out.endswith(f"{path}: holds\n")


# --- doors ---

BY_ATTRIBUTE = {"time", "secrets", "socket", "random"}
"""Modules that live code may only use by their names, so that they can be replaced."""
ELSEWHERE = {
    ("open_group", "socket"),  # a type
    ("addresses", "secrets"),  # to find a free port of loopback, before a group is opened
}
THREADS = {"heartbeat_thread", "sending", "sync_group", "trace_recorder"}
"""Modules of live code that know of threads: the harness replaces the first and last, and does without the third."""


def test_live_code_reads_clocks_chance_and_sockets_only_where_they_can_be_replaced() -> None:
    found, threads = set(), set()
    for path in sorted(Path(ordercast.live.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in BY_ATTRIBUTE:
                found.add((path.stem, node.module))
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("threading", "concurrent")):
                threads.add(path.stem)
    assert found == ELSEWHERE
    assert threads == THREADS


@pytest.mark.soak
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("first", range(1000, 1300, 30))
def test_many_groups_live_through_any_faults_that_a_majority_is_spared(first: int, together: int) -> None:
    numbers, options = range(first, first + 30), {"founders": 1 + 2 * together, "together": together}
    assert [number for number in numbers if is_lost_or_wrong(faults_apart(number, 14, **options))] == []


@pytest.mark.soak
def test_many_random_groups_keep_their_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = os.environ.get("SOAK_SECONDS", "600")
    first = str(int.from_bytes(os.urandom(4), "big"))
    monkeypatch.setattr(sys, "argv", ["live_harness", "--first", first, "--seconds", seconds])
    assert main() == 0
