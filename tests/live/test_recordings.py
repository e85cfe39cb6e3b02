"""What somebody can do who has no key, but kept everything that was said: say it again, to anybody, in any order.

The recordings are of earlier groups with the same members, and of the very group that is disturbed. What the network
may do by itself, to lose, delay and double, it may do as well.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

import ordercast.live.channel_process
from ordercast.live.addresses import address_of, members_of
from ordercast.live.channel import LIFE
from ordercast.live.channel_process import ChannelProcess
from ordercast.live.discovery import Found, Heard, NotFound, Say
from ordercast.live.group import Group
from ordercast.live.joining import join
from ordercast.live.session import Phase
from ordercast.live.session_events import Refused
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.wire import recent
from ordercast.wire.control import Control, Hello, Join, Unwelcome
from ordercast.wire.datagram import TO_CHANNEL
from ordercast.wire.keys import keys_from_text, new_key
from ordercast.wire.sealing import seal_for
from tests.live.groups import ORDERS, run
from tests.live.memory_network import PLACES, SENT, MemoryEndpoint, group_in_memory, settle
from tests.live.test_discovery import Place
from tests.live.toy_protocol import Unit
from tests.live.virtual_network import Network, Weather

NAMES = ("A", "B", "C")
KEY = keys_from_text(new_key(), "here")
Recording = list[tuple[int, int, Control | Unit]]
"""Who said it, under which session, and what."""


# --- opening ---


def recording(seed: int, **differently: object) -> Recording:
    """An earlier group of three, from its opening to its end; one of its members was started anew meanwhile."""
    network, kept = Network(seed, 3), []
    transmit = network.transmit

    def keep(source: int, target: int, tag: int, message: Control | Unit) -> None:
        kept.append((source, tag, message))
        transmit(source, target, tag, message)

    network.transmit = keep  # type: ignore[method-assign]
    for member in (0, 1, 2):
        network.start(member, **differently)
    network.start(1, **differently)
    network.run(SECOND)
    network.give_up(0, "enough")
    network.run()
    return kept


def say_again(network: Network, kept: Recording, within: int) -> None:
    """Every word to every member, at any time."""
    for source, tag, message in kept:
        for target in range(len(network.names)):
            if source != target:
                network.at(network.chance.randrange(within), network._arrive, source, target, tag, message)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_group_opens_whatever_was_said_in_earlier_openings(seed: int, loss: float) -> None:
    network = Network(seed, 3, Weather(loss=loss))
    for earlier, differently in enumerate(({}, {"window": 64}, {"window": 64})):
        say_again(network, recording(1000 + 100 * earlier + seed, **differently), SECOND // 2)
    for member in (0, 1, 2):
        network.at(network.chance.randrange(SECOND // 5), network.start, member)
    network.run(2 * SECOND if loss else SECOND)
    group = network.living()
    assert [process.session.phase for process in group] == [Phase.OPEN] * 3, [process.ends for process in group]
    assert len({process.opened for process in group}) == 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("loss", "within"), [(0.0, 100 * MILLISECOND), (0.3, 1500 * MILLISECOND)])
@pytest.mark.parametrize("disturbed", [False, True])
def test_terms_that_do_differ_are_told_soon(seed: int, loss: float, within: int, disturbed: bool) -> None:
    network = Network(seed, 3, Weather(loss=loss))
    if disturbed:
        say_again(network, recording(1000 + seed, window=16), within)
        say_again(network, recording(2000 + seed), within)
    for member, window in enumerate((32, 64, 128 if seed % 2 else 32)):
        network.start(member, window=window)
    network.run(within)
    for process in network.living():
        (end,) = process.ends
        assert isinstance(end, Refused)
        assert "has window=" in end.why
        assert "16" not in end.why


def test_one_that_is_heard_and_does_not_hear_is_told_of_when_it_is_too_late() -> None:
    """Whether it is there cannot be known: what came of it may be old."""
    network = Network(1, 3)
    network.cut = lambda _source, target, _message: target == 1
    for member, window in enumerate((32, 64, 32)):
        network.start(member, window=window)
    network.run(59 * SECOND)
    assert not network.processes[0].ends
    network.run()
    (end,) = network.processes[0].ends
    assert isinstance(end, Refused)
    assert end.why == (
        "the group did not open within 60 s: B was heard, but does not hear us; B has window=64, A has window=32"
    )


def test_old_joins_are_answered_once_each() -> None:
    """Nobody can have us say more than was said to us."""
    kept = [word for word in recording(1003) if word[0] != 0 and isinstance(word[2], Join)]
    network = Network(3, 3)
    alone = network.start(0)
    network.run(50 * MILLISECOND)
    before = network.datagrams
    for source, tag, message in kept:
        alone.receive(source, tag, message)
    assert network.datagrams - before <= len(kept)
    assert alone.session.opening.silent() == ["B", "C"]


# --- finding ---


def earlier_hellos(seed: int, names: str, size: int) -> list[Hello | Unwelcome]:
    """What was said when others, or the same, looked for a group of this name."""
    place, kept = Place(seed), []
    put = place._put

    def keep(who: Any, event: Any) -> None:
        if isinstance(event, Heard):
            kept.append(event.message)
        put(who, event)

    place._put = keep  # type: ignore[method-assign]
    for name in names:
        place.come(name, size)
    place.run(2 * SECOND)
    return kept


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_group_is_found_whatever_was_said_in_earlier_days(seed: int, loss: float) -> None:
    """By the same with the same size and with another, by namesakes, and by others whose names come first."""
    place = Place(seed, loss)
    days = (("BCD", 3), ("BCD", 2), ("ABCDE", 3), ("0A", 3))
    kept = [hello for day, (names, size) in enumerate(days, start=1000) for hello in earlier_hellos(day, names, size)]
    looking = []
    for name in "DBC":
        looking.append(place.come(name, 3))
        for hello in kept:
            place._at(place.now + 1 + place.chance.randrange(SECOND), looking[-1], Heard(hello))
        place.run(place.now + place.chance.randrange(SECOND // 3))
    place.run(3 * SECOND)
    found = {place.result(one) for one in looking}
    assert len(found) == 1
    (only,) = found
    assert isinstance(only, Found)
    assert only.names == ("B", "C", "D")


@pytest.mark.parametrize("seed", range(60))
def test_sizes_that_do_differ_are_told_to_both_soon(seed: int) -> None:
    place = Place(seed, loss=0.3)
    one = place.come("A", 3)
    place.run(place.chance.randrange(SECOND))
    began, other = place.now, place.come("B", 4)
    place.run(began + 2 * SECOND)
    for result in (place.result(one), place.result(other)):
        assert isinstance(result, NotFound)
        assert "looks for a group of" in result.why


def test_old_hellos_are_answered_in_measure() -> None:
    kept = earlier_hellos(1, "ABC", 3) + earlier_hellos(2, "ABC", 2)
    one = Place(3).come("A", 3)
    for hello in kept:
        assert sum(isinstance(output, Say) for output in one.handle(Heard(hello))) <= 2
    assert not one.others
    assert not one.over


# --- whole members, with a key ---


def places() -> list[MemoryEndpoint]:
    return [PLACES[address] for address in members_of("memory", NAMES).values() if address in PLACES]


def put_again(kept: list[bytes], chance: Random) -> None:
    """Every datagram to every member, in any order."""
    for place in places():
        for datagram in chance.sample(kept, len(kept)):
            place.put(datagram)


async def exactly_once(groups: list[Group], count: int) -> None:
    """All hear what all say from now on, each of it once."""
    said = Counter(f"{group.me} {number}".encode() for group in groups for number in range(count))
    for number in range(count):
        for group in groups:
            await group.send(f"{group.me} {number}".encode())
        await settle(3)
    for group in groups:
        heard = [(await group.receive()).payload for _ in range(said.total())]
        assert Counter(heard) == said


async def earlier_group(**options: Any) -> list[bytes]:
    async with group_in_memory(*NAMES, key=KEY, **options) as groups:
        await exactly_once(groups, 3)
        return list(SENT)


@pytest.mark.usefixtures("no_exception_escapes", "in_memory")
@pytest.mark.parametrize("order", ORDERS)
def test_recordings_of_earlier_groups_change_nothing(order: str) -> None:
    """While the group opens, while it is open, and with other settings then and now."""

    async def test() -> None:
        chance = Random(1)
        kept = await earlier_group(order=order) + await earlier_group(order=order, window=7)
        joining = [asyncio.ensure_future(_join(name, order=order, key=KEY)) for name in NAMES[:2]]
        await settle()
        put_again(kept, chance)
        await settle()
        joining.append(asyncio.ensure_future(_join("C", order=order, key=KEY)))
        await settle(3)
        put_again(kept, chance)
        groups = list(await asyncio.gather(*joining))
        put_again(kept, chance)
        await exactly_once(groups, 5)
        put_again(kept, chance)
        await exactly_once(groups, 1)
        await asyncio.gather(*(group.close() for group in groups))

    run(test)


async def _join(name: str, **options: Any) -> Group:
    return await join("memory", name=name, members=NAMES, timeout=5, **options)


@pytest.mark.usefixtures("no_exception_escapes", "in_memory")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(3))
def test_a_recording_of_the_group_itself_changes_nothing(order: str, seed: int) -> None:
    """Also what was said to another member only."""

    async def test() -> None:
        chance = Random(seed)
        async with group_in_memory(*NAMES, key=KEY, order=order) as groups:
            for _ in range(3):
                await exactly_once(groups, 4)
                put_again(list(SENT), chance)
                await settle()
            for group in groups:
                assert group._member.end is None
                assert group.stats().dropped["replayed"] > 10

    run(test)


CHANNEL = address_of("127.0.0.1:9999")


def start_channel(monkeypatch: pytest.MonkeyPatch) -> ChannelProcess:
    monkeypatch.setattr(ordercast.live.channel_process, "Endpoint", MemoryEndpoint)
    monkeypatch.setattr(ordercast.live.channel_process, "open_socket", lambda address: address)
    started = ChannelProcess("memory", CHANNEL, list(members_of("memory", NAMES).values()), keys=KEY)
    started.start()
    return started


def said_to_channel() -> list[bytes]:
    return [datagram for datagram in SENT if datagram[2] & TO_CHANNEL]


@pytest.mark.usefixtures("no_exception_escapes", "in_memory")
@pytest.mark.parametrize("order", ["total", "priority"])
def test_a_channel_that_was_started_anew_says_nothing_twice(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has forgotten what it passed on, but knows what was said to its former life.

    Else a member that had lost something would take it now, and have it at another place than the others.
    """

    async def test() -> None:
        first = start_channel(monkeypatch)
        async with group_in_memory(*NAMES, key=KEY, order=order, channel=str(CHANNEL)) as groups:
            await exactly_once(groups, 5)
            kept = said_to_channel()
            first.close()
            second = start_channel(monkeypatch)
            for datagram in kept:
                PLACES[CHANNEL].put(datagram)
            await settle()
            assert second.dropped["former"] >= len(kept) > 10
            await exactly_once(groups, 5)
            assert second.passed
            second.close()

    run(test)


@pytest.mark.usefixtures("no_exception_escapes", "in_memory")
def test_recordings_of_many_sessions_do_not_make_a_channel_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "REMEMBERED", 8)

    async def test() -> None:
        channel = start_channel(monkeypatch)
        async with group_in_memory(*NAMES, key=KEY, order="total", channel=str(CHANNEL)) as groups:
            await exactly_once(groups, 5)
            kept, seal = said_to_channel(), seal_for("memory", KEY)
            for session in range(100):
                PLACES[CHANNEL].put(seal.seal(TO_CHANNEL, session % 3, session, 0, LIFE.pack(1)))
            await settle()
            late = channel.late
            for datagram in kept:
                PLACES[CHANNEL].put(datagram)
            await settle()
            assert channel.late - late > 10, "the seal has forgotten them, but the order of each sender is known"
            await exactly_once(groups, 5)
        channel.close()

    run(test)
