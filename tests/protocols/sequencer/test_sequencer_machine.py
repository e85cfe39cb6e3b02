"""The machine as a whole: snapshots of its parts, texts, units; what holds for every machine is in `contract`."""

from random import Random

import pytest

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Abort
from ordercast.model.units import Unit
from ordercast.protocols.sequencer.units import (
    Accepted,
    Acknowledgment,
    Broadcast,
    Fetch,
    Flush,
    Flushed,
    Install,
    NextView,
    NumberAnnouncement,
    Offer,
    Propose,
    Refused,
    SequencerStatus,
    Supply,
    Synchronise,
    Synchronised,
    ViewRequest,
)
from tests.protocols.sequencer.driver import E1, E2, E3, Group, Node, broadcast, config, packet

KINDS = (
    Accepted, Acknowledgment, Broadcast, Fetch, Flush, Flushed, Install, NumberAnnouncement, Offer, Propose, Refused,
    SequencerStatus, Supply, Synchronise, Synchronised, ViewRequest,
)  # fmt: skip


def any_unit(chance: Random) -> Unit:
    """A well-formed unit that nobody in their senses would send."""

    def number() -> int:
        return chance.choice([0, 0, 1, 1, 2, 3, 5, 40])

    def node() -> int:
        return chance.randrange(3)

    def ranges() -> tuple[tuple[int, int], ...]:
        start = number()
        return ((start, start + chance.randint(1, 50)),) if chance.random() < 0.7 else ()

    view, ballot = chance.choice([0, 0, 0, 1]), (number(), node())
    value = NextView(chance.choice([1, 1, 2]), chance.choice([0b111, 0b110, 0b011, 0b101]), node(), number(), "why")
    packed = packet(node(), number(), "m")
    accepted = ((number(), node()), value) if chance.random() < 0.3 else None
    names = tuple((node(), number()) for _ in range(chance.randint(0, 3)))
    return chance.choice(
        [
            Offer(packed, view, number(), chance.random() < 0.5),
            Broadcast(packed, view, node(), number(), number(), number()),
            NumberAnnouncement(view, node(), number(), names, 0, 0),
            Acknowledgment(view, node(), number(), ranges(), chance.random() < 0.5),
            SequencerStatus(view, node(), number(), number(), number(), chance.randrange(8)),
            Synchronise(view, node(), number(), chance.choice([1, 2]), number(), number(), chance.randrange(8)),
            Synchronised(view, node(), number(), number()),
            Flush(view, node(), ballot, chance.randrange(8)),
            Flushed(view, node(), ballot, number(), accepted),
            Refused(view, node(), ballot, (number(), node())),
            Propose(view, node(), ballot, value, chance.randrange(8)),
            Accepted(view, node(), ballot),
            Install(value.number, node(), value),
            Fetch(view, node(), ballot, ranges()),
            Supply(packed, view, node(), number()),
            ViewRequest(view, node()),
        ]
    )


def test_a_snapshot_holds_everything() -> None:
    value = NextView(1, 0b111, E1, 9, "why")
    stories: list[list[Unit]] = [
        [broadcast(0, "a", E1), broadcast(3, "d", E1), NumberAnnouncement(0, E1, 7, ((E3, 4),), 0, 0)],
        [Offer(packet(E3, 0, "a"), 0, 0, direct=True), Synchronise(0, E1, 3, 1, 2, 0, 7)],
        [Flush(0, E1, (4, E1), 0), Propose(0, E1, (4, E1), value, 0), Supply(packet(E1, 0, "a"), 0, E1, 0)],
        [Flush(0, E1, (4, E1), 0), Install(1, E1, value)],
    ]
    for story in stories:
        node = Node(E2)
        node.submits("x")
        node.hears(*story)
        twin = Node(E2).machine
        twin.restore(node.machine.snapshot())
        for name, part in vars(node.machine).items():
            if isinstance(part, DeclaredState):
                assert vars(part) == vars(getattr(twin, name)), name
        assert twin.snapshot() == node.machine.snapshot()


def test_equal_snapshots_choose_alike_in_whatever_order_reports_came() -> None:
    """Several may have accepted the same view: whom to fetch it from must not depend on who answered first."""
    value = NextView(1, 0b11111, E2, 3, "E1 did not answer")
    asked = []
    for first, second in ((4, 2), (2, 4)):
        node = Node(E2, 5)
        node.submits("x")
        while node.machine.agreement.promised is None:
            node.fires("view" if "view" in node.running else "need")
        ballot = node.machine.agreement.promised
        for source in (first, second):
            node.hears(Flushed(0, source, ballot, 3, ((1, 0), value)))
        node.hears(Flushed(0, 0, ballot, 0, None))
        out = node.hears(Flushed(0, 3, ballot, 0, None))
        asked.append([send.to for send in out.sends if isinstance(send.unit, Fetch)])
    assert asked == [[2], [2]]


