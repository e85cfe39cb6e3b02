"""Standard input and output by threads: lines whole, slow readers waited for, readers that leave told of."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ordercast.cli.shared.pipes import Output, lines_of

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        with suppress(OSError):
            os.close(descriptor)


async def all_lines(descriptor: int, longest: int = 1000) -> list[bytes]:
    return [line async for line in lines_of(descriptor, longest)]


def test_lines_are_whole_however_they_come(pipe: Pipe) -> None:
    async def test() -> list[bytes]:
        reading = asyncio.create_task(all_lines(pipe[0]))
        for part in (b"on", b"e\n\ntw", b"o\r\n\xff\x00\nlast"):
            os.write(pipe[1], part)
            await asyncio.sleep(0.01)
        os.close(pipe[1])
        return await reading

    assert asyncio.run(asyncio.wait_for(test(), 10)) == [b"one", b"", b"two\r", b"\xff\x00", b"last"]


def test_files_are_read_too_and_long_lines_are_cut(tmp_path: Path) -> None:
    file = tmp_path / "input"
    file.write_bytes(b"x" * 200_000 + b"\n" + b"y\n")
    descriptor = os.open(file, os.O_RDONLY)
    lines = asyncio.run(all_lines(descriptor, longest=100))
    os.close(descriptor)
    assert lines == [b"x" * 101, b"y"], "one byte too long, so that it is refused and not taken for a shorter one"


def test_who_does_not_ask_for_lines_does_not_have_them_read(pipe: Pipe) -> None:
    os.set_blocking(pipe[1], False)

    async def test() -> int:
        lines = lines_of(pipe[0], 1 << 20)
        written = 0
        await asyncio.sleep(0)
        first = asyncio.ensure_future(anext(lines))
        for _ in range(1000):
            with suppress(BlockingIOError):
                written += os.write(pipe[1], b"x" * 1023 + b"\n")
            await asyncio.sleep(0.0005)
        await first
        return written

    written = asyncio.run(asyncio.wait_for(test(), 20))
    assert written < 600 << 10, "a few chunks are read ahead, and then the writer has to wait"


def test_output_arrives_in_order_and_a_slow_reader_is_waited_for(pipe: Pipe) -> None:
    parts = [b"%d\n" % number * 1000 for number in range(1000)]

    async def test() -> bytes:
        output = Output(pipe[1], lambda _: None)
        taken: list[int] = []

        async def write() -> None:
            for number, part in enumerate(parts):
                await output.write(part)
                taken.append(number)
            await output.flushed()
            os.close(pipe[1])

        writing = asyncio.create_task(write())
        await asyncio.sleep(0.2)
        assert len(taken) < len(parts), "nobody reads: it must not take everything"
        read = b""
        while chunk := await asyncio.to_thread(os.read, pipe[0], 1 << 20):
            read += chunk
        await writing
        return read

    assert asyncio.run(asyncio.wait_for(test(), 20)) == b"".join(parts)


def test_a_reader_that_leaves_is_told_of_once(pipe: Pipe) -> None:
    async def test() -> list[OSError]:
        failures: list[OSError] = []
        output = Output(pipe[1], failures.append)
        os.close(pipe[0])
        for _ in range(3):
            await output.write(b"x")
            await output.flushed()
        return failures

    failures = asyncio.run(asyncio.wait_for(test(), 10))
    assert [type(error) for error in failures] == [BrokenPipeError]
