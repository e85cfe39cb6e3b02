"""Nonsense from the network: random bytes, real datagrams with mistakes, and absurd units of real members.

Nothing of it may raise anything, nor fill the memory. A sealed group does not even notice what strangers send. What a
member itself says wrong may end the group, since everybody has to believe members, but it ends with a sentence.

A fuzzer that is guided by coverage (atheris) was not taken: most of what reads bytes here is compiled, in msgspec and
in cryptography, where it sees nothing; and mutations of what members really said reach all the rest.
"""

import asyncio
import os
import time
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ordercast.live.group import Group
from ordercast.live.settings import protocol_of
from ordercast.live.transport.addresses import members_of
from ordercast.live.transport.fragmentation import MAX_PARTIAL
from ordercast.live.transport.packing import ALL, BY_RELAY
from ordercast.model.errors import GroupError
from ordercast.model.units import Unit
from ordercast.wire.datagram import FROM_RELAY, HANDSHAKE, HEADER, RELAY, TO_RELAY, UNKNOWN
from ordercast.wire.datagram import pack_records as joined
from ordercast.wire.keys import GroupKeys, keys_from_text, new_key
from ordercast.wire.lru_map import REMEMBERED
from tests.harness.units import units_of
from tests.live.groups import ORDERS, member_of
from tests.live.memory_network import PLACES, SENT, group_in_memory, settle
from tests.live.test_fragmentation import held
from tests.wire.tables import remembered

pytestmark = pytest.mark.usefixtures("no_exception_escapes", "in_memory")

NAMES = ("A", "B", "C")
KEY = keys_from_text(new_key(), "here")
QUICK = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
CHOICES = st.integers(0, 1 << 30)

Mutation = Callable[[Random, bytes], bytes]


def flipped(chance: Random, datagram: bytes) -> bytes:
    changed = bytearray(datagram)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut_short(chance: Random, datagram: bytes) -> bytes:
    return datagram[: chance.randrange(len(datagram))]


def longer(chance: Random, datagram: bytes) -> bytes:
    return datagram + chance.randbytes(chance.randint(1, 40))


def spliced(chance: Random, datagram: bytes) -> bytes:
    other = chance.choice(SENT)
    return datagram[: chance.randrange(len(datagram))] + other[chance.randrange(len(other)) :]


def reheaded(chance: Random, datagram: bytes) -> bytes:
    """Another sender, other flags, another counter: on a real body."""
    magic, version, flags, key, sender, to, tag, counter = HEADER.unpack_from(datagram)
    flags ^= chance.choice((0, HANDSHAKE, TO_RELAY, FROM_RELAY, 1, 0xF0))
    sender = chance.choice((sender, 0, 1, 2, 3, UNKNOWN, RELAY))
    to = chance.choice((to, 0, 1, 2, 3, 9, 0xFFFF))
    counter = chance.choice((counter + 1, counter + 100, 0, (1 << 64) - 1)) & ((1 << 64) - 1)
    tag = chance.choice((tag, tag, tag, chance.randrange(1 << 64)))
    return HEADER.pack(magic, version, flags, key, sender, to, tag, counter) + datagram[HEADER.size :]


def renumbered(chance: Random, datagram: bytes) -> bytes:
    """A new counter, so that a plain group takes it, and mistakes in the body."""
    counter = int.from_bytes(datagram[16:24]) + chance.randint(1, 1 << 20) & ((1 << 64) - 1)
    return datagram[:16] + counter.to_bytes(8) + flipped(chance, datagram[24:] or b"x")


def random_bytes(chance: Random, datagram: bytes) -> bytes:
    return chance.randbytes(chance.choice((1, 3, 24, 30, 60, 500)))


def again(chance: Random, datagram: bytes) -> bytes:
    return datagram


MUTATIONS: list[Mutation] = [
    flipped,
    cut_short,
    longer,
    spliced,
    reheaded,
    renumbered,
    renumbered,
    random_bytes,
    again,
]


def nonsense(chance: Random) -> bytes:
    """Something that nobody said, made of what somebody did."""
    datagram = chance.choice(MUTATIONS)(chance, chance.choice(SENT))
    twice = len(datagram) > HEADER.size and chance.random() < 0.2
    return chance.choice(MUTATIONS)(chance, datagram) if twice else datagram


async def talk(groups: list[Group], messages: int = 2) -> None:
    for group in groups:
        for number in range(messages):
            await group.send(b"%d" % number * 30)
    await settle()


async def works(groups: list[Group]) -> None:
    """Everybody still hears everybody."""
    last = [f"last of {group.me}".encode() for group in groups]
    for group, payload in zip(groups, last, strict=True):
        await group.send(payload)
    async with asyncio.timeout(20):
        for group in groups:
            lacking = set(last)
            while lacking:
                lacking.discard((await group.receive()).payload)


