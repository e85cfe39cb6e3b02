"""What members are handed: positions, destinations, views, receipts; and one group for each joining."""

import asyncio
import logging
import pickle
from collections.abc import Callable
from typing import Any, Never

import pytest

import ordercast
from ordercast import GroupAborted, JoinError, Level, Message, Settings, View
from ordercast.live.host.batching import PENDING_LIMIT, OutgoingBatch
from ordercast.model.errors import ConfigError, LocalProtocolError
from ordercast.model.units import Packet
from tests.live.groups import ORDERS, crash, group_of, hear, join, member_of, new_name, run


@pytest.mark.parametrize("order", ORDERS)
def test_positions_count_what_was_delivered_whichever_way_it_is_read(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:
            for number in range(40):
                await groups["A"].send(bytes(200_000 if number == 20 else 10))
                await groups["C"].send(b"y")
            one = await hear(groups["A"], 80)
            batched: list[Message] = []
            while len(batched) < 80:
                batched += await groups["B"].receive_batch()
            evented = []
            async for event in groups["C"].events():
                assert isinstance(event, Message)
                evented.append(event)
                if len(evented) == 80:
                    break
            for messages in (one, batched, evented):
                assert [message.position for message in messages] == list(range(80))
                assert {(message.view, message.destinations) for message in messages} == {(0, ("A", "B", "C"))}
            if order != "partial":
                assert one == batched == evented

    run(test)


@pytest.mark.parametrize("order", ["partial", "total"])
def test_destinations_are_names_and_positions_count_only_ones_own(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:
            await groups["A"].send(b"for C", to=["C"])
            await groups["A"].send(b"for B and C", to=("C", "B"), until="known_stable")
            (heard,) = await hear(groups["B"], 1)
            assert (heard.position, heard.destinations) == (0, ("B", "C"))
            first, second = await hear(groups["C"], 2)
            assert (first.position, first.destinations) == (0, ("C",))
            assert (second.position, second.destinations) == (1, ("B", "C"))

    run(test)


def test_views_come_in_the_order_of_the_group_with_names() -> None:
    told: list[View] = []

    async def test() -> None:
        options: dict[str, Any] = {"order": "sequenced", "on_view": told.append, "failure_timeout": 0.6}
        async with group_of("A", "B", "C", close=False, **options) as groups:
            group = groups["A"]
            assert group.view == View(
                number=0, position=0, members=("A", "B", "C"), joined=("A", "B", "C"), why="the group opened"
            )
            await groups["C"].send(b"before", until="stable")
            crash(groups["B"])
            while groups["C"].stats().view == 0:
                await asyncio.sleep(0.01)
            await groups["C"].send(b"after")
            expected = View(
                number=1,
                position=1,
                members=("A", "C"),
                left={"B": "silent"},
                together=("A", "C"),
                why="B did not answer",
            )
            events = [event async for event, _ in _limited(group, 3)]
            assert [event if isinstance(event, View) else event.payload for event in events] == [
                b"before",
                expected,
                b"after",
            ]
            assert [event.view for event in events if isinstance(event, Message)] == [0, 1]
            assert (group.view, group.members) == (expected, ("A", "C"))
            assert told == [expected, expected], "the two that are in it"
            assert groups["C"].members == ("A", "B", "C"), "it has read nothing yet"
            assert groups["C"].stats().members == ("A", "C")
            assert [message.payload for message in await hear(groups["C"], 2)] == [b"before", b"after"]
            assert groups["C"].view == expected, "also without events()"
            await groups["A"].abort("the test is over")
            await member_of(groups["C"]).left

    async def _limited(group: ordercast.Group, count: int) -> Any:
        async for event in group.events():
            yield event, None
            count -= 1
            if not count:
                return

    run(test)


def test_events_end_with_the_group() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            await groups["A"].send(b"x")
        assert [event async for event in groups["B"].events()] == [
            Message.make("A", b"x", destinations=("A", "B"), position=0)
        ]
        async with group_of("A", "B", close=False) as groups:
            await groups["A"].abort("enough")
            with pytest.raises(GroupAborted, match="A aborted the group: enough"):
                async for _ in groups["B"].events():
                    pass
            await member_of(groups["B"]).left

    run(test)


def test_messages_are_compared_matched_and_shown_by_all_their_fields() -> None:
    made = Message.make("A", b"x", priority=3, destinations=("A", "B"), position=5, view=1)
    same = Message.make("A", b"x", priority=3, destinations=("A", "B"), position=5, view=1)
    assert made == same
    assert hash(made) == hash(same)
    for other in ({"priority": 4}, {"destinations": ("A",)}, {"position": 6}, {"view": 2}):
        fields: Any = {"priority": 3, "destinations": ("A", "B"), "position": 5, "view": 1, **other}
        assert Message.make("A", b"x", **fields) != made
    assert made != ("A", b"x")
    assert repr(made) == "Message(sender='A', payload=b'x', priority=3, destinations=('A', 'B'), position=5, view=1)"
    assert "... (1000 bytes)" in repr(Message("A", bytes(1000)))
    assert len(repr(Message("A", bytes(1000)))) < 500
    match made:
        case Message(sender="A", position=position, view=1):
            assert position == 5
        case _:
            pytest.fail("it has these")
    with pytest.raises(AttributeError):
        made.payload = b"y"  # type: ignore[misc]


@pytest.mark.parametrize("order", ORDERS)
def test_a_send_can_wait_until_a_level_is_reached(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", order=order) as groups:
            group = groups["B"]
            receipt = group.send_nowait(bytes(1 << 20))
            assert (receipt.level, repr(receipt)) == (None, "<Receipt: waits to be sent>")
            for until, level in (
                ("accepted", Level.ACCEPTED),
                ("stable", Level.STABLE),
                ("known_stable", Level.KNOWN_STABLE),
            ):
                receipt = await group.send(b"x", until=until)  # type: ignore[arg-type]
                assert receipt.level is not None
                assert receipt.level >= level
            assert repr(receipt) == "<Receipt: known to be stable>"
            with pytest.raises(
                LocalProtocolError,
                match="until must be 'accepted', 'stable', 'known_stable' or 'durable', not 'tomorrow'",
            ):
                await group.send(b"never", until="tomorrow")  # type: ignore[arg-type]
            group._outbox.pending_bytes += PENDING_LIMIT + 1  # who has to wait is told at once, too
            with pytest.raises(LocalProtocolError, match="until must be"):
                await asyncio.wait_for(group.send(b"never", until="tomorrow"), 5)  # type: ignore[arg-type]
            group._outbox.pending_bytes -= PENDING_LIMIT + 1
            payloads = [message.payload for message in await hear(groups["A"], 4)]
            assert payloads[1:] == [b"x"] * 3

    run(test)


def test_a_level_that_is_never_reached_raises() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            receipt = groups["A"].send_nowait(bytes(8 << 20))
            waiting = asyncio.ensure_future(receipt.stable())
            await asyncio.sleep(0)
            await groups["B"].abort("enough")
            with pytest.raises(GroupAborted):
                await waiting
            await member_of(groups["A"]).left

    run(test)


# --- joining ---


def test_a_joining_that_is_awaited_twice_is_one_group() -> None:
    async def test() -> None:
        name = new_name()
        joining = join(name, name="A", members=["A", "B"])
        assert repr(joining) == f"<Joining {name!r}: not joined yet>"
        one, other, peer = await asyncio.gather(joining, joining, join(name, name="B", members=["A", "B"]))
        assert one is other is await joining
        assert repr(joining) == f"<Joining {name!r}: joined>"
        await asyncio.gather(one.close(), peer.close())

    run(test)


def test_a_joining_that_failed_fails_again_in_the_same_way() -> None:
    async def test() -> None:
        joining = join(new_name(), name="A", members=["A", "B"], timeout=0.5)
        errors = []
        for _ in range(2):
            with pytest.raises(JoinError) as raised:
                await joining
            errors.append(raised.value)
        assert errors[0] is errors[1]
        assert "failed" in repr(joining)

    run(test)


def test_a_joining_that_was_cancelled_has_not_joined_and_can_be_awaited_again() -> None:
    async def test() -> None:
        name = new_name()
        joining = join(name, name="A", members=["A", "B"])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(joining, 0.2)
        groups = await asyncio.gather(joining, join(name, name="B", members=["A", "B"]))
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("window", r"it is a setting: join\(..., settings=ordercast.Settings\(window=...\)\)"),
        ("silence", r"it is a setting: join\(..., settings=ordercast.Settings\(failure_timeout=...\)\)"),
        ("recorded", "it is called 'record_detail'"),
        ("member", "did you mean 'members'"),
        ("windw", r"did you mean settings=ordercast.Settings\(window=...\)"),
        ("colour", "it has: group, members, size"),
    ],
)
def test_an_unknown_argument_is_told_where_it_belongs(name: str, sentence: str) -> None:
    wrong: dict[str, Never] = {name: 1}  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=rf"join\(\) has no argument '{name}'; {sentence}"):
        ordercast.join("g", members=["A", "B"], **wrong)


