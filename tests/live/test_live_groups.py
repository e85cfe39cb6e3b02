"""Groups of several members in one event loop, over real sockets of this machine."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

import ordercast.live.endpoint
import ordercast.live.joining
from ordercast.live.group import Group, Message
from ordercast.live.joining import join
from ordercast.live.network import open_socket
from ordercast.model.errors import ConfigError, GroupAborted, GroupClosed, JoinError, LocalProtocolError
from ordercast.model.machine import Level
from ordercast.model.units import Packet
from ordercast.wire.keys import GroupKeys

ORDERS = ["partial", "total", "priority", "sequenced"]
_GROUPS = itertools.count()


def new_name() -> str:
    """Of a group; names stand for ports, and other tests may run at the same time."""
    return f"test {os.getpid()} {next(_GROUPS)}"


def run(test: Callable[..., Any], *arguments: object) -> None:
    asyncio.run(asyncio.wait_for(test(*arguments), 30))


@asynccontextmanager
async def group_of(*names: str, close: bool = True, **options: Any) -> AsyncIterator[dict[str, Group]]:
    """All members of a new group; in the end all close it together."""
    name = new_name()
    joined = await asyncio.gather(*(join(name, name=each, members=names, timeout=10, **options) for each in names))
    yield dict(zip(names, joined, strict=True))
    if close:
        await asyncio.gather(*(group.close() for group in joined))


async def hear(group: Group, count: int) -> list[Message]:
    return [await group.receive() for _ in range(count)]


@pytest.fixture
def lossy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loses a tenth of all datagrams, and sends some twice."""
    chance = Random(1)
    send = ordercast.live.endpoint.Endpoint.send

    def send_perhaps(self: Any, datagram: bytes, address: Any) -> None:
        for _ in range(chance.choices((0, 1, 2), (10, 85, 5))[0]):
            send(self, datagram, address)

    monkeypatch.setattr(ordercast.live.endpoint.Endpoint, "send", send_perhaps)


