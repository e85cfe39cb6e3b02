"""Small files are written completely or not at all, and what is no file is not replaced by one."""

import os
from pathlib import Path

import pytest

from ordercast.trace.small_files import write_atomically


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "it"
    write_atomically(file, b"before")

    def full(path: Path, content: bytes) -> int:
        del path, content
        raise OSError("no space")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space"):
        write_atomically(file, b"after")
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_and_what_a_link_leads_to_are_written_to(tmp_path: Path) -> None:
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    read, write = os.pipe()  # as standard output is to a program behind it
    write_atomically(Path(f"/dev/fd/{write}"), b"content")
    assert os.read(read, 100) == b"content"
    os.close(read)
    os.close(write)
    file.write_bytes(b"before")
    link.symlink_to(file)
    write_atomically(link, b"after")
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert file.read_bytes() == b"after"
