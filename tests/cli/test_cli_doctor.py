"""`ordercast doctor` and `ordercast key`."""

import json
from pathlib import Path

from ordercast.wire.keys import keys_from_file, keys_from_text
from tests.cli.conftest import Command


def test_the_doctor_says_what_it_found(ordercast: Command) -> None:
    outcome = ordercast("doctor --members A,B")
    assert outcome.status == 0
    for word in ("python", "receive buffer", "member A", "member B", "multicast"):
        assert word in outcome.out


def test_a_program_reads_it_and_a_failure_has_a_status(ordercast: Command) -> None:
    outcome = ordercast("doctor --json --members A=[fe80::1]:7000,B=[fe80::2]:7000")
    found = {check["name"]: check["health"] for check in json.loads(outcome.out)}
    assert found["member A"] == found["member B"] == "fail"
    assert found["python"] == "ok"
    assert outcome.status == 1


def test_members_that_cannot_reach_each_other_are_no_members(ordercast: Command) -> None:
    members = "A=127.0.0.1:7000,B=10.0.0.1:7000"
    for command in (f"doctor --members {members}", f"relay 10.0.0.1:7100 --insecure --group g --members {members}"):
        refused = ordercast(command)
        assert refused.status == 2
        assert "a loopback address cannot be reached from another machine" in refused.sentence
    for command in ("doctor --members A,B", "relay 127.0.0.1:7100 --group g --members A,B"):
        refused = ordercast(f"{command} --multicast [ff15::7]:7000")
        assert refused.status == 2
        assert "use IPv4 for both, or IPv6 for both" in refused.sentence
    refused = ordercast("relay 10.0.0.1:7100 --insecure --group g --members A,B")
    assert refused.status == 2
    assert "the relay has 10.0.0.1:7100: a loopback address cannot be reached from another machine" in refused.sentence


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
    assert "exists already" in refused.sentence
    below, above = (
        refused.sentence.index("below the old one at all"),
        refused.sentence.index("above the old one at all"),
    )
    assert below < above < refused.sentence.index("then remove"), "else some could not decrypt what others send"
    assert ordercast("key --id 256").status == 2


def test_addresses_of_ipv6_are_shown_whole(ordercast: Command) -> None:
    """Between brackets, which could be taken for a colour."""
    assert "[fd00::1]:7000" in ordercast("doctor --members A=[fd00::1]:7000,B=[fd00::2]:7000").out.replace("\n", "")
