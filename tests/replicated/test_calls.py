"""Request and reply among members."""

import asyncio

import pytest

from ordercast import LocalProtocolError, Settings, Undelivered
from ordercast.replicated import Replicated
from tests.live.groups import run
from tests.replicated.groups import Cluster, cluster, cut_off, until

FAST = Settings(order="sequenced", resilience=1, failure_timeout=0.5)


class Nothing(Replicated):
    """An object without commands: these groups only answer."""


class Answering:
    """An application that answers, slowly if told to, or never."""

    def __init__(self) -> None:
        self.hold = asyncio.Event()

    async def __call__(self, payload: bytes, caller: str) -> bytes:
        if payload == b"fail":
            raise ValueError("no")
        if payload == b"wait":
            await self.hold.wait()
        return payload + caller.encode()


def test_all_answer() -> None:
    async def test() -> None:
        async with cluster(Nothing, answer=lambda payload, caller: payload + caller.encode()) as group:
            found = await group.members["B"].call(b"who? ", timeout=5)
            assert dict(found.answers) == dict.fromkeys("ABC", b"who? B")
            assert (found.failed, found.gone, found.waited_for) == ({}, {}, ())

    run(test)


def test_some_are_asked_where_the_order_has_destinations() -> None:
    async def test() -> None:
        async with cluster(Nothing, answer=Answering(), order="total") as group:
            found = await group.members["A"].call(b"x", to={"C", "B"}, timeout=5)
            assert dict(found.answers) == {"B": b"xA", "C": b"xA"}

    run(test)


@pytest.mark.parametrize(("gather", "count"), [("first", 1), ("majority", 2)])
def test_no_more_answers_are_waited_for_than_are_needed(gather: str, count: int) -> None:
    answering = {name: Answering() for name in "ABC"}

    async def one(found: Cluster[Nothing], name: str) -> None:
        await found._join(name, members=list("ABC"), answer=answering[name])

    async def test() -> None:
        found = Cluster(Nothing)
        await asyncio.gather(*(one(found, name) for name in "ABC"))
        for name in "ABC"[:count]:
            answering[name].hold.set()
        answers = await found.members["C"].call(b"wait", gather=gather, timeout=5)  # type: ignore[arg-type]
        assert list(answers.answers) == list("ABC"[:count]) or set(answers.answers) == set("ABC"[:count])
        assert answers.waited_for == tuple("ABC"[count:])
        await found.close()

    run(test)


def test_an_exception_of_one_that_answers_is_told() -> None:
    async def test() -> None:
        async with cluster(Nothing, "AB", answer=Answering()) as group:
            found = await group.members["A"].call(b"fail", timeout=5)
            assert dict(found.failed) == {"A": "ValueError: no", "B": "ValueError: no"}
            with pytest.raises(Undelivered, match=r"first of A, B cannot answer: .*ValueError: no"):
                await group.members["A"].call(b"fail", gather="first", timeout=5)

    run(test)


def test_who_dies_before_it_answers_is_not_waited_for() -> None:
    async def test() -> None:
        async with cluster(Nothing, answer=Answering(), settings=FAST) as group:
            call = asyncio.create_task(group.members["A"].call(b"wait", timeout=10))
            some = asyncio.create_task(group.members["A"].call(b"wait", gather="majority", timeout=10))
            await asyncio.sleep(0.1)
            answering = group.options["answer"]
            assert isinstance(answering, Answering)
            group.crash("C")
            await until(lambda: "C" not in group.members["A"].members)
            answering.hold.set()
            found = await call
            assert set(found.answers) == {"A", "B"}
            assert dict(found.gone) == {"C": "silent"}
            assert set((await some).answers) == {"A", "B"}

    run(test)


def test_a_majority_that_is_gone_is_told() -> None:
    async def test() -> None:
        async with cluster(Nothing, "ABC", answer=Answering()) as group:
            call = asyncio.create_task(group.members["A"].call(b"wait", gather="majority", timeout=10))
            await asyncio.sleep(0.1)
            await group.leave("C")
            await group.leave("B")
            with pytest.raises(Undelivered, match=r"majority of A, B, C cannot answer: [BC] \(left\), [BC] \(left\)"):
                await call

    run(test)


def test_a_call_that_takes_too_long_names_who_did_not_answer() -> None:
    async def test() -> None:
        async with cluster(Nothing, "AB", answer=Answering()) as group:
            with pytest.raises(TimeoutError, match=r"A, B did not answer within 0.1 s; nobody did"):
                await group.members["A"].call(b"wait", timeout=0.1)
            with pytest.raises(LocalProtocolError, match="gather must be"):
                await group.members["A"].call(b"wait", gather="some")  # type: ignore[arg-type]

    run(test)


def test_a_caller_that_is_excluded_is_told_that_the_answers_are_not_known() -> None:
    async def test() -> None:
        async with cluster(Nothing, answer=Answering(), settings=FAST) as group:
            call = asyncio.create_task(group.members["C"].call(b"wait", timeout=10))
            await asyncio.sleep(0.1)
            await cut_off(group, "C")
            with pytest.raises(Undelivered, match="the group continued without this member: the answers are not known"):
                await call
            answering = group.options["answer"]
            assert isinstance(answering, Answering)
            answering.hold.set()
            found = await group.members["C"].call(b"wait", timeout=10)  # late answers to the first are not its answers
            assert dict(found.answers) == dict.fromkeys("ABC", b"waitC")

    run(test)


def test_one_that_joins_after_a_request_is_not_asked_and_one_before_it_is() -> None:
    async def test() -> None:
        async with cluster(Nothing, "AB", answer=Answering(), settings=FAST) as group:
            early = asyncio.create_task(group.members["A"].call(b"wait", timeout=10))
            await asyncio.sleep(0.1)
            await group.join("D")
            answering = group.options["answer"]
            assert isinstance(answering, Answering)
            answering.hold.set()
            assert set((await early).answers) == {"A", "B"}
            assert set((await group.members["A"].call(b"x", timeout=10)).answers) == {"A", "B", "D"}

    run(test)
