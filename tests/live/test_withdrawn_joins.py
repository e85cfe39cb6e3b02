"""A join that is interrupted after the members were asked: if they take it in all the same, it leaves at once."""

import asyncio
import logging

import pytest

import ordercast
from ordercast import Group, View
from ordercast.live.host.joiner_host import JoinerHost
from ordercast.protocols.membership.events import Excluded
from tests.live.groups import ORDERS, group_of, member_of, run
from tests.live.test_joining import contact
from tests.live.test_returning import until_in_view
from tests.live.test_state_groups import Log
from tests.live.test_views import TIMEOUT, Reader

_LONG = 20.0  # seconds: nobody is missed before the test is over


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> list[JoinerHost]:
    """Of those that join."""
    made: list[JoinerHost] = []

    class Noted(JoinerHost):
        def begin(self) -> None:
            made.append(self)
            super().begin()

    monkeypatch.setattr("ordercast.live.join_open_group.JoinerHost", Noted)
    monkeypatch.setattr("ordercast.live.host.returning.JoinerHost", Noted)
    return made


async def _until_applied(hosts: list[JoinerHost]) -> None:
    while not hosts or not hosts[-1].has_applied:
        await asyncio.sleep(0)


async def _without_it(group: Group, name: str) -> None:
    """The others need not wait for it."""
    await group.send(b"x", until="known_stable")
    assert name not in group.stats().members


@pytest.mark.parametrize("order", ORDERS)
def test_one_that_is_cancelled_leaves(order: str, hosts: list[JoinerHost]) -> None:
    async def test() -> None:
        async with group_of("A", "B", close=False, order=order, failure_timeout=_LONG) as groups:
            readers = [Reader(group) for group in groups.values()]
            joining = ordercast.join(groups["A"].name, contacts=[contact(groups["A"])], name="D", bind="127.0.0.1:0")
            task = asyncio.ensure_future(_joined(joining))
            await _until_applied(hosts)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await _without_it(groups["A"], "D")
            group = await joining  # as if it had never begun
            assert group.members == ("A", "B", "D")
            await asyncio.gather(*(each.leave() for each in (*groups.values(), group)))
            await asyncio.gather(*(reader.task for reader in readers))
            for view in readers[0].views():
                assert set(view.left.values()) <= {"left"}, "nobody was missed"

    run(test)


async def _joined(joining: ordercast.Joining) -> Group:
    return await joining


def test_one_that_has_no_time_left_leaves_and_loads_nothing(hosts: list[JoinerHost]) -> None:
    """Its timeout is over just when it has applied."""

    async def test() -> None:
        async with group_of("A", "B", close=False, failure_timeout=_LONG, state=Log()) as groups:
            loaded = Log()
            reader = Reader(groups["A"])
            with pytest.raises(ordercast.JoinError, match=r"could not join the group|no member of the group"):
                await _joined_too_late(groups["A"], loaded, hosts)
            await _without_it(groups["A"], "D")
            assert loaded.loads == 0
            await asyncio.gather(*(group.leave() for group in groups.values()))
            await reader.task

    run(test)


async def _joined_too_late(group: Group, state: Log, hosts: list[JoinerHost]) -> None:
    timeouts: list[asyncio.Timeout] = []
    timeout = asyncio.timeout

    def noted(seconds: float) -> asyncio.Timeout:
        timeouts.append(timeout(seconds))
        return timeouts[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ordercast.live.join_open_group.asyncio.timeout", noted)
        joining = ordercast.join(group.name, contacts=[contact(group)], name="D", state=state)
        task = asyncio.ensure_future(_joined(joining))
        await _until_applied(hosts)
        timeouts[0].reschedule(asyncio.get_running_loop().time())
        await task


def test_one_that_was_excluded_and_leaves_while_it_returns(hosts: list[JoinerHost]) -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, failure_timeout=TIMEOUT) as groups:
            readers = {name: Reader(group) for name, group in groups.items()}
            endpoint = member_of(groups["C"]).transport.endpoint
            send, endpoint.send = endpoint.send, lambda *_: None  # type: ignore[method-assign]
            await until_in_view(groups["A"], 1)
            endpoint.send = send  # type: ignore[method-assign]
            await _until_applied(hosts)
            await groups["C"].leave()
            await _without_it(groups["A"], "C")
            await asyncio.gather(groups["A"].leave(), groups["B"].leave())
            await asyncio.gather(*(reader.task for reader in readers.values()))
            views = [event for event in readers["A"].events if isinstance(event, View)]
            assert [view.left["C"] for view in views if "C" in view.left] in (["silent"], ["silent", "left"])

    run(test)


def test_one_that_was_excluded_and_aborts_while_it_returns_ends_alone(hosts: list[JoinerHost]) -> None:
    async def test() -> None:
        async with group_of(*"ABC", close=False, failure_timeout=TIMEOUT) as groups:
            readers = {name: Reader(group) for name, group in groups.items() if name != "C"}
            endpoint = member_of(groups["C"]).transport.endpoint
            send, endpoint.send = endpoint.send, lambda *_: None  # type: ignore[method-assign]
            await until_in_view(groups["A"], 1)
            endpoint.send = send  # type: ignore[method-assign]
            await _until_applied(hosts)
            await groups["C"].abort("enough")
            with pytest.raises(ordercast.GroupAborted, match="C aborted the group: enough"):
                async for _ in groups["C"].events():
                    pass
            await _without_it(groups["A"], "C")
            await asyncio.gather(groups["A"].leave(), groups["B"].leave())
            await asyncio.gather(*(reader.task for reader in readers.values()))

    run(test)


def test_one_that_aborts_before_it_is_told_of_its_exclusion_does_not_return() -> None:
    """It has both in one turn of its event loop: it was stopped meanwhile."""

    async def test() -> None:
        async with group_of(*"ABC", close=False, failure_timeout=TIMEOUT) as groups:
            readers = [Reader(groups["A"]), Reader(groups["B"])]
            member = member_of(groups["C"])
            endpoint = member.transport.endpoint
            send, endpoint.send = endpoint.send, lambda *_: None  # type: ignore[method-assign]
            excluded = member.excluded

            def told(output: Excluded) -> None:
                excluded(output)
                member.ending.abort("C aborted the group: enough")

            member.excluded = told  # type: ignore[method-assign]
            await until_in_view(groups["A"], 1)
            endpoint.send = send  # type: ignore[method-assign]
            with pytest.raises(ordercast.GroupAborted, match="C aborted the group: enough"):
                async for _ in groups["C"].events():
                    pass
            await member.left
            assert member.arrivals.returning is None
            await _without_it(groups["A"], "C")
            await asyncio.gather(groups["A"].leave(), groups["B"].leave())
            await asyncio.gather(*(reader.task for reader in readers))

    run(test)


def test_one_that_has_not_applied_ends_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_joined(ordercast.join("nobody", contacts=["127.0.0.1:9"], name="D")), 0.1)
        assert clock() - begun < 0.6, "less than it waits if it may be taken in"

    with caplog.at_level(logging.INFO, "ordercast.join"):
        run(test)
    assert "too late" not in caplog.text
