"""`ordercast doctor` and `ordercast key`."""

import json
from pathlib import Path

from ordercast.wire.keys import keys_from_file, keys_from_text
from tests.cli.conftest import Command
from tests.live.ports import free_port


def test_the_doctor_says_what_it_found(ordercast: Command) -> None:
    outcome = ordercast("doctor --members A,B")
    assert outcome.status == 0
    for word in ("python", "receive buffer", "member A", "member B", "multicast"):
        assert word in outcome.out


def test_a_program_reads_it_and_a_failure_has_a_status(ordercast: Command) -> None:
    outcome = ordercast(f"doctor --json --members A=127.0.0.1:{free_port()},B=[fe80::1]:7000")
    found = {check["name"]: check["health"] for check in json.loads(outcome.out)}
    assert found["member A"] == "ok"
    assert found["member B"] == "fail"
    assert outcome.status == 1


def test_a_key_is_a_line_that_members_take(ordercast: Command, tmp_path: Path) -> None:
    first, second = ordercast("key").out, ordercast("key --id 7").out
    assert keys_from_text(first, "here").current == 1
    assert keys_from_text(second + first, "here").current == 7
    assert first.partition(":")[2] != second.partition(":")[2]
    file = tmp_path / "key"
    assert ordercast("key --out", file).status == 0
    assert keys_from_file(file).current == 1, "only its owner may read it"
    refused = ordercast("key --out", file)
    assert refused.status == 2
    assert "is there already" in refused.sentence
    assert ordercast("key --id 256").status == 2


def test_addresses_of_ipv6_are_shown_whole(ordercast: Command) -> None:
    """Between brackets, which could be taken for a colour."""
    assert "[fd00::1]:7000" in ordercast("doctor --members A=[fd00::1]:7000,B=[fd00::2]:7000").out.replace("\n", "")
