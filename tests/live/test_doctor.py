"""Whether this machine suits a group: each check tells what it tried."""

import socket

import pytest

import ordercast.live.doctor
from ordercast.live.doctor import Check, Health, examine
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.sockets import open_socket
from ordercast.model.errors import ConfigError
from tests.live.ports import HERE, free_port


def examined(members: dict[str, Address] | None = None, multicast: Address | None = None) -> dict[str, Check]:
    return {check.name: check for check in examine(members or {}, multicast)}


def test_a_multicast_that_is_heard_is_found_right() -> None:
    found = examined({"A": Address(HERE, free_port())}, Address("239.255.77.78", free_port()))["multicast"]
    assert found.health is Health.OK
    assert f"on {HERE}" in found.found


def test_a_multicast_that_was_asked_for_and_does_not_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise ConfigError("no such device")

    monkeypatch.setattr(ordercast.live.doctor, "open_multicast", refused)
    asked = examined(multicast=Address("239.255.77.78", 7000))["multicast"]
    assert (asked.health, asked.found) == (Health.FAIL, "no such device")
    assert asked.fix == "omit multicast to use unicast"
    assert examined()["multicast"].health is Health.WARN, "nobody asked for it"


def test_a_multicast_of_the_members_kind_is_tried() -> None:
    try:
        open_socket(Address("::1", 0)).close()
    except ConfigError as error:
        pytest.skip(str(error))
    assert "[ff15::4d4d]:20777" in examined({"A": Address("::1", free_port())})["multicast"].found


def test_members_are_looked_for() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((HERE, 0))
        port = taken.getsockname()[1]
        found = examined({"A": Address(HERE, free_port()), "B": Address(HERE, port)})
    assert found["member A"].health is Health.OK
    assert found["member B"].health is Health.WARN
    assert "in use" in found["member B"].found


def test_a_member_that_no_way_leads_to_fails() -> None:
    nowhere = Address("fe80::1", 7000)  # an address of a link, and not said of which
    found = examined({"A": Address(HERE, free_port()), "B": nowhere})
    assert found["member B"].health is Health.FAIL


def test_small_buffers_come_with_the_command_that_enlarges_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordercast.live.doctor, "BUFFER", 1 << 40)
    found = examined()
    assert found["receive buffer"].fix == f"sysctl -w net.core.rmem_max={1 << 40}"
    assert found["send buffer"].fix == f"sysctl -w net.core.wmem_max={1 << 40}"
    assert found["send buffer"].health is Health.WARN


def test_a_small_mtu_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordercast.live.doctor, "NETWORK_MTU", 1 << 20)
    assert "mtu of all members" in examined()["interface lo"].fix
