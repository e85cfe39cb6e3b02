"""What members of a group send and hear: orders, losses, receipts, sizes, priorities, back-pressure."""

import asyncio
from enum import IntEnum
from random import Random
from typing import Any

import pytest

import ordercast.live.transport.endpoint
from ordercast.live.group import Group
from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Level
from tests.live.groups import ORDERS, group_of, hear, member_of, run


@pytest.fixture
def lossy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loses a tenth of all datagrams, and sends some twice."""
    chance = Random(1)
    send = ordercast.live.transport.endpoint.Endpoint.send

    def send_perhaps(self: Any, datagram: bytes, address: Any) -> None:
        for _ in range(chance.choices((0, 1, 2), (10, 85, 5))[0]):
            send(self, datagram, address)

    monkeypatch.setattr(ordercast.live.transport.endpoint.Endpoint, "send", send_perhaps)


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
            await receipt.known_stable()
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
                ({"to": {"C"}}, "'C' is not a member; members are: A, B"),
                ({"to": ["x" * 100_000]}, "^'x{79}… is not a member"),
                ({"to": "B"}, "a set of names"),
                ({"to": 1}, "a set of names, not int"),
                ({"to": [["A"]]}, "is not a member; members are: A, B"),
                ({"to": [1]}, "1 is not a member"),
                ({"to": ()}, "at least one destination"),
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
            await receipt.stable()
            await receipt.known_stable()
            assert receipt.level is Level.ACKNOWLEDGED
            await receipt.known_stable()  # once more, afterwards

    run(test)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("datagram", [1400, 60_000])
def test_large_and_small_messages_keep_their_order(order: str, datagram: int) -> None:
    async def test() -> None:
        sizes = [0, 1, datagram - 200, datagram, 3 * datagram + 1, 300_000, 5, 1_000_000]
        sent = [Random(size).randbytes(size) for size in sizes]
        async with group_of("A", "B", order=order, max_datagram_size=datagram) as groups:
            for payload in sent:
                await groups["B"].send(payload)
            for group in groups.values():
                assert [message.payload for message in await hear(group, len(sent))] == sent

    run(test)


@pytest.mark.parametrize("priority", [1.5, 1.0, True, "1", None])
def test_a_priority_is_a_whole_number(priority: Any) -> None:
    async def test() -> None:
        async with group_of("A", "B", order="priority") as groups:
            with pytest.raises(LocalProtocolError, match=f"a priority must be a whole number, not {priority!r}"):
                await groups["A"].send(b"", priority=priority)
            await groups["A"].send(b"an enumerated one", priority=Urgency.HIGH)
            heard = await groups["B"].receive()
            assert (type(heard.priority), heard.priority) == (int, 7)

    run(test)


class Urgency(IntEnum):
    HIGH = 7


def test_the_urgent_overtakes_what_waits() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order="priority", max_datagram_size=1400) as groups:
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
            assert groups["A"].pending_bytes < 2 << 20
            assert member_of(groups["B"]).inbox.bytes < 16 << 20
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
