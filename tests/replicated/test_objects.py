"""Commands, queries, results, errors, idempotency and divergence of replicated objects in live groups."""

import asyncio
import re
from typing import Any

import pytest

import ordercast
import ordercast.replicated
from ordercast import ConfigError, Diverged, GroupClosed, LocalProtocolError, Settings
from ordercast.replicated import CommandId, Replicated, command, query
from ordercast.replicated.replica import Replica
from tests.live.groups import member_of, new_name, run
from tests.replicated.groups import cluster, until


class Store(Replicated):
    """A class as a user would write it."""

    values: dict[str, str] = {}
    log: list[str] = []
    gone: set[str] = set()

    @command
    def put(self, key: str, value: str, *, loud: bool = False) -> str | None:
        old = self.values.get(key)
        self.values[key] = value.upper() if loud else value
        self.log.append(f"{self.context.caller} {key}={value}")
        return old

    @command
    def fail(self, text: str) -> None:
        self.log.append(text)
        raise KeyError(text)

    @command
    def everything(self) -> dict[str, str]:
        return self.values

    @command
    def draw(self) -> tuple[float, float, float]:
        return self.context.random.random(), self.context.random.random(), self.context.time

    @command
    def nest(self) -> None:
        self.put("a", "b")

    @command
    def unencodable(self) -> Any:
        return object()

    @query
    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def left(self, member: str) -> None:
        self.gone.add(member)


def test_commands_are_applied_by_all_in_one_order_and_return_their_results() -> None:
    async def test() -> None:
        async with cluster(Store) as group:
            await asyncio.gather(*(group[name].put("k", f"{name}{i}") for i in range(20) for name in "ABC"))
            assert await group["B"].put("k", "end", loud=True) in {f"{name}19" for name in "ABC"}
            for name in "ABC":
                assert await group[name].get("k", fresh=True) == "END"
            assert group["A"].log == group["B"].log == group["C"].log
            assert len(group["A"].log) == 61

    run(test)


def test_an_exception_reaches_the_caller_and_is_the_same_for_the_state_of_all() -> None:
    async def test() -> None:
        async with cluster(Store) as group:
            with pytest.raises(KeyError, match="oh"):
                await group["A"].fail("oh")
            with pytest.raises(TypeError, match="the arguments of put have other types"):
                await group["A"].put("k", 5)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="unsupported"):
                await group["A"].unencodable()
            with pytest.raises(LocalProtocolError, match="one command cannot send another"):
                await group["A"].nest()
            with pytest.raises(TypeError, match="missing a required argument"):
                group["A"].put("k")  # type: ignore[call-arg]
            await group["B"].get("k", fresh=True)
            assert group["B"].log == ["oh"]
            await group.members["C"].check()

    run(test)


def test_a_result_shares_nothing_with_the_state() -> None:
    async def test() -> None:
        async with cluster(Store, "AB") as group:
            await group["A"].put("k", "v")
            found = await group["A"].everything()
            found["k"] = "changed"
            assert group["A"].get("k") == "v"

    run(test)


def test_time_and_chance_are_the_same_at_all_members_and_differ_from_command_to_command() -> None:
    class Draws(Replicated):
        found: list[float] = []

        @command
        def draw(self) -> None:
            self.found += [self.context.random.random(), self.context.random.random(), self.context.time]

    async def test() -> None:
        async with cluster(Draws, "AB") as group:
            for name in "ABA":
                await group[name].draw()
            await group.members["B"].check()
            found = group["A"].found
            assert len({*found[0:2], *found[3:5], *found[6:8]}) == 6
            assert found[2] <= found[5] <= found[8]

    run(test)


def test_a_fresh_read_sees_what_was_completed_elsewhere_before_it() -> None:
    async def test() -> None:
        async with cluster(Store) as group:
            for i in range(30):
                writer, reader = group["ABC"[i % 3]], group["ABC"[(i + 1) % 3]]
                await writer.put("k", str(i))
                assert await reader.get("k", fresh=True) == str(i)

    run(test)