@pytest.mark.parametrize(
    "unit",
    [
        Synchronise(0, E1, 1, 2, 9, 9, 0b111),  # says that all have what I lack
        Broadcast(packet(E3, 5, "x"), 0, E1, 0, 7, 7),  # out of its sender's order
    ],
)
def test_nothing_follows_when_the_group_is_given_up(unit: Unit) -> None:
    out = Node(E2).hears(unit)
    assert [type(output) for output in out].count(Abort) == 1
    assert type(out[-1]) is Abort


def test_data_of_a_node_that_was_shut_out_are_not_kept_but_answered() -> None:
    node = Node(E2)
    node.hears(Flush(0, E1, (1, E1), 0), Install(1, E1, NextView(1, 0b011, E1, 0, "E3 did not answer")))
    out = node.hears(Offer(packet(E3, 0, "late"), 0, 0, direct=True))
    assert node.machine.log_sizes().held == 0
    assert [type(unit) for unit in out.to(E3)] == [Install]


def test_it_says_what_it_waits_for() -> None:
    node = Node(E2, window=1)
    node.submits("a", "b")
    node.hears(broadcast(0, "x", E3), broadcast(2, "z", E1, 0))
    assert node.machine.waits_for() == (
        "1 submissions wait for the window",
        "1 packets sent wait to come back with a number",
        "broadcasts from 1 to 2 are missing",
        "1 broadcasts wait to be known as received by everybody",
    )
    sizes = node.machine.log_sizes()
    assert (sizes.waiting, sizes.sent, sizes.held, sizes.accepted) == (1, 1, 1, 1)
    node.hears(Flush(0, E3, (1, E3), 0))
    assert node.machine.waits_for()[-1] == "the view after 0 is being agreed on; E3 leads"
    assert set(node.running) == {"view"}


def test_the_sequencer_says_whom_it_waits_for() -> None:
    node = Node(E1, history=1)
    node.submits("a", "b")
    node.hears(Acknowledgment(0, E2, 1))
    assert node.machine.waits_for()[-1] == (
        "1 broadcasts wait to be known as received by everybody: {E3} may lack some"
    )
    node.fires("status")
    node.fires("status")
    assert node.machine.waits_for()[-1] == "phase 1 of synchronisation 1 waits for answers"


def test_a_group_that_has_everything_is_silent() -> None:
    for resilience in range(3):
        group = Group(3, resilience=resilience)
        for me in (E1, E2, E3):
            group.submit(me, "a", "b")
        group.settle()
        assert len(set(group.delivered())) == 1
        for node in group.nodes:
            assert node.machine.waits_for() == ()
            sizes = node.machine.log_sizes()
            assert not any(getattr(sizes, name) for name in sizes.__struct_fields__)
            assert len(node.did.everywhere) == len(node.did.accepted) == 6


def test_units_have_sizes_and_words() -> None:
    chance = Random(1)
    units = [any_unit(chance) for _ in range(400)]
    assert {type(unit) for unit in units} == set(KINDS)
    for unit in units:
        assert unit.size() >= 16
        assert unit.label()
    assert Acknowledgment(0, E2, 0, ((1, 2), (4, 9))).asks_for() == "1+4-8"
    assert Acknowledgment(0, E2, 0).asks_for() is None
    assert Fetch(0, E2, (3, E2), ((1, 2),)).asks_for() == "1 for ballot 3 of E2"


def test_configurations_are_checked() -> None:
    for options, sentence in (
        ({"history": 0}, "at least 1 broadcast"),
        ({"resilience": -1}, "must not be negative"),
        ({"resilience": 3}, "the resilience is at most 2, all nodes besides the sequencer"),
        ({"node": 3}, "must be one of the nodes 0 to 2"),
        ({"node": -1}, "must not be negative"),
        ({"direct_from": -1}, "must not be negative"),
        ({"suspect_after": 0}, "at least 1"),
        ({"heartbeat": -1}, "must not be negative"),
    ):
        with pytest.raises(Exception, match=sentence):
            config(**options)
