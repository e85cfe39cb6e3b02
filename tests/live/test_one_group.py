"""Those that opened a group start again while it goes on with members that joined later: there is still one group."""

import asyncio
import logging

import pytest

import ordercast
from ordercast import Group, JoinError
from ordercast.live.host.running_group import RunningGroup
from ordercast.live.transport.addresses import Address
from ordercast.protocols.membership.units import Find, Found
from ordercast.protocols.membership.view import Incarnation
from tests.live.groups import group_of, join, member_of, run
from tests.live.test_discovery_host import looking, network
from tests.live.test_joining import joins

__all__ = ["network"]


async def _only_later_members(*, of: str = "AB", **options: object) -> Group:
    """A group that was opened by A and B, and has only D now."""
    async with group_of(*of, close=False, **options) as groups:
        later = await joins(groups["A"], "D")
        await asyncio.gather(*(group.leave() for group in groups.values()))
    return later


def test_those_that_opened_it_join_what_is_left_of_it_on_this_machine() -> None:
    async def test() -> None:
        later = await _only_later_members(order="partial")
        settings = {"members": list("AB"), "order": "partial", "timeout": 10}
        groups = await asyncio.gather(*(join(later.name, name=name, **settings) for name in "AB"))
        assert [set(group.members) for group in groups if "D" in group.members] == [
            set(group.members) for group in groups
        ]
        assert set(later.stats().members) == set("ABD")
        await asyncio.gather(*(group.leave() for group in (*groups, later)))

    run(test)


def test_a_group_of_other_members_has_the_same_name() -> None:
    """It answers, and is no reason to wait."""

    async def test() -> None:
        async with group_of("A", "B", close=False) as others:
            addresses = {name: f"127.0.0.1:{member_of(group).address.port + 1}" for name, group in others.items()}
            name, begun = others["A"].name, asyncio.get_running_loop().time()
            groups = await asyncio.gather(
                *(join(name, name=each, members=addresses, order="total", timeout=10) for each in addresses)
            )
            assert asyncio.get_running_loop().time() - begun < 0.9, "less than it waits for those that do not answer"
            assert [group.members for group in groups] == [("A", "B")] * 2
            assert member_of(groups[0]).views.view.tag != member_of(others["A"]).views.view.tag
            await asyncio.gather(*(group.leave() for group in (*groups, *others.values())))

    run(test)


def test_one_on_another_machine_is_told_where_the_group_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.live.open_group.contacts_of", lambda _: [])
    monkeypatch.setattr("ordercast.live.host.founders.INTERVAL", 0.02)

    async def test() -> None:
        later = await _only_later_members(order="sequenced")
        first = await join(later.name, name="B", members=list("AB"), order="sequenced", timeout=5)
        assert first.members == ("D", "B")
        second = await join(later.name, name="A", members=list("AB"), order="sequenced", timeout=5)
        assert second.members == ("D", "B", "A")
        assert not member_of(later).founding.founders._absent, "nobody has to be told any more"
        await asyncio.gather(*(group.leave() for group in (first, second, later)))

    run(test)


def test_if_there_are_two_groups_all_the_same_operators_are_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("ordercast.live.open_group.contacts_of", lambda _: [])
    monkeypatch.setattr("ordercast.live.host.founders.INTERVAL", 0.3)

    async def test() -> None:
        later = await _only_later_members()
        groups = await asyncio.gather(*(join(later.name, name=name, members=list("AB")) for name in "AB"))
        assert groups[0].members == ("A", "B"), "both started at once, before they were told"
        while not any("two groups" in record.message for record in caplog.records):
            await asyncio.sleep(0.01)
        await asyncio.gather(*(group.leave() for group in (*groups, later)))
        (found,) = {record.getMessage() for record in caplog.records if "two groups" in record.message}
        address = member_of(later).address
        assert found.startswith(f"two groups of the name {later.name} are running: D of the other one")
        assert f"is at {address}; end one" in found

    with caplog.at_level(logging.ERROR, "ordercast.membership"):
        run(test)


