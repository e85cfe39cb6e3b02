"""Who crashed, or was excluded while it lived, returns under its name as a new incarnation."""

import asyncio
import logging
from typing import Any

import pytest

import ordercast
from ordercast import Excluded, Group, GroupAborted, JoinError, Message, View
from ordercast.live.host.returning import REMEMBERED, Exclusions
from tests.live.groups import ORDERS, crash, group_of, hear, join, member_of, run
from tests.live.test_joining import contact
from tests.live.test_views import TIMEOUT, Reader, expected, send_many


async def until_in_view(group: Group, number: int) -> None:
    while group.stats().view < number:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("gone", ["A", "C"])
def test_a_crashed_member_starts_again_as_at_first(order: str, gone: str) -> None:
    async def test() -> None:
        options: dict[str, Any] = {"members": list("ABC"), "order": order, "failure_timeout": TIMEOUT}
        async with group_of(*"ABC", close=False, order=order, failure_timeout=TIMEOUT) as groups:
            crash(groups.pop(gone))
            readers = {name: Reader(group) for name, group in groups.items()}
            sending = [asyncio.create_task(send_many(group, 30)) for group in groups.values()]
            groups[gone] = await join(groups["B"].name, name=gone, timeout=10, **options)
            readers[gone] = Reader(groups[gone])
            await asyncio.gather(*sending, send_many(groups[gone], 10))
            await asyncio.gather(*(group.close() for group in groups.values()))
            await asyncio.gather(*(reader.task for reader in readers.values()))
            last = readers["B"].views()[-1]
            assert sorted(last.members) == ["A", "B", "C"]
            assert last.members[-1] == gone, "it is the youngest member now"
            for reader in readers.values():
                assert reader.views()[-1].members == last.members
                assert reader.log(gone) == expected(gone, 10)

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_an_excluded_member_returns_by_itself_and_sends_again_what_was_not_delivered(order: str) -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, order=order, failure_timeout=TIMEOUT) as groups:
            readers = {name: Reader(group) for name, group in groups.items()}
            await groups["C"].send(b"0", until="known_stable")
            endpoint = member_of(groups["C"]).transport.endpoint
            send = endpoint.send
            endpoint.send = lambda *_: None  # type: ignore[method-assign]
            receipts = [groups["C"].send_nowait(b"%d" % number) for number in range(1, 4)]
            await until_in_view(groups["A"], 1)
            endpoint.send = send  # type: ignore[method-assign]
            await until_in_view(groups["C"], 2)
            await groups["C"].send(b"4")
            await asyncio.gather(*(receipt.known_stable() for receipt in receipts))
            await groups["A"].send(b"end")
            await asyncio.gather(*(group.close() for group in groups.values()))
            await asyncio.gather(*(reader.task for reader in readers.values()))
            for reader in readers.values():
                assert reader.log("C") == [b"0", b"1", b"2", b"3", b"4"]
            told = [event for event in readers["C"].events if not isinstance(event, Message)]
            assert [type(event) for event in told if isinstance(event, Excluded | View)][-2:] == [Excluded, View]
            (excluded,) = (event for event in told if isinstance(event, Excluded))
            assert excluded.why == "the group continues without C: C did not answer"
            assert (excluded.delivered, excluded.not_delivered) in {(0, 3), (None, None)}
            (back,) = readers["C"].views()
            assert (back.members, back.joined, back.together) == (("A", "B", "C"), ("C",), ("A", "B"))
            assert readers["A"].views()[-1] == back or order == "partial"
            assert groups["C"].members == ("A", "B", "C")

    run(test)


def test_a_member_that_lives_keeps_its_name() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            for name in "AB":
                with pytest.raises(JoinError, match=f"does not take {name}: the name {name} is in use; choose another"):
                    await ordercast.join(groups["A"].name, contacts=[contact(groups["A"])], name=name, timeout=10)
            await groups["A"].send(b"on")
            assert [message.payload for message in await hear(groups["B"], 1)] == [b"on"]
            assert groups["B"].stats().view == 0, "nobody was disturbed"
            await asyncio.gather(*(group.close() for group in groups.values()))

    run(test)


def test_an_excluded_member_may_leave_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, failure_timeout=TIMEOUT) as groups:
            monkeypatch.setattr(member_of(groups["C"]).returns.exclusions, "delay", lambda *_: 20)  # before it returns
            endpoint = member_of(groups["C"]).transport.endpoint
            send, endpoint.send = endpoint.send, lambda *_: None  # type: ignore[method-assign]
            await until_in_view(groups["A"], 1)
            endpoint.send = send  # type: ignore[method-assign]
            reader = Reader(groups["C"])
            while not any(isinstance(event, ordercast.Excluded) for event in reader.events):
                await asyncio.sleep(0.01)  # on a busy machine it is blocked before
            receipt = groups["C"].send_nowait(b"x")
            await groups["C"].leave()
            await reader.task
            with pytest.raises(ordercast.GroupClosed):
                await receipt.stable()
            await asyncio.gather(groups["A"].leave(), groups["B"].leave())

    run(test)


def test_settings_that_differ() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="partial", window=20) as groups:
            contacts = [contact(groups["A"])]
            with pytest.raises(JoinError, match=r'the group has order="partial", D has order="total"'):
                await ordercast.join(groups["A"].name, contacts=contacts, name="D", order="total")
            settings = ordercast.Settings(order="partial", window=20)
            new = await ordercast.join(groups["A"].name, contacts=contacts, name="D", settings=settings)
            assert new.members == ("A", "B", "D")
            await asyncio.gather(*(group.close() for group in (*groups.values(), new)))

    run(test)


def test_without_rejoin_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, failure_timeout=TIMEOUT, rejoin=False) as groups:
            endpoint = member_of(groups["C"]).transport.endpoint
            send, endpoint.send = endpoint.send, lambda *_: None  # type: ignore[method-assign]
            await until_in_view(groups["A"], 1)
            endpoint.send = send  # type: ignore[method-assign]
            with pytest.raises(GroupAborted, match="the group continues without C"):
                await groups["C"].receive()
            await asyncio.gather(groups["A"].leave(), groups["B"].leave())

    with caplog.at_level(logging.INFO, "ordercast.shutdown"):
        run(test)
    assert sorted(record.getMessage() for record in caplog.records if record.name == "ordercast.shutdown") == [
        "A has left the group",
        "B has left the group",
        "C is not in the group any more: the group continues without C: C did not answer",
    ]


def test_who_is_excluded_again_and_again_waits_longer_unless_the_others_need_it() -> None:
    exclusions = Exclusions()
    assert [exclusions.delay(float(now), 0.5, 3) for now in range(8)] == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0]
    assert exclusions.delay(8.0, 0.5, 2) == 0.0, "of two, the older one must not crash now"
    assert exclusions.delay(9.0, 0.5, 1) == 0.0
    assert exclusions.delay(9.5 + REMEMBERED, 0.5, 3) == 0.0, "all that is forgotten"
