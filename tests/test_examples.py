"""The examples run, and print what they promise."""

import asyncio
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.audit.reference import audit
from tests.documented_programs import new_names
from tests.live.ports import free_group

EXAMPLES = Path(__file__).parent.parent / "examples"
PROMISED = {
    "chat": "all three read the same, in the same order: True",
    "replicated_dictionary": "20 writes were applied 60 times: each by 3 members of 5",
    "alarms": "it overtook readings, at all members alike: True",
    "work_queue": "30 jobs were done once each, and all agree on by whom: True",
    "replicated_store": "all members were restarted, and have all four values: True",
    "counter": "all counted to 40: True",
    "visits": "all counted the same: True",
    "job_queue": "30 jobs were done once each, by 3 workers",
    "fenced_lock": "nine turns, each with its own token: True",
    "bank": "who has an account has all 30 transfers: True",
    "urgent_commands": "it passed readings, at all members alike: True",
    "durable_bank": "nothing that was done is missing, and the sum is right: True",
}


def run(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / f"{name}.py"
    program.write_text(new_names()((EXAMPLES / program.name).read_text()))
    return subprocess.run([sys.executable, program], capture_output=True, text=True, check=False, timeout=120)  # noqa: S603


@pytest.mark.parametrize("name", PROMISED)
def test_an_example_runs_and_keeps_its_promise(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == PROMISED[name]


def test_the_audit_proves_that_accounts_on_different_members_see_one_order(tmp_path: Path) -> None:
    bank = runpy.run_path(str(EXAMPLES / "bank.py"))

    async def branches() -> list[list[int]]:
        group = free_group("bank")
        found: list[list[int]] = await asyncio.gather(
            *(bank["branch"](name, group, transfers=4, record=tmp_path / name) for name in bank["MEMBERS"])
        )
        return found

    assert asyncio.run(branches()) == [[-12, 0], [-12, 12], [0, 12]]
    verdict = audit([tmp_path / name for name in bank["MEMBERS"]])
    assert verdict.findings.keys() >= {"same_order", "no_cycle", "complete"}
    assert verdict.holds
    assert verdict.deliveries > 3 * 4 * 7  # a transfer has three deliveries, and a visit two


def test_replicas_of_a_key_hold_the_same_value(tmp_path: Path) -> None:
    printed = run("replicated_dictionary", tmp_path).stdout
    lines = [line for line in printed.splitlines() if "all have it" in line]
    assert len(lines) == 4
    assert not any(" / " in line for line in lines)


def chat(*names: str) -> dict[str, subprocess.Popen[str]]:
    """Whoever started us in the background had interrupts ignored: a chat handles them again."""
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    run = f"{heed}; import runpy; runpy.run_path({str(EXAMPLES / 'chat.py')!r}, run_name='__main__')"
    pipe, group = subprocess.PIPE, free_group("chat", ("ann", "bob", "cy"))
    return {
        name: subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", run, name, group], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        for name in names
    }


def test_who_is_interrupted_leaves_the_chat_to_the_others() -> None:
    people = chat("ann", "bob", "cy")
    for process in people.values():
        assert process.stdout is not None
        while not process.stdout.readline().startswith("you are"):
            pass
    people["ann"].send_signal(signal.SIGINT)
    try:
        people["ann"].wait(30)  # with its input open
        for process in people.values():
            assert process.stdin is not None
            process.stdin.close()
            process.stdin = None
        told = {name: process.communicate(timeout=30) for name, process in people.items()}
    finally:
        for process in people.values():
            process.kill()
    assert told["ann"][1] == "interrupted: you have left the chat\n"
    assert [process.returncode for process in people.values()] == [1, 0, 0]


def test_the_chat_reads_only_what_was_typed() -> None:
    """It must not wait for input in `read`: nothing else happens then, and SIGTERM has no effect."""
    typed = runpy.run_path(str(EXAMPLES / "chat.py"))["typed"]

    async def type_two() -> list[bytes]:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)  # a read that would wait fails
        lines = typed(reading)
        os.write(writing, b"one\n")
        first = await anext(lines)
        second = asyncio.create_task(anext(lines))
        await asyncio.sleep(0.02)
        os.write(writing, b"two\n")
        found = [first, await second]
        for end in (reading, writing):
            os.close(end)
        return found

    assert asyncio.run(asyncio.wait_for(type_two(), 10)) == [b"one", b"two"]


def test_who_is_no_member_of_the_chat_is_told_who_is() -> None:
    (process,) = chat("dan").values()
    _, told = process.communicate(timeout=30)
    assert (process.returncode, told) == (1, "the chat is over: 'dan' is not a member; members are: ann, bob, cy\n")


def test_a_chat_in_three_processes() -> None:
    people = chat("ann", "bob", "cy")
    for name, process in people.items():
        assert process.stdin is not None
        process.stdin.write(f"hello from {name}\n")
        process.stdin.close()  # each stays until all have closed
        process.stdin = None
    whole = [process.communicate(timeout=60)[0] for process in people.values()]
    printed = [text.partition("you are")[2].splitlines()[1:] for text in whole]  # it may have had to wait before
    assert printed[0] == printed[1] == printed[2]
    assert sorted(printed[0]) == [f"{name}: hello from {name}" for name in people]


@pytest.mark.soak
@pytest.mark.parametrize("how", [[], ["--kill"]], ids=["stopped", "killed"])
@pytest.mark.parametrize("name", ["store", "counter", "chat"])
def test_a_rolling_restart_of_all_members_loses_nothing(name: str, how: list[str]) -> None:
    command = [sys.executable, str(EXAMPLES / "rolling_restart.py"), name, *how]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("all 3 members were restarted 1 times, hold the same, and nothing was lost\n")
