"""Members join a group that is running, while it sends; each order."""

import asyncio

import pytest
from msgspec.structs import replace

import ordercast
from ordercast import Group, JoinError, LocalProtocolError, Message, View
from tests.live.groups import ORDERS, crash, group_of, hear, member_of, new_name, run
from tests.live.test_views import TIMEOUT, Reader, expected, send_many


def contact(group: Group) -> str:
    """An address at which a group can be joined."""
    return str(member_of(group).address)


async def joins(group: Group, name: str, **options: object) -> Group:
    return await ordercast.join(group.name, contacts=[contact(group)], name=name, timeout=10, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ORDERS)
def test_two_join_while_all_send_and_leave_again(order: str) -> None:
    async def test() -> None:
        count = 40
        async with group_of(*"ABC", close=False, order=order, failure_timeout=TIMEOUT) as groups:
            readers = {name: Reader(group) for name, group in groups.items()}
            sending = [asyncio.create_task(send_many(group, count)) for group in groups.values()]
            await asyncio.sleep(0.05)
            new = await asyncio.gather(joins(groups["B"], "D"), joins(groups["C"], "E"))
            for group in new:
                assert group.members == group.view.members
                assert group.view.joined in {("D",), ("E",), ("D", "E"), ("E", "D")}
                readers[group.me] = Reader(group)
                sending.append(asyncio.create_task(send_many(group, count)))
            await asyncio.gather(*sending)
            await new[0].leave()
            everybody = [*groups.values(), new[1]]
            await asyncio.gather(*(group.close() for group in everybody))
            await asyncio.gather(*(reader.task for reader in readers.values()))
            _check(readers, order, count)

    run(test)


def _numbers(reader: Reader) -> list[int]:
    return [view.number for view in reader.views()]


def _check(readers: dict[str, Reader], order: str, count: int) -> None:
    """All were delivered the same in each view that they were in, and nothing of others was lost on the way."""
    whole = readers["A"]
    for name, reader in readers.items():
        views, others = reader.views(), [view for view in whole.views() if view.number in _numbers(reader)]
        if order == "partial":
            assert [replace(view, position=0) for view in views] == [replace(view, position=0) for view in others]
        else:
            assert views == others
        assert name in views[0].members
        first = 0 if name in "ABC" else views[0].number
        last = views[-1].number + (name == "D")
        shared = [event for event in whole.events if isinstance(event, Message) and first <= event.view < last]
        own = [event for event in reader.events if isinstance(event, Message) and first <= event.view < last]
        if order == "partial":
            assert sorted((event.view, event.sender, event.payload) for event in own) == sorted(
                (event.view, event.sender, event.payload) for event in shared
            )
        else:
            assert own == shared, "with their positions"
        for sender in "DE":
            assert reader.log(sender) == expected(sender, count) or name == "D"
    assert {name: whole.log(name) for name in "ABC"} == {name: expected(name, count) for name in "ABC"}
    assert whole.views()[-1].left in ({"D": "left"}, {})


@pytest.mark.parametrize("order", ["partial", "total"])
def test_messages_to_a_new_member_alone(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order=order) as groups:
            with pytest.raises(LocalProtocolError, match="'D' is not a member; members are: A, B"):
                await groups["A"].send(b"x", to={"D"})
            new = await joins(groups["A"], "D")
            await groups["A"].send(b"for D", to={"D"}, until="known_stable")
            await new.send(b"for B", to={"B"}, until="known_stable")
            assert [message.payload for message in await hear(new, 1)] == [b"for D"]
            (message,) = await hear(groups["B"], 1)
            assert (message.sender, message.payload, message.destinations) == ("D", b"for B", ("B",))
            assert groups["B"].members == ("A", "B", "D")
            await asyncio.gather(*(group.close() for group in (*groups.values(), new)))

    run(test)


def test_the_first_event_is_the_view_and_positions_go_on() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="priority") as groups:
            for number in range(3):
                await groups["A"].send(b"%d" % number, until="known_stable")
            new = await joins(groups["A"], "D")
            await groups["B"].send(b"3")
            events = new.events()
            view = await anext(events)
            assert (
                view
                == new.view
                == View(
                    number=1, position=3, members=("A", "B", "D"), joined=("D",), together=("A", "B"), why="D joined"
                )
            )
            message = await anext(events)
            assert isinstance(message, Message)
            assert (message.payload, message.position, message.view) == (b"3", 3, 1)
            assert [each.position for each in await hear(groups["A"], 4)] == [0, 1, 2, 3]
            await asyncio.gather(*(group.close() for group in (*groups.values(), new)))

    run(test)


