"""The disk of the operating system: what it is asked to write down, and what it leaves open."""

import os
from pathlib import Path

import pytest

from ordercast.log import disk as module
from ordercast.log.disk import FolderDisk
from ordercast.model.errors import LogError


def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files and folders that are synced from now on."""
    found: list[Path] = []

    def note(descriptor: int) -> None:
        found.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not tell which file a descriptor is")
    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(module, "_fdatasync", note)
    return found


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def test_names_and_contents_are_synced_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, folder = synced(monkeypatch), tmp_path.resolve() / "log"
    disk = FolderDisk(folder, write=True)
    assert calls == [folder.parent], "which has the name of the folder"
    disk.close()
    disk = FolderDisk(folder, write=True)
    assert calls == [folder.parent], "it was there"
    calls.clear()
    file = disk.create("segment")
    file.write(0, [b"data"])
    assert calls == []
    file.sync()
    assert calls == [folder / "segment"]
    file.cut(2)
    assert calls == [folder / "segment"] * 2, "else the old size may come back"
    disk.sync()
    assert calls[2:] == [folder]
    file.close()
    disk.close()


def test_a_file_is_made_read_renamed_and_removed(tmp_path: Path) -> None:
    disk = FolderDisk(tmp_path / "log", write=True)
    file = disk.create("a")
    file.write(0, [b"first ", b"second"])
    assert (file.read(0, 100), file.read(6, 3), file.read(12, 1)) == (b"first second", b"sec", b"")
    file.cut(5)
    file.close()
    assert disk.size("a") == 5
    disk.rename("a", "b")
    assert set(disk.names()) == {"b", "lock"}
    again = disk.open("b")
    again.write(5, [b"!"])
    assert again.read(0, 10) == b"first!"
    again.close()
    disk.remove("b")
    assert disk.names() == ["lock"]
    disk.close()


def test_nothing_stays_open_and_a_reader_writes_nothing(tmp_path: Path) -> None:
    before = open_files()
    disk = FolderDisk(tmp_path / "log", write=True)
    disk.create("a").close()
    disk.sync()
    with pytest.raises(LogError, match="is being written by another process"):
        FolderDisk(tmp_path / "log", write=True)
    disk.close()
    disk.close()
    reader = FolderDisk(tmp_path / "log", write=False)
    file = reader.open("a")
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write(0, [b"x"])
    file.close()
    assert open_files() == before
