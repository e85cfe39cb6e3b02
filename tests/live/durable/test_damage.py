"""A member whose log is damaged names that, and is sent again what it lost, by those whose logs are whole."""

import asyncio
import logging
from pathlib import Path

import pytest

import ordercast
from ordercast import JoinError, LogSettings
from ordercast.log import Options, check
from tests.live.durable.logged import hashes, kill, open_logged, texts
from tests.live.durable.test_coming_back import FAST
from tests.live.groups import hear, new_name, run

NAMES = ("A", "B", "C")
SMALL = Options(max_segment=2000)


def flip(file: Path, at: int) -> None:
    """One bit."""
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


def segments(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.isdigit())


async def written(name: str, folder: Path, count: int = 30) -> list[ordercast.Group]:
    """Members that were all delivered so many messages, which are durable."""
    groups = await open_logged(name, folder, *NAMES, failure_timeout=FAST)
    for number in range(count):
        await groups[number % 3].send(bytes(200) + b"%d" % number, until="durable")
    for group in groups:
        await hear(group, count)
    return groups


def test_damage_is_named_and_fetched_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        name = new_name()
        a, b, c = await written(name, tmp_path)
        await kill(c)
        [last] = segments(tmp_path / "C")
        flip(last, last.stat().st_size // 2)
        await a.send(b"meanwhile", until="durable")
        [again] = await open_logged(name, tmp_path, "C", of=NAMES, failure_timeout=FAST)
        await again.send(b"back", until="durable")
        found = await hear(again, 2)
        assert found[1].position == found[0].position + 1
        assert found[0].position < 30, "it is handed again what it lost"
        await asyncio.gather(*(group.close() for group in (a, b, again)))
        assert len(hashes(tmp_path, *NAMES)) == 1
        assert texts(tmp_path, "A") == texts(tmp_path, "C")
        assert check(tmp_path / "C").set_aside == (f"{last.name}.damaged",)

    with caplog.at_level(logging.ERROR):
        run(test)
    assert "the log of C in" in caplog.text
    assert "is damaged: segment 00000000000000000000, offset" in caplog.text
    assert "is fetched again from the others" in caplog.text


def test_damage_in_an_old_segment_is_found_if_asked_for(tmp_path: Path) -> None:
    async def test() -> None:
        name, settings = new_name(), ordercast.Settings(failure_timeout=FAST)

        def member(each: str, *, verify: bool = False) -> ordercast.Joining:
            log = LogSettings(tmp_path / each, options=SMALL, verify=verify)
            return ordercast.join(name, members=NAMES, name=each, settings=settings, log=log, timeout=20)

        groups = await asyncio.gather(*map(member, NAMES))
        for number in range(30):
            await groups[0].send(bytes(200) + b"%d" % number, until="durable")
        await hear(groups[2], 30)
        await kill(groups[2])
        old = segments(tmp_path / "C")[1]
        flip(old, old.stat().st_size - 100)
        assert check(tmp_path / "C").damage
        again = await member("C", verify=True)
        await again.send(b"back", until="durable")
        await asyncio.gather(*(group.close() for group in (*groups[:2], again)))
        assert len(hashes(tmp_path, *NAMES)) == 1

    run(test)


def test_who_has_forgotten_has_no_vote_when_all_failed(tmp_path: Path) -> None:
    async def test() -> None:
        name, settings = new_name(), ordercast.Settings(failure_timeout=FAST)
        await kill(*await written(name, tmp_path))
        for each in ("B", "C"):
            [last] = segments(tmp_path / each)
            flip(last, last.stat().st_size // 2)

        def alone(each: str, timeout: float, *, force: bool = False) -> ordercast.Joining:
            log = LogSettings(tmp_path / each, force=force)
            return ordercast.join(name, members=NAMES, name=each, settings=settings, log=log, timeout=timeout)

        found = await asyncio.gather(*(alone(each, 1.5) for each in NAMES), return_exceptions=True)
        assert all(isinstance(each, JoinError) for each in found), "A alone is no majority"
        assert "the others, which have to begin without it: its own log was damaged" in str(found[1])
        groups = await asyncio.gather(alone("A", 20, force=True), alone("B", 20), alone("C", 20))
        await groups[2].send(b"all again", until="durable")
        await asyncio.gather(*(group.close() for group in groups))
        assert len(hashes(tmp_path, *NAMES)) == 1
        assert len(texts(tmp_path, "C")[0]) == 31, "A gave them what they had lost"

    run(test)