@pytest.mark.parametrize("order", [*ORDERS, "to", "po", "prio"])
def test_everybody_hears_everything(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:
            for number in range(20):
                for name, group in groups.items():
                    await group.send(f"{name}{number}".encode())
            heard = {name: await hear(group, 60) for name, group in groups.items()}
        for messages in heard.values():
            for name in groups:
                own = [message.payload for message in messages if message.sender == name]
                assert own == [f"{name}{number}".encode() for number in range(20)]
        if order not in {"partial", "po"}:
            assert heard["A"] == heard["B"] == heard["C"]

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_losses_are_mended(order: str, lossy: None) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:

            async def talk(name: str, group: Group) -> None:
                for number in range(100):
                    await group.send(f"{name}{number}".encode())
                    await asyncio.sleep(0.001)

            await asyncio.gather(*(talk(name, group) for name, group in groups.items()))
            heard = {name: await hear(group, 300) for name, group in groups.items()}
        for messages in heard.values():
            assert sorted(message.payload for message in messages) == sorted(
                f"{name}{number}".encode() for name in groups for number in range(100)
            )
        if order != "partial":
            assert heard["A"] == heard["B"] == heard["C"]

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_all_send_as_fast_as_they_can(order: str) -> None:
    """Among them the member that is the channel: what it passes on to itself comes when its own turn is over."""

    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:

            async def talk(group: Group) -> None:
                for number in range(4000):
                    await group.send(number.to_bytes(1000, "big"))

            async def listen(group: Group) -> list[tuple[str, int]]:
                messages = await hear(group, 12_000)
                return [(message.sender, int.from_bytes(message.payload, "big")) for message in messages]

            listening = [asyncio.create_task(listen(group)) for group in groups.values()]
            await asyncio.gather(*(talk(group) for group in groups.values()))
            heard = await asyncio.gather(*listening)
        for each in heard:
            assert [number for sender, number in each if sender == "B"] == list(range(4000))
        if order != "partial":
            assert heard[0] == heard[1] == heard[2]

    run(test)


@pytest.mark.parametrize("order", ["partial", "total"])
def test_some_are_sent_to_and_others_are_not(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:
            receipt = await groups["A"].send(b"for B and C", to={"B", "C"})
            await groups["A"].send(b"for all")
            await receipt.acknowledged()
            assert [message.payload for message in await hear(groups["A"], 1)] == [b"for all"]
            for name in "BC":
                assert [message.payload for message in await hear(groups[name], 2)] == [b"for B and C", b"for all"]

    run(test)


@pytest.mark.parametrize("order", ["priority", "sequenced"])
def test_a_broadcast_goes_to_all_or_is_refused(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", order=order) as groups:
            with pytest.raises(LocalProtocolError, match="partial"):
                await groups["A"].send(b"", to={"B"})
            await groups["A"].send(b"to all by name", to=("B", "A"))
            assert (await groups["B"].receive()).payload == b"to all by name"

    run(test)


def test_bad_calls_are_told_what_is_right() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial") as groups:
            group = groups["A"]
            for bad, sentence in (
                ({"to": {"C"}}, "'C' is no member; members are: A, B"),
                ({"to": "B"}, "a set of names"),
                ({"to": ()}, "somebody"),
                ({"priority": 1}, "no priorities; use order='priority'"),
            ):
                with pytest.raises(LocalProtocolError, match=sentence):
                    await group.send(b"", **bad)
            with pytest.raises(LocalProtocolError, match="at most"):
                await group.send(bytes((64 << 20) + 1))

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_receipts_tell_how_far_a_message_has_got(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:
            receipt = await groups["B"].send(b"x")
            await receipt.accepted()
            await receipt.preacknowledged()
            await receipt.acknowledged()
            assert receipt.level is Level.ACKNOWLEDGED
            await receipt.acknowledged()  # once more, afterwards

    run(test)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("datagram", [1400, 60_000])
def test_large_and_small_messages_keep_their_order(order: str, datagram: int) -> None:
    async def test() -> None:
        sizes = [0, 1, datagram - 200, datagram, 3 * datagram + 1, 300_000, 5, 1_000_000]
        sent = [Random(size).randbytes(size) for size in sizes]
        async with group_of("A", "B", order=order, datagram=datagram) as groups:
            for payload in sent:
                await groups["B"].send(payload)
            for group in groups.values():
                assert [message.payload for message in await hear(group, len(sent))] == sent

    run(test)


def test_the_urgent_overtakes_what_waits() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order="priority", datagram=1400) as groups:
            for _ in range(300):
                groups["B"].send_nowait(bytes(1000), priority=1)
            await groups["B"].send(b"alarm", priority=9)
            with pytest.raises(LocalProtocolError, match="0 to 255"):
                await groups["B"].send(b"", priority=256)
            heard = [message.payload for message in await hear(groups["C"], 301)]
            assert heard.index(b"alarm") < 200  # those before it were under way already

    run(test)


def test_who_sends_too_much_waits_and_who_does_not_listen_slows_all_down() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="sequenced") as groups:
            payload = bytes(50_000)
            sent = 0

            async def flood() -> None:
                nonlocal sent
                while True:
                    await groups["A"].send(payload)
                    sent += 1

            flooding = asyncio.create_task(flood())
            listening = asyncio.create_task(drain(groups["A"]))
            await asyncio.sleep(1.5)
            stuck = sent
            assert groups["A"].waiting < 2 << 20
            assert groups["B"]._member.inbox.bytes < 16 << 20
            await asyncio.sleep(0.5)
            assert sent - stuck < 100, "nobody listens at B: nothing moves"
            others = asyncio.create_task(drain(groups["B"]))
            await asyncio.sleep(1)
            assert sent > stuck + 100, "now it does"
            flooding.cancel()
        assert await listening == await others == sent

    async def drain(group: Group) -> int:
        return sum([len(batch) async for batch in group.batches()])

    run(test)


def test_cancelled_sends_send_nothing() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="sequenced") as groups:
            group = groups["B"]
            group.send_nowait(bytes(4 << 20))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await group.send(b"never")
            await group.send(b"last")
            assert [len(message.payload) for message in await hear(groups["A"], 2)] == [4 << 20, 4]

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_an_exception_ends_the_group_for_all_with_an_account(order: str) -> None:
    async def test() -> None:
        name = new_name()
        ends: list[BaseException] = []

        async def fails() -> None:
            with suppress(ZeroDivisionError):
                async with join(name, name="A", members=list("AB"), order=order) as group:
                    await group.send(b"x")
                    await group.receive()
                    raise ZeroDivisionError

        async def hears() -> None:
            try:
                async with join(name, name="B", members=list("AB"), order=order) as group:
                    async for _ in group:
                        pass
            except GroupAborted as error:
                ends.append(error)

        await asyncio.gather(fails(), hears())
        assert isinstance(ends[0], GroupAborted)
        assert "A failed: ZeroDivisionError" in str(ends[0])
        assert ends[0].delivered["A"] <= 1

    run(test)


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
            await groups["B"]._member.left

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
            with pytest.raises(ConfigError, match="no place is free on this machine: A, B are taken"):
                await join(name, members=list("AB"))

    run(test)


def test_other_machines_need_a_key() -> None:
    with pytest.raises(ConfigError, match="need a key"):
        join("far", name="A", members={"A": "127.0.0.1:7000", "B": "10.0.0.1:7000"})


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
                group._member.inbox.put(Packet(0, 0b11, 0, (), 0, (1,) * len(payloads), b"\0" + payloads))
                await asyncio.sleep(0.01)
            found = [message.payload for message in (*await asyncio.gather(*readers), *await hear(group, 3))]
            assert sorted(found) == [b"a", b"b", b"c", b"d", b"e"]

    run(test)


def test_who_asks_in_vain_again_and_again_is_not_remembered() -> None:
    async def test() -> None:
        async with group_of("A", "B", order="partial") as groups:
            member = groups["A"]._member
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(groups["A"].receive(), 0.001)
            assert not member.inbox._waiting
            member.outbox.waiting += 2 << 20
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(groups["A"].send(b"x"), 0.001)
            member.outbox.waiting -= 2 << 20
            assert not member._room

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
            with pytest.raises(GroupAborted, match="closing took longer"):
                await groups["A"].close(timeout=0)
            await groups["B"]._member.left

    run(test)


def test_who_cannot_join_leaves_no_socket_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[Any] = []

    def remember(address: Any) -> Any:
        bound.append(open_socket(address))
        return bound[-1]

    monkeypatch.setattr(ordercast.live.joining, "open_socket", remember)

    async def test() -> None:
        with pytest.raises(ConfigError, match="at most 16384 letters"):
            await join(new_name(), name="a" * 9000, members=["a" * 9000, "b" * 9000])

    run(test)
    assert [each.fileno() for each in bound] == [-1]


@pytest.mark.parametrize("order", ORDERS)
def test_an_account_counts_messages_whole_and_all_that_may_be_lost(order: str) -> None:
    """What waits, what is under way, and large messages once: as many as there are receipts that never come true."""

    async def test() -> None:
        async with group_of("A", "B", close=False, order=order) as groups:
            arrived = [await groups["A"].send(bytes(100_000)) for _ in range(3)]
            for receipt in arrived:
                await receipt.preacknowledged()
            assert len(await hear(groups["B"], 3)) == 3
            assert groups["A"].stats().sent == 3
            assert groups["B"].stats().delivered["A"] == 3
            receipts = [groups["A"].send_nowait(bytes(10_000)) for _ in range(1000)]
            await groups["A"].abort("enough")
            with pytest.raises(GroupAborted) as ended:
                await groups["A"].send(b"")
            lost = 0
            for receipt in receipts:
                try:
                    await receipt.preacknowledged()
                except GroupAborted:
                    lost += 1
            assert ended.value.unconfirmed == lost > 0
            await groups["B"]._member.left

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
                    group.rotate(GroupKeys(keys))
                receipt = await groups["A"].send(b"x")
                await receipt.acknowledged()
        async with group_of("A", "B", order="partial") as groups:
            with pytest.raises(ConfigError, match="no key"):
                groups["A"].rotate(GroupKeys(new))

    run(test)