def stays_small(groups: list[Group]) -> None:
    for group in groups:
        lines = member_of(group).transport
        assert len(lines.dropped) < 30
        assert remembered(lines.seal) <= REMEMBERED + len(NAMES) + 1
        logs = group.stats().logs
        assert logs["held"] + logs["accepted"] + logs["preacknowledged"] < 20_000
    for place in PLACES.values():
        assert held(place.assembler) <= MAX_PARTIAL


async def disturb(order: str, key: GroupKeys | None, chance: Random, count: int) -> None:
    """A group, nonsense of strangers, and the group afterwards."""
    async with group_in_memory(*NAMES, order=order, key=key) as groups:
        await talk(groups)
        places = [PLACES[address] for address in members_of("memory", NAMES, shared=True).values()]
        for number in range(count):
            chance.choice(places).put(nonsense(chance))
            if number % 20 == 19:
                await settle(3)
        await settle()
        stays_small(groups)
        if key is not None:
            await works(groups)
        else:  # anybody may speak as a member there, and end the group
            for group in groups:
                assert member_of(group).ending.why is None or isinstance(member_of(group).ending.why, GroupError)


@pytest.mark.parametrize("order", ORDERS)
@QUICK
@given(seed=CHOICES)
def test_a_sealed_group_does_not_notice_strangers(order: str, seed: int) -> None:
    asyncio.run(disturb(order, KEY, Random(seed), 60))


@pytest.mark.parametrize("order", ORDERS)
@QUICK
@given(seed=CHOICES)
def test_a_plain_group_may_end_but_nothing_is_raised(order: str, seed: int) -> None:
    asyncio.run(disturb(order, None, Random(seed), 60))


@pytest.mark.parametrize("order", ORDERS)
@QUICK
@given(data=st.data())
def test_absurd_units_of_real_members_are_survived(order: str, data: st.DataObject) -> None:
    units = data.draw(st.lists(units_of(protocol_of(order), len(NAMES)), min_size=1, max_size=15))
    asyncio.run(say_absurd(order, units))


async def say_absurd(order: str, units: list[Unit]) -> None:
    async with group_in_memory(*NAMES, order=order, key=KEY) as groups:
        await talk(groups)
        for unit in units:
            lines = member_of(groups[unit.source]).transport
            lines.send(unit, None)
            lines.flush()
            await settle(3)
        await settle()
        stays_small(groups)
        for group in groups:
            end = member_of(group).ending.why
            assert end is None or isinstance(end, GroupError)
            assert "failed" not in str(end), "a machine raised something: the group was given up, but it is a mistake"


@pytest.mark.parametrize("order", ORDERS)
@QUICK
@given(seed=CHOICES)
def test_mistakes_inside_what_real_members_say(order: str, seed: int) -> None:
    """What is wrong is sealed with the right key: the decoder and the machines are all that is left to notice."""

    async def test() -> None:
        chance = Random(seed)
        async with group_in_memory(*NAMES, order=order, key=KEY) as groups:
            bodies = heard_bodies(groups)
            await talk(groups, 4)
            for _ in range(40):
                member = member_of(groups[chance.randrange(3)])
                body = flipped(chance, chance.choice(bodies))
                if member.transport.session is not None and not member.left.done():
                    member.transport.send_records(body, BY_RELAY if member.transport.relayed else ALL)
                await settle(2)
            stays_small(groups)
            for group in groups:
                assert "failed" not in str(member_of(group).ending.why)

    asyncio.run(test())


def heard_bodies(groups: list[Group]) -> list[bytes]:
    """The bodies that members say from now on."""
    bodies = [joined([b"\x90"])]
    for group in groups:
        lines = member_of(group).transport
        seal = lines.seal.seal

        def listen(*arguments: Any, seal: Callable[..., bytes] = seal) -> bytes:
            bodies.append(arguments[4])
            return seal(*arguments)

        lines.seal.seal = listen  # type: ignore[method-assign, assignment]
    return bodies


@pytest.mark.soak
@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "sealed"])
@pytest.mark.parametrize("order", ORDERS)
def test_nonsense_for_hours(order: str, key: GroupKeys | None) -> None:
    """SOAK_SECONDS of it in all, in groups of a thousand datagrams each; memory does not grow with their number."""
    until = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "600")) / 8
    seed = time.time_ns() & 0xFFFFFFFF
    rounds = 0
    tracemalloc.start()
    used = 0
    while time.monotonic() < until or rounds < 3:
        print(f"{order} {'sealed' if key else 'plain'}: seed {seed + rounds}", flush=True)  # noqa: T201
        asyncio.run(disturb(order, key, Random(seed + rounds), 1000))
        rounds += 1
        now, _ = tracemalloc.get_traced_memory()
        used = used or now
        assert now < used + (32 << 20), f"{now >> 20} MB after {rounds} rounds, {used >> 20} MB after the first"
    tracemalloc.stop()