def test_many_fresh_reads_share_one_place_in_the_order() -> None:
    async def test() -> None:
        async with cluster(Store, "AB") as group:
            before = group.members["A"].group.stats().messages_delivered["A"]
            await asyncio.gather(*(group["A"].get("k", fresh=True) for _ in range(100)))
            assert group.members["A"].group.stats().messages_delivered["A"] == before + 1
            first = asyncio.ensure_future(group["A"].get("k", fresh=True))
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # its mark is sent: those that come now wait for another
            await asyncio.gather(first, *(group["A"].get("k", fresh=True) for _ in range(100)))
            assert group.members["A"].group.stats().messages_delivered["A"] == before + 3

    run(test)


def test_a_joiner_is_given_the_state_and_goes_on() -> None:
    async def test() -> None:
        async with cluster(Store, "AB") as group:
            await group["A"].put("k", "v")
            joined = await group.join("D")
            assert joined.get("k") == "v"
            await joined.put("k", "w")
            assert await group["A"].get("k", fresh=True) == "w"
            await group.members["A"].check()
            assert joined.log == group["A"].log

    run(test)


def test_who_leaves_is_told_to_objects_at_one_place() -> None:
    async def test() -> None:
        async with cluster(Store) as group:
            await group.leave("C")
            await until(lambda: group["A"].gone == {"C"} == group["B"].gone)
            await group.members["A"].check()

    run(test)


def test_a_member_that_was_away_learns_what_became_of_its_commands() -> None:
    """It is excluded with commands under way; each is applied once, and each caller gets its result."""

    async def test() -> None:
        settings = Settings(order="sequenced", resilience=1, failure_timeout=0.5)
        async with cluster(Store, settings=settings) as group:
            c = group["C"]
            await c.put("n", "before")
            endpoint = member_of(group.members["C"].group).transport.endpoint
            heard = endpoint.receive
            endpoint.receive = lambda _: None  # it speaks, and hears nothing: some of its commands are applied
            calls = [c.put("n", str(i)) for i in range(5)]
            failing = c.fail("away")
            await asyncio.sleep(0.05)
            await until(lambda: "C" not in group.members["A"].members)
            calls += [c.put("n", f"late {i}") for i in range(5)]
            endpoint.receive = heard
            found = await asyncio.wait_for(asyncio.gather(*calls), 15)
            with pytest.raises((KeyError, ordercast.CommandFailed), match="away"):
                await failing
            assert found[0] == "before"
            expected = [*map(str, range(5)), *(f"late {i}" for i in range(5))]
            assert [line for line in c.log if line.startswith("C n=")][1:] == [f"C n={each}" for each in expected]
            assert await group["A"].get("n", fresh=True) == "late 4"
            await group.members["A"].check()
            assert await group.members["A"].applied(calls[3].id) is True

    run(test)


def test_whether_a_command_of_a_process_that_died_was_applied_can_be_found_out() -> None:
    async def test() -> None:
        settings = Settings(order="sequenced", resilience=1, failure_timeout=0.5)
        async with cluster(Store, settings=settings) as group:
            done = group["C"].put("k", "v")
            await done
            never = CommandId("", "C", done.id.session, 0, 2)
            ask = group.members["A"].applied
            assert (await ask(done.id), await ask(never)) == (True, None)  # it may still send it
            group.crash("C")
            await until(lambda: "C" not in group.members["A"].members)
            await group.join("C")
            assert (await ask(done.id), await ask(never)) == (True, False)
            assert await ask(done.id._replace(session=1)) is None
            with pytest.raises(LocalProtocolError, match="holds no object 'x'"):
                await ask(done.id._replace(object_name="x"))

    run(test)


def test_the_id_of_a_command_is_known_before_it_is_sent() -> None:
    """So that it can be written down: its process may be killed at any moment of the call."""

    async def test() -> None:
        settings = Settings(order="sequenced", resilience=1, failure_timeout=0.5)
        async with cluster(Store, settings=settings) as group:
            c, members = group["C"], group.members["C"]
            written = [members.next_id(c.put)]
            assert members.next_id(c.fail) == written[0]  # of one object: whichever comes next
            assert (await c.put("k", "v"), members.next_id(c.put)) == (None, written[0]._replace(sequence=2))
            written.append(members.next_id(c.put))
            failing = c.fail("oh")
            assert failing.id == written[1]
            with pytest.raises(KeyError):
                await failing
            written.append(members.next_id(c.put))  # and dies before the call
            for other in (c.get, c.left, Store.put, 5):
                with pytest.raises(LocalProtocolError, match=r"is no command of an object, such as store\.put"):
                    members.next_id(other)  # type: ignore[arg-type]
            group.crash("C")
            await until(lambda: "C" not in group.members["A"].members)
            await group.join("C")
            for name in "ABC":
                assert [await group.members[name].applied(each) for each in written] == [True, True, False]

    run(test)


