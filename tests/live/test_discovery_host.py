"""Members that know only a group's name and size find each other by multicast, on this machine."""

import asyncio
import itertools
import re
import secrets
import socket
from typing import Any

import pytest

import ordercast
import ordercast.live.open_group
from ordercast.live.host.discovery_host import DiscoveryHost, new_discovery
from ordercast.live.join import Joining
from ordercast.live.session.discovery import AnnouncementReceived, Discovery
from ordercast.live.transport.addresses import Address, address_of
from ordercast.live.transport.sockets import enable_multicast_sending, open_multicast, open_socket
from ordercast.model.errors import ConfigError, JoinError
from ordercast.wire.codec import Codec
from ordercast.wire.control import CONTROL, Hello
from ordercast.wire.datagram import pack_records as join_records
from ordercast.wire.keys import keys_from_text, new_key
from ordercast.wire.seal import seal_for
from tests.live.groups import join, run
from tests.live.ports import link_local

_PORTS = itertools.count(20_000 + secrets.randbelow(10_000))  # other tests run at the same time, in other processes


def works(group: str, interface: str) -> bool:
    """Whether multicast comes back on this machine."""
    address = Address(group, next(_PORTS))
    try:
        heard = open_multicast(address, interface)
    except ConfigError:
        return False
    with heard, socket.socket(heard.family, socket.SOCK_DGRAM) as sender:
        try:
            enable_multicast_sending(sender, interface)
            sender.sendto(b"x", (group, address.port))
            heard.settimeout(0.5)
            return heard.recv(10) == b"x"
        except (OSError, ConfigError):
            return False


@pytest.fixture(params=[("239.77.7.7", "127.0.0.1"), ("ff15::77", "::1")], ids=["IPv4", "IPv6"])
def network(request: pytest.FixtureRequest) -> dict[str, Any]:
    group, interface = request.param
    if not works(group, interface):
        pytest.skip(f"multicast to {group} does not work on {interface}")
    return {"multicast": str(Address(group, next(_PORTS))), "bind": str(Address(interface, 0))}


def looking(name: str, network: dict[str, Any], **options: Any) -> Joining:
    return join("found", name=name, **{"size": 3, "timeout": 10, **network, **options})


def test_one_that_knows_the_multicast_address_joins(network: dict[str, Any]) -> None:
    async def test() -> None:
        groups = list(await asyncio.gather(*(looking(name, network, size=2, order="sequenced") for name in "AB")))
        contacts, bind = [network["multicast"]], network["bind"]
        groups.append(await ordercast.join("found", contacts=contacts, name="C", bind=bind, timeout=10))
        assert sorted(groups[2].members) == ["A", "B", "C"]
        await groups[2].send(b"hello")
        assert (await groups[0].receive()).payload == b"hello"
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
@pytest.mark.parametrize("order", ["partial", "total", "sequenced"])
def test_members_find_each_other(network: dict[str, Any], order: str, sealed: bool) -> None:
    key = keys_from_text(new_key(), "here") if sealed else None

    async def member(name: str, wait: float) -> list[bytes]:
        await asyncio.sleep(wait)
        async with looking(name, network, order=order, key=key) as group:
            await group.send(name.encode())
            return sorted([(await group.receive()).payload for _ in range(3)])

    async def test() -> None:
        heard = await asyncio.gather(member("A", 0.1), member("B", 0), member("C", 0.2))
        assert list(heard) == [[b"A", b"B", b"C"]] * 3

    run(test)


def test_a_link_has_another_name_on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    host = link_local()
    if host is None or not works("ff15::77", host):
        pytest.skip("no link of this machine has an address and multicast")

    def from_elsewhere(group: str, name: str, address: Address, *options: Any) -> Discovery:
        number = address.host.partition("%")[0]
        return new_discovery(group, name, Address(f"{number}%{name}", address.port), *options)

    monkeypatch.setattr(ordercast.live.open_group, "new_discovery", from_elsewhere)
    network = {"multicast": str(Address("ff15::77", next(_PORTS))), "bind": str(Address(host, 0)), "insecure": True}

    async def test() -> None:
        groups = await asyncio.gather(*(looking(name, network, order="total") for name in "ABC"))
        await groups[1].send(b"by the channel, which is A")
        assert (await groups[2].receive()).payload == b"by the channel, which is A"
        assert not any(group.stats().send_errors for group in groups)
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