def test_a_blocked_member_is_not_replaced_by_a_new_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.live.open_group.ANSWERED_HERE", 0.05)

    async def test() -> None:
        later = await _only_later_members()
        host = member_of(later).host
        assert host is not None
        host.member.blocking.blocked = True
        both = await asyncio.gather(
            *(join(later.name, name=name, members=list("AB"), timeout=0.5) for name in "AB"), return_exceptions=True
        )
        for error in both:
            assert isinstance(error, JoinError)
            assert "it waited for D, which is in this group already and reaches too few of its members" in str(error)
        host.member.blocking.blocked = False
        await later.leave()

    run(test)


def test_by_multicast(network: dict[str, object]) -> None:
    async def test() -> None:
        groups = await asyncio.gather(*(looking(name, network, size=2) for name in "AB"))
        contacts, bind = [str(network["multicast"])], str(network["bind"])
        later = await ordercast.join("found", contacts=contacts, name="D", bind=bind, timeout=10)
        await asyncio.gather(*(group.leave() for group in groups))
        groups = await asyncio.gather(*(looking(name, network, size=2) for name in "AB"))
        assert all("D" in group.members for group in groups)
        await asyncio.gather(*(group.leave() for group in (*groups, later)))

    run(test)


# --- the parts ---


def _answer(question: Find, *, is_founder: bool = False) -> Found:
    return Found(
        *(question.group, question.name, question.incarnation, question.nonce),
        member=Incarnation("D", 7, "127.0.0.1:9"),
        view=3,
        place=0,
        blocked=False,
        is_member=False,
        addresses=("127.0.0.1:9",),
        apply_at=0,
        to=7,
        is_founder=is_founder,
    )


class _Asked:
    """A `RunningGroup` and what it did."""

    def __init__(self, *others: str) -> None:
        self.questions: list[tuple[str, Find]] = []
        self.settled, self.found = 0, list[Address]()
        self.running = RunningGroup(
            *(Find("g", "A", 5, 0), ["127.0.0.1:2"], self._send, self.found.extend),
            others=others,
            settled=self._settle,
            within=60.0,
        )
        self.running.begin()

    def _send(self, unit: object, address: str) -> None:
        assert isinstance(unit, Find)
        self.questions.append((address, unit))

    def _settle(self) -> None:
        self.settled += 1


def test_without_others_nothing_is_waited_for() -> None:
    async def test() -> None:
        asked = _Asked()
        assert (asked.settled, asked.questions) == (1, [])
        asked.running.stop()

    run(test)


def test_a_group_is_opened_when_all_others_have_said_that_theirs_is_another() -> None:
    async def test() -> None:
        asked = _Asked("127.0.0.1:9", "127.0.0.1:10")
        assert [address for address, _ in asked.questions] == ["127.0.0.1:9", "127.0.0.1:10"]
        answer = _answer(asked.questions[0][1])
        asked.running.receive(answer, "127.0.0.1:9")
        asked.running.receive(answer, "127.0.0.1:9")
        assert not asked.settled
        asked.running.receive(answer, "127.0.0.1:10")
        asked.running.receive(answer, "127.0.0.1:10")
        assert (asked.settled, asked.found) == (1, [])
        asked.running.stop()

    run(test)


@pytest.mark.parametrize(("address", "is_founder"), [("127.0.0.1:9", True), ("127.0.0.1:2", False)])
def test_a_group_is_found_that_was_opened_with_us_or_by_one_that_opens_it_with_us(
    address: str, is_founder: bool
) -> None:
    async def test() -> None:
        asked = _Asked("127.0.0.1:9")
        asked.running.receive(_answer(asked.questions[0][1], is_founder=is_founder), address)
        assert (asked.settled, asked.found) == (0, [Address("127.0.0.1", 9)])

    run(test)


def test_what_is_said_unasked_is_only_a_reason_to_ask() -> None:
    async def test() -> None:
        asked = _Asked()
        for _ in range(3):
            asked.running.receive(_answer(Find("g", "-", 0, 1), is_founder=True), "127.0.0.1:9")
            asked.running.receive(_answer(Find("h", "-", 0, 1), is_founder=True), "127.0.0.1:8")
        assert not asked.found
        assert [address for address, _ in asked.questions] == ["127.0.0.1:9"], "once, until the next round"
        asked.running.receive(_answer(asked.questions[0][1], is_founder=True), "127.0.0.1:9")
        assert asked.found == [Address("127.0.0.1", 9)]

    run(test)
