"""Objects that only some members of a group hold, and commands to several at one place of the order."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

import ordercast.replicated
from ordercast import LocalProtocolError
from ordercast.replicated import Member, Replicated, command, query
from tests.live.groups import member_of, new_name, run
from tests.replicated.groups import until

ON = {"east": {"A", "B"}, "west": {"B", "C"}}


class Accounts(Replicated):
    """A shard of a bank."""

    balances: dict[str, int] = {}
    log: list[str] = []

    @command
    def add(self, account: str, amount: int) -> int:
        if amount == 13:
            raise ValueError("unlucky")
        self.balances[account] = self.balances.get(account, 0) + amount
        self.log.append(f"{self.context.caller}{amount}")
        return self.balances[account]

    @query
    def get(self, account: str) -> int:
        return self.balances.get(account, 0)


class Bank:
    """Members A, B and C, in one event loop."""

    def __init__(self) -> None:
        self.name = new_name()
        self.shards: dict[str, dict[str, Accounts]] = {}
        self.members: dict[str, Member] = {}
        self.stacks: dict[str, AsyncExitStack] = {}

    async def join(self, name: str, **options: Any) -> None:
        shards = {"east": Accounts(), "west": Accounts()}
        stack = AsyncExitStack()
        options = {"timeout": 10, "check_interval": 0, "on": ON, **options}
        self.members[name] = await stack.enter_async_context(
            ordercast.replicated.join(self.name, shards, name=name, **options)
        )
        self.shards[name], self.stacks[name] = shards, stack

    async def __aenter__(self) -> "Bank":
        settings = ordercast.Settings(order="total", failure_timeout=0.5)
        await asyncio.gather(*(self.join(name, members=["A", "B", "C"], settings=settings) for name in "ABC"))
        return self

    async def leave(self, name: str) -> None:
        del self.members[name], self.shards[name]
        await self.stacks.pop(name).aclose()

    async def __aexit__(self, *error: object) -> None:
        for name in list(self.stacks):
            await self.leave(name)


def test_only_those_that_hold_an_object_apply_its_commands_and_all_get_results() -> None:
    async def test() -> None:
        async with Bank() as bank:
            assert await bank.shards["A"]["east"].add("ann", 5) == 5
            assert await bank.shards["C"]["east"].add("ann", 6) == 11  # which C does not hold
            with pytest.raises(ordercast.CommandFailed, match="ValueError: unlucky"):
                await bank.shards["C"]["east"].add("ann", 13)
            with pytest.raises(LocalProtocolError, match="C does not hold 'east': ask one of A, B"):
                await bank.shards["C"]["east"].get("ann", fresh=True)
            assert await bank.shards["B"]["east"].get("ann", fresh=True) == 11
            assert bank.shards["C"]["east"].log == []
            await bank.members["B"].check()

    run(test)


def test_commands_together_have_one_place_at_members_that_hold_both() -> None:
    async def test() -> None:
        async with Bank() as bank:
            both = bank.shards["B"]
            sums: list[int] = []
            watching = asyncio.create_task(watch(both, sums))

            async def transfers(name: str) -> None:
                for _ in range(20):
                    with bank.members[name].together():
                        first = bank.shards[name]["east"].add("ann", -1)
                        last = bank.shards[name]["west"].add("bob", 1)
                    await asyncio.gather(first, last)

            await asyncio.gather(*map(transfers, "ABC"))
            await both["east"].get("ann", fresh=True)
            assert (both["east"].get("ann"), both["west"].get("bob")) == (-60, 60)
            assert both["east"].log == [line.replace("1", "-1") for line in both["west"].log]  # one order of both
            await bank.shards["A"]["east"].get("ann", fresh=True)
            await bank.shards["C"]["west"].get("bob", fresh=True)
            assert bank.shards["A"]["east"].log == both["east"].log
            assert bank.shards["C"]["west"].log == both["west"].log
            watching.cancel()
            assert set(sums) == {0}
            await bank.members["A"].check()

    run(test)


async def watch(both: dict[str, Accounts], sums: list[int]) -> None:
    """Between any two messages the sum is 0."""
    while True:
        sums.append(both["east"].get("ann") + both["west"].get("bob"))
        await asyncio.sleep(0)


def test_nothing_of_a_block_that_raises_is_sent() -> None:
    async def test() -> None:
        async with Bank() as bank:
            east = bank.shards["A"]["east"]
            block = bank.members["A"].together()
            block.__enter__()
            lost = east.add("ann", 5)
            assert not block.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
            assert lost.cancelled()
            with bank.members["A"].together(), pytest.raises(LocalProtocolError, match="used within together"):
                bank.members["A"].together().__enter__()
            assert await east.add("ann", 1) == 1

    run(test)


@pytest.mark.parametrize("name", ["A", "B"])
def test_one_that_joins_is_given_its_shards_by_their_holders(name: str) -> None:
    async def test() -> None:
        async with Bank() as bank:
            await bank.shards["B"]["east"].add("ann", 5)
            await bank.shards["B"]["west"].add("bob", 7)
            await bank.leave(name)
            await until(lambda: name not in bank.members["C"].members)
            stop = asyncio.Event()

            async def load() -> None:
                while not stop.is_set():
                    await asyncio.gather(bank.shards["C"]["east"].add("ann", 1), bank.shards["C"]["west"].add("bob", 1))

            loading = asyncio.create_task(load())
            await bank.join(name, contacts=[str(member_of(each.group).address) for each in bank.members.values()])
            stop.set()
            await loading
            rest = next(iter(ON["east"] - {name}))
            again, other = bank.shards[name]["east"], bank.shards[rest]["east"]
            assert await again.get("ann", fresh=True) == await other.get("ann", fresh=True) >= 5
            assert again.log == other.log
            await bank.members[rest].check()

    run(test)


def test_a_shard_whose_last_holder_is_gone_is_lost_and_that_is_told() -> None:
    async def test() -> None:
        async with Bank() as bank:
            for name in "BA":
                await bank.leave(name)
            await until(lambda: bank.members["C"].members == ("C",))
            contacts = [str(member_of(bank.members["C"].group).address)]
            with pytest.raises(ordercast.JoinError, match="no other member holds 'east' any more"):
                await bank.join("A", contacts=contacts)

    run(test)


def test_commands_together_in_a_group_whose_messages_go_to_all() -> None:
    async def test() -> None:
        name, found = new_name(), list[tuple[int, int]]()

        async def one(me: str) -> None:
            east, west = Accounts(), Accounts()
            joining = ordercast.replicated.join(
                name, {"east": east, "west": west}, members=["A", "B"], name=me, timeout=10
            )
            async with joining as members:
                for _ in range(5):
                    with members.together():
                        calls = east.add("ann", -1), west.add("bob", 1)
                    found.append((await calls[0], await calls[1]))
                await west.until(lambda: west.get("bob") == 10)

        await asyncio.gather(one("A"), one("B"))
        assert sorted(found) == [(-number, number) for number in range(10, 0, -1)]

    run(test)


def test_commands_to_an_object_that_nobody_holds_any_more_fail_and_the_caller_goes_on() -> None:
    async def test() -> None:
        async with Bank() as bank:
            east = bank.shards["C"]["east"]
            for name in "BA":
                await bank.leave(name)
            await until(lambda: bank.members["C"].members == ("C",))
            with pytest.raises(ordercast.Undelivered, match="none of A, B is a member now"):
                await east.add("ann", 1)
            assert await bank.shards["C"]["west"].add("bob", 1) == 1

    run(test)
