"""Whole members with a key, and somebody who has none, but kept all datagrams: he sends them again, to anybody.

The recordings are of earlier groups with the same members, and of the very group that is disturbed.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

import ordercast.live.relay_process
from ordercast.live.group import Group
from ordercast.live.host.parameters import parameters_for
from ordercast.live.relay_process import RelayProcess
from ordercast.live.settings import Settings
from ordercast.live.transport.addresses import address_of, members_of
from ordercast.live.transport.relay import RELAY_INCARNATION
from ordercast.wire import lru_map
from ordercast.wire.datagram import FROM_RELAY, TO_RELAY
from ordercast.wire.keys import GroupKeys, keys_from_text, new_key
from ordercast.wire.seal import seal_for
from tests.live.groups import ORDERS, join, member_of, run
from tests.live.memory_network import PLACES, SENT, MemoryEndpoint, group_in_memory, settle

pytestmark = pytest.mark.usefixtures("no_exception_escapes", "in_memory")

NAMES = ("A", "B", "C")
KEY = keys_from_text(new_key(), "here")


def places() -> list[MemoryEndpoint]:
    return [PLACES[address] for address in members_of("memory", NAMES, shared=True).values() if address in PLACES]


def put_again(kept: list[bytes], chance: Random) -> None:
    """Every datagram to every member, in any order."""
    for place in places():
        for datagram in chance.sample(kept, len(kept)):
            place.put(datagram)


async def exactly_once(groups: list[Group], count: int) -> None:
    """All hear what all say from now on, each of it once."""
    said = Counter(f"{group.me} {number}".encode() for group in groups for number in range(count))
    for number in range(count):
        for group in groups:
            await group.send(f"{group.me} {number}".encode())
        await settle(3)
    for group in groups:
        heard = [(await group.receive()).payload for _ in range(said.total())]
        assert Counter(heard) == said


async def earlier_group(**options: Any) -> list[bytes]:
    async with group_in_memory(*NAMES, key=KEY, **options) as groups:
        await exactly_once(groups, 3)
        return list(SENT)


@pytest.mark.parametrize("order", ORDERS)
def test_recordings_of_earlier_groups_change_nothing(order: str) -> None:
    """While the group opens, while it is open, and with other settings then and now."""

    async def test() -> None:
        chance = Random(1)
        kept = await earlier_group(order=order) + await earlier_group(order=order, window=7)
        joining = [asyncio.ensure_future(_join(name, order=order, key=KEY)) for name in NAMES[:2]]
        await settle()
        put_again(kept, chance)
        await settle()
        joining.append(asyncio.ensure_future(_join("C", order=order, key=KEY)))
        await settle(3)
        put_again(kept, chance)
        groups = list(await asyncio.gather(*joining))
        put_again(kept, chance)
        await exactly_once(groups, 5)
        put_again(kept, chance)
        await exactly_once(groups, 1)
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


async def _join(name: str, **options: Any) -> Group:
    return await join("memory", name=name, members=NAMES, timeout=5, **options)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_recording_of_the_group_itself_changes_nothing(order: str, seed: int) -> None:
    """Also what was said to another member only."""

    async def test() -> None:
        chance = Random(seed)
        async with group_in_memory(*NAMES, key=KEY, order=order) as groups:
            for _ in range(3):
                await exactly_once(groups, 4)
                put_again(list(SENT), chance)
                await settle()
            for group in groups:
                assert member_of(group).ending.why is None
                assert group.stats().datagrams_rejected["replayed"] > 10

    run(test)


CHANNEL = address_of("127.0.0.1:9999")


def start_channel(monkeypatch: pytest.MonkeyPatch, keys: GroupKeys | None = KEY) -> RelayProcess:
    monkeypatch.setattr(ordercast.live.relay_process, "Endpoint", MemoryEndpoint)
    monkeypatch.setattr(ordercast.live.relay_process, "open_socket", lambda address: address)
    parameters = parameters_for(Settings(), len(NAMES), loopback=True)
    started = RelayProcess(
        "memory", CHANNEL, list(members_of("memory", NAMES, shared=True).values()), parameters, keys=keys
    )
    started.start()
    return started


def said_to_channel() -> list[bytes]:
    return [datagram for datagram in SENT if datagram[2] & TO_RELAY]


@pytest.mark.parametrize("order", ["total", "priority"])
def test_a_channel_that_was_started_anew_says_nothing_twice(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has forgotten what it passed on, but knows what was said to its former life.

    Else a member that had lost something would take it now, and have it at another place than the others.
    """

    async def test() -> None:
        first = start_channel(monkeypatch)
        async with group_in_memory(*NAMES, key=KEY, order=order, relay=str(CHANNEL)) as groups:
            await exactly_once(groups, 5)
            kept = said_to_channel()
            first.close()
            second = start_channel(monkeypatch)
            for datagram in kept:
                PLACES[CHANNEL].put(datagram)
            await settle()
            assert second.dropped["stale_relay"] >= len(kept) > 10
            await exactly_once(groups, 5)
            assert second.passed
            second.close()

    run(test)


