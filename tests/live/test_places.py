"""Where members are: names of hosts, sockets that are bound elsewhere, translators of addresses between members."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

import ordercast
from ordercast import ConfigError, Group, JoinError, Settings
from ordercast.live import resolution
from ordercast.live.transport.addresses import Address, address_of, place_of
from tests.live.groups import crash, member_of, new_name, run
from tests.live.ports import free_port

NAMES = ("A", "B", "C")


class Dns:
    """What names stand for; what is not there has no address."""

    def __init__(self) -> None:
        self.hosts: dict[str, list[str]] = {}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        if host not in self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_DGRAM, 17, "", (each, port)) for each in self.hosts[host]]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> Dns:
    found = Dns()
    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(resolution, "LOOK_AGAIN", 0.05)
    monkeypatch.setattr(resolution, "LOOK_LATER", 0.05)
    return found


def joining(group: str, name: str, members: dict[str, str], **options: Any) -> ordercast.Joining:
    settings = Settings(order="sequenced", failure_timeout=0.6)
    options = {"settings": settings, "insecure": True, "timeout": 10, **options}
    return ordercast.join(group, members=members, name=name, **options)


async def talk(*groups: Group) -> None:
    """All members hear each other."""
    for group in groups:
        await group.send(group.me.encode())
    for group in groups:
        assert {(await group.receive()).payload for _ in groups} == {each.me.encode() for each in groups}


@pytest.mark.parametrize("text", ["orders-0.orders:7000", "a:1", "db_1.local.:65535", "x" * 63 + ".example.org:1"])
def test_names_of_hosts_are_read_as_they_are(text: str) -> None:
    host, _, port = text.rpartition(":")
    assert place_of(text) == Address(host, int(port))
    assert place_of(text).is_name
    assert not place_of(text).is_loopback()
    with pytest.raises(ConfigError, match="is not an address"):
        address_of(text)  # which is what peers send


@pytest.mark.parametrize(
    "text", ["a..b:7000", "-a:7000", "10.0.0.256:7000", "1.2.3:7000", "a b:7000", "a:70000", "a:", "a:0", "ä:7000", "a"]
)
def test_what_is_neither_a_name_nor_a_number_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match="is not an address"):
        place_of(text)


def test_numbers_and_this_machine_are_not_looked_up() -> None:
    for text in ("10.0.0.1:7000", "localhost:7000", "[fd00::1]:7000"):
        assert not place_of(text).is_name
        assert place_of(text) == address_of(text)


def test_members_are_found_by_names_also_if_these_get_their_address_later(dns: Dns) -> None:
    """As pods do: a name has no address before its pod runs, and another one when it has moved."""
    ports = {name: free_port() for name in NAMES}
    members = {name: f"{name.lower()}.orders:{port}" for name, port in ports.items()}
    dns.hosts = {"a.orders": ["127.0.0.1"], "c.orders": ["127.0.0.9", "127.0.0.8"]}

    async def test() -> None:
        group = new_name()
        tasks = [asyncio.ensure_future(_open(joining(group, name, members))) for name in NAMES[:2]]
        await asyncio.sleep(0.2)
        assert not any(task.done() for task in tasks)
        dns.hosts["b.orders"] = ["127.0.0.2"]
        await asyncio.sleep(0.2)
        dns.hosts["c.orders"] = ["127.0.0.3"]
        groups = [*await asyncio.gather(*tasks, _open(joining(group, "C", members)))]
        await talk(*groups)
        addresses = [str(member_of(each).address) for each in groups]
        assert addresses == [f"127.0.0.{place}:{ports[name]}" for place, name in enumerate(NAMES, start=1)]
        await asyncio.gather(*(each.close() for each in groups))

    run(test)


async def _open(joining: ordercast.Joining) -> Group:
    return await joining


def test_a_member_that_was_started_again_elsewhere_is_taken_in_while_another_has_no_address(dns: Dns) -> None:
    ports = {name: free_port() for name in NAMES}
    members = {name: f"{name.lower()}.orders:{port}" for name, port in ports.items()}
    dns.hosts = {f"{name.lower()}.orders": [f"127.0.0.{place}"] for place, name in enumerate(NAMES, start=1)}

    run(_restarted_elsewhere, dns, ports, members)


async def _restarted_elsewhere(dns: Dns, ports: dict[str, int], members: dict[str, str]) -> None:
    group = new_name()
    a, b, c = await asyncio.gather(*(_open(joining(group, name, members)) for name in NAMES))
    await c.leave()
    del dns.hosts["c.orders"]
    crash(b)
    dns.hosts["b.orders"] = ["127.0.0.7"]
    later = await joining(group, "B", members)
    assert str(member_of(later).address) == f"127.0.0.7:{ports['B']}"
    await a.send(b"both")
    assert [message.payload for message in [await a.receive(), await later.receive()]] == [b"both"] * 2
    contacts = member_of(a).addresses.contacts(member_of(a).views.view)
    assert Address("127.0.0.7", ports["B"]) in contacts
    await asyncio.gather(a.close(), later.close())


def test_who_has_no_address_of_its_own_is_told(dns: Dns) -> None:
    async def test() -> None:
        members = {"A": "a.orders:7000", "B": "b.orders:7000"}
        with pytest.raises(JoinError, match=r"no address is known for a.orders after 0.5 s: check the name"):
            await joining(new_name(), "A", members, timeout=0.5)
        assert set(dns.asked) == {"a.orders", "b.orders"}

    run(test)


def test_contacts_may_be_one_name_for_all_members(dns: Dns) -> None:
    """As that of a headless service; members that are gone may be among them."""
    port = free_port()
    members = {name: f"127.0.0.{place}:{port}" for place, name in enumerate(NAMES, start=1)}

    async def test() -> None:
        group = new_name()
        groups = [*await asyncio.gather(*(_open(joining(group, name, members)) for name in NAMES))]
        options: dict[str, Any] = {"name": "D", "bind": "127.0.0.1:0", "insecure": True, "timeout": 10}
        task = asyncio.ensure_future(_open(ordercast.join(group, contacts=[f"orders:{port}"], **options)))
        await asyncio.sleep(0.2)
        assert not task.done()
        dns.hosts["orders"] = ["127.0.0.77", "127.0.0.2", "127.0.0.3"]
        groups.append(await task)
        await talk(*groups)
        await asyncio.gather(*(each.close() for each in groups))
        with pytest.raises(JoinError, match=r"no member of the group .* answered at 127.0.0.2"):
            await ordercast.join(group, contacts=[f"orders:{port}"], **{**options, "timeout": 0.5})

    run(test)


def test_a_socket_may_be_bound_elsewhere_than_others_send_to() -> None:
    """In a container, whose own address the others do not know. Also the state goes there."""

    class Kept:
        def save(self) -> bytes:
            return b"what was"

        async def load(self, parts: Any) -> None:
            loaded.append(b"".join([part async for part in parts]))

    loaded: list[bytes] = []

    async def test() -> None:
        group, port, other = new_name(), free_port(), free_port()
        members = {"A": f"127.0.0.1:{port}", "B": f"127.0.0.1:{other}"}
        a, b = await asyncio.gather(
            _open(joining(group, "A", members, bind=f"0.0.0.0:{port}", state=Kept())),
            _open(joining(group, "B", members, state=Kept())),
        )
        await talk(a, b)
        options: dict[str, Any] = {"insecure": True, "timeout": 10, "state": Kept()}
        c = ordercast.join(
            group, contacts=[members["A"]], name="C", bind="0.0.0.0:0", advertise="127.0.0.1:0", **options
        )
        reader = asyncio.ensure_future(_views(a, b))
        joined = await c
        assert loaded == [b"what was"]
        assert member_of(joined).address.host == "127.0.0.1"
        await reader
        await talk(a, b, joined)
        await asyncio.gather(a.close(), b.close(), joined.close())

    run(test)


async def _views(*groups: Group) -> None:
    for group in groups:
        await anext(group.events())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"members": {"A": "10.0.0.1:7000", "B": "10.0.0.2:7000"}, "bind": "0.0.0.0:7000"}, "give the name of this"),
        ({"members": ["A", "B"], "name": "A", "bind": "127.0.0.1:7", "advertise": "10.0.0.1:7"}, "goes with bind"),
        ({"contacts": ["10.0.0.1:7000"], "name": "C", "advertise": "10.0.0.1:7"}, "goes with bind"),
        ({"contacts": ["10.0.0.1:7000"], "name": "C", "bind": "0.0.0.0:7000"}, "others cannot send to .*advertise"),
        (
            {"contacts": ["10.0.0.1:7000"], "name": "C", "bind": "0.0.0.0:0", "advertise": "10.0.0.3:7000"},
            "give bind the port that arrives",
        ),
        (
            {"contacts": ["10.0.0.1:7000"], "name": "C", "bind": "[::]:7000", "advertise": "10.0.0.3:7000"},
            "use IPv4 for both",
        ),
        ({"members": {"A": "a.orders:7000", "B": "b.orders:7000"}}, "names of hosts: give the name of this member"),
        ({"members": {"A": "a:7000", "B": "b:7000"}, "name": "A", "insecure": False}, "members on other machines need"),
    ],
)
def test_what_does_not_go_together_is_told(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        ordercast.join("g", **{"insecure": True, **options})


class Translator(asyncio.DatagramProtocol):
    """Like a router between a member and the others: what goes through it comes from an address of the router."""

    def __init__(self, inner: tuple[str, int]) -> None:
        self.inner, self.seen = inner, 0
        self.outside: dict[tuple[str, int], socket.socket] = {}

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, source: tuple[str, int]) -> None:
        self.seen += 1
        if source not in self.outside:
            here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            here.setblocking(False)
            here.bind(("127.0.0.50", 0))
            self.outside[source] = here
        self.outside[source].sendto(data, self.inner)

    def close(self) -> None:
        self.transport.close()
        for each in self.outside.values():
            each.close()


@pytest.mark.parametrize("order", ["sequenced", "partial"])
def test_members_behind_a_translator_of_addresses_are_recognised_by_what_they_send(order: str) -> None:
    """Pieces of links are told apart by where they come from, which is not where the member is reached."""

    async def test() -> None:
        group, port, inner = new_name(), free_port(), free_port()
        loop = asyncio.get_running_loop()
        _, outer = await loop.create_datagram_endpoint(
            lambda: Translator(("127.0.0.1", inner)), local_addr=("127.0.0.40", port)
        )
        members = {"A": f"127.0.0.40:{port}", "B": f"127.0.0.1:{free_port()}"}
        settings = Settings(order=order, mtu=1352, failure_timeout=1.0)
        options: dict[str, Any] = {"settings": settings}
        a, b = await asyncio.gather(
            _open(joining(group, "A", members, bind=f"127.0.0.1:{inner}", **options)),
            _open(joining(group, "B", members, **options)),
        )
        for _ in range(20):
            await talk(a, b)
        await b.send(bytes(100_000))
        assert len((await a.receive()).payload) == 100_000
        assert a.stats().view == b.stats().view == 0
        assert outer.seen > 20
        await asyncio.gather(a.close(), b.close())
        outer.close()

    run(test)


def test_names_are_looked_up_again_though_what_they_stand_for_was_not_taken(
    dns: Dns, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[dict[str, Address]] = []

    def moved(found: dict[str, Address]) -> None:
        told.append(found)
        if len(told) == 1:
            raise ValueError("no place for it")

    async def test() -> None:
        dns.hosts["b.orders"] = ["127.0.0.2"]
        members = {name: place_of(f"{name.lower()}.orders:7000") for name in "AB"}
        named = SimpleNamespace(name="A", members=members, bind=None, advertise=None, contacts=None)
        options: Any = SimpleNamespace(named=named)
        following = asyncio.ensure_future(resolution.follow(options, lambda: True, moved))
        while len(told) < 3:
            await asyncio.sleep(0.01)
        assert not following.done()
        following.cancel()

    run(test)
    assert told[2] == {"B": Address("127.0.0.2", 7000)}
    assert caplog.text.count("new addresses of members were not taken") == 1
    assert "ValueError: no place for it" in caplog.text
