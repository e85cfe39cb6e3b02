"""The transfer of a state from a donor to a joiner, over real connections of this machine."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from ordercast import JoinError
from ordercast.live.state_transfer.connection import CHUNK, ConnectionLostError, Frame, Request, connect
from ordercast.live.state_transfer.donor import Donor
from ordercast.live.state_transfer.joiner import DonorsGoneError
from ordercast.live.state_transfer.snapshot import Snapshot
from ordercast.live.transport.addresses import Address
from tests.live.groups import run
from tests.live.ports import HERE, free_port
from tests.live.state_transfer import (
    FAILURE_TIMEOUT,
    KEYS,
    OTHER_KEYS,
    VIEW,
    Bytes,
    D,
    E,
    load,
    new_donor,
    offering,
    until,
)

pytestmark = pytest.mark.usefixtures("no_exception_escapes")
LARGE = bytes(range(256)) * 4096 * 3  # some chunks
PATIENT: dict[str, Any] = {
    "failure_timeout": 10.0
}  # what an iterator gave cannot be given again after a pause of this machine


def iterator(parts: list[bytes]) -> Iterator[bytes]:
    yield from parts


async def waiting(parts: list[bytes], seconds: float = 0) -> AsyncIterator[bytes]:
    for part in parts:
        await asyncio.sleep(seconds)
        yield part


PARTS = [b"a", b"", LARGE, b"bc" * 1000, b"d"]
SAVED: dict[str, tuple[Callable[[], Any], bytes]] = {
    "nothing": (lambda: b"", b""),
    "bytes": (lambda: LARGE, LARGE),
    "bytearray": (lambda: bytearray(b"abc"), b"abc"),
    "a list": (lambda: PARTS, b"".join(PARTS)),
    "an iterator": (lambda: iterator(PARTS), b"".join(PARTS)),
    "an asynchronous iterator": (lambda: waiting(PARTS), b"".join(PARTS)),
    "many small parts": (lambda: (b"%d," % i for i in range(9999)), b"".join(b"%d," % i for i in range(9999))),
}


@pytest.mark.parametrize("keys", [KEYS, None], ids=["key", "plain"])
@pytest.mark.parametrize("kind", SAVED)
def test_what_was_saved_is_loaded(kind: str, keys: Any) -> None:
    save, expected = SAVED[kind]

    async def test() -> None:
        class Saves(Bytes):
            def save(self) -> Any:
                return save()

        donor, address = offering(Saves(), keys=keys, **PATIENT)
        loaded = Bytes()
        found = await load(loaded, address, keys=keys, **PATIENT)
        assert loaded.value == expected
        assert (found.size, found.donor.name) == (len(expected), "A")
        await until(lambda: not donor.waiting)
        with pytest.raises(ConnectionLostError):  # nothing is offered, nobody listens
            await connect(address, "orders", keys, Request(VIEW.number, VIEW.tag, D.name, D.number), 1)

    run(test)


def test_a_joiner_waits_for_the_place_and_gets_the_state_of_that_moment() -> None:
    async def test() -> None:
        state, loaded = Bytes(b"too early"), Bytes()
        donor, address = new_donor(state)
        donor.offer(VIEW, [D])
        task = asyncio.create_task(load(loaded, address))
        await asyncio.sleep(2 * FAILURE_TIMEOUT)  # it is told that the donor lives
        assert (state.saves, task.done()) == (0, False)
        state.value = b"at the place"
        donor.save(VIEW.number)
        state.value = b"too late"
        await task
        assert (loaded.value, loaded.loads) == (b"at the place", 1)
        donor.close()

    run(test)


def test_a_donor_whose_application_is_slow_is_passed_over() -> None:
    async def test() -> None:
        slow, first = new_donor(Bytes(b"slow"))
        slow.offer(VIEW, [D])
        ready, second = offering(Bytes(b"ready"))
        loaded = Bytes()
        found = await load(loaded, first, second)
        assert (loaded.value, found.donor.name) == (b"ready", "B")
        slow.close()
        await until(lambda: not ready.waiting)

    run(test)


def test_parts_are_taken_only_as_fast_as_they_are_loaded() -> None:
    taken: list[int] = []

    def parts() -> Iterator[bytes]:
        for number in range(200):
            taken.append(number)
            yield bytes(CHUNK)

    class Slow(Bytes):
        async def load(self, parts: AsyncIterator[bytes]) -> None:
            await anext(parts)
            await asyncio.sleep(2 * FAILURE_TIMEOUT)  # longer than a donor may be silent
            at_first.append(len(taken))
            await super().load(parts)

    at_first: list[int] = []

    async def test() -> None:
        state = Bytes()
        state.value = parts()  # type: ignore[assignment]
        donor, address = offering(state)
        loaded = Slow()
        await load(loaded, address)
        assert len(loaded.value) == 199 * CHUNK
        await until(lambda: not donor.waiting)

    run(test)
    assert at_first[0] < 40  # 10 MiB: what the system holds for both sides


def test_a_slow_source_of_parts_is_no_dead_one() -> None:
    async def test() -> None:
        state, loaded = Bytes(), Bytes()
        state.value = waiting([b"a", b"b"], FAILURE_TIMEOUT)  # type: ignore[assignment]
        donor, address = offering(state)
        await load(loaded, address)
        assert (loaded.value, loaded.loads) == (b"ab", 1)
        donor.close()

    run(test)


def test_the_event_loop_goes_on_meanwhile() -> None:
    async def test() -> None:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        donor, address = offering(Bytes(bytes(64 * CHUNK)))
        counter = asyncio.create_task(count())
        await load(Bytes(), address)
        counter.cancel()
        assert turns >= 64
        donor.close()

    run(test)


def test_a_busy_donor_gives_most_of_its_time_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def watched(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def test() -> None:
        donor, address = offering(Bytes(bytes(64 * CHUNK)), is_busy=lambda: True)
        monkeypatch.setattr("ordercast.live.state_transfer.donor.asyncio.sleep", watched)
        await load(Bytes(), address)
        monkeypatch.undo()
        donor.close()

    run(test)
    assert sum(pauses) > 0.005
    assert all(pause == 0 or pause >= 0.001 for pause in pauses)


# --- failures ---


class Dies(Bytes):
    """Gives so many chunks, then its process is gone."""

    def __init__(self, chunks: int) -> None:
        super().__init__()
        self.chunks = chunks

    def save(self) -> Any:
        return self.parts()

    async def parts(self) -> AsyncIterator[bytes]:
        for _ in range(self.chunks):
            yield b"x" * CHUNK
        self.donor.close()
        await asyncio.sleep(0)
        yield b"not sent"

    donor: Donor


@pytest.mark.parametrize("chunks", [0, 1, 5, 40])
def test_if_a_donor_dies_the_other_one_gives_its_state_from_the_beginning(chunks: int) -> None:
    async def test() -> None:
        dies = Dies(chunks)
        dies.donor, first = new_donor(dies)
        dies.donor.offer(VIEW, [D])
        dies.donor.save(VIEW.number)
        other, second = offering(Bytes(LARGE))
        loaded = Bytes()
        found = await load(loaded, first, second)
        assert (loaded.value, found.donor.name) == (LARGE, "B")
        assert loaded.loads == 1 + (chunks > 0)
        other.close()

    run(test)


def test_a_donor_that_falls_silent_is_replaced_after_half_a_failure_timeout() -> None:
    async def test() -> None:
        with socket.create_server((HERE, 0)) as silent:  # accepts, and says nothing
            other, second = offering(Bytes(b"other"))
            loaded = Bytes()
            begun = asyncio.get_running_loop().time()
            await load(loaded, Address(HERE, silent.getsockname()[1]), second)
            assert FAILURE_TIMEOUT / 2 <= asyncio.get_running_loop().time() - begun < 10 * FAILURE_TIMEOUT
            assert loaded.value == b"other"
            other.close()

    run(test)


def test_if_all_donors_die_the_joiner_is_told() -> None:
    async def test() -> None:
        states = [Dies(2), Dies(3)]
        addresses = []
        for state in states:
            state.donor, address = offering(state)
            addresses.append(address)
        with pytest.raises(DonorsGoneError):
            await load(Bytes(), *addresses)
        with pytest.raises(DonorsGoneError):
            await load(Bytes(), Address(HERE, free_port(socket.SOCK_STREAM)), is_gone=lambda: True)

    run(test)


def test_a_donor_that_cannot_be_reached_yet_is_asked_again() -> None:
    async def test() -> None:
        donor, address = new_donor(Bytes(b"late"))
        task = asyncio.create_task(load(loaded := Bytes(), address))
        await asyncio.sleep(FAILURE_TIMEOUT / 2)
        donor.offer(VIEW, [D])
        donor.save(VIEW.number)
        await task
        assert loaded.value == b"late"
        donor.close()

    run(test)


def test_a_state_of_which_the_joiner_died_is_not_kept() -> None:
    async def test() -> None:
        donor, address = offering(Bytes(bytes(100 * CHUNK)))
        task = asyncio.create_task(load(NeverLoads(), address))
        await until(lambda: donor.bytes_sent > 0)
        task.cancel()
        await asyncio.sleep(0.05)
        assert donor.waiting == {(D.name, D.number)}  # it may connect again
        donor.keep([])
        assert donor.waiting == frozenset()

    run(test)


class NeverLoads(Bytes):
    async def load(self, parts: AsyncIterator[bytes]) -> None:
        del parts
        await asyncio.sleep(60)


def test_a_state_is_kept_for_a_limited_time() -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE), state_timeout=0.2)
        await until(lambda: not donor.waiting)
        with pytest.raises(DonorsGoneError):
            await load(Bytes(), address, is_gone=lambda: True)
        donor, address = offering(Bytes(LARGE))
        with pytest.raises(JoinError, match=r"not loaded within 0.2 s \(state_timeout\)"):
            await load(NeverLoads(), address, state_timeout=0.2)
        donor.close()

    run(test)


class Raises(Bytes):
    def __init__(self, error: Exception, *, first: bool = True) -> None:
        super().__init__()
        self.error, self.first = error, first

    def save(self) -> Any:
        if self.first:
            raise self.error
        return self.parts()

    def parts(self) -> Iterator[bytes]:
        yield b"x" * CHUNK
        raise self.error

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        await anext(parts)
        raise self.error


@pytest.mark.parametrize("first", [True, False], ids=["in save", "in its iterator"])
def test_a_donor_that_cannot_save_is_replaced_and_if_none_can_the_joiner_fails(first: bool) -> None:
    async def test() -> None:
        broken, one = offering(Raises(ValueError("a secret"), first=first))
        also_broken, two = offering(Raises(KeyError("x"), first=first), name="B")
        with pytest.raises(JoinError) as raised:
            await load(Bytes(), one, two)
        assert "A could not save its state (ValueError; its log has the whole error)" in str(raised.value)
        assert "B could not save its state (KeyError" in str(raised.value)
        assert "secret" not in str(raised.value)
        fine, three = offering(Bytes(b"fine"))
        loaded = Bytes()
        await load(loaded, one, three)
        assert loaded.value == b"fine"
        for each in (broken, also_broken, fine):
            each.close()

    run(test)


@pytest.mark.parametrize("saved", [7, "text", [b"a", "text"], None])
def test_what_is_no_state_is_refused(saved: Any) -> None:
    async def test() -> None:
        donor, address = offering(Bytes(saved))
        with pytest.raises(JoinError, match="TypeError"):
            await load(Bytes(), address)
        donor.close()

    run(test)


def test_save_must_not_be_a_coroutine() -> None:
    async def save() -> bytes:
        return b""

    with pytest.raises(TypeError, match="at once, not coroutine"):
        Snapshot(save())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ValueError("bad state"), "D could not load the state of the group: ValueError: bad state"),
        (MemoryError(), "there is not enough memory"),
    ],
)
def test_a_joiner_that_cannot_load_fails_alone(error: Exception, sentence: str) -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE))
        with pytest.raises(JoinError, match=sentence) as raised:
            await load(Raises(error), address)
        assert raised.value.__cause__ is error
        assert donor.waiting  # until the group says that the joiner has left
        donor.close()

    run(test)


def test_an_application_that_hides_the_interruption_is_asked_to_load_again() -> None:
    class Hides(Bytes):
        async def load(self, parts: AsyncIterator[bytes]) -> None:
            with contextlib.suppress(ConnectionError):
                await super().load(parts)

    async def test() -> None:
        dies = Dies(3)
        dies.donor, first = offering(dies)
        other, second = offering(Bytes(LARGE))
        loaded = Hides()
        await load(loaded, first, second)
        assert (loaded.value, loaded.loads) == (LARGE, 2)
        other.close()

    run(test)


# --- several joiners ---


def test_each_of_several_joiners_gets_the_state_of_the_same_place() -> None:
    class Counts(Bytes):
        def save(self) -> Any:
            self.saves += 1
            return iterator([b"state"])

    async def test() -> None:
        state = Counts()
        donor, address = new_donor(state, **PATIENT)
        donor.offer(VIEW, [D, E])
        donor.save(VIEW.number)
        donor.save(VIEW.number)
        loaded = [Bytes(), Bytes()]
        await asyncio.gather(load(loaded[0], address, **PATIENT), load(loaded[1], address, me=E, **PATIENT))
        assert [each.value for each in loaded] == [b"state"] * 2
        assert state.saves == 2  # an iterator for each
        await until(lambda: not donor.waiting)
        shared = Bytes(b"state")
        donor, address = new_donor(shared)
        donor.offer(VIEW, [D, E])
        donor.save(VIEW.number)
        assert shared.saves == 1
        donor.close()

    run(test)


# --- those that have no right to it, and what is not understood ---


def test_only_a_joiner_of_the_view_with_the_key_is_given_a_state() -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE))
        wrong: list[dict[str, Any]] = [
            {"keys": OTHER_KEYS},
            {"keys": None},
            {"tag": b"another!"},
            {"me": E},
            {"me": D.__class__(D.name, D.number + 1, "x")},
        ]
        for options in wrong:
            with pytest.raises(DonorsGoneError):
                await load(Bytes(), address, **{"is_gone": lambda: True, **options})
        assert donor.bytes_sent == 0
        await load(Bytes(), address)
        donor.close()

    run(test)


def test_a_key_that_was_removed_does_not_open_a_state() -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE), keys=KEYS.__class__({2: b"n" * 32}))
        with pytest.raises(DonorsGoneError):
            await load(Bytes(), address, is_gone=lambda: True)
        donor.close()

    run(test)


@pytest.mark.parametrize("garbage", [b"", b"GET / HTTP/1.1\r\n\r\n", b"ocs1" + bytes(200), bytes(4096)])
def test_strangers_are_sent_away(garbage: bytes) -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE))
        for _ in range(3):
            _, writer = await asyncio.open_connection(*address)
            writer.write(garbage)
            writer.close()
        await load(loaded := Bytes(), address)
        assert loaded.value == LARGE
        donor.close()

    run(test)


def test_a_connection_of_the_last_moment_is_closed_with_the_donor() -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE))
        with socket.create_connection(address) as late:
            assert donor._listener is not None
            donor._accept(donor._listener)
            donor.close()
            late.settimeout(0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert late.recv(1) == b""

    run(test)


def test_strangers_that_say_nothing_do_not_keep_joiners_out() -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE))
        strangers = [await asyncio.open_connection(*address) for _ in range(64)]
        await load(loaded := Bytes(), address)
        assert loaded.value == LARGE
        for _, writer in strangers:
            writer.close()
        donor.close()

    run(test)


class Garbles:
    """Between a joiner and a donor: changes a byte of what the donor says, or says nothing more from there on."""

    def __init__(self, donor: Address, at: int, *, cuts: bool) -> None:
        self.donor, self.at, self.cuts = donor, at, cuts
        self._tasks: list[asyncio.Task[Any] | None] = []  # asyncio itself does not keep them

    busy = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.busy += 1
        self._tasks.append(asyncio.current_task())
        from_donor, to_donor = await asyncio.open_connection(*self.donor)
        copying = asyncio.create_task(self._copy(reader, to_donor))
        with contextlib.suppress(ConnectionError):
            await self._garble(from_donor, writer)
        copying.cancel()
        for each in (writer, to_donor):
            each.transport.abort()
        await asyncio.sleep(0)
        self.busy -= 1

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.transport.abort()  # the joiner is gone

    async def _garble(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        done = 0
        while data := await reader.read(1 << 16):
            at = self.at - done
            if 0 <= at < len(data):
                if self.cuts:
                    writer.write(data[:at])
                    return
                data = data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
            writer.write(data)
            await writer.drain()
            done += len(data)


@pytest.mark.parametrize("cuts", [False, True], ids=["garbled", "truncated"])
@pytest.mark.parametrize("keys", [KEYS, None], ids=["key", "plain"])
@pytest.mark.parametrize("at", [0, 5, 20, 22, 26, 5000, len(LARGE) // 2, -10])
def test_what_was_changed_on_the_way_is_never_loaded(at: int, keys: Any, cuts: bool) -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE), keys=keys)
        chunks = -(-len(LARGE) // CHUNK)
        total = 20 + len(LARGE) + (chunks + 1) * (5 + (16 if keys else 0)) + 8 + (0 if keys else 32)
        garbles = Garbles(address, at % total, cuts=cuts)
        server = await asyncio.start_server(garbles, HERE, 0)
        between = Address(HERE, server.sockets[0].getsockname()[1])
        other, second = offering(Bytes(b"other"), keys=keys)
        loaded = Bytes()
        found = await load(loaded, between, second, keys=keys)
        if keys is None and not cuts and 4 <= at < 20:
            assert found.donor.name == "A"  # without a key the nonce has no meaning
        else:
            assert (loaded.value, found.donor.name) == (b"other", "B")
        server.close()
        donor.close()
        other.close()
        await until(lambda: not garbles.busy)

    run(test)


def test_what_was_recorded_opens_nothing_when_it_is_said_again() -> None:
    async def test() -> None:
        donor, address = offering(Bytes(LARGE))
        recorded: list[bytes] = []

        class Records(Garbles):
            async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                while data := await reader.read(1 << 16):
                    recorded.append(data)
                    writer.write(data)

        records = Records(address, -1, cuts=False)
        server = await asyncio.start_server(records, HERE, 0)
        task = asyncio.create_task(load(NeverLoads(), Address(HERE, server.sockets[0].getsockname()[1])))
        await until(lambda: donor.bytes_sent > 0)
        task.cancel()
        server.close()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"".join(recorded))
        answer = await reader.read()
        assert len(answer) == 20  # a nonce, and nothing else
        writer.close()
        donor.close()
        await until(lambda: not records.busy)

    run(test)


def test_a_frame_that_is_too_long_or_unknown_ends_the_connection() -> None:
    async def test() -> None:
        for header in (b"\x03\xff\xff\xff\xff", b"\x63\x00\x00\x00\x00", bytes([Frame.LOADED, 0, 0, 0, 0])):

            async def says(_: asyncio.StreamReader, writer: asyncio.StreamWriter, header: bytes = header) -> None:
                writer.write(b"ocs1" + bytes(16) + header)
                writer.close()

            server = await asyncio.start_server(says, HERE, 0)
            with pytest.raises(DonorsGoneError):
                await load(Bytes(), Address(HERE, server.sockets[0].getsockname()[1]), keys=None, is_gone=lambda: True)
            server.close()

    run(test)


def test_a_port_that_is_taken_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        with socket.create_server((HERE, 0)) as taken:
            donor, _ = new_donor(Bytes(b"state"))
            donor._address = address = Address(HERE, taken.getsockname()[1])
            donor.offer(VIEW, [D])
            donor.save(VIEW.number)
            await asyncio.sleep(0.1)
        assert caplog.text.count("another program may use the port") == 1
        await load(loaded := Bytes(), address)
        assert loaded.value == b"state"
        donor.close()

    run(test)
