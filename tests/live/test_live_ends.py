"""How groups begin and end: refusals, failures, accounts, who leaves, who reads on, keys that change."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import ordercast.live.host.arrivals
import ordercast.live.member_parts
import ordercast.live.open_group
import ordercast.live.transport.endpoint
from ordercast import View
from ordercast.live.group import Group
from ordercast.live.host.discovery_host import DiscoveryHost
from ordercast.live.host.member import Member
from ordercast.live.session.events import Opened, Refused
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.sockets import open_socket
from ordercast.model.errors import ConfigError, GroupAborted, GroupClosed, JoinError
from ordercast.model.units import Packet
from ordercast.wire.keys import GroupKeys
from tests.live.groups import ORDERS, group_of, hear, join, member_of, new_name, run
from tests.live.ports import free_port


def test_nothing_is_sent_after_the_end() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial") as groups:
            await groups["A"].send(b"x")
        for group in groups.values():
            with pytest.raises(GroupClosed):
                await group.send(b"y")
        assert [message.payload async for message in groups["B"]] == [b"x"], "what was delivered can still be read"
        with pytest.raises(GroupClosed):
            await groups["B"].receive()

    run(test)


def test_close_gives_up_after_its_time() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="partial") as groups:
            with pytest.raises(GroupAborted):
                await groups["A"].close(timeout=0.3)
            with pytest.raises(GroupAborted):
                await groups["B"].receive()
            await member_of(groups["B"]).left

    run(test)


def test_members_that_mean_different_groups_are_refused_and_told_why() -> None:
    async def test() -> None:
        name = new_name()
        both = await asyncio.gather(
            join(name, name="A", members=list("AB"), window=5),
            join(name, name="B", members=list("AB"), window=6),
            return_exceptions=True,
        )
        for error in both:
            assert isinstance(error, JoinError)
            assert "window" in str(error)

    run(test)


def test_members_that_mean_different_channels_are_refused_and_told_why() -> None:
    async def test() -> None:
        name = new_name()
        both = await asyncio.gather(
            join(name, name="A", members=list("AB")),
            join(name, name="B", members=list("AB"), relay=f"127.0.0.1:{free_port()}"),
            return_exceptions=True,
        )
        for error in both:
            assert isinstance(error, JoinError)
            assert "A has no relay" in str(error)
            assert 'B has relay="127.0.0.1:' in str(error)

    run(test)


def test_who_is_missing_is_named() -> None:
    async def test() -> None:
        alone = [join("alone", name=name, members=list("ABC"), timeout=0.6) for name in "AB"]
        for error in await asyncio.gather(*alone, return_exceptions=True):
            assert isinstance(error, JoinError)
            assert "C" in str(error)

    run(test)


def test_a_place_that_is_taken_is_refused() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            name = groups["A"].name
            with pytest.raises(ConfigError, match="A is running already on this machine"):
                await join(name, name="A", members=list("AB"))
            with pytest.raises(ConfigError, match="no member's address is free on this machine: A, B are in use"):
                await join(name, members=list("AB"))

    run(test)


def test_other_machines_need_a_key() -> None:
    with pytest.raises(ConfigError, match="need a key"):
        join("far", name="A", members={"A": "10.0.0.2:7000", "B": "10.0.0.1:7000"})


def test_ipv6() -> None:
    async def test() -> None:
        members = {"A": "[::1]:17391", "B": "[::1]:17392"}
        joined = await asyncio.gather(*(join("six", name=name, members=members, order="total") for name in members))
        await joined[1].send(b"x")
        assert (await joined[0].receive()).payload == b"x"
        await asyncio.gather(*(group.close() for group in joined))

    run(test)


def test_several_readers_share_what_comes_and_lose_nothing() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial") as groups:
            group, readers = groups["B"], []
            for _ in range(2):
                readers.append(asyncio.create_task(group.receive()))
                await asyncio.sleep(0)
            for payloads in (b"abc", b"de"):
                member_of(group).inbox.put(Packet(0, 0b11, 0, (), 0, (1,) * len(payloads), b"\0" + payloads))
                await asyncio.sleep(0.01)
            found = [message.payload for message in (*await asyncio.gather(*readers), *await hear(group, 3))]
            assert sorted(found) == [b"a", b"b", b"c", b"d", b"e"]

    run(test)


def test_who_asks_in_vain_again_and_again_can_go_on() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial") as groups:
            member = member_of(groups["A"])
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(groups["A"].receive(), 0.001)
            member.outbox.pending_bytes += 2 << 20
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(groups["A"].send(b"x"), 0.001)
            member.outbox.pending_bytes -= 2 << 20
            await groups["A"].send(b"x")
            assert (await groups["A"].receive()).payload == b"x"

    run(test)


def test_the_error_of_the_end_does_not_remember_every_call() -> None:
    def length(error: BaseException) -> int:
        trace, found = error.__traceback__, 0
        while trace is not None:
            trace, found = trace.tb_next, found + 1
        return found

    async def test() -> None:
        async with group_of("A", "B", order="partial", close=False) as groups:
            await asyncio.gather(*(group.abort("enough") for group in groups.values()))
            for _ in range(50):
                with pytest.raises(GroupAborted) as sending:
                    groups["A"].send_nowait(b"x")
                with pytest.raises(GroupAborted) as hearing:
                    await groups["A"].receive()
            assert max(length(sending.value), length(hearing.value)) < 20

    run(test)


def test_close_with_no_time_gives_up_at_once() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial", close=False) as groups:
            with pytest.raises(GroupAborted, match="A could not close within 0 s"):
                await groups["A"].close(timeout=0)
            await member_of(groups["B"]).left

    run(test)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sockets of those who join."""
    found: list[Any] = []

    def remember(address: Any) -> Any:
        found.append(open_socket(address))
        return found[-1]

    monkeypatch.setattr(ordercast.live.open_group, "open_socket", remember)
    return found