def test_an_order_is_given_once() -> None:
    with pytest.raises(ConfigError, match=r"order is 'partial', and settings.order is 'total': give one of them"):
        ordercast.join("g", members=["A", "B"], order="partial", settings=Settings())
    ordercast.join("g", members=["A", "B"], order="st", settings=Settings())
    with pytest.raises(ConfigError, match=r"settings must be an ordercast.Settings, not dict"):
        ordercast.join("g", members=["A", "B"], settings={})  # type: ignore[arg-type]


# --- ends, and what operators are told ---


def test_a_close_that_is_cancelled_leaves_the_group_closing() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="partial") as groups:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(groups["A"].close(), 0.1)
            with pytest.raises(ordercast.GroupClosed):
                groups["A"].send_nowait(b"x")
            await groups["B"].send(b"still heard")
            assert (await groups["A"].receive()).payload == b"still heard"
            await asyncio.gather(*(group.close() for group in groups.values()))

    run(test)


@pytest.mark.parametrize("act", [lambda group: group.close(), lambda group: group.__aexit__(None, None, None)])
def test_who_closes_a_group_that_another_has_aborted_is_told(act: Callable[[Any], Any]) -> None:
    """Else the loss of what it has sent would go unnoticed."""

    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            await groups["A"].abort("enough")
            with pytest.raises(GroupAborted, match="A aborted the group: enough") as raised:
                await act(groups["B"])
            again = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 (our own)
            assert (again.why, again.delivered, str(again)) == (
                "A aborted the group: enough",
                {"A": 0, "B": 0},
                str(raised.value),
            )

    run(test)