def test_a_group_that_is_open_is_joined_by_whoever_comes_later(network: dict[str, Any]) -> None:
    async def test() -> None:
        opened = await asyncio.gather(*(looking(name, network) for name in "BCD"))
        groups = dict(zip("BCD", opened, strict=True))
        with pytest.raises(JoinError, match="does not take C: the name C is in use"):
            await looking("C", network)
        await groups["C"].leave()
        groups["C"] = await looking("C", network)
        groups["A"] = await looking("A", network)
        for founder in "BD":
            await groups.pop(founder).leave()
        groups["E"] = await looking("E", network)  # nobody is left of those that opened it
        assert set(groups["E"].members) == {"A", "C", "E"}
        await asyncio.gather(*(group.close() for group in groups.values()))

    run(test)


def test_one_too_many_is_told_so_if_the_group_does_not_open(
    network: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.live.host.discovery_host._GRACE", 0.1)
    monkeypatch.setattr("ordercast.live.host.running_group.RunningGroup.receive", lambda *_: None)

    async def test() -> None:
        groups = await asyncio.gather(*(looking(name, network) for name in "BCD"))
        with pytest.raises(JoinError, match="the group has its 3 members: B, C, D"):
            await looking("A", network)
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


def test_other_sizes_and_too_few(network: dict[str, Any]) -> None:
    async def test() -> None:
        both = await asyncio.gather(looking("A", network), looking("B", network, size=2), return_exceptions=True)
        for error in both:
            assert isinstance(error, JoinError)
            assert "looks for a group of" in str(error)
            assert {"of 2", "of 3"} == set(re.findall(r"of \d", str(error)))
        with pytest.raises(JoinError, match="1 of 3 members of found were found: A"):
            await looking("A", network, timeout=0.6)

    run(test)


def test_hellos_without_the_key_are_not_heard(network: dict[str, Any]) -> None:
    keys = [keys_from_text(new_key(), "here") for _ in range(2)]

    async def test() -> None:
        both = await asyncio.gather(
            *(looking(name, network, size=2, key=key, timeout=0.8) for name, key in zip("AB", keys, strict=True)),
            return_exceptions=True,
        )
        for name, error in zip("AB", both, strict=True):
            assert str(error).startswith(
                f"within 0.8 s 1 of 2 members of found were found: {name}; decryption failed: check"
            )

    run(test)


def test_who_does_not_want_to_wait_any_more_leaves_nothing_behind(network: dict[str, Any]) -> None:
    host = address_of(network["bind"], any_port=True).host
    place = Address(host, next(_PORTS))

    async def test() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await looking("A", {**network, "bind": str(place)})
        open_socket(place).close()  # it is free again

    run(test)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, r"the members are missing; give them \(members\), the number of members to discover \(size\), or addr"),
        ({"members": ["A", "B"], "size": 2}, "members and size exclude each other; give the members, or"),
        ({"size": 2, "name": "A", "bind": "127.0.0.1:0"}, "give a name, our own address"),
        ({"size": 1, "name": "A", "bind": "127.0.0.1:0", "multicast": "239.1.1.1:7400"}, "2 to 64 members"),
        ({"size": 2, "name": "A", "bind": "127.0.0.1", "multicast": "239.1.1.1:7400"}, "not an address"),
        ({"size": 2, "name": "A", "bind": "10.0.0.1:0", "multicast": "239.1.1.1:7400"}, "need a key"),
        ({"members": ["A", "B"], "bind": "127.0.0.1:0"}, "would be any: give it a port"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        join("found", **options)


@pytest.mark.parametrize(("name", "address"), [("B C", "127.0.0.1:7000"), ("B", "0.0.0.0:7000"), ("B", "nowhere")])
def test_who_cannot_be_a_member_is_not_found(name: str, address: str) -> None:
    """Else one that has a wrong name would end the joining of all."""

    async def test() -> None:
        codec, discovery = Codec("spo", CONTROL), Discovery("g", "A", "127.0.0.1:7001", 1, 2)
        finder = DiscoveryHost(None, seal_for("g", None), codec, discovery)  # type: ignore[arg-type]
        told: list[object] = []
        finder.handle = told.append  # type: ignore[method-assign, assignment]
        good = Hello("g", "D", 3, "127.0.0.1:7002", 2, 1, (), found=False)
        for hello in (Hello("g", name, 2, address, 2, 1, (), found=False), good):
            finder.receive(join_records([codec.encode(hello)]))
        assert told == [AnnouncementReceived(good)]

    run(test)
