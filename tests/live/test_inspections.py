"""Anybody with the key may ask members how they are; nothing changes by that, and the answer is bounded."""

import asyncio

import msgspec
import pytest

from ordercast import JoinError
from ordercast.live import group_members
from ordercast.live.group_members import inspect_members
from ordercast.live.host.latency_samples import DELIVERED, LatencySamples
from ordercast.live.local_groups import contacts_of
from ordercast.live.user_key import user_keys
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.inspection import INSPECTION, MAX_WAITS, Inspect, Inspected, Latency
from ordercast.wire.keys import keys_from_text
from tests.live.groups import ORDERS, crash, group_of, run

KEYS, OTHERS = (keys_from_text(f"1:{digits * 32}", "a test") for digits in ("ab", "cd"))
ANSWER = Inspected(
    *(7, 8, 0, 1, 1000, 5, (5, 5), 9, 1, 2, 0, 0, 1 << 20, 1 << 21, 0, 0, 3),
    latencies=(Latency(3, 100, 200),) * 4,
    waits=("bob is waited for",),
)


@pytest.mark.parametrize("order", ORDERS)
def test_members_say_what_they_sent_and_delivered_and_how_long_it_took(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", order=order) as groups:
            for _ in range(3):
                receipt = await groups["A"].send(b"x")
                await receipt.stable()
            for group in groups.values():
                for _ in range(3):
                    await asyncio.wait_for(anext(aiter(group)), 10)
            name = groups["A"].name
            found, members = await inspect_members(name, contacts_of(name), user_keys(), 5)
            assert [member.name for member in found.members] == ["A", "B"]
            assert [members[place].sent for place in (0, 1)] == [3, 0]
            assert [members[place].delivered for place in (0, 1)] == [(3, 0), (3, 0)]
            latencies = members[0].latencies
            assert 1 <= latencies[DELIVERED].count <= 3, "one is followed after the other"
            assert 0 < latencies[DELIVERED].median <= latencies[DELIVERED].late < 10**10
            assert members[1].latencies == (Latency(0),) * 4
            assert all(members[place].transmitted > 0 for place in (0, 1))
            assert all(group.members == ("A", "B") for group in groups.values())

    run(test)


def test_who_does_not_answer_is_not_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_members, "PATIENCE", 0.2)

    async def test() -> None:
        async with group_of("A", "B", "C", close=False) as groups:
            name = groups["A"].name
            contacts = contacts_of(name)
            crash(groups.pop("C"))
            found, members = await inspect_members(name, contacts, user_keys(), 5)
            assert len(found.members) == 3
            assert sorted(members) == [0, 1]
            for group in groups.values():
                crash(group)

    run(test)


def test_without_the_key_nobody_says_anything() -> None:
    async def test() -> None:
        async with group_of("A", "B", key=KEYS) as groups:
            name = groups["A"].name
            for keys in (OTHERS, None):
                with pytest.raises(JoinError):
                    await inspect_members(name, contacts_of(name), keys, 0.2)
            _, members = await inspect_members(name, contacts_of(name), KEYS, 5)
            assert sorted(members) == [0, 1]

    run(test)


def test_what_is_beyond_the_bounds_is_not_decoded() -> None:
    codec = Codec("spo", INSPECTION)
    for message in (ANSWER, Inspect("127.0.0.1:7000", "g", 1, (1 << 62) + 1)):
        assert codec.decode(codec.encode(message)) == message
    for changes in (
        {"waits": ("x",) * (MAX_WAITS + 1)},
        {"waits": ("x" * 501,)},
        {"delivered": (0,) * 65},
        {"place": 64},
        {"sent": -1},
        {"latencies": (Latency(0),) * 9},
    ):
        with pytest.raises(Malformed):
            codec.decode(codec.encode(msgspec.structs.replace(ANSWER, **changes)))


def test_one_message_at_a_time_is_followed_until_it_has_all_its_levels() -> None:
    samples = LatencySamples()
    samples.numbered(5, 0b1010, 100)
    samples.numbered(6, 0b1010, 110)
    assert samples.followed == 5
    samples.reached(0, 120)
    samples.reached(1, 150)
    samples.reached(1, 155)
    assert samples.followed == 5, "it is not delivered yet"
    samples.reached(3, 190)
    assert samples.followed == -1
    assert samples.summary() == (Latency(1, 20, 20), Latency(1, 50, 50), Latency(0), Latency(1, 90, 90))
    samples.numbered(7, 0b1010, 200)
    samples.numbered(8, 0b1010, 200 + 10**10)
    assert samples.followed == 7
    samples.numbered(9, 0b1010, 201 + 10**10)
    assert samples.followed == 9, "what takes so long is given up"