def test_who_cannot_join_leaves_no_socket_behind(bound: list[Any]) -> None:
    async def test() -> None:
        with pytest.raises(ConfigError, match="at most 16384 characters"):
            await join(new_name(), name="a" * 9000, members=["a" * 9000, "b" * 9000])

    run(test)
    assert [each.fileno() for each in bound] == [-1]


def test_an_error_of_any_kind_leaves_no_socket_behind(bound: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    async def test() -> None:
        for part in ("Endpoint", "Transport", "Session"):
            with monkeypatch.context() as broken:
                broken.setattr(ordercast.live.open_group, part, fail)
                with pytest.raises(ZeroDivisionError):
                    await join(new_name(), name="A", members=list("AB"))

    run(test)
    assert [each.fileno() for each in bound] == [-1] * 3


@pytest.mark.parametrize("part", ["open_multicast", "Endpoint", "Discovery", "DiscoveryHost", "members_of"])
def test_who_does_not_find_its_group_leaves_no_socket_behind(
    bound: list[Any], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    async def find(_: DiscoveryHost) -> dict[str, str]:
        return {}

    opens = ordercast.live.open_group
    remembered: Callable[[Address], Any] = vars(opens)["open_socket"]
    monkeypatch.setattr(opens, "enable_multicast_sending", lambda *_: None)
    monkeypatch.setattr(opens, "open_multicast", lambda *_: remembered(Address("127.0.0.1", 0)))
    monkeypatch.setattr(DiscoveryHost, "find", find)
    name = "A"
    expected: type[Exception] = ZeroDivisionError
    if part == "Discovery":
        name, expected = "a" * 65, ConfigError  # longer than its announcement can be
    else:
        monkeypatch.setattr(opens, part, fail)

    async def test() -> None:
        with pytest.raises(expected):
            await join(new_name(), name=name, size=2, bind="127.0.0.1:0", multicast="239.7.7.7:7000")

    run(test)
    assert [each.fileno() for each in bound] == [-1] * (1 if part == "open_multicast" else 2)


def test_who_is_cancelled_while_it_tells_why_it_did_not_join_leaves_no_socket_behind(
    bound: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        refused = asyncio.Event()
        changed = Member.session_changed

        def is_refused(self: Member, change: Any) -> None:
            changed(self, change)
            if isinstance(change, Refused):
                refused.set()

        monkeypatch.setattr(Member, "session_changed", is_refused)
        joining = asyncio.ensure_future(join(new_name(), name="A", members=list("AB"), timeout=0.5))
        await refused.wait()
        for _ in range(5):  # turns, in which it hears of that, and waits for the others to be told
            await asyncio.sleep(0)
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        assert [each.fileno() for each in bound] == [-1]

    run(test)


def test_who_is_cancelled_just_when_the_group_opens_does_not_stay_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        group = new_name()

        async def enters(name: str) -> None:
            async with join(group, name=name, members=list("AB")) as joined:
                async for event in joined.events():
                    assert isinstance(event, View)
                    assert event.members == ("B",)
                    break

        tasks = {name: asyncio.create_task(enters(name)) for name in "AB"}

        def opened(*arguments: Any, **options: Any) -> Group:
            joined = Group(*arguments, **options)
            if joined.me == "A":
                tasks["A"].cancel()
            return joined

        monkeypatch.setattr(ordercast.live.member_parts, "Group", opened)
        await asyncio.wait([tasks["A"]])
        assert tasks["A"].cancelled()
        await tasks["B"]

    run(test)


def test_who_is_cancelled_while_it_joins_is_named() -> None:
    """One is still missing: the group does not open."""

    async def test() -> None:
        group = new_name()

        async def enters(name: str) -> None:
            async with join(group, name=name, members=list("ABC")) as joined:
                await joined.receive()

        tasks = {name: asyncio.create_task(enters(name)) for name in "AB"}
        await asyncio.sleep(0.5)
        tasks["A"].cancel()
        for name, errors in (("A", asyncio.CancelledError), ("B", JoinError)):
            with pytest.raises(errors) as raised:
                await tasks[name]
        assert "A was interrupted while joining" in str(raised.value)

    run(test)


def test_who_is_cancelled_just_when_the_group_opens_leaves_it_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        group = new_name()

        async def enters(name: str) -> View:
            async with join(group, name=name, members=list("ABC"), failure_timeout=20.0) as joined:
                async for event in joined.events():
                    if isinstance(event, View):
                        return event
            raise AssertionError("the group ended")

        tasks = {name: asyncio.create_task(enters(name)) for name in "ABC"}
        session_changed = Member.session_changed

        def changed(member: Member, change: Any) -> None:
            session_changed(member, change)
            if isinstance(change, Opened) and member.name == "A":
                tasks["A"].cancel()

        monkeypatch.setattr(Member, "session_changed", changed)
        with pytest.raises(asyncio.CancelledError):
            await tasks["A"]
        for name in "BC":
            view = await asyncio.wait_for(tasks[name], 10)
            assert view.left["A"] == "left", "nobody waited until it was missed"

    run(test)


def test_who_is_cancelled_while_it_leaves_has_left() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="partial") as groups:
            leaving = asyncio.create_task(groups["A"].__aexit__(None, None, None))
            await asyncio.sleep(0)
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            event = await anext(groups["B"].events())
            assert isinstance(event, View)
            assert event.left == {"A": "left"}
            await groups["B"].close()

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_an_account_counts_messages_whole_and_all_that_may_be_lost(order: str) -> None:
    """What waits, what is under way, and large messages once: as many as there are receipts that never come true."""

    async def test() -> None:
        async with group_of("A", "B", close=False, order=order) as groups:
            arrived = [await groups["A"].send(bytes(100_000)) for _ in range(3)]
            for receipt in arrived:
                await receipt.stable()
            assert len(await hear(groups["B"], 3)) == 3
            assert groups["A"].stats().messages_sent == 3
            assert groups["B"].stats().messages_delivered["A"] == 3
            receipts = [groups["A"].send_nowait(bytes(10_000)) for _ in range(1000)]
            await groups["A"].abort("enough")
            with pytest.raises(GroupAborted) as ended:
                await groups["A"].send(b"")
            lost = 0
            for receipt in receipts:
                try:
                    await receipt.stable()
                except GroupAborted:
                    lost += 1
            assert ended.value.unconfirmed == lost > 0
            await member_of(groups["B"]).left

    run(test)


def test_who_leaves_without_reading_holds_up_nobody() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", close=False, order="total") as groups:

            async def talk() -> None:
                for _ in range(300):
                    await groups["A"].send(bytes(65_000))
                await groups["A"].close()

            async def listen(name: str) -> int:
                return len([message async for message in groups[name]])

            reading = [asyncio.create_task(listen(name)) for name in "AC"]
            talking = asyncio.create_task(talk())
            await groups["B"].receive()
            await asyncio.gather(talking, groups["B"].close(), groups["C"].close())
            assert await asyncio.gather(*reading) == [300, 300]
            assert await listen("B") == 299, "what came can be read afterwards"

    run(test)


def test_keys_are_changed_while_the_group_runs() -> None:
    async def test() -> None:
        old, new = ({number: bytes([number]) * 32} for number in (1, 2))
        async with group_of("A", "B", order="partial", key=GroupKeys(old)) as groups:
            for keys in ({**old, **new}, {**new, **old}, new):
                for group in groups.values():
                    group.rotate_keys(GroupKeys(keys))
                receipt = await groups["A"].send(b"x")
                await receipt.known_stable()
        async with group_of("A", "B", order="partial", insecure=True) as groups:
            with pytest.raises(ConfigError, match="no key"):
                groups["A"].rotate_keys(GroupKeys(new))

    run(test)


def test_who_forgets_to_close_is_warned() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            forgotten = Group(groups["A"].name, member_of(groups["A"]), selective=True, prioritised=False)
            with pytest.warns(
                ResourceWarning, match=f"group '{forgotten.name}' was not closed: messages sent by A may be lost"
            ):
                del forgotten

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_who_has_closed_need_not_read_what_others_still_send(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it was dropped, as it is for an application that could still read, nobody could ever close."""
    monkeypatch.setattr(ordercast.live.host.inbox, "INBOX_LIMIT", 10_000)

    async def test() -> None:
        async with group_of("A", "B", order=order, close=False) as groups:
            closing = asyncio.ensure_future(groups["B"].close())
            await asyncio.sleep(0)
            for _ in range(50):
                await groups["A"].send(bytes(1000))
                await groups["A"].receive()
            await asyncio.gather(groups["A"].close(), closing)
            assert len([message async for message in groups["B"]]) == 50

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_who_has_closed_does_not_hold_any_amount_for_others(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordercast.live.host.inbox, "INBOX_LIMIT", 1 << 20)
    monkeypatch.setattr(ordercast.live.host.arrivals, "HARD_LIMIT", 3 << 20)

    async def test() -> None:
        async with group_of("A", "B", order=order, close=False) as groups:

            async def talk() -> None:
                while True:
                    await groups["A"].send(bytes(100_000))
                    await groups["A"].receive()

            closing = asyncio.ensure_future(groups["B"].close())
            why = "B has closed the group and does not read: more than 3 MiB arrived since"
            with pytest.raises(GroupAborted, match=why):
                await talk()
            for ending in (closing, groups["A"].close()):
                with pytest.raises(GroupAborted, match=why):
                    await ending
            assert 3 << 20 < groups["B"].stats().unread_bytes < 4 << 20

    run(test)