def test_joins_closes_aborts_and_keys_are_logged_with_fields(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        keys = ordercast.GroupKeys({3: bytes(32)})
        async with group_of("A", "B", key=keys) as groups:
            groups["A"].rotate_keys(keys)
        async with group_of("A", "B", close=False) as groups:
            await groups["A"].abort("enough")
            await member_of(groups["B"]).left
            await asyncio.sleep(0)

    with caplog.at_level(logging.INFO, logger="ordercast"):
        run(test)
    found = [(record.name, record.levelname) for record in caplog.records]
    assert found.count(("ordercast.join", "INFO")) == 8, "each joins, and is in it"
    assert found.count(("ordercast.shutdown", "INFO")) == 2
    assert found.count(("ordercast.shutdown", "WARNING")) == 2
    assert found.count(("ordercast.security", "INFO")) == 1
    for record in caplog.records:
        if record.name in {"ordercast.join", "ordercast.shutdown", "ordercast.security"}:
            assert vars(record)["member"] in {"A", "B"}
            assert vars(record)["group"].startswith("test-")


def test_a_callback_for_those_who_wait_may_fail(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.live.why_not_open._PATIENCE", 0.05)

    def fail(sentence: str) -> None:
        raise ZeroDivisionError(sentence)

    async def test() -> None:
        with pytest.raises(JoinError):
            await join(new_name(), name="A", members=["A", "B"], timeout=0.5, on_waiting=fail)

    run(test)
    assert "on_waiting raised an exception" in caplog.text
    assert "ZeroDivisionError: waiting for B" in caplog.text


@pytest.mark.parametrize("second", ["events", "receive_batch", "receive"])
def test_readers_of_all_kinds_share_one_order(second: str) -> None:
    """One reader leaves a part of a packet unread; another, which waited too, must not overtake it."""

    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            group, inbox = groups["B"], member_of(groups["B"]).inbox
            events = group.events()
            first = asyncio.create_task(group.receive())
            await asyncio.sleep(0)
            waits: Any = anext(events) if second == "events" else getattr(group, second)()
            other = asyncio.create_task(waits)
            await asyncio.sleep(0)
            inbox.put(Packet(0, 0b11, 0, (), 0, (1, 1), b"\0ab"))
            inbox.put_view(View(number=1, position=2, members=("B",)), {1: 0})
            inbox.put(Packet(0, 0b1, 0, (), 0, (1,), b"\0c"))
            assert (await first).payload == b"a"
            found = await other
            assert [message.payload for message in (found if isinstance(found, list) else [found])] == [b"b"]
            assert group.view.number == 0, "b was delivered before the view"
            event = await anext(events)
            assert event == group.view
            assert group.members == ("B",)
            event = await anext(events)
            assert isinstance(event, Message)
            assert (event.payload, event.position, event.view) == (b"c", 2, 1)
            await asyncio.gather(*(each.abort("the test is over") for each in groups.values()))

    run(test)


def test_a_second_close_may_set_a_timeout() -> None:
    """Who waited in vain for a close without one would else wait for ever."""

    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(groups["A"].close(), 0.05)
            with pytest.raises(GroupAborted, match=r"A could not close within 0.1 s: B has not closed"):
                await groups["A"].close(timeout=0.1)
            with pytest.raises(GroupAborted, match="A could not close"):
                await groups["B"].close(timeout=5)

    run(test)


def test_a_receipt_forgets_those_who_gave_up_waiting() -> None:
    async def test() -> None:
        batch = OutgoingBatch(b"x", 0b11, 0)
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(batch.receipt.stable(), 0.001)
        waits = asyncio.create_task(batch.receipt.stable())
        await asyncio.sleep(0)
        assert len(batch._waiting) == 1
        batch.reached(Level.STABLE)
        await waits

    run(test)