def test_most_contacts_are_dead() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", close=False) as groups:
            contacts = [contact(group) for group in groups.values()]
            crash(groups["A"])
            contacts[2] = "127.0.0.1:9"
            new = await ordercast.join(groups["B"].name, contacts=contacts, name="D", timeout=10)
            assert new.members in {("B", "C", "D"), ("A", "B", "C", "D")}
            await asyncio.gather(*(group.leave() for group in (groups["B"], groups["C"], new)))

    run(test)


def test_nobody_answers() -> None:
    async def test() -> None:
        waits: list[str] = []
        name = new_name()
        joining = ordercast.join(name, contacts=["127.0.0.1:9"], name="D", timeout=2.5, on_waiting=waits.append)
        with pytest.raises(
            JoinError, match=f"no member of the group {name} answered at 127.0.0.1:9 within 2.5 s; check"
        ):
            await joining
        assert waits == [f"waiting for a member of {name} at 127.0.0.1:9"]

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_messages_larger_than_a_datagram_while_members_come_and_go(order: str) -> None:
    """Whoever is in a view is given all messages that end in it, whole: also if they began before."""

    async def test() -> None:
        count = 2
        options = {"order": order, "failure_timeout": 2.0, "max_datagram_size": 1500, "window": 4}
        async with group_of(*"ABC", close=False, **options) as groups:
            readers = {name: Reader(group) for name, group in groups.items()}
            sending = [asyncio.create_task(_send_large(group, count)) for group in groups.values()]
            for name in "DE":
                await asyncio.sleep(0.02)
                groups[name] = await joins(groups["B"], name)
                readers[name] = Reader(groups[name])
                sending.append(asyncio.create_task(_send_large(groups[name], 1)))
            await asyncio.gather(*sending)
            await groups.pop("D").leave()
            await asyncio.gather(*(group.close() for group in groups.values()))
            await asyncio.gather(*(reader.task for reader in readers.values()))
            assert {name: readers["A"].log(name) for name in "ABC"} == {name: _large(name, count) for name in "ABC"}
            for name in "DE":
                first = readers[name].views()[0].number
                for sender in "ABC":
                    whole = [event for event in readers["A"].events if isinstance(event, Message)]
                    due = [event.payload for event in whole if event.sender == sender and event.view >= first]
                    if name == "D":
                        due = due[: len(readers[name].log(sender))]
                    assert readers[name].log(sender) == due
                assert readers["A"].log(name) == _large(name, 1)

    run(test)


@pytest.mark.parametrize("order", ORDERS)
def test_a_view_in_the_middle_of_a_large_message(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with group_of(*"AB", close=False, order=order, max_datagram_size=1500, window=2) as groups:
            outbox, host = member_of(groups["B"]).outbox, member_of(groups["B"]).host
            assert host is not None
            payload = bytes(range(250)) * 40
            groups["B"].send_nowait(payload)
            groups["B"].send_nowait(b"end")
            with monkeypatch.context() as patched:
                patched.setattr(outbox, "take", lambda: None)  # the rest waits
                while not member_of(groups["A"]).inbox.partial_messages():
                    await asyncio.sleep(0.01)
                new = await joins(groups["A"], "D")
                assert member_of(groups["A"]).views.partials.size(1), "it has the beginning"
            host.pump()
            for group in (*groups.values(), new):
                assert [message.payload for message in await hear(group, 2)] == [payload, b"end"]
            await asyncio.gather(*(group.close() for group in (*groups.values(), new)))

    run(test)


def _large(name: str, count: int) -> list[bytes]:
    return [b"%s%d" % (name.encode(), number) * 20_000 for number in range(count)]


async def _send_large(group: Group, count: int) -> None:
    for payload in _large(group.me, count):
        await group.send(payload)
        await asyncio.sleep(0.005)


def test_a_group_on_this_machine_is_joined_by_its_name() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            name = groups["A"].name
            new = [await ordercast.join(name, contacts="local", name=each, timeout=10) for each in "DE"]
            assert new[1].members == ("A", "B", "D", "E")
            await asyncio.gather(*(group.close() for group in (*groups.values(), *new)))
        with pytest.raises(JoinError, match=f"no member of the group {name} runs on this machine: start"):
            await ordercast.join(name, contacts="local", name="F", timeout=0.5)

    run(test)


@pytest.mark.parametrize("order", ["total", "priority"])
def test_what_the_others_send_before_it_knows_that_it_is_a_member_is_not_lost(order: str) -> None:
    """Else all would have to agree on the order anew, after each join."""

    async def test() -> None:
        async with group_of("A", "B", close=False, order=order) as groups:
            sending = [asyncio.create_task(send_many(group, 40, 0.002)) for group in groups.values()]
            await asyncio.sleep(0.02)
            new = await joins(groups["A"], "D")
            await asyncio.gather(*sending)
            for group in (*groups.values(), new):
                assert member_of(group).counts.recoveries == 0
            await asyncio.gather(*(group.close() for group in (*groups.values(), new)))

    run(test)
