"""Members that know only a name and a number find each other, whatever is lost, and turn the others away."""

import heapq
from random import Random
from typing import Any

import pytest

from ordercast.live.session.discovery import (
    FORGET_AFTER,
    LAST_ROUNDS,
    Announce,
    AnnouncementReceived,
    Discovery,
    Found,
    NotFound,
)
from ordercast.live.session.events import Begin, SessionConfig
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.errors import ConfigError
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.wire.control import Hello, HelloRejection, Known


class Place:
    """Where everybody listens, and hears its own words as well; in virtual time."""

    def __init__(self, seed: int, loss: float = 0.0) -> None:
        self.chance, self.loss = Random(seed), loss
        self.now = self.running = 0
        self.heap: list[tuple[int, int, Discovery, Any, int]] = []
        self.present: list[Discovery] = []
        self.timers: dict[tuple[int, str], int] = {}
        self.results: dict[int, Found | NotFound] = {}

    def come(self, name: str, size: int, group: str = "toys") -> Discovery:
        """A new process."""
        incarnation = self.chance.getrandbits(64) | 1
        newcomer = Discovery(group, name, f"{name}:1", incarnation, size, SessionConfig(handshake_timeout=20 * SECOND))
        self.present.append(newcomer)
        self.put(newcomer, Begin())
        return newcomer

    def leave(self, gone: Discovery) -> None:
        """It ends without a word."""
        self.present.remove(gone)

    def at(self, when: int, who: Discovery, event: Any, number: int = 0) -> None:
        self.running += 1
        heapq.heappush(self.heap, (when, self.running, who, event, number))

    def put(self, who: Discovery, event: Any) -> None:
        for output in who.handle(event):
            match output:
                case Announce(message):
                    for listener in self.present:
                        if self.chance.random() >= self.loss:
                            self.at(
                                self.now + 1 + self.chance.randrange(5 * MILLISECOND),
                                listener,
                                AnnouncementReceived(message),
                            )
                case SetTimer(name, after):
                    self.timers[id(who), name] = self.running + 1
                    self.at(self.now + after, who, TimerFired(name), self.running + 1)
                case CancelTimer(name):
                    self.timers.pop((id(who), name), None)
                case Found() | NotFound():
                    assert id(who) not in self.results
                    self.results[id(who)] = output

    def run(self, until: int = 60 * SECOND) -> None:
        """Until nothing happens any more, or for so long."""
        while self.heap and self.heap[0][0] <= until:
            self.now, _, who, event, number = heapq.heappop(self.heap)
            if who in self.present and (not number or self.timers.get((id(who), event.name)) == number):
                self.put(who, event)

    def result(self, who: Discovery) -> Any:
        """What came of it; None if it still looks."""
        return self.results.get(id(who))


@pytest.mark.parametrize("seed", range(60))
def test_all_find_the_same(seed: int) -> None:
    chance = Random(seed)
    place = Place(seed, chance.choice([0.0, 0.2, 0.4]))
    names = chance.sample("ABCDEFGH", chance.randint(1, 8))
    looking = []
    for name in names:
        looking.append(place.come(name, len(names)))
        place.run(place.now + chance.randrange(SECOND))
    place.run()
    found = {place.result(one) for one in looking}
    assert len(found) == 1
    (only,) = found
    assert isinstance(only, Found)
    assert only.names == tuple(sorted(names))
    assert only.addresses == tuple(f"{name}:1" for name in sorted(names))
    assert only.incarnations == tuple(one.incarnation for one in sorted(looking, key=lambda one: one.name))


@pytest.mark.parametrize("seed", range(40))
def test_one_too_many_is_rejected(seed: int) -> None:
    chance = Random(seed)
    place = Place(seed, chance.choice([0.0, 0.2]))
    looking = []
    for name in chance.sample("ABCD", 4):
        looking.append(place.come(name, 3))
        place.run(place.now + chance.randrange(300 * MILLISECOND))
    place.run()
    results = [place.result(one) for one in looking]
    found = {result for result in results if isinstance(result, Found)}
    assert len(found) == 1, "whoever finds a group finds the same"
    (only,) = found
    for one, result in zip(looking, results, strict=True):
        if one.name in only.names:
            assert result == only
        else:
            assert result == NotFound(f"the group has its 3 members: {', '.join(only.names)}")


