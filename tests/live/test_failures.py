"""Mistakes of our own: the group ends here in the open, with an account and a line in the log; the others continue."""

import asyncio
import logging
from typing import Any

import pytest

import ordercast
from ordercast import View
from ordercast.live.group import Group
from ordercast.live.session.events import Suspected, TrafficReceived
from ordercast.model.errors import GroupAborted
from ordercast.model.machine import Receive
from ordercast.wire.control import Heartbeat, Stage
from ordercast.wire.datagram import Rejection
from tests.live.groups import ORDERS, crash, group_of, hear, member_of, run

pytestmark = pytest.mark.usefixtures("no_exception_escapes")


@pytest.mark.parametrize("order", ORDERS)
def test_a_machine_that_fails_ends_the_group_for_its_member_alone(order: str, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", close=False, order=order) as groups:
            host = member_of(groups["B"]).host
            assert host is not None
            handle = host.machine.handle
            inputs_after_failure: list[Any] = []

            def fail(event: Any) -> Any:
                if inputs_after_failure or isinstance(event, Receive):
                    inputs_after_failure.append(event)
                    raise ZeroDivisionError("a mistake")
                return handle(event)

            host.machine.handle = fail  # type: ignore[method-assign]
            await groups["A"].send(b"x")
            with pytest.raises(GroupAborted, match=r"B failed \(ZeroDivisionError\) \("):
                await hear(groups["B"], 2)
            await member_of(groups["B"]).left
            assert len(inputs_after_failure) == 1, "a machine that failed is given nothing more, and delivers nothing"
            began = asyncio.get_running_loop().time()
            for name in "AC":
                async for event in groups[name].events():
                    if isinstance(event, View):
                        assert (event.members, event.left) == (("A", "C"), {"B": "silent"})
                        break
            assert asyncio.get_running_loop().time() < began + 2, "it said so: nobody had to wait for it"
            await asyncio.gather(groups["A"].close(), groups["C"].close())

    with caplog.at_level(logging.ERROR, logger="ordercast"):
        run(test)
    assert [record.getMessage() for record in caplog.records] == ["internal error: B leaves the group"]
    assert "ZeroDivisionError" in caplog.text, "with the way that led there"


def test_a_session_that_fails_ends_the_group_here_at_once_and_is_found_out_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="partial", failure_timeout=0.6) as groups:
            member = member_of(groups["B"])

            def fail(event: Any) -> Any:
                raise ZeroDivisionError("a mistake")

            member.session.machine.handle = fail  # type: ignore[method-assign]
            member.session.handle(TrafficReceived(0))
            with pytest.raises(GroupAborted, match=r"B failed \(ZeroDivisionError\) \("):
                await groups["B"].receive()
            await member.left
            event = await anext(groups["A"].events())
            assert isinstance(event, View)
            assert (event.members, event.why) == (("A",), "B did not answer")
            await groups["A"].close()

    run(test)
    assert "B leaves the group" in caplog.text


@pytest.mark.parametrize("order", ORDERS)
def test_how_long_silence_may_last_is_agreed_on(order: str) -> None:
    """Of two members that are silent from one moment on, one is heard again in time."""

    async def test() -> None:
        async with group_of("A", "B", "C", close=False, order=order, failure_timeout=1) as groups:
            endpoints = [member_of(groups[name]).transport.endpoint for name in "BC"]
            sends = [endpoint.send for endpoint in endpoints]
            for endpoint in endpoints:
                endpoint.send = lambda *_: None  # type: ignore[method-assign]
            began = asyncio.get_running_loop().time()
            await asyncio.sleep(0.4)
            endpoints[0].send = sends[0]  # type: ignore[method-assign]
            while groups["A"].stats().members != ("A", "B"):
                await asyncio.sleep(0.01)
            assert asyncio.get_running_loop().time() - began > 0.8
            for group in groups.values():
                await group.abort("the test is over")

    run(test)


def test_a_view_callback_that_fails_is_logged_and_the_group_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        def fail(view: ordercast.View) -> None:
            raise ZeroDivisionError("of the application")

        async with group_of("A", "B", close=False, order="partial", on_view=fail, failure_timeout=0.6) as groups:
            crash(groups["B"])
            event = await anext(groups["A"].events())
            assert isinstance(event, View)
            await groups["A"].send(b"x")
            await hear(groups["A"], 1)
            await groups["A"].close()

    run(test)
    records = [record for record in caplog.records if record.name == "ordercast.live"]
    assert {record.getMessage() for record in records} == {"on_view raised an exception"}
    assert "ZeroDivisionError: of the application" in caplog.text


