"""Faults as rules: what each does to units on their way, and that none disturbs another."""

from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from math import exp
from random import Random

import pytest

from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Miss, Pause, Split, Twice, UnitKind
from ordercast.simulator.fault_rules import DUPLICATED, Flight, fault_effect, rules_for

NODES = 4
Judged = tuple[Flight, int, str | None]


def flights(count: int, gap: int = 1_000) -> Iterator[Flight]:
    """Units of all senders and kinds, one every microsecond."""
    chance = Random(7)
    for number in range(1, count + 1):
        control = chance.random() < 0.3
        copy = not control and chance.random() < 0.3
        yield Flight(number, number * gap, chance.randrange(NODES), control=control, copy=copy)


def effects(faults: list[Fault], count: int, seed: int = 1, gap: int = 1_000) -> list[Judged]:
    """What becomes of each unit at each receiver other than its sender."""
    rules = rules_for(tuple(faults), seed, NODES)
    return [
        (flight, receiver, fault_effect(rules, flight, receiver))
        for flight in flights(count, gap)
        for receiver in range(NODES)
        if receiver != flight.sender
    ]


def is_kind(kind: UnitKind) -> Callable[[Flight], bool]:
    return {
        UnitKind.DATA: lambda flight: not flight.control and not flight.copy,
        UnitKind.COPY: lambda flight: flight.copy,
        UnitKind.CONTROL: lambda flight: flight.control,
        UnitKind.ANY: lambda _: True,
    }[kind]


def within_five_deviations(count: int, of: int, rate: float) -> bool:
    """Whether a count of chances is as it must be, but for one time in two million."""
    return bool(abs(count - of * rate) <= 5 * (of * rate * (1 - rate)) ** 0.5)


# --- loss ---


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.9])
def test_each_receiver_loses_each_unit_with_the_rate(rate: float) -> None:
    found = effects([Loss(rate=rate)], 10_000)
    for receiver in range(NODES):
        mine = [what for _, node, what in found if node == receiver]
        assert within_five_deviations(mine.count("loss"), len(mine), rate)
        assert set(mine) == {"loss", None}


def test_receivers_lose_independently() -> None:
    """Two receivers lose the same unit with the rate squared, and a unit after a loss is lost like any other."""
    lost: dict[int, dict[int, bool]] = {}
    for flight, receiver, what in effects([Loss(rate=0.3)], 20_000):
        lost.setdefault(flight.number, {})[receiver] = what is not None
    pairs = [unit for unit in lost.values() if {0, 1} <= set(unit)]
    assert within_five_deviations(sum(unit[0] and unit[1] for unit in pairs), len(pairs), 0.09)
    one = [unit[2] for unit in lost.values() if 2 in unit]
    after_loss = [now for before, now in pairwise(one) if before]
    assert within_five_deviations(sum(after_loss), len(after_loss), 0.3)


def test_shared_loss_is_of_all_receivers_of_a_unit_or_of_none() -> None:
    found = effects([Loss(rate=0.2, shared=True)], 10_000)
    units = [[what for _, _, what in unit] for _, unit in groupby(found, key=lambda item: item[0].number)]
    assert all(len(unit) == NODES - 1 and len(set(unit)) == 1 for unit in units)
    assert within_five_deviations(sum(unit[0] == "shared loss" for unit in units), len(units), 0.2)


def test_a_rate_of_nothing_loses_nothing() -> None:
    assert all(what is None for _, _, what in effects([Loss(rate=0)], 100))


# --- bursts ---


def burst_lengths(fault: Bursts, count: int, gap: int) -> tuple[list[int], list[int]]:
    """How long one receiver was bad and well, each time, seen through a unit every `gap`."""
    [rule] = rules_for((fault,), 1, NODES)
    seen = [rule.apply(Flight(number, number * gap, 0, control=False, copy=False), 1) for number in range(count)]
    lengths: dict[bool, list[int]] = {True: [], False: []}
    for bad, stretch in groupby(what == "burst" for what in seen):
        lengths[bad].append(len(list(stretch)) * gap)
    return lengths[True], lengths[False]


@pytest.mark.parametrize(("well", "bad"), [(100_000, 20_000), (20_000, 50_000)])
def test_bursts_last_their_mean_and_so_do_the_times_between(well: int, bad: int) -> None:
    """Seen through a unit every microsecond, which the shortest stretches escape, their mean is known all the same."""
    gap = 1_000
    seen = dict(zip((bad, well), burst_lengths(Bursts(well=well, bad=bad), 300_000, gap), strict=True))
    for mean, lengths in seen.items():
        other = well + bad - mean
        leaves = other / (well + bad) * (1 - exp(-gap * (1 / well + 1 / bad)))  # the chance, from unit to unit
        assert len(lengths) > 2_000
        assert abs(sum(lengths) / len(lengths) - gap / leaves) < 5 * gap / leaves / len(lengths) ** 0.5