def test_a_group_that_is_found_has_no_place_for_a_fourth() -> None:
    place = Place(1)
    for name in "BCD":
        place.come(name, 3)
    place.run(SECOND)
    late = place.come("A", 3)
    place.run(2 * SECOND)
    assert place.result(late) == NotFound("the group has its 3 members: B, C, D")


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_of_two_with_one_name_the_second_is_rejected(loss: float) -> None:
    place = Place(2, loss)
    first = place.come("A", 3)
    other = place.come("B", 3)
    place.run(SECOND)
    second = place.come("A", 3)
    place.run(2 * SECOND)
    assert isinstance(place.result(second), NotFound)
    assert "A" in place.result(second).why
    assert place.result(first) is None
    place.come("C", 3)
    place.run()
    assert place.result(first) == place.result(other)
    assert isinstance(place.result(first), Found)


def test_one_that_has_ended_is_forgotten_and_may_come_again() -> None:
    place = Place(3)
    first = place.come("A", 2)
    place.run(place.now + SECOND // 2)
    place.leave(first)
    other = place.come("B", 2)
    place.run(SECOND)
    assert place.result(other) is None
    again = place.come("A", 2)
    place.run(place.now + SECOND)
    assert isinstance(place.result(again), Found)
    assert place.result(again) == place.result(other)


def test_a_life_that_is_counted_keeps_its_place_until_it_is_forgotten() -> None:
    place = Place(3)
    other = place.come("B", 3)
    first = place.come("A", 3)
    place.run(SECOND // 2)
    place.leave(first)
    again = place.come("A", 3)
    place.run(2 * SECOND)
    assert [known.incarnation for known in other.others] == [first.incarnation]
    assert place.result(again) is None, "it waits"
    place.run(SECOND + FORGET_AFTER * 200 * MILLISECOND)
    assert [known.incarnation for known in other.others] == [again.incarnation]
    last = place.come("C", 3)
    place.run()
    assert isinstance(place.result(again), Found)
    assert place.result(again) == place.result(other) == place.result(last)


@pytest.mark.parametrize("gap", [0, 20, 150, 300, 1000])
def test_of_two_with_one_name_one_stays_whenever_they_begin(gap: int) -> None:
    for seed in range(20):
        place = Place(seed, loss=0.3 * (seed % 2))
        place.come("B", 3)
        first = place.come("A", 3)
        place.run(gap * MILLISECOND)
        both = [first, place.come("A", 3)]
        place.run(3 * SECOND)
        results = [place.result(one) for one in both]
        assert results.count(None) == 1, "the other one is told"
        assert all("another process uses the name A" in result.why for result in results if result)
        assert gap < 1000 or place.result(first) is None


def test_sizes_that_differ_are_told_to_both() -> None:
    place = Place(4)
    one, other = place.come("A", 3), place.come("B", 4)
    place.run()
    for result in (place.result(one), place.result(other)):
        assert isinstance(result, NotFound)
        assert "A" in result.why
        assert "3" in result.why
        assert "B" in result.why
        assert "4" in result.why


def test_other_groups_do_not_matter() -> None:
    place = Place(5)
    one, other = place.come("A", 2, "toys"), place.come("B", 2, "tools")
    third = place.come("C", 2, "toys")
    place.run()
    assert place.result(one).names == place.result(third).names == ("A", "C")
    assert place.result(other) == NotFound("within 20 s 1 of 2 members of tools were found: B")


def test_old_words_do_not_undo_newer_ones() -> None:
    looking = Discovery("toys", "A", "a", 1, 3)
    looking.handle(Begin())
    knows = (Known("A", 1), Known("B", 2), Known("C", 3))
    looking.handle(AnnouncementReceived(Hello("toys", "C", 3, "c", 3, 1, (), found=False, hears=(1,))))
    looking.handle(AnnouncementReceived(Hello("toys", "B", 2, "b", 3, 5, knows, found=False, hears=(1,))))
    looking.handle(AnnouncementReceived(Hello("toys", "B", 2, "b", 3, 4, knows[:2], found=False, hears=(1,))))
    out = looking.handle(AnnouncementReceived(Hello("toys", "C", 3, "c", 3, 2, knows, found=False, hears=(1,))))
    assert Found(("A", "B", "C"), ("a", "b", "c"), (1, 2, 3)) in out


def test_only_the_life_that_is_meant_is_rejected() -> None:
    looking = Discovery("toys", "A", "a", 1, 3)
    looking.handle(Begin())
    for unwelcome in (("toys", "A", 2), ("toys", "B", 1), ("tools", "A", 1)):
        assert looking.handle(AnnouncementReceived(HelloRejection(*unwelcome, "no"))) == []
    looking.handle(AnnouncementReceived(HelloRejection("toys", "A", 1, "no")))
    rounds = [looking.handle(TimerFired("hello")) for _ in range(LAST_ROUNDS + 1)]
    assert [NotFound("no") in out for out in rounds] == [*[False] * (LAST_ROUNDS - 1), True, False]
    assert rounds[-1] == [], "then it says nothing any more"


@pytest.mark.parametrize(
    "arguments",
    [("", "A", "a", 1, 3), ("toys", "", "a", 1, 3), ("toys", "A", "a" * 65, 1, 3), ("toys", "A", "a", 1, 0)],
)
def test_what_cannot_be_said_is_refused_at_once(arguments: Any) -> None:
    with pytest.raises(ConfigError):
        Discovery(*arguments)


# --- one process, and what it hears ---


def looking(name: str = "A", size: int = 3, incarnation: int = 1) -> Discovery:
    found = Discovery("toys", name, f"{name}:1", incarnation, size)
    found.handle(Begin())
    return found


def hello(
    name: str, incarnation: int, *knows: tuple[str, int], found: bool = False, round_: int = 1
) -> AnnouncementReceived:
    known = tuple(Known(*each) for each in knows)
    return AnnouncementReceived(Hello("toys", name, incarnation, f"{name}:1", 3, round_, known, found, hears=(1,)))


def test_who_was_rejected_finds_nothing_any_more() -> None:
    """Else it would take part while it tells others that it does not."""
    everybody = (("A", 1), ("B", 2), ("C", 3))
    one = looking()
    one.handle(hello("B", 2, *everybody))
    one.handle(AnnouncementReceived(HelloRejection("toys", "A", 1, "no")))
    assert not any(isinstance(output, Found) for output in one.handle(hello("C", 3, *everybody)))


@pytest.mark.parametrize(
    ("round_", "incarnation", "stays"),
    [
        (0, 7, True),
        (9, 3, False),
        (4, 7, False),
        (5, 7, False),
        (6, 7, False),
        (4, 3, True),
        (5, 3, True),
        (6, 3, True),
    ],
)
def test_of_two_with_one_name_the_first_stays(round_: int, incarnation: int, stays: bool) -> None:
    """Of two that began at about the same time, that with the larger number."""
    one = looking(incarnation=5)
    for _ in range(4):
        one.handle(TimerFired("hello"))
    out = one.handle(hello("A", incarnation, round_=round_))
    told = [output.message.incarnation for output in out if isinstance(output, Announce)]
    assert told == ([incarnation] if stays else []), "who does not stay will be told, if the other one is alive"
    assert not one.rejected
    one.handle(AnnouncementReceived(HelloRejection("toys", "A", 5, "no")))
    assert one.handle(hello("A", incarnation, round_=round_)) == [], "who goes turns nobody of its name away"


def test_a_life_that_is_no_member_is_told_so_when_the_group_is_found() -> None:
    everybody = (("A", 1), ("B", 2), ("C", 3))
    one = looking()
    one.handle(hello("C", 3, *everybody))
    one.handle(hello("B", 2, *everybody))
    out = one.handle(hello("B", 9))
    assert [output.message.incarnation for output in out if isinstance(output, Announce)] == [9]


def test_of_too_many_those_with_the_first_names_are_counted() -> None:
    one = looking("B")
    for incarnation, name in enumerate("DCEA", start=5):
        one.handle(hello(name, incarnation))
    assert sorted(known.name for known in one.others) == ["A", "C"]


def test_what_one_of_us_has_found_is_found() -> None:
    everybody = (("A", 1), ("B", 2), ("C", 3))
    one = looking()
    one.handle(hello("C", 3, ("C", 3)))
    assert not any(isinstance(output, Found) for output in one.handle(hello("B", 2, *everybody)))
    out = one.handle(hello("B", 2, *everybody, found=True, round_=2))
    assert [output.names for output in out if isinstance(output, Found)] == [("A", "B", "C")]
