"""Who can be a member, where, and of which group."""

import pytest

from ordercast.live.host.parameters import parameters_for
from ordercast.live.settings import Settings
from ordercast.live.transport.addresses import Address, address_of, members_of
from ordercast.live.transport.sockets import open_socket, socket_address
from ordercast.model.errors import ConfigError
from ordercast.wire.keys import GroupKeys
from tests.live.groups import join
from tests.live.ports import link_local


@pytest.mark.parametrize("group", ["", "two\nlines", "\udcff"], ids=["empty", "lines", "no UTF-8"])
def test_groups_have_names_that_can_be_said(group: str) -> None:
    with pytest.raises(ConfigError, match="not a valid group name"):
        members_of(group, ["A", "B"])
    with pytest.raises(ConfigError, match="not a valid group name"):
        join(group, size=2, name="A", bind="127.0.0.1:0", multicast="239.7.7.7:7000")


@pytest.mark.parametrize("name", ["A B", "", "A,B", "@A"])
def test_members_that_are_to_be_found_have_names_like_all(name: str) -> None:
    with pytest.raises(ConfigError, match="not a valid member name"):
        members_of("g", [name, "Z"])
    with pytest.raises(ConfigError, match="not a valid member name"):
        join("g", size=2, name=name, bind="127.0.0.1:0", multicast="239.7.7.7:7000")


@pytest.mark.parametrize("address", ["0.0.0.0:7000", "[::]:7000"])
def test_nobody_can_send_to_any_address(address: str) -> None:
    with pytest.raises(ConfigError, match="others cannot send to"):
        members_of("g", {"A": address, "B": "127.0.0.1:7001"})
    with pytest.raises(ConfigError, match="others cannot send to"):
        join("g", size=2, name="A", bind=address, multicast="239.7.7.7:7000", insecure=True)


def test_addresses_of_a_link_are_bound_and_sent_to_in_their_zone() -> None:
    host = link_local()
    if host is None:
        pytest.skip("no interface has such an address")
    with open_socket(Address(host, 0)) as listening, open_socket(Address(host, 0)) as sender:
        listening.settimeout(5)
        sender.sendto(b"x", socket_address(Address(host, listening.getsockname()[1])))
        assert listening.recv(10) == b"x"


def test_a_zone_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, match="cannot bind"):
        open_socket(Address("fe80::1%nowhere", 7000))


def test_a_packet_always_has_room_for_messages() -> None:
    """Headers grow with the group: what is left of small datagrams would be less than nothing."""
    with pytest.raises(ConfigError, match="max_datagram_size must be at least 694 bytes for 30 members, not 512"):
        parameters_for(Settings(order="spo", max_datagram_size=512), 30, loopback=True)
    assert parameters_for(Settings(order="spo", max_datagram_size=694), 30, loopback=True).room_in(694) == 64
    small = parameters_for(Settings(order="spo", mtu=512), 64, loopback=False)
    assert 0 < small.room_in(512) < small.room_in(4096), "also where losses make datagrams short"


def test_nobody_is_named_twice() -> None:
    with pytest.raises(ConfigError, match="'A' occurs twice among the members"):
        members_of("g", ["A", "B", "A"])


@pytest.mark.parametrize("address", ["10.0.0.1%eth0:7000", "[fe80::1%]:7000", "[fe80::1%a\0b]:7000"])
def test_only_ipv6_has_zones_and_they_have_names_that_sockets_take(address: str) -> None:
    """Members say their addresses in hellos: what sockets take ill would end a group."""
    with pytest.raises(ConfigError, match="is not an address"):
        address_of(address)


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ("10.0.0.1:7000", "10.0.0.1:7000", "have the same address, 10.0.0.1:7000; give each its own"),
        (
            "127.0.0.1:7000",
            "10.0.0.1:7000",
            "has 10.0.0.1:7000: a loopback address cannot be reached from another machine",
        ),
        ("[fd00::1]:7000", "[::1]:7000", "a loopback address cannot be reached from another machine"),
        ("127.0.0.1:7000", "[::1]:7000", "they cannot send to each other; use IPv4 for all"),
    ],
)
def test_who_could_never_be_heard_is_told(first: str, second: str, sentence: str) -> None:
    key = GroupKeys({1: bytes(32)})
    with pytest.raises(ConfigError, match=f"^A .*B .*{sentence}"):
        join("g", members={"A": first, "B": second}, key=key)
    with pytest.raises(ConfigError, match=f"^A .*the relay .*{sentence}"):
        join("g", members={"A": first, "B": first.replace("7000", "7001")}, relay=second, key=key)
    with pytest.raises(ConfigError, match=f"^A .*the relay .*{sentence}"):
        join("g", size=2, name="A", bind=first, multicast="239.7.7.7:7000", relay=second, key=key)