def test_a_state_that_differs_is_found_and_its_member_stops() -> None:
    async def test() -> None:
        async with cluster(Store) as group:
            await group["A"].put("k", "v")
            await group["B"].get("k", fresh=True)
            group["B"].values["k"] = "changed without a command"
            with pytest.raises(Diverged, match="differs at B from"):
                await group.members["A"].check()
            await until(lambda: group.members["A"].members == ("A", "C"))
            with pytest.raises(Diverged):
                group["B"].put("k", "w")
            with pytest.raises(Diverged):
                await group.leave("B")
            await group["A"].put("k", "goes on")

    run(test)


def test_states_are_compared_by_themselves() -> None:
    async def test() -> None:
        async with cluster(Store, check_interval=0.2) as group:
            await group["A"].put("k", "v")
            await group["C"].get("k", fresh=True)
            group["C"].values["x"] = "y"
            await until(lambda: group.members["A"].members == ("A", "B"))
            with pytest.raises(Diverged):
                await group.leave("C")

    run(test)


def test_calls_end_with_the_group() -> None:
    async def test() -> None:
        async with cluster(Store, "AB") as group:
            a = group["A"]
            waiting = asyncio.create_task(a.until(lambda: a.values.get("never")))
            await asyncio.sleep(0)
            await group.leave("A")
            with pytest.raises(GroupClosed):
                await waiting
            with pytest.raises(GroupClosed):
                await a.put("k", "v")

    run(test)


def test_an_object_in_no_group_says_so() -> None:
    with pytest.raises(LocalProtocolError, match=r"this Store lives in no group; ordercast\.replicated\.join"):
        Store().put("k", "v")
    assert Store(values={"k": "v"}).get("k") == "v"


@pytest.mark.parametrize(
    ("objects", "options", "problem"),
    [
        ({"a": 5}, {}, "the object 'a' is a int: derive it from Replicated"),
        (Store(), {"state": 1}, "the objects are the state: omit `state`"),
        (Store(), {"on": {"x": ["A"]}}, "`on` has 'x': give the name of an object"),
        (Store(), {"on": {"": []}}, "`on` has '': give the name of an object, and at least one member"),
    ],
)
def test_joining_refuses_what_cannot_work(objects: Any, options: Any, problem: str) -> None:
    async def test() -> None:
        with pytest.raises(ConfigError, match=re.escape(problem)):
            async with ordercast.replicated.join("g", objects, members=["A", "B"], **options):
                pass

    run(test)


def test_the_order_partial_is_refused() -> None:
    async def one(group: str, name: str) -> None:
        with pytest.raises(ConfigError, match="replicated objects need one order"):
            async with ordercast.replicated.join(group, Store(), members=["A", "B"], name=name, order="partial"):
                pass

    async def test() -> None:
        group = new_name()
        await asyncio.gather(one(group, "A"), one(group, "B"))

    run(test)


def test_members_with_other_commands_do_not_come_together() -> None:
    class Other(Store):
        @command
        def more(self) -> None: ...

    async def test() -> None:
        async with cluster(Store, "AB") as group:
            group.make = Other
            with pytest.raises(ordercast.JoinError, match="other objects, or other commands"):
                await group.join("D")

    run(test)


def test_commands_need_types_and_names() -> None:
    class NoType(Replicated):
        @command
        def put(self, key) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(ConfigError, match=r"the parameter key of the command x\.put has no type"):
        Replica({"x": NoType()}, {}, None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"the command many has a parameter \*keys"):
        command(many)
    with pytest.raises(ConfigError, match="a priority is 0 to 255, not 256"):
        command(priority=256)(Store.left)


def many(self: Store, *keys: str) -> None: ...
