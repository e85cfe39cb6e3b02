"""Anybody with the key may ask a group who its members are; nothing changes by that."""

import asyncio
import re
from collections.abc import Sequence

import pytest

from ordercast import ConfigError, GroupKeys, JoinError
from ordercast.live import group_members
from ordercast.live.group_members import FoundGroup, Presence, find_members
from ordercast.live.local_groups import contacts_of
from ordercast.live.transport.addresses import Address
from ordercast.live.user_key import user_keys
from ordercast.wire.keys import keys_from_text
from tests.live.groups import ORDERS, crash, group_of, run

NOBODY = Address("127.0.0.1", 9)
KEYS, OTHERS = (keys_from_text(f"1:{digits * 32}", "a test") for digits in ("ab", "cd"))


async def ask(
    group: str, contacts: Sequence[Address] = (), keys: GroupKeys | None = None, timeout: float = 5
) -> FoundGroup:
    return await find_members(group, contacts or contacts_of(group), keys or user_keys(), timeout)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_members, "PATIENCE", 0.2)


def presences(found: FoundGroup) -> list[tuple[str | None, str]]:
    return [(member.name, member.presence.value) for member in found.members]


@pytest.mark.parametrize("order", ORDERS)
def test_every_member_is_found_from_any_of_them(order: str) -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", order=order) as groups:
            name = groups["A"].name
            for contact in contacts_of(name):
                found = await ask(name, [NOBODY, contact])
                assert (found.group, found.view, found.blocked) == (name, 0, False)
                assert presences(found) == [("A", "present"), ("B", "present"), ("C", "present")]
            assert {member.address for member in found.members} == set(map(str, contacts_of(name)))
            assert len({member.incarnation for member in found.members}) == 3
            assert all(group.members == ("A", "B", "C") for group in groups.values())

    run(test)


def test_who_has_left_is_not_found_and_places_move_down() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C") as groups:
            await groups.pop("A").leave()
            found = await ask(groups["B"].name)
            assert (found.view, presences(found)) == (1, [("B", "present"), ("C", "present")])

    run(test)


@pytest.mark.usefixtures("impatient")
def test_who_does_not_answer_is_shown_so() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", close=False) as groups:
            crash(groups["C"])
            found = await ask(groups["A"].name)
            assert presences(found) == [("A", "present"), ("B", "present"), ("C", "silent")]
            assert found.members[2].incarnation is None
            assert not found.blocked
            crash(groups["A"])
            crash(groups["B"])

    run(test)


@pytest.mark.usefixtures("impatient")
def test_a_member_without_a_majority_says_that_it_is_blocked() -> None:
    async def test() -> None:
        async with group_of("A", "B", "C", close=False, failure_timeout=0.5) as groups:
            crash(groups["A"])
            crash(groups["B"])
            while not groups["C"].blocked:
                await asyncio.sleep(0.05)
            found = await ask(groups["C"].name)
            assert found.blocked
            assert found.members[2].presence is Presence.BLOCKED
            crash(groups["C"])

    run(test)


def test_nobody_answers_without_the_key() -> None:
    async def test() -> None:
        async with group_of("A", "B", key=KEYS) as groups:
            name = groups["A"].name
            assert len((await ask(name, keys=KEYS)).members) == 2
            for keys in (None, OTHERS):
                with pytest.raises(JoinError, match="and that the key is the group's"):
                    await ask(name, keys=keys, timeout=0.2)

    run(test)


def test_nobody_answers_at_a_wrong_address_or_for_another_group() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            contacts = contacts_of(groups["A"].name)
            with pytest.raises(JoinError, match=re.escape("no member of the group other answered within 0.2 s")):
                await ask("other", contacts, timeout=0.2)
            with pytest.raises(JoinError, match=r"at 127\.0\.0\.1:9;"):
                await ask(groups["A"].name, [NOBODY], timeout=0.2)

    run(test)


def test_addresses_must_be_of_one_network() -> None:
    with pytest.raises(ConfigError, match="a loopback address cannot be reached from another machine"):
        asyncio.run(ask("orders", [NOBODY, Address("10.0.0.1", 7000)]))