@pytest.mark.parametrize("order", ["total", "priority", "to"])
def test_one_order_stays_one_when_a_new_channel_is_given_what_a_member_had_lost(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C loses what B says and hears what A says; the channel dies; the next one is handed what B said to the former."""
    said_by_b: list[bytes] = []
    real, lossy, place_of_c = MemoryEndpoint.put, True, members_of("memory", NAMES, shared=True)["C"]

    def put(self: MemoryEndpoint, datagram: bytes) -> None:
        if self._own == CHANNEL and b"from B" in datagram:
            said_by_b.append(datagram)
        if self._own == CHANNEL and datagram[2] & TO_RELAY and b"from" not in datagram:
            return  # what would tell C that it lacks something
        if not (lossy and self._own == place_of_c and datagram[2] & FROM_RELAY and b"from B" in datagram):
            real(self, datagram)

    async def test() -> None:
        nonlocal lossy
        first = start_channel(monkeypatch, None)
        async with group_in_memory(*NAMES, order=order, relay=str(CHANNEL)) as groups:
            await exactly_once(groups, 1)
            await asyncio.sleep(0.05)
            monkeypatch.setattr(MemoryEndpoint, "put", put)
            groups[1].send_nowait(b"from B")
            groups[0].send_nowait(b"from A")
            await settle()
            first.close()
            lossy = False
            second = start_channel(monkeypatch, None)
            real(PLACES[CHANNEL], said_by_b[0])
            await settle()
            monkeypatch.setattr(MemoryEndpoint, "put", real)
            heard = [[(await group.receive()).payload for _ in range(2)] for group in groups]
            assert heard[0] == heard[1] == heard[2]
            second.close()

    run(test)


def test_recordings_of_many_sessions_do_not_make_a_channel_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lru_map, "REMEMBERED", 8)

    async def test() -> None:
        channel = start_channel(monkeypatch)
        async with group_in_memory(*NAMES, key=KEY, order="total", relay=str(CHANNEL)) as groups:
            await exactly_once(groups, 5)
            kept, seal = said_to_channel(), seal_for("memory", KEY)
            this_life = RELAY_INCARNATION.pack(channel.incarnation)
            for session in range(100):
                PLACES[CHANNEL].put(seal.seal(TO_RELAY, session % 3, session, 0, RELAY_INCARNATION.pack(1)))
                PLACES[CHANNEL].put(seal.seal(TO_RELAY, session % 3, session + 100, 0, this_life))
            await settle()
            late = channel.dropped["late"]
            for datagram in kept:
                PLACES[CHANNEL].put(datagram)
            await settle()
            of_this_life = [datagram for datagram in kept if seal.open(datagram).body[:8] == this_life]  # type: ignore[union-attr]
            assert channel.dropped["late"] - late == len(of_this_life) > 10, (
                "the seal has forgotten them, but not the channel"
            )
            await exactly_once(groups, 5)
        channel.close()

    run(test)
