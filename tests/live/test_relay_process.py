"""The one channel as a process of its own: it may go and come back."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ordercast.live import relay_process
from ordercast.live.host.parameters import parameters_for
from ordercast.live.relay_process import RelayProcess
from ordercast.live.settings import Settings
from ordercast.live.transport.addresses import address_of, members_of
from ordercast.live.transport.relay import RELAY_INCARNATION
from ordercast.model.config import MILLISECOND
from ordercast.model.errors import GroupAborted
from ordercast.wire.datagram import TO_RELAY
from ordercast.wire.keys import GroupKeys, keys_from_text, new_key
from ordercast.wire.seal import seal_for
from tests.live.groups import crash, hear, join, member_of, new_name, run
from tests.live.ports import free_port
from tests.live.test_trace_recorder import held

NAMES = ("A", "B", "C")


def channel_at(port: int, group: str, keys: GroupKeys | None = None, **settings: Any) -> RelayProcess:
    place, members = address_of(f"127.0.0.1:{port}"), list(members_of(group, NAMES, shared=True).values())
    parameters = parameters_for(Settings(**settings), len(members), loopback=True)
    channel = RelayProcess(group, place, members, parameters, keys=keys)
    channel.start()
    return channel


@pytest.mark.parametrize("order", ["total", "priority"])
def test_a_group_survives_the_loss_of_its_channel(order: str, tmp_path: Path) -> None:
    async def test() -> None:
        name, port = f"channel {order}", free_port()
        channel = channel_at(port, name)
        joined = await asyncio.gather(
            *(
                join(
                    name,
                    name=each,
                    members=NAMES,
                    order=order,
                    relay=f"127.0.0.1:{port}",
                    insecure=True,
                    record=tmp_path,
                    timeout=10,
                )
                for each in NAMES
            )
        )

        async def talk(number: int) -> None:
            for count in range(60):
                await joined[number].send(f"{number} {count}".encode())
                await asyncio.sleep(0.01)

        talking = asyncio.gather(*(talk(number) for number in range(3)))
        for _ in range(2):
            await asyncio.sleep(0.15)
            assert channel.passed > 0
            channel.close()
            await asyncio.sleep(0.15)
            channel = channel_at(port, name)
        await talking
        heard = await asyncio.gather(*(hear(group, 180) for group in joined))
        assert heard[0] == heard[1] == heard[2]
        await asyncio.gather(*(group.close() for group in joined))
        channel.close()

    run(test)
    assert held([tmp_path]).deliveries == 3 * 180


def test_what_is_not_for_a_channel_is_counted_and_dropped() -> None:
    async def test() -> None:
        port = free_port()
        channel = channel_at(port, "alone")
        assert channel.max_hold == MILLISECOND, "half of what a round trip takes on one machine"
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", port))
        for datagram in (b"", b"x", bytes(100)):
            transport.sendto(datagram)
        for _ in range(100):
            if channel.dropped.total() >= 2:
                break
            await asyncio.sleep(0.01)
        transport.close()
        channel.close()
        assert channel.passed == 0
        assert channel.dropped.total() >= 2

    run(test)


@pytest.mark.parametrize("order", ["total", "priority"])
def test_a_channel_that_dies_ends_the_group_by_its_name(order: str) -> None:
    """Two silences are the time in which it may come back."""

    async def test() -> None:
        port, name = free_port(), new_name()
        channel = channel_at(port, name)
        options: Any = {"members": NAMES, "order": order, "relay": f"127.0.0.1:{port}", "failure_timeout": 0.5}
        options["insecure"] = True  # as the relay
        joined = await asyncio.gather(*(join(name, name=each, timeout=10, **options) for each in NAMES))
        await joined[0].send(b"it lives")
        await asyncio.gather(*(hear(group, 1) for group in joined))
        await asyncio.sleep(0.3)  # until all are at rest
        channel.close()
        await asyncio.sleep(1.5)  # nobody says anything, and nobody minds
        began = asyncio.get_running_loop().time()
        await joined[0].send(b"it does not")
        for group in joined:
            with pytest.raises(
                GroupAborted, match=f"the relay at 127.0.0.1:{port} is unreachable from [AB]: no answer for 1 s"
            ):
                await group.close()
        assert asyncio.get_running_loop().time() - began > 0.9

    run(test)


def test_a_channel_that_is_not_there_yet_is_missed_at_once_and_used_as_soon_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        port, name = free_port(), new_name()
        options: Any = {"members": NAMES, "order": "total", "relay": f"127.0.0.1:{port}", "failure_timeout": 3.0}
        options["insecure"] = True  # as the relay
        joined = await asyncio.gather(*(join(name, name=each, timeout=10, **options) for each in NAMES))
        while "does not answer" not in caplog.text:
            await asyncio.sleep(0.05)
        channel = channel_at(port, name)
        await asyncio.sleep(0.5)
        for group in joined:
            assert not member_of(group).transport.relay_is_silent, "it was asked, and has answered"
        await asyncio.wait_for(joined[0].send(b"it lives", until="known_stable"), 2.5)
        await asyncio.gather(*(group.close() for group in joined))
        channel.close()

    with caplog.at_level("WARNING", "ordercast.protocol"):
        run(test)
    assert {record.getMessage().split(" at ")[0] for record in caplog.records} == {"the relay"}


def test_a_channel_waits_for_what_was_overtaken_as_long_as_its_members_do() -> None:
    async def test() -> None:
        channel = channel_at(free_port(), "far", round_trip=0.08, failure_timeout=10.0)
        assert channel.max_hold == 40 * MILLISECOND
        channel.close()

    run(test)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_channel_without_a_key_does_not_remember_any_number_of_senders(
    sealed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a key only members add to what it remembers, and it must forget nothing: see `relay`."""
    monkeypatch.setattr(relay_process, "MAX_UNAUTHENTICATED_STREAMS", 8)
    keys = keys_from_text(new_key(), "here") if sealed else None

    async def test() -> None:
        channel, seal = channel_at(free_port(), "many", keys), seal_for("many", keys)

        def say(session: int, counter: int) -> None:
            body = RELAY_INCARNATION.pack(channel.incarnation)
            channel.receive(seal.seal(TO_RELAY, 0, session, counter, body))

        for session in range(100):
            say(7, session)
            say(session + 1000, 5)
        assert channel.passed == 200
        assert len(channel.streams) == (101 if sealed else 8)
        assert (7, 0) in channel.streams, "whoever sends is remembered"
        channel.close()

    run(test)


@pytest.mark.parametrize("order", ["total", "priority"])
@pytest.mark.parametrize("gone", [0, 1])
def test_a_relay_serves_the_views_after_the_first(order: str, gone: int) -> None:
    async def test() -> None:
        name, port = new_name(), free_port()
        channel = channel_at(port, name, failure_timeout=0.6)
        options: dict[str, Any] = {
            "order": order,
            "relay": f"127.0.0.1:{port}",
            "failure_timeout": 0.6,
            "insecure": True,
        }
        joined = list(await asyncio.gather(*(join(name, name=each, members=NAMES, **options) for each in NAMES)))
        crash(joined.pop(gone))
        for number in range(40):
            for group in joined:
                group.send_nowait(f"{group.me} {number}".encode())
            await asyncio.sleep(0.02)
        heard = await asyncio.gather(*(hear(group, 80) for group in joined))
        assert heard[0] == heard[1]
        assert {group.view.members for group in joined} == {tuple(group.me for group in joined)}
        await asyncio.gather(*(group.close() for group in joined))
        channel.close()

    run(test)