def test_bursts_pass_with_time_and_not_with_units() -> None:
    """Seen by few units or by many, the share of time that is bad is the same: a burst ends on a quiet link too."""
    for gap, count in ((1_000, 200_000), (1_000_000, 20_000)):  # the second: one unit in ten bursts
        bursts, between = burst_lengths(Bursts(well=70_000, bad=30_000), count, gap)
        share = sum(bursts) / (sum(bursts) + sum(between))
        assert abs(share - 0.3) < 0.03


def test_after_a_long_silence_a_burst_is_over() -> None:
    """A receiver that was bad is found bad again after a thousand bursts no more often than at any time."""
    found = []
    for seed in range(600):
        [rule] = rules_for((Bursts(well=900_000, bad=100_000),), seed, NODES)
        time = 0
        while rule.apply(Flight(time, time, 0, control=False, copy=False), 1) is None:
            time += 50_000
        found.append(rule.apply(Flight(time + 1, time + 1_000_000_000, 0, control=False, copy=False), 1))
    assert within_five_deviations(found.count("burst"), len(found), 0.1)


def test_each_receiver_has_bursts_of_its_own() -> None:
    found = effects([Bursts(well=30_000, bad=30_000)], 20_000)
    whole = [
        {receiver: what for _, receiver, what in unit} for _, unit in groupby(found, key=lambda item: item[0].number)
    ]
    both = [unit for unit in whole if {1, 2} <= set(unit)]
    differ = sum(unit[1] != unit[2] for unit in both)
    assert 0.3 < differ / len(both) < 0.7


def test_in_a_burst_units_are_lost_with_its_rate() -> None:
    found = effects([Bursts(well=1, bad=10**15, rate=0.4)], 10_000)[500:]
    assert within_five_deviations(sum(what == "burst" for _, _, what in found), len(found), 0.4)


# --- duplicates ---


@pytest.mark.parametrize("rate", [0.05, 0.5, 1.0])
def test_each_receiver_gets_a_unit_twice_with_the_rate(rate: float) -> None:
    found = [what for _, _, what in effects([Duplicates(rate=rate)], 10_000)]
    assert within_five_deviations(found.count(DUPLICATED), len(found), rate)


@pytest.mark.parametrize("others", [[Loss(rate=0.5)], [Split(side=(0,), at=0, lasting=10**9)]])
def test_what_is_lost_does_not_come_twice_whichever_rule_comes_first(others: list[Fault]) -> None:
    alone = effects(others, 2_000)
    for faults in ([Duplicates(rate=1), *others], [*others, Duplicates(rate=1)]):
        both = effects(faults, 2_000)
        assert [what for _, _, what in both] == [what or DUPLICATED for _, _, what in alone]


# --- scripted misses ---


@pytest.mark.parametrize("kind", list(UnitKind))
@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("others", [[], [Loss(rate=0.5)], [Duplicates(rate=1)], [Miss(node=2, source=0, nth=1)]])
def test_a_node_misses_the_nth_unit_of_a_kind_and_no_other(kind: UnitKind, nth: int, others: list[Fault]) -> None:
    """Before or behind other rules, whose losses do not count it further."""
    miss = Miss(node=2, source=0, nth=nth, kind=kind)
    wanted = [flight for flight in flights(300) if flight.sender == 0 and is_kind(kind)(flight)][nth - 1]
    alone = {(flight.number, receiver) for flight, receiver, what in effects([miss], 300) if what is not None}
    assert alone == {(wanted.number, 2)}
    for faults in ([miss, *others], [*others, miss]):
        [what] = [
            what for flight, receiver, what in effects(faults, 300) if (flight.number, receiver) == (wanted.number, 2)
        ]
        assert what == "scripted" if faults[0] is miss else what in {"scripted", "loss"}


def test_a_unit_to_one_node_only_counts_too() -> None:
    """The rule is then asked about that node alone."""
    rules = rules_for((Miss(node=2, source=0, nth=2),), 1, NODES)
    first, second = (Flight(number, number, 0, control=False, copy=False) for number in (1, 2))
    assert fault_effect(rules, first, 3) is None
    assert [fault_effect(rules, second, receiver) for receiver in (1, 2, 3)] == [None, "scripted", None]


def test_a_miss_that_never_comes_to_pass_does_nothing() -> None:
    assert all(what is None for _, _, what in effects([Miss(node=2, source=0, nth=10_000)], 500))


# --- splits ---


def crossings(fault: Split, time: int) -> set[tuple[int, int]]:
    """Who is not heard by whom."""
    rules = rules_for((fault,), 1, NODES)
    return {
        (sender, receiver)
        for sender in range(NODES)
        for receiver in range(NODES)
        if fault_effect(rules, Flight(sender, time, sender, control=False, copy=False), receiver) == "split"
    }


def test_a_split_parts_two_sides_while_it_lasts() -> None:
    fault = Split(side=(0, 2), at=100, lasting=50)
    parted = {(0, 1), (0, 3), (2, 1), (2, 3), (1, 0), (3, 0), (1, 2), (3, 2)}
    assert [crossings(fault, time) for time in (99, 100, 149, 150)] == [set(), parted, parted, set()]


