"""Who cannot join is told why, and nobody else is disturbed."""

import asyncio
import socket
from contextlib import closing

import pytest

import ordercast
from ordercast import ConfigError, JoinError
from ordercast.live.transport.addresses import Address, address_of
from ordercast.live.transport.endpoint import Endpoint
from ordercast.wire.keys import GroupKeys, keys_from_text, new_key
from tests.live.groups import crash, group_of, hear, join, member_of, run
from tests.live.test_joining import contact, joins
from tests.live.test_views import TIMEOUT


@pytest.mark.parametrize("keyed", [True, False], ids=["another key", "no key"])
def test_a_joiner_without_the_groups_key(keyed: bool) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, key=keys_from_text(new_key(), "here")) as groups:
            key = keys_from_text(new_key(), "here") if keyed else None
            with pytest.raises(
                JoinError, match=r"no member of the group .* answered at .* and that the key is the group"
            ):
                await ordercast.join(groups["A"].name, contacts=[contact(groups["A"])], name="D", key=key, timeout=0.5)
            await groups["A"].send(b"on")
            assert [message.payload for message in await hear(groups["B"], 1)] == [b"on"]
            rejected = groups["A"].stats().datagrams_rejected
            assert rejected.get("key", 0) + rejected.get("forged", 0) + rejected.get("plaintext", 0)
            assert groups["A"].stats().view == 0
            await asyncio.gather(*(group.close() for group in groups.values()))

    run(test)


def test_a_group_that_is_blocked_takes_nobody_in_and_says_so() -> None:
    async def test() -> None:
        waits: list[str] = []
        async with group_of("A", "B", close=False, failure_timeout=TIMEOUT) as groups:
            crash(groups["A"])
            while not groups["B"].blocked:
                await asyncio.sleep(0.01)
            with pytest.raises(JoinError, match=r"within 2\.5 s: all members that answered are cut off from too many"):
                await ordercast.join(
                    *(groups["B"].name,),
                    contacts=[contact(groups["B"])],
                    name="D",
                    timeout=2.5,
                    on_waiting=waits.append,
                )
            assert waits == [
                f"waiting for the group {groups['B'].name}: all members that answered are cut off from too many others"
            ]
            crash(groups["B"])

    run(test)


def test_a_founder_that_returns_to_a_blocked_group_is_told_so() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, failure_timeout=TIMEOUT) as groups:
            crash(groups["A"])
            while not groups["B"].blocked:
                await asyncio.sleep(0.01)
            with pytest.raises(
                JoinError,
                match=r"it waited for B, which is in this group already .*; if .* start all members together$",
            ):
                await join(
                    groups["B"].name, members=["A", "B"], name="A", timeout=1.5, failure_timeout=TIMEOUT, order="total"
                )
            crash(groups["B"])

    run(test)


def test_the_time_that_is_left_is_told_in_round_figures() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, key=keys_from_text(new_key(), "here")) as groups:
            with pytest.raises(JoinError, match=r"answered at .* within 1\.5 s; "):
                await ordercast.join(groups["A"].name, contacts="local", name="D", timeout=1.5)
            await asyncio.gather(*(group.close() for group in groups.values()))

    run(test)


def test_an_address_that_is_in_use() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            with pytest.raises(ConfigError, match="the address is in use"):
                await joins(groups["A"], "D", bind=contact(groups["B"]))
            await asyncio.gather(*(group.close() for group in groups.values()))

    run(test)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"contacts": []}, "contacts is empty: give the address of at least one member"),
        ({"contacts": "127.0.0.1:7000"}, "contacts must be addresses of members, or 'local', not '127.0.0.1:7000'"),
        ({"contacts": ["here"]}, "'here' is not an address"),
        ({"contacts": ["127.0.0.1:7000"], "members": ["A", "B"]}, "contacts are for a group that is running"),
        ({"contacts": ["127.0.0.1:7000"], "name": None}, "give a name that none of its members has"),
        ({"contacts": ["127.0.0.1:7000"], "name": "a b"}, "not a valid member name"),
        ({"contacts": ["10.0.0.1:7000"]}, r"give our own address \(bind\)"),
        ({"contacts": ["10.0.0.1:7000"], "bind": "10.0.0.2:7000"}, "need a key"),
        ({"contacts": ["10.0.0.1:7000", "[fd00::1]:7000"]}, "IPv4 for all, or IPv6 for all"),
        ({"contacts": ["127.0.0.1:7000"], "bind": "[::1]:7000"}, "use IPv4 for both, or IPv6 for both"),
    ],
)
def test_what_cannot_be_meant(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ordercast.join("g", **{"name": "D", **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("keyed", [True, False], ids=["key", "no key"])
def test_what_was_sent_to_join_changes_nothing_when_it_is_sent_again(
    keyed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        sent: list[tuple[bytes, Address]] = []
        send = Endpoint.send

        def record(self: Endpoint, datagram: bytes, address: Address) -> None:
            sent.append((datagram, address))
            send(self, datagram, address)

        key = keys_from_text(new_key(), "here") if keyed else None
        async with group_of("A", "B", close=False, key=key) as groups:
            monkeypatch.setattr(Endpoint, "send", record)
            new = await joins(groups["A"], "D", key=key)
            await new.leave()
            monkeypatch.setattr(Endpoint, "send", send)
            while groups["A"].stats().view < 2 or groups["B"].stats().view < 2:
                await asyncio.sleep(0.01)
            with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as stranger:
                for datagram, _ in sent:
                    for group in groups.values():
                        stranger.sendto(datagram, address_of(contact(group)))
            await asyncio.sleep(0.3)
            assert [group.stats().view for group in groups.values()] == [2, 2]
            assert all(member_of(group).ending.why is None for group in groups.values())
            await groups["A"].send(b"on")
            assert [message.payload for message in await hear(groups["B"], 1)] == [b"on"]
            await asyncio.gather(*(group.close() for group in groups.values()))

    run(test)


def test_a_key_that_was_removed_lets_nobody_in() -> None:
    """Neither one that has only that key, nor what one said under it while it was valid."""

    async def test() -> None:
        old, new = ({number: bytes([number]) * 32} for number in (1, 2))
        async with group_of("A", "B", close=False, key=GroupKeys(old)) as groups:
            sent: list[bytes] = []
            with pytest.MonkeyPatch.context() as patch:
                send = Endpoint.send

                def record(self: Endpoint, datagram: bytes, address: Address) -> None:
                    sent.append(datagram)
                    send(self, datagram, address)

                patch.setattr(Endpoint, "send", record)
                early = await joins(groups["A"], "D", key=GroupKeys(old))
                await early.leave()
            while groups["A"].stats().view < 2 or groups["B"].stats().view < 2:
                await asyncio.sleep(0.01)
            for keys in ({**old, **new}, {**new, **old}, new):
                for group in groups.values():
                    group.rotate_keys(GroupKeys(keys))
            with pytest.raises(JoinError, match="that the key is the group's"):
                await ordercast.join(
                    *(groups["A"].name,), contacts=[contact(groups["A"])], name="E", key=GroupKeys(old), timeout=0.5
                )
            with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as stranger:
                for datagram in sent:
                    stranger.sendto(datagram, address_of(contact(groups["A"])))
            joined = await joins(groups["A"], "F", key=GroupKeys(new))
            assert joined.members == ("A", "B", "F")
            assert joined.stats().view == 3
            assert groups["A"].stats().datagrams_rejected["key"] > 0
            await asyncio.gather(*(group.close() for group in (*groups.values(), joined)))

    run(test)
