"""Groups used by threads: calls wait for their outcome, are carried out or not, and never wait for ever."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import ordercast
from ordercast import GroupClosed, LocalProtocolError, SyncGroup
from ordercast.live.sync_group import LoopThread
from tests.live.groups import group_of, new_name, run


@contextmanager
def pair() -> Iterator[tuple[SyncGroup, SyncGroup]]:
    """Two members, each with a thread for its loop."""
    name, found = new_name(), {}

    def join(member: str) -> None:
        joining = ordercast.join(name, members=["A", "B"], name=member, order="sequenced", timeout=20)
        found[member] = joining.sync()

    threads = [threading.Thread(target=join, args=(member,)) for member in "AB"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with found["A"] as one, found["B"] as other:
        yield one, other


def test_programs_without_an_event_loop_are_members() -> None:
    before = threading.active_count()
    with pair() as (one, other):
        assert (one.me, one.name, one.members) == ("A", other.name, ("A", "B"))
        one.send(b"hello", until="known_stable", timeout=20)
        other.send(b"you", timeout=20)
        heard = [[group.receive(timeout=20).payload for _ in range(2)] for group in (one, other)]
        assert heard == [[b"hello", b"you"]] * 2
        assert one.stats().messages_delivered == {"A": 1, "B": 1}
        assert (one.view, one.blocked) == (other.view, False)
        assert repr(one).startswith("<SyncGroup of <Group")
    assert threading.active_count() == before, "the threads of the loops have ended"
    with pytest.raises(LocalProtocolError, match="has ended, or does not run"):
        one.send(b"late")


def test_nothing_is_lost_if_a_call_waits_long_enough() -> None:
    with pair() as (one, other):
        for count in range(30):
            if count % 3 == 0:
                other.send(b"%d" % count)
            with pytest.raises(TimeoutError) if count % 3 else nothing():
                expected = one.receive(timeout=0.01 if count % 3 else 20)
                assert expected.payload == b"%d" % count


@contextmanager
def nothing() -> Iterator[None]:
    yield


def test_many_threads_share_a_group() -> None:
    with pair() as (one, other):
        found: list[bytes] = []

        def send() -> None:
            for _ in range(20):
                one.send(b"x", timeout=20)

        def receive() -> None:
            for _ in range(40):
                found.append(other.receive(20).payload)  # noqa: PERF401 (one by one, as they come)

        threads = [threading.Thread(target=work, daemon=True) for work in (send, send, send, send, receive, receive)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert found == [b"x"] * 80


def test_a_loop_that_is_blocked_does_not_keep_a_thread_for_ever_nor_lose_a_message() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            here = groups["A"].sync
            await groups["B"].send(b"it waits")
            waiting = asyncio.create_task(asyncio.to_thread(_raised, lambda: here.receive(timeout=0.05)))
            await asyncio.sleep(0)
            time.sleep(1.6)
            assert isinstance(await waiting, TimeoutError)
            assert (await asyncio.to_thread(lambda: here.receive(timeout=20))).payload == b"it waits"

    run(test)


def test_a_thread_does_not_wait_for_a_loop_that_has_ended() -> None:
    waits: list[BaseException | None] = []

    async def test() -> None:
        async with group_of("A", "B", close=False) as groups:
            thread = threading.Thread(target=lambda: waits.append(_raised(groups["A"].sync.receive)))
            thread.start()
            await asyncio.sleep(0.1)
            started.append(thread)
            for group in groups.values():
                await group.leave()

    started: list[threading.Thread] = []
    run(test)
    started[0].join(10)
    assert isinstance(waits[0], GroupClosed | LocalProtocolError | TimeoutError)


def test_in_its_own_loop_a_call_is_refused() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            with pytest.raises(LocalProtocolError, match="would wait for itself: await the same call of Group"):
                groups["A"].sync.send(b"x")
            assert groups["A"].sync is groups["A"].sync

    run(test)


def test_errors_are_those_of_the_group() -> None:
    with pair() as (one, other):
        with pytest.raises(LocalProtocolError, match="no priorities"):
            one.send(b"x", priority=3)
        with pytest.raises(ordercast.ConfigError, match="timeout must be a number"):
            one.receive(timeout="soon")  # type: ignore[arg-type] # what is tested
        other.leave()
        assert list(other) == [], "an end is the end of an iteration"
        one.leave()
        with pytest.raises(GroupClosed):
            one.send(b"late")


def test_an_aborted_group_raises_at_the_end_of_the_block_as_it_does_in_a_loop() -> None:
    def work() -> None:
        with pair() as (one, other):
            one.abort("enough")
            other.receive(timeout=20)

    with pytest.raises(ordercast.GroupAborted, match="A aborted the group: enough"):
        work()


def test_who_cannot_join_leaves_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(ordercast.JoinError):
        ordercast.join(new_name(), members=["A", "B"], name="A", timeout=0.5).sync()
    assert threading.active_count() == before


def _raised(call: object) -> BaseException | None:
    try:
        call()  # type: ignore[operator] # it is one
    except BaseException as error:
        return error
    return None


def test_what_a_loop_still_does_is_cancelled_when_its_thread_ends() -> None:
    """Ctrl-C while a group is joined: its sockets are closed, and nothing is left that says that it is alive."""
    ended: list[str] = []

    async def joins() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("left")

    thread = LoopThread("test")
    asyncio.run_coroutine_threadsafe(joins(), thread.loop)
    thread.stop()
    assert (ended, thread.loop.is_closed()) == (["left"], True)
    thread.stop()
