"""Large writes that pass the page cache by: the file has the same bytes, whatever the system can do."""

import errno
import fcntl
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ordercast.log import Log, check, direct
from ordercast.log.direct import MAX_SIZE, MIN_SIZE
from ordercast.log.disk import FolderDisk, FolderFile, write_all
from tests.log.logs import GROUP

PAGE = 4096


class Calls:
    """What is asked of the system: sizes and places of writes, and which of them pass the cache by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.direct: list[tuple[int, int]] = []
        self.cached: list[tuple[int, int]] = []
        self.answer: Callable[[bool, int], int | None] = lambda *_: None
        """Told whether a write is direct, and its size: how much is written; None: all. May raise."""
        self._write = os.pwrite
        monkeypatch.setattr(os, "pwrite", self.write)

    def write(self, file: int, data: memoryview, start: int) -> int:
        is_direct = bool(fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT)
        size = self.answer(is_direct, len(data))
        (self.direct if is_direct else self.cached).append((start, len(data)))
        return self._write(file, data if size is None else data[:size], start)


def watched(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Calls:
    """What is asked of the system from now on; skips the test where nothing can be written directly."""
    try:
        os.close(os.open(folder / "probe", os.O_RDWR | os.O_CREAT | os.O_DIRECT))
        direct.memory()
    except (OSError, AttributeError, direct.NotDirectError):
        pytest.skip("this system has no direct writes, or not in this folder")
    return Calls(monkeypatch)


def opened(folder: Path) -> FolderFile:
    return FolderFile(os.open(folder / "file", os.O_RDWR | os.O_CREAT), [])


def pieces(random: Random, size: int) -> list[bytes | memoryview]:
    """So many bytes, cut into parts."""
    data = random.randbytes(size)
    ends = sorted(random.randrange(size) for _ in range(random.choice([0, 3, 2000])))
    return [memoryview(data)[low:high] for low, high in zip([0, *ends], [*ends, size], strict=True)]


def test_files_have_what_was_written_in_large_and_small_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls, file = watched(monkeypatch, tmp_path), opened(tmp_path)
    random, expected = Random(7), bytearray()
    sizes = [1, 100, PAGE, MIN_SIZE - 1, MIN_SIZE, MIN_SIZE + 5000, 5 * MIN_SIZE, 3 * MIN_SIZE + 1]
    for _ in range(60):
        start = len(expected) if random.random() < 0.8 else random.randrange(len(expected) + 1)
        parts = pieces(random, random.choice(sizes))
        data = b"".join(parts)
        assert file.write(start, parts) == len(data)
        expected[start : start + len(data)] = data
        if random.random() < 0.3:
            file.sync()
        assert file.read(start, len(data)) == data
    assert (tmp_path / "file").read_bytes() == expected
    assert len(calls.direct) > 10
    assert all(start % PAGE == size % PAGE == 0 for start, size in calls.direct)
    assert all(0 < size < PAGE for _, size in calls.cached), "what is before and behind whole pages"
    file.close()


@pytest.mark.parametrize(
    ("size", "is_direct"), [(MIN_SIZE - 1, False), (MIN_SIZE, True), (MAX_SIZE, True), (MAX_SIZE + 1, False)]
)
@pytest.mark.parametrize("start", [0, 1])
def test_only_large_writes_pass_the_cache_by(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int, is_direct: bool, start: int
) -> None:
    calls, file = watched(monkeypatch, tmp_path), opened(tmp_path)
    data = bytes(size - 1) + b"x"
    assert file.write(start, [data]) == size
    assert bool(calls.direct) is is_direct
    assert file.read(start, size + 1) == data
    file.close()


def test_a_write_may_be_shorter_at_each_of_its_three_pieces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls, file = watched(monkeypatch, tmp_path), opened(tmp_path)
    data = Random(1).randbytes(MIN_SIZE + PAGE)
    for short in range(3):
        left = iter(range(10))
        calls.answer = lambda _, size, left=left, short=short: size // 2 if next(left) == short else None  # type: ignore[misc]
        start = 100 + 4 * MIN_SIZE * short
        done = file.write(start, [data])
        assert 0 < done < len(data)
        assert (tmp_path / "file").read_bytes()[start:] == data[:done]
        calls.answer = lambda *_: None
        write_all(file, start + done, data[done:])
        assert (tmp_path / "file").read_bytes()[start : start + len(data)] == data
    file.close()


def refuse(error: int) -> Callable[..., int]:
    def refused(*_: object) -> int:
        raise OSError(error, os.strerror(error))

    return refused


@pytest.mark.parametrize("what", ["flag", "advice", "open", "write", "memory"])
def test_what_cannot_be_direct_goes_through_the_cache_and_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    calls, file = watched(monkeypatch, tmp_path), opened(tmp_path)
    tried = []

    def refused(*_: object, **__: object) -> int:
        tried.append(what)
        return refuse(errno.EINVAL)()

    if what == "flag":
        monkeypatch.setattr(direct, "_DIRECT", 0)
    elif what == "advice":
        monkeypatch.delattr(mmap, "MADV_DONTFORK")
    elif what == "open":
        monkeypatch.setattr(os, "open", refused)
    elif what == "write":
        calls.answer = lambda is_direct, _: refused() if is_direct else None
    else:
        monkeypatch.setattr(mmap, "mmap", refused)
    data = Random(2).randbytes(MIN_SIZE + 100)
    for start in (0, 7):
        assert file.write(start, [data]) == len(data)
        assert file.read(start, len(data)) == data
    assert calls.direct == []
    assert len(tried) == (what not in {"flag", "advice"})
    monkeypatch.undo()
    file.close()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_an_error_of_the_disk_is_raised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: int) -> None:
    calls, file = watched(monkeypatch, tmp_path), opened(tmp_path)
    calls.answer = lambda is_direct, _: refuse(error)() if is_direct else None
    with pytest.raises(OSError, match=os.strerror(error)):
        file.write(0, [bytes(MIN_SIZE)])
    file.close()


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("fails", [False, True])
def test_no_file_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    calls, before = watched(monkeypatch, tmp_path), open_files()
    file = opened(tmp_path)
    if fails:
        monkeypatch.setattr(os, "open", refuse(errno.EINVAL))
    file.write(0, [bytes(MIN_SIZE)])
    assert bool(calls.direct) is not fails
    monkeypatch.undo()
    file.close()
    assert open_files() == before


def test_memory_is_used_again_by_the_next_file_and_never_by_two(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    watched(monkeypatch, tmp_path)
    made: list[object] = []
    make = direct.memory

    def noted() -> memoryview:
        made.append(0)
        return make()

    monkeypatch.setattr(direct, "memory", noted)
    disk = FolderDisk(tmp_path / "log", write=True)
    for turn in range(3):
        files = [disk.create(f"{turn}-{number}") for number in range(2)]
        for number, file in enumerate(files):
            assert file.write(0, [bytes([number]) * MIN_SIZE]) == MIN_SIZE
        for number, file in enumerate(files):
            assert set(file.read(0, MIN_SIZE)) == {number}
            file.close()
    disk.close()
    assert len(made) == 2


def test_a_file_that_cannot_be_direct_leaves_the_memory_to_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    watched(monkeypatch, tmp_path)
    memories = [direct.memory()]
    file = FolderFile(os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT), memories)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse(errno.EINVAL))
        file.write(0, [bytes(MIN_SIZE)])
    assert len(memories) == 1
    file.close()


@pytest.mark.parametrize("lacking", ["MADV_HUGEPAGE", None])
def test_huge_pages_are_wished_for_and_not_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lacking: str | None
) -> None:
    calls = watched(monkeypatch, tmp_path)
    if lacking is not None:
        monkeypatch.delattr(mmap, lacking)
    file = opened(tmp_path)
    assert file.write(0, [bytes(MIN_SIZE)]) == MIN_SIZE
    assert calls.direct
    file.close()


def test_a_log_with_large_frames_is_whole_and_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = watched(monkeypatch, tmp_path)
    payload = Random(3).randbytes(3 * MIN_SIZE + 1)
    for turn in range(3):
        with Log(tmp_path / "log", GROUP) as log:
            assert log.next == 2 * turn
            log.append(0, 2 * turn, [1], b"x")
            log.append(0, 2 * turn + 1, [len(payload)], payload)
    report = check(tmp_path / "log")
    assert not report.damage
    assert report.next == 6
    assert len(calls.direct) >= 3
