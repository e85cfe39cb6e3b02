"""`ordercast log`."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ordercast.log.segments import segment_name
from ordercast.log.writer import Log
from tests.cli.conftest import Command
from tests.log.logs import GROUP, MEMBERS, folder_log


def damaged(folder: Path) -> str:
    """Changes a byte in the middle of the second segment; its name."""
    name = sorted(path.name for path in folder.iterdir() if path.name.isdigit())[1]
    path = folder / name
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    return name


def test_cat_prints_a_line_for_each_message(ordercast: Command, tmp_path: Path) -> None:
    folder_log(tmp_path, 30, max_segment=600)
    expected = "".join(f"{number}\t{MEMBERS[number % 3]}\tm{number}\n" for number in range(30))
    found = ordercast("log cat", tmp_path)
    assert (found.status, found.out, found.err) == (0, expected, "")
    found = ordercast("log cat --from 27", tmp_path)
    assert (found.status, found.out) == (0, "27\tA\tm27\n28\tB\tm28\n29\tC\tm29\n")


def test_a_text_is_one_line_whatever_it_holds(ordercast: Command, tmp_path: Path) -> None:
    with Log(tmp_path, GROUP) as log:
        log.view(1, MEMBERS)
        for text in (b"two\nlines\r", "Öl".encode(), b"\xff\x00"):
            log.append(0, 0, [len(text)], text, priority=2)
    assert ordercast("log cat", tmp_path).out == "0\tA\ttwo\\nlines\\r\n1\tA\tÖl\n2\tA\t\\xff\x00\n"
    rows = [json.loads(line) for line in ordercast("log cat --json", tmp_path).out.splitlines()]
    assert rows == [
        {"position": 0, "sender": "A", "text": "two\nlines\r", "priority": 2, "view": 1},
        {"position": 1, "sender": "A", "text": "Öl", "priority": 2, "view": 1},
        {"position": 2, "sender": "A", "base64": "/wA=", "priority": 2, "view": 1},
    ]


def test_check_exits_0_if_all_is_whole_and_1_if_it_is_damaged(ordercast: Command, tmp_path: Path) -> None:
    folder_log(tmp_path, 30, max_segment=600)
    found = ordercast("log check", tmp_path)
    assert found.status == 0
    assert found.out.startswith("group orders: positions 0 to 29, view 3 of A, B, C\n")
    assert found.out.endswith("0 places damaged; every byte was verified\n")
    name = damaged(tmp_path)
    found = ordercast("log check", tmp_path)
    assert found.status == 1
    assert f"damage: segment {name}, offset " in found.out
    assert ": it sets this aside and fetches it from another member" in found.out
    assert found.out.endswith("1 place damaged; every byte was verified\n")
    found = ordercast("log check --json", tmp_path)
    assert found.status == 1
    assert name in json.loads(found.out)["damage"][0]


def test_what_is_behind_damage_was_promised_and_is_not_called_an_end_that_was_not(
    ordercast: Command, tmp_path: Path
) -> None:
    folder_log(tmp_path, 30, max_segment=1 << 20)
    path = tmp_path / segment_name(0)
    data = path.read_bytes()
    path.write_bytes(data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    for command in ("log check", "log show"):
        found = ordercast(command, tmp_path)
        assert found.status == 1
        assert "damage: " in found.out
        assert "never promised" not in found.out


def test_an_empty_log_has_no_messages(ordercast: Command, tmp_path: Path) -> None:
    folder_log(tmp_path, 0)
    found = ordercast("log show", tmp_path)
    assert found.status == 0
    assert found.out.startswith("group orders: no messages, view 3 of A, B, C\n")


def test_cat_prints_what_is_before_the_damage_and_exits_1(ordercast: Command, tmp_path: Path) -> None:
    folder_log(tmp_path, 30, max_segment=600)
    name = damaged(tmp_path)
    found = ordercast("log cat", tmp_path)
    assert found.status == 1
    assert found.out.startswith("0\tA\tm0\n")
    assert int(found.out.splitlines()[-1].partition("\t")[0]) >= int(name) - 1
    assert found.sentence.startswith(f"the log is damaged: segment {name}, offset ")


def test_show_reads_the_last_segment_and_all_headers(ordercast: Command, tmp_path: Path) -> None:
    folder_log(tmp_path, 30, max_segment=600)
    with (tmp_path / segment_name(0)).open("r+b") as file:
        file.seek(-10, 2)
        file.write(b"?")  # which only `check` sees
    last = max(path.name for path in tmp_path.iterdir() if path.name.isdigit())
    with (tmp_path / last).open("ab") as file:
        file.write(b"half a frame")
    (tmp_path / f"{last}.tail").write_bytes(b"")
    found = ordercast("log show", tmp_path)
    assert found.status == 0
    assert found.out.count("\n0000000000") == len(list(tmp_path.glob("0*"))), "all segments, and the tail"
    assert "disk use: " in found.out
    assert "12 bytes at the end were never promised" in found.out
    assert f"{last}.tail: set aside, does not count" in found.out
    assert ordercast("log check", tmp_path).status == 1


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("log cat none", "there is no log in none: it is not there"),
        ("log check none", "there is no log in none: it is not there"),
        ("log show --from 3 none", "--from: show looks at the whole log; use cat"),
        ("log check --follow none", "--follow: check looks at the log as it is now; use cat"),
        ("log cat --from -1 .", "a position is 0 or more, not -1"),
        ("log cat .", "there is no log in .: the folder has no segment"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = ordercast(line)
    assert (found.status, found.sentence) == (2, sentence)


def test_it_follows_until_it_is_interrupted(tmp_path: Path) -> None:
    folder_log(tmp_path, 2)
    program = [sys.executable, "-m", "ordercast", "log", "cat", str(tmp_path), "--follow"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stderr is not None
        assert [process.stdout.readline() for _ in range(2)] == ["0\tA\tm0\n", "1\tB\tm1\n"]
        folder_log(tmp_path, 1)
        assert process.stdout.readline() == "2\tC\tm2\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
