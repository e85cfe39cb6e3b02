"""Commands that raise, return or keep what cannot be handed on, and misuse of the group: all members go on."""

import asyncio
import logging
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import ordercast.replicated
from ordercast import CommandFailed, ConfigError, Diverged, GroupClosed, LocalProtocolError, Settings
from ordercast.replicated import Change, Counter, Dict, Replicated, command
from tests.live.groups import new_name, run
from tests.replicated.groups import Cluster, cluster, until

FAST = Settings(order="sequenced", resilience=1, failure_timeout=0.5)
TOTAL = Settings(order="total", failure_timeout=0.5)


class TextlessError(Exception):
    """One that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("no text")


class Hostile(Replicated):
    """Commands that no careful author would write."""

    values: dict[str, Any] = {}
    applied: int = 0

    @command
    def raises(self, kind: str) -> None:
        self.applied += 1
        errors: dict[str, BaseException] = {
            "stop iteration": StopIteration(3),
            "textless": TextlessError(),
            "cancelled": asyncio.CancelledError("mine"),
            "generator exit": GeneratorExit(),
            "exit": SystemExit(3),
            "closed": GroupClosed("mine"),
            "long": ValueError("x" * 100_000),
            "surrogate": ValueError("\ud800"),
            "lambda": ValueError(lambda: 3),  # its state could not be pickled
        }
        raise errors[kind]

    @command
    def recurses(self) -> int:
        return self._recurses()

    def _recurses(self) -> int:
        return 1 + self._recurses()

    @command
    def wrong(self, kind: str) -> list[int]:
        self.applied += 1
        cyclic: list[Any] = []
        cyclic.append(cyclic)
        found: dict[str, Any] = {"type": ["a"], "cyclic": cyclic, "large": [1 << 70], "text": "\ud800", "plain": 5}
        return found[kind]  # type: ignore[no-any-return]

    @command
    def mutates(self, items: list[int]) -> list[int]:
        items.append(99)
        self.values["items"] = items
        return items

    @command
    def keeps(self, kind: str) -> None:
        self.values["x"] = {"object": object(), "large": 1 << 70}[kind]

    @command
    def put(self, key: str, value: Any) -> None:
        self.values[key] = value
        self.tell(Change(key, value))

    @command
    def sets_no_field(self) -> None:
        self.other = 5

    @command
    def chance(self) -> None:
        self.values["x"] = random.random()


async def all_go_on(group: Cluster[Any]) -> None:
    for name in "ABC":
        await asyncio.wait_for(group[name].put("alive", name), 5)
    await asyncio.wait_for(group.members["B"].check(), 5)
    assert group.members["C"].members == ("A", "B", "C")


def in_a_group(test: Callable[[Cluster[Hostile]], Awaitable[None]], **options: Any) -> None:
    async def whole() -> None:
        async with cluster(Hostile, **options) as group:
            await test(group)
            await all_go_on(group)

    run(whole)


@pytest.mark.parametrize(
    ("kind", "raised", "text"),
    [
        ("stop iteration", CommandFailed, "StopIteration: 3"),
        ("textless", TextlessError, None),
        ("cancelled", CommandFailed, "CancelledError: mine"),
        ("generator exit", CommandFailed, "GeneratorExit"),
        ("exit", CommandFailed, "SystemExit: 3"),
        ("closed", GroupClosed, "mine"),
        ("long", ValueError, "x" * 100_000),
        ("surrogate", ValueError, "\ud800"),
        ("lambda", ValueError, None),
    ],
)
def test_whatever_a_command_raises_reaches_its_caller_only(
    kind: str, raised: type[Exception], text: str | None
) -> None:
    async def test(group: Cluster[Hostile]) -> None:
        with pytest.raises(raised) as found:
            await asyncio.wait_for(group["A"].raises(kind), 5)
        assert text is None or str(found.value) == text
        joined = await group.join("D")  # the state has the text of the exception
        assert joined.applied == 1
        await group.leave("D")

    in_a_group(test)


@pytest.mark.parametrize("kind", ["type", "cyclic", "large", "text", "plain"])
def test_a_result_that_cannot_be_handed_on_is_told_to_the_caller_only(kind: str) -> None:
    async def test(group: Cluster[Hostile]) -> None:
        with pytest.raises(TypeError, match="the command was applied, but its result cannot be handed on"):
            await asyncio.wait_for(group["A"].wrong(kind), 5)

    in_a_group(test)


def test_a_command_that_changes_its_arguments_changes_nobody_elses() -> None:
    async def test(group: Cluster[Hostile]) -> None:
        given = [1, 2]
        sent = group["A"].mutates(given)
        given.append(3)
        found = await sent
        found.append(7)
        assert (given, found) == ([1, 2, 3], [1, 2, 99, 7])
        for name in "ABC":
            await until(lambda name=name: group[name].values.get("items") == [1, 2, 99])  # type: ignore[misc]

    in_a_group(test)


def test_endless_recursion_is_an_exception_like_others() -> None:
    async def test(group: Cluster[Hostile]) -> None:
        with pytest.raises(RecursionError):
            await group["A"].recurses()

    in_a_group(test)


@pytest.mark.parametrize("value", [object(), 1 << 70, "\ud800"], ids=["object", "large", "surrogate"])
def test_arguments_that_cannot_be_encoded_are_refused_before_anything_is_sent(value: object) -> None:
    async def test(group: Cluster[Hostile]) -> None:
        expected = group.members["A"].next_id(group["A"].put)
        with pytest.raises((TypeError, OverflowError, UnicodeEncodeError)):
            group["A"].put("k", value)
        with pytest.raises(LocalProtocolError, match="a message has at most 67108864 bytes"):
            group["A"].put("k", bytes(70_000_000))
        sent = group["A"].put("k", 1)
        assert sent.id == expected
        await sent

    in_a_group(test)


@pytest.mark.parametrize("kind", ["object", "large"])
def test_a_state_that_nobody_could_be_given_is_told_by_comparisons(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def test(group: Cluster[Hostile]) -> None:
        await group["A"].keeps(kind)
        with pytest.raises(ConfigError, match=r"the state of 'Hostile' could not be given to a member that joins: .*"):
            await group.members["C"].check()
        await until(lambda: "could not be given to a member" in caplog.text)  # by itself, too
        await group["B"].put("x", 5)

    in_a_group(test, check_interval=0.2)


def test_a_state_that_one_member_alone_cannot_encode_differs() -> None:
    async def test() -> None:
        async with cluster(Hostile) as group:
            await group["A"].put("k", 1)
            await group["B"].put("k", 2)
            group["B"].values["k"] = object()
            with pytest.raises(Diverged, match="differs at B from"):
                await group.members["A"].check()
            await until(lambda: group.members["A"].members == ("A", "C"))
            with pytest.raises(Diverged):
                await group.leave("B")

    run(test)


def test_a_field_that_is_none_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def test(group: Cluster[Hostile]) -> None:
        await group["A"].sets_no_field()
        await group.members["A"].check()
        await group.members["A"].check()

    in_a_group(test)
    found = [each.getMessage() for each in caplog.records if "is no field" in each.getMessage()]
    assert len(found) in {1, 2}  # of A, and of B, which compares at the end
    assert found[0].startswith("Hostile.other was set, and is no field of its class")


def test_chance_that_is_not_that_of_the_group_stops_all_but_the_oldest() -> None:
    async def test() -> None:
        async with cluster(Hostile, check_interval=0.2) as group:
            await group["B"].chance()
            await until(lambda: group.members["A"].members == ("A",))
            await group["A"].put("k", "goes on")
            for name in "BC":
                with pytest.raises(Diverged, match=r"differs at B \(and C\) from"):
                    await group.leave(name)

    run(test)


# --- who watches, waits, and answers ---


def test_a_condition_of_one_that_watches_or_waits_is_its_own_problem() -> None:
    async def test(group: Cluster[Hostile]) -> None:
        sound = group["C"].changes(lambda _: True)
        bad = group["C"].changes(lambda change: change.key.startswith(5))
        waiting = asyncio.create_task(group["C"].until(lambda: group["C"].values and next(iter([]))))
        await asyncio.sleep(0)
        await group["A"].put("k", 1)
        with pytest.raises(TypeError, match="startswith"):
            await asyncio.wait_for(anext(bad), 5)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asyncio.wait_for(waiting, 5)
        assert await anext(sound) == Change("k", 1)

    in_a_group(test)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("text", "TypeError: `answer` returned str, not bytes"),
        (None, "TypeError: `answer` returned NoneType, not bytes"),
        (bytes(70_000_000), "LocalProtocolError: a message has at most 67108864 bytes"),
    ],
    ids=["text", "nothing", "too long"],
)
def test_an_answer_that_is_none_is_told_to_the_caller(answer: Any, why: str) -> None:
    async def test(group: Cluster[Hostile]) -> None:
        found = await group.members["A"].call(b"?", timeout=10)
        assert set(found.failed) == set("ABC")
        assert all(each.startswith(why) for each in found.failed.values())

    in_a_group(test, answer=lambda *_: answer)


def test_requests_that_cannot_be_sent_are_refused() -> None:
    async def test(group: Cluster[Hostile]) -> None:
        call = group.members["A"].call
        with pytest.raises(LocalProtocolError, match="the payload of a call is bytes, not str"):
            await call("x")  # type: ignore[arg-type]
        with pytest.raises(LocalProtocolError, match="`to` has nobody"):
            await call(b"x", to=[])
        with pytest.raises(LocalProtocolError, match=r"`to` must be a set of names, such as \{'A'\}"):
            await call(b"x", to="A")
        assert (await call(bytearray(b"x"), to={"A", "X"}, timeout=5)).gone == {"X": "no member"}
        found = await call(b"x", to={"X"}, timeout=5)
        assert (found.answers, found.gone) == ({}, {"X": "no member"})
        with pytest.raises(ordercast.Undelivered, match=r"first of X cannot answer: X \(no member\)"):
            await call(b"x", to={"X"}, gather="first", timeout=5)

    in_a_group(test, answer=lambda payload, _: payload, settings=Settings(order="total"))


# --- hooks ---


class Hooks(Hostile):
    """Hooks that raise what is not an `Exception`, or return what makes no sense."""

    late: bool = False

    @command
    def arm(self) -> None:
        self.late = True

    def deadline(self) -> float | None:
        return "soon" if self.late else None  # type: ignore[return-value]

    def left(self, member: str) -> None:
        self.values["gone"] = member
        sys.exit(4)


def test_hooks_that_fail_are_logged_and_do_not_end_a_member(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with cluster(Hooks, check_interval=0.2, settings=FAST) as group:
            await group["A"].arm()
            await until(lambda: "deadline() of '' raised an exception" in caplog.text)
            await group.leave("C")
            await until(lambda: group["A"].values.get("gone") == "C" == group["B"].values.get("gone"))
            group["B"].values["x"] = "changed"
            await until(lambda: group.members["A"].members == ("A",))  # states are compared still
            with pytest.raises(Diverged):
                await group.leave("B")
        assert "a hook of  raised an exception" in caplog.text

    caplog.set_level(logging.ERROR)
    run(test)


# --- a group that is used for other things ---


@pytest.mark.parametrize("payload", [b"hello", b"", b"\x94\x05\x01\x02\x03", b"\xcd\xff\xff"])
def test_messages_of_others_are_passed_over(payload: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def test(group: Cluster[Hostile]) -> None:
        await group.members["A"].group.send(payload)
        await group.members["A"].group.send(payload)

    in_a_group(test)
    assert len([each for each in caplog.records if "none of replicated objects" in each.getMessage()]) == 3  # members


def test_a_log_of_another_program_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        name = new_name()

        async def one(me: str) -> None:
            options: dict[str, Any] = {"members": ["A", "B"], "name": me, "log": tmp_path / me, "settings": TOTAL}
            async with ordercast.join(name, **options) as group:
                await (await group.send(b"something else")).durable()
                await group.close()
            with pytest.raises(ConfigError, match=r"none of replicated objects.*log was written by another program"):
                async with ordercast.replicated.join(name, Counter(), **options):
                    pass

        await asyncio.gather(one("A"), one("B"))

    run(test)


# --- blocks ---


def test_a_counter_has_64_bits() -> None:
    async def test() -> None:
        async with cluster(Counter) as group:
            assert await group["A"].set((1 << 63) - 1) == 0
            calls = group["A"].add(1), group["A"].set(1 << 63), group["A"].compare_and_set((1 << 63) - 1, 1 << 63)
            for call in calls:
                with pytest.raises(OverflowError, match="a counter has 64 bits: 9223372036854775808 is too large"):
                    await call
            assert await group["B"].value(fresh=True) == (1 << 63) - 1
            await group.members["C"].check()

    run(test)


@pytest.mark.parametrize("ttl", [0, -1.0, float("nan"), float("inf")])
def test_a_time_to_live_is_a_number_of_seconds(ttl: float) -> None:
    async def test() -> None:
        async with cluster(Dict[int], "AB") as group:
            await group["A"].put("k", 1, ttl=60)
            with pytest.raises(LocalProtocolError, match="a time to live is a number of seconds above 0, not"):
                await group["A"].put("k", 2, ttl=ttl)
            with pytest.raises(LocalProtocolError, match="a time to live is a number of seconds above 0, not"):
                await group["B"].compare_and_set("k", 1, 2, ttl=ttl)
            assert await group["B"].get("k", fresh=True) == 1
            await group.members["B"].check()

    run(test)