def test_who_hears_only_a_minority_stops_and_does_not_end_the_group_of_the_others() -> None:
    """The sequencer hears nobody, but is heard: it must stop, though it could number its own messages for long."""

    async def test() -> None:
        async with group_of("A", "B", "C", close=False, order="sequenced", failure_timeout=0.6) as groups:
            deaf = member_of(groups["A"])
            deaf.transport.seal.open = lambda _: Rejection.FORGED  # type: ignore[method-assign, assignment]
            sending = asyncio.create_task(send_for_ever(groups["A"]))
            while not groups["A"].blocked:
                await asyncio.sleep(0.01)
            sending.cancel()
            with pytest.raises(GroupAborted, match="it did not reach B, C, and without them too few members are left"):
                await groups["A"].close()
            await groups["B"].send(b"we go on")
            while (await groups["C"].receive()).payload != b"we go on":
                pass
            assert groups["C"].members == ("B", "C")
            await asyncio.gather(groups["B"].close(), groups["C"].close())

    async def send_for_ever(group: Group) -> None:
        while True:
            await group.send(b"x")
            await asyncio.sleep(0.01)

    run(test)


def test_nobody_is_done_by_what_it_knew_before_the_last_unit() -> None:
    """A unit and the last beat that closes a group may be read in one turn, or while a timer of the protocol fires."""

    async def test() -> None:
        async with group_of("A", "B", close=False, order="partial") as groups:
            closing = asyncio.create_task(groups["A"].close())
            member = member_of(groups["A"])
            while member.session.machine.closing.stage is Stage.OPEN:
                await asyncio.sleep(0.001)
            host = member.host
            assert host is not None
            host.is_at_rest = lambda: False  # type: ignore[method-assign]
            member.arrivals.control_received(1, Heartbeat(Stage.CLOSING))
            assert member.session.machine.closing.stage is Stage.CLOSING, "what came is not done"
            del host.is_at_rest
            await groups["B"].close()
            await closing

    run(test)


def test_what_is_sent_when_a_view_comes_waits_until_the_machine_is_done() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", close=False, order="sequenced", failure_timeout=0.6) as groups:
            member = member_of(groups["A"])
            host = member.host
            assert host is not None
            handled, changed = host.handle, host.change
            depth: list[int] = [0]

            def counted(handle: Any) -> Any:
                def handles(event: Any) -> None:
                    depth.append(depth[-1] + 1)
                    handle(event)
                    depth.append(depth[-1] - 1)

                return handles

            host._direct = False
            host.handle, host.change = counted(handled), counted(changed)  # type: ignore[method-assign]
            member.membership.on_view = lambda _: groups["A"].send_nowait(b"at once")  # type: ignore[assignment]
            crash(groups["C"])
            assert (await groups["B"].receive()).payload == b"at once"
            assert max(depth) <= 2, "inputs one at a time: one of the machine may be passed to the member"
            await asyncio.gather(groups["A"].close(), groups["B"].close())

    run(test)


def test_nothing_is_recorded_after_the_end() -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order="partial") as groups:
            host = member_of(groups["A"]).host
            assert host is not None
            await groups["A"].abort("enough")
            arrived: list[object] = []
            host.recorder.arrive = arrived.append  # type: ignore[method-assign, assignment]
            host.receive(object())  # type: ignore[arg-type]
            assert not arrived, "the record is closed"
            await member_of(groups["B"]).left

    run(test)


def test_what_the_session_is_told_while_it_is_carried_out_waits() -> None:
    """Else what was to follow from the first would be done after the end that the second may be."""

    async def test() -> None:
        async with group_of("A", "B", close=False, order="sequenced") as groups:
            member = member_of(groups["A"])
            host, handle, changed = member.host, member.session.machine.handle, member.session_changed
            assert host is not None
            happened: list[str] = []

            def handled(event: Any) -> Any:
                happened.append(f"told {type(event).__name__}")
                return [Suspected(1), Suspected(0)] if isinstance(event, TrafficReceived) else handle(event)

            def change(output: Any) -> None:
                happened.append(type(output).__name__)
                changed(output)

            host.suspect = lambda _: member.ending.abort("nobody is left")  # type: ignore[method-assign, assignment]
            member.session.machine.handle = handled  # type: ignore[method-assign]
            member.session_changed = change  # type: ignore[method-assign, assignment]
            member.session.handle(TrafficReceived(1))
            assert happened[:4] == ["told TrafficReceived", "Suspected", "Suspected", "told GiveUp"]
            await asyncio.gather(*(member_of(group).left for group in groups.values()))

    run(test)


def test_a_death_does_not_stop_a_sequenced_group_whose_messages_fit_into_the_history() -> None:
    async def test() -> None:
        async with group_of(*"ABC", order="sequenced", close=False) as groups:
            crash(groups["C"])
            async with asyncio.timeout(2.5):  # nobody is suspected before three seconds
                for number in range(200):  # one packet each
                    await groups["B"].send(b"%d" % number)
                    for name in "AB":
                        assert (await groups[name].receive()).payload == b"%d" % number
            for name in "AB":
                assert groups[name].view.number == 0
                crash(groups[name])

    run(test)
