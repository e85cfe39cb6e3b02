"""Members on this machine are found by the name of their group, and only by the same user."""

import asyncio
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ordercast.live.local_groups import contacts_of, local_groups, register
from ordercast.live.transport.addresses import Address
from tests.live.groups import crash, group_of, run

HERE, THERE = Address("127.0.0.1", 7001), Address("::1", 7002)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where notes are, if nothing is in the way."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "runtime").mkdir()
    (tmp_path / "temporary").mkdir()
    return tmp_path / "runtime" / "ordercast"


def test_members_are_found_until_they_end() -> None:
    one, other = register("orders", "A", HERE), register("orders", "B", THERE)
    register("stock", "A", Address("127.0.0.1", 7003))
    assert sorted(contacts_of("orders")) == [HERE, THERE]
    one.remove()
    assert contacts_of("orders") == [THERE]
    one.remove()
    other.remove()
    assert contacts_of("orders") == []


def test_every_group_has_its_own_contacts(folder: Path) -> None:
    kept = [register("orders", "A", HERE), register("stock", "A", THERE)]
    assert local_groups() == ["orders", "stock"]
    assert contacts_of("stock") == [THERE]
    assert contacts_of("order") == []
    assert len(list(folder.iterdir())) == len(kept)


@pytest.mark.parametrize("group", ["../../etc/passwd", "a/b", "*", "[x]", "ü" * 5000, "."])
def test_any_name_of_a_group_is_a_good_one(group: str, folder: Path) -> None:
    with_note = register(group, "B/..", HERE)
    assert contacts_of(group) == [HERE]
    assert local_groups() == [group]
    assert len(list(folder.iterdir())) == 1
    with_note.remove()
    assert not list(folder.iterdir())


def test_only_the_user_may_look_into_the_folder(folder: Path) -> None:
    kept = register("orders", "A", HERE)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    kept.remove()


KILLED = """
import os, sys
from ordercast.live.local_groups import register
from ordercast.live.transport.addresses import Address
kept = register("orders", "A", Address("127.0.0.1", 7001))
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("finder", [lambda: contacts_of("orders"), lambda: register("orders", "B", THERE).remove()])
def test_what_a_killed_process_left_behind_counts_for_nothing_and_is_removed(folder: Path, finder: object) -> None:
    subprocess.run([sys.executable, "-c", KILLED], check=False)  # noqa: S603 (our own text)
    assert len(list(folder.iterdir())) == 1
    assert callable(finder)
    assert not finder()
    assert not list(folder.iterdir())


def test_a_file_that_was_half_written_is_removed_when_it_is_old(folder: Path) -> None:
    register("orders", "A", HERE).remove()
    kept = register("orders", "A", HERE)
    [path] = folder.iterdir()
    young, old = path.with_name(f".{path.name}1"), path.with_name(f".{path.name}2")
    young.write_bytes(b"")
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    register("orders", "B", THERE).remove()
    assert young.exists()
    assert not old.exists()
    kept.remove()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 99, b'{"group":"orders","name":"A","address":"nowhere"}'])
def test_a_file_that_cannot_be_read_is_ignored(folder: Path, content: bytes) -> None:
    kept = register("orders", "A", HERE)
    [path] = folder.iterdir()
    path.write_bytes(content)
    assert contacts_of("orders") == []
    assert local_groups() == []
    kept.remove()


@pytest.mark.parametrize("value", [None, "", "relative", "/does/not/exist"])
def test_without_a_runtime_folder_the_temporary_one_is_used(
    value: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    early = register("orders", "A", HERE)
    if value is None:
        monkeypatch.delenv("XDG_RUNTIME_DIR")
    else:
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    late = register("orders", "B", THERE)
    assert contacts_of("orders") == [THERE]
    assert (tmp_path / "temporary" / f"ordercast-{os.geteuid()}").is_dir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    assert contacts_of("orders") == [HERE, THERE]  # wherever they are
    early.remove()
    late.remove()


def foreign(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def open_to_others(folder: Path, _: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    folder.chmod(0o770)


def elsewhere(folder: Path, _: pytest.MonkeyPatch) -> None:
    (folder.parent / "other").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "other")


@pytest.mark.parametrize("refused", [foreign, open_to_others, elsewhere])
def test_a_folder_that_others_can_write_into_is_not_used(
    refused: object, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(refused)
    refused(folder, monkeypatch)
    refused(tmp_path / "temporary" / f"ordercast-{os.geteuid()}", monkeypatch)
    with caplog.at_level(logging.WARNING, "ordercast.join"):
        register("orders", "A", HERE).remove()
    assert "A will not be found on this machine" in caplog.text
    assert not list(folder.iterdir())
    assert contacts_of("orders") == []


def test_a_full_disk_is_a_line_in_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    register("orders", "A", HERE).remove()
    assert "No space left on device" in caplog.text
    assert not list(folder.iterdir())


def test_members_of_a_live_group_are_found_until_they_end() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", close=False) as groups:
            name = groups["A"].name
            assert len(contacts_of(name)) == 3
            await groups["C"].leave()
            assert len(contacts_of(name)) == 2
            crash(groups["B"])
            await asyncio.sleep(0)
            assert len(contacts_of(name)) == 1
            crash(groups["A"])

    run(test)