def test_a_one_way_split_silences_only_the_side() -> None:
    fault = Split(side=(0, 2), at=0, lasting=50, one_way=True)
    assert crossings(fault, 20) == {(0, 1), (0, 3), (2, 1), (2, 3)}


# --- together ---


@pytest.mark.parametrize(
    "fault", [Loss(rate=0.9), Loss(rate=0.9, shared=True), Duplicates(rate=1), Bursts(well=1, bad=10**15)]
)
def test_a_random_fault_ends_when_it_is_told(fault: Loss | Duplicates | Bursts) -> None:
    ended = type(fault)(**{**{name: getattr(fault, name) for name in fault.__struct_fields__}, "until": 500_000})
    found = effects([ended], 1_000)
    assert sum(what is not None for flight, _, what in found if flight.time < 500_000) > 1_000
    assert all(what is None for flight, _, what in found if flight.time >= 500_000)
    for_ever = effects([fault], 1_000)
    assert all(
        now == then for (flight, _, now), (_, _, then) in zip(found, for_ever, strict=True) if flight.time < 500_000
    )


RANDOM: list[Fault] = [
    Loss(rate=0.3),
    Loss(rate=0.3, shared=True),
    Bursts(well=50_000, bad=50_000),
    Duplicates(rate=0.3),
    Miss(node=1, source=0, nth=4),
]
ADDED: list[Fault] = [
    Loss(rate=0.6),
    Bursts(well=10_000, bad=10_000),
    Duplicates(rate=0.5),
    Miss(node=1, source=0, nth=2),
    Split(side=(1,), at=0, lasting=400_000),
    Pause(node=0, at=0, lasting=5),
    Crash(node=3, at=0),
]


@pytest.mark.parametrize("fault", RANDOM)
@pytest.mark.parametrize("added", ADDED)
def test_adding_a_fault_does_not_change_the_draws_of_another(fault: Fault, added: Fault) -> None:
    """Rule by rule: the same answers to the same units, whatever else is asked, before it or behind it."""
    [alone] = rules_for((fault,), 1, NODES)
    units = [(flight, receiver) for flight in flights(1_000) for receiver in range(NODES)]
    wanted = [alone.apply(flight, receiver) for flight, receiver in units]
    assert any(wanted)
    if isinstance(fault, Miss) and isinstance(added, Miss):  # one rule answers for all that is scripted
        [other_alone] = rules_for((added,), 1, NODES)
        wanted = [one or other_alone.apply(*unit) for one, unit in zip(wanted, units, strict=True)]
    orders = [(fault, added)] if type(fault) is type(added) else [(fault, added), (added, fault)]
    for faults in orders:
        rules = rules_for(faults, 1, NODES)
        rule = rules[-1] if faults[1] is fault else rules[0]
        answers = []
        for flight, receiver in units:
            asked = {id(other): other.apply(flight, receiver) for other in rules}
            answers.append(asked[id(rule)])
        assert answers == wanted


def test_a_script_names_units_by_their_kinds_and_who_misses_one_does_not_get_it_twice() -> None:
    script = (
        Twice(node=2, source=0, nth=2),
        Miss(node=1, source=0, nth=2),
        Twice(node=1, source=0, nth=2),
        Miss(node=2, source=0, nth=1, kind=UnitKind.CONTROL),
        Twice(node=1, source=0, nth=4, kind=UnitKind.ANY),
    )
    rules = rules_for(script, 1, NODES)
    kinds = [(False, False), (True, False), (False, False), (False, True)]  # data, control, data, copy
    sent = [Flight(number, number, 0, control=control, copy=copy) for number, (control, copy) in enumerate(kinds)]
    fates = [[fault_effect(rules, flight, receiver) for receiver in (1, 2)] for flight in sent]
    assert fates == [[None, None], [None, "scripted"], ["scripted", DUPLICATED], [DUPLICATED, None]]


def test_two_faults_of_one_kind_draw_apart() -> None:
    first, second = rules_for((Loss(rate=0.5), Loss(rate=0.5)), 1, NODES)
    units = [(flight, 1) for flight in flights(200)]
    assert [first.apply(*unit) for unit in units] != [second.apply(*unit) for unit in units]


def test_all_rules_are_asked_and_the_first_answer_counts() -> None:
    """Of two that lose everything the first names the cause; the second still counts."""
    split, miss = Split(side=(2,), at=0, lasting=2_000), Miss(node=2, source=0, nth=2)
    rules = rules_for((split, miss), 1, NODES)
    units = [Flight(number, time, 0, control=False, copy=False) for number, time in ((1, 10), (2, 20), (3, 5_000))]
    assert [fault_effect(rules, unit, 2) for unit in units] == ["split", "split", None]  # the miss was the second


def test_another_seed_draws_otherwise() -> None:
    for fault in (Loss(rate=0.5), Loss(rate=0.5, shared=True), Bursts(well=1_000, bad=1_000), Duplicates(rate=0.5)):
        one, other = ([what for _, _, what in effects([fault], 200, seed)] for seed in (1, 2))
        assert one != other
