"""What cannot be meant is refused in the words of those who asked, and who waits is told for whom."""

import asyncio
import re
from dataclasses import fields
from typing import Any

import pytest

from ordercast.live.events import View
from ordercast.live.host.parameters import parameters_for
from ordercast.live.metrics_server import serve_metrics
from ordercast.live.session.parameter_comparison import difference, encode_parameters
from ordercast.live.settings import Settings
from ordercast.live.transport.addresses import Address, address_of, multicast_of
from ordercast.model.errors import ConfigError, GroupAborted, JoinError, LocalProtocolError
from ordercast.wire.keys import keys_from_text, new_key
from tests.live.groups import group_of, join, member_of, new_name, run

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"window": 0}, "window must be at least 1, not 0"),
    ({"max_datagram_size": 0}, "max_datagram_size must be 512 to 65507 bytes, not 0"),
    ({"timeout": 0.2}, "timeout must be 0.5 to 1,000,000,000 seconds, not 0.2"),
    ({"timeout": -1}, "0.5 to 1,000,000,000 seconds, not -1"),
    ({"timeout": 1e10}, "0.5 to 1,000,000,000 seconds, not 10000000000.0"),
    ({"timeout": None}, "0.5 to 1,000,000,000 seconds, not None"),
    ({"timeout": float("nan")}, "timeout must be a number of seconds, not nan"),
    ({"timeout": "60"}, "timeout must be a number of seconds, not '60'"),
    ({"order": "partial", "relay": "127.0.0.1:7000"}, "relay has no effect for order 'partial', only for 'total' and"),
    ({"order": "sequenced", "relay": "127.0.0.1:7000"}, "relay has no effect for order 'sequenced'"),
    ({"order": "total", "resilience": 1}, "resilience has no effect for order 'total', only for 'sequenced'"),
    (
        {"order": "sequenced", "resilience": 2},
        r"resilience must be at most 1 for 2 members \(all besides the sequencer\), not 2",
    ),
    ({"failure_timeout": 0.4}, "failure_timeout must be 0.5 to 600 seconds, not 0.4"),
    ({"failure_timeout": 601}, "0.5 to 600 seconds, not 601"),
    ({"failure_timeout": float("inf")}, "failure_timeout must be a number of seconds, not inf"),
    ({"failure_timeout": "3"}, "failure_timeout must be a number of seconds, not '3'"),
    ({"failure_timeout": True}, "failure_timeout must be a number of seconds, not True"),
    ({"round_trip": "0.1"}, "round_trip must be a number of seconds, not '0.1'"),
    ({"mtu": "1400"}, "mtu must be a whole number, not '1400'"),
    ({"max_datagram_size": 1400.0}, "max_datagram_size must be a whole number, not 1400.0"),
    ({"window": "5"}, "window must be a whole number, not '5'"),
    ({"order": "sequenced", "resilience": "1"}, "resilience must be a whole number, not '1'"),
    ({"relay": 7000}, "7000 is not an address"),
    ({"failure_timeout": 3, "round_trip": 1}, "failure_timeout must be at least 4 round trips, 4 seconds, not 3"),
    ({"multicast": "10.0.0.1:7000"}, "10.0.0.1:7000 is not a multicast address"),
    ({"multicast": "[ff15::7]:7000"}, r"cannot send to the multicast address \[ff15::7\]:7000: use IPv4 for both"),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        join("refused", members=["A", "B"], **options)


@pytest.mark.parametrize(
    ("group", "options", "sentence"),
    [
        (5, {"members": ["A", "B"]}, "5 is not a valid group name"),
        ("g", {"members": 2}, "members must be names or a mapping from names to addresses, not 2"),
        ("g", {"members": [1, 2]}, "1 is not a valid member name"),
        ("g", {"members": {"A": 7000, "B": 7001}}, "7000 is not an address"),
        ("g", {"size": "2", "name": "A", "bind": "127.0.0.1:0", "multicast": "239.7.7.7:7000"}, "size must be a whole"),
    ],
)
def test_what_is_of_another_kind_is_refused_too(group: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        join(group, **options)


@pytest.mark.parametrize("timeout", ["3", float("inf"), float("nan")])
def test_who_closes_within_no_time_at_all_can_still_close(timeout: Any) -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial") as groups:
            with pytest.raises(ConfigError, match="timeout must be a number of seconds, not "):
                await groups["A"].close(timeout)

    run(test)


@pytest.mark.parametrize(
    ("order", "chosen", "sentence"),
    [
        ("partial", {}, 'B has order="partial", A has order="total"'),
        ("total", {"window": 5}, "B has window=5, A has window=17"),  # a MiB under way, in datagrams of 60,000 bytes
        ("total", {"failure_timeout": 10}, "B has failure_timeout=10.0, A has failure_timeout=3.0"),
        ("total", {"quorum": "static"}, 'B has quorum="static", A has quorum="last_view"'),
        ("total", {"mtu": 1400}, "B has mtu=1400, A has mtu=0"),  # from which the window follows
    ],
)
def test_who_means_another_group_is_told_in_the_words_of_those_who_asked(
    order: str, chosen: dict[str, Any], sentence: str
) -> None:
    ours = parameters_for(Settings(), 2, loopback=True)
    theirs = parameters_for(Settings(order=order, **chosen), 2, loopback=True)
    ours_said, theirs_said = (encode_parameters("g", ["A", "B"], each.compared()) for each in (ours, theirs))
    assert difference(ours_said, "A", theirs_said, "B") == sentence


@pytest.mark.parametrize(
    ("one", "other"),
    [("[fe80::1%eth0]:7000", "[fe80::1%eth1]:7000"), ("localhost:7000", "127.0.0.1:7000")],
)
def test_one_address_in_the_words_of_two_machines_is_no_difference(one: str, other: str) -> None:
    assert parameters_for(Settings(relay=one), 2, loopback=False) == parameters_for(
        Settings(relay=other), 2, loopback=False
    )


@pytest.mark.parametrize("field", [field.name for field in fields(Settings) if field.name != "resilience"])
def test_every_setting_is_compared_under_its_own_name(field: str) -> None:
    other = {
        "order": "priority",
        "window": 3,
        "delivery": "stable",
        "recovery": "place",
        "quorum": "static",
        "failure_timeout": 9,
        "pause_timeout": 3.0,
        "slow_reader_timeout": 30.0,
        "round_trip": 0.5,
        "mtu": 1400,
        "max_datagram_size": 2000,
        "max_message_size": 2000,
        "multicast": "239.7.7.7:7000",
        "relay": "127.0.0.1:7000",
    }[field]
    ours, theirs = (
        encode_parameters("g", ["A", "B"], parameters_for(each, 2, loopback=True).compared())
        for each in (Settings(), Settings(**{field: other}))  # type: ignore[arg-type]
    )
    told = difference(ours, "A", theirs, "B")
    assert re.fullmatch(
        rf'B has {field}="?{re.escape(f"{other:.1f}" if field == "failure_timeout" else str(other))}"?, A has .*', told
    )


def test_resilience_is_compared_too() -> None:
    ours, theirs = (
        encode_parameters(
            "g", ["A", "B"], parameters_for(Settings(order="sequenced", resilience=each), 2, loopback=True).compared()
        )
        for each in (0, 1)
    )
    assert difference(ours, "A", theirs, "B") == "B has resilience=1, A has resilience=0"


def test_addresses_that_people_write() -> None:
    assert address_of("localhost:7000") == Address("127.0.0.1", 7000)
    assert multicast_of("[ff15::7]:7000") == Address("ff15::7", 7000)
    with pytest.raises(ConfigError, match="use a numeric host and a port"):
        address_of("example.org:7000")


@pytest.mark.parametrize(("payload", "sentence"), [("text", r"encode the text: text\.encode\(\)"), (5, "not int")])
def test_a_message_is_bytes(payload: Any, sentence: str) -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            with pytest.raises(LocalProtocolError, match=f"a message must be bytes; {sentence}"):
                await groups["A"].send(payload)
            await groups["A"].send(bytearray(b"these are bytes, too"))
            assert (await groups["B"].receive()).payload == b"these are bytes, too"
            assert repr(groups["B"]) == f"<Group {groups['B'].name!r}: B of A, B>"

    run(test)


@pytest.mark.parametrize("error", [KeyError("a secret"), asyncio.CancelledError("a secret"), SystemExit("a secret")])
def test_an_error_in_one_member_is_its_own_and_the_others_hear_that_it_left(error: BaseException) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            await groups["A"].__aexit__(type(error), error, None)
            view = await anext(groups["B"].events())
            assert isinstance(view, View)
            assert (view.members, tuple(view.left), view.why) == (("B",), ("A",), "A left")
            await groups["B"].close()

    run(test)


@pytest.mark.parametrize(("why", "told"), [("the disk is full", ": the disk is full"), ("", "")])
def test_who_gives_a_group_up_is_named(why: str, told: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            await groups["A"].abort(why)
            for group in groups.values():
                with pytest.raises(GroupAborted) as heard:
                    await group.receive()
                assert heard.value.why == f"A aborted the group{told}"
            await member_of(groups["B"]).left

    run(test)


def test_whose_protocol_gives_a_group_up_is_named() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial", close=False) as groups:
            member_of(groups["A"]).protocol_aborted("E2 does not answer")
            with pytest.raises(GroupAborted) as heard:
                await groups["B"].receive()
            assert heard.value.why == "A aborted the group: B does not answer"
            await asyncio.gather(*(member_of(group).left for group in groups.values()))

    run(test)


def test_who_waits_is_told_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.live.why_not_open._PATIENCE", 0.1)
    told: list[str] = []

    async def test() -> None:
        options: dict[str, Any] = {"members": ["A", "B", "C"], "timeout": 0.6}
        with pytest.raises(JoinError, match=r"nothing received from B, C$"):
            await join(new_name(), name="A", on_waiting=told.append, **options)

    run(test)
    assert told == ["waiting for B, C"]


def test_keys_that_differ_are_told_to_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.live.why_not_open._PATIENCE", 0.3)
    told: list[str] = []

    async def test() -> None:
        options: dict[str, Any] = {"members": ["A", "B"], "timeout": 0.6, "on_waiting": told.append}
        group = new_name()
        keys = {name: keys_from_text(new_key(), "a test") for name in "AB"}
        both = (join(group, name=name, key=key, **options) for name, key in keys.items())
        for error in await asyncio.gather(*both, return_exceptions=True):
            assert isinstance(error, JoinError)
            assert "decryption failed: check that all members have the same key and group name" in str(error)

    run(test)
    assert all("same key and group name" in sentence for sentence in told)
    assert len(told) == 2


def test_monitors_are_told_that_there_is_no_group_yet() -> None:
    async def test() -> None:
        server = await serve_metrics(lambda: None, 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        writer.close()
        server.close()

    run(test)
