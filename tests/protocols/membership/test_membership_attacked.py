"""Groups under attack, and the smallest scripts of what attacks have found."""

from collections import Counter

import pytest
from msgspec.structs import replace

from ordercast.model.machine import Discard, TimerFired
from ordercast.protocols.membership.events import (
    Blocked,
    ChangeView,
    ReceiveOutside,
    SendControl,
    SendOutside,
    StateLoaded,
)
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import Entered, Flush, Leave, Welcome
from tests.protocols.membership.adversary import Attacked, attack, end_attack
from tests.protocols.membership.group import SETTINGS
from tests.protocols.membership.hand import Hand, sent
from tests.protocols.membership.promises import check, check_end

TOTAL = ("to", "prito", "prio", "sequencer")
ORDERS = (*TOTAL, "spo", "po", "st")


def run(name: str, seed: int, counts: Counter[str]) -> None:
    """One to seven founders; some with a static quorum, without state, or with coordinators that hardly wait."""
    founders = 1 + seed % 7
    settings = replace(SETTINGS, patience=1, suspected_patience=0) if seed % 4 == 3 else SETTINGS
    settings = replace(settings, least=founders // 2 + 1) if seed % 5 == 4 else settings
    settings = replace(settings, has_state=False) if seed % 6 == 5 else settings
    group = Attacked(
        *(order_of(name), founders, f"attack/{name}/{seed}"),
        is_total=name in TOTAL,
        resilience=(8, 8, 2, 1, 0)[seed % 5],
        settings=settings,
    )
    attack(group, rounds=25, joiners=3)
    check(group)
    end = end_attack(group)
    assert end != "stuck", f"{name}, seed {seed}"
    check(group)
    if end == "settled" and settings.has_state:
        check_end(group)
    counts[end] += 1
    counts.update(group.counts)


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_survives_attacks(name: str) -> None:
    counts: Counter[str] = Counter()
    for seed in range(14):
        run(name, seed, counts)
    assert min(counts[what] for what in ("settled", "crashes", "joined", "left", "blocked")) > 0


@pytest.mark.soak
@pytest.mark.parametrize("name", ORDERS)
def test_every_order_survives_many_attacks(name: str) -> None:
    counts: Counter[str] = Counter()
    for seed in range(14, 800):
        run(name, seed, counts)
    assert counts["settled"] > 200


# --- what was found ---


def joiner_alone_knows_the_view() -> Hand:
    """0 alone is a quorum of {0, 1}; it takes 7 in, welcomes it and crashes. 1 has not heard of that view."""
    hand = Hand(2)
    hand.apply(7, 0)
    hand.give(0, TimerFired("view.gather"))
    hand.reports(0, 1)
    assert hand.view_of(0) == "0,1,7"
    hand.welcome(7)
    return hand


def test_one_that_joined_tells_the_view_to_those_that_only_the_dead_could_have_told() -> None:
    """Two of three members of the view live: they must go on."""
    hand = joiner_alone_knows_the_view()
    hand.give(7, ChangeView("0 and 1 are silent"))
    outputs = hand.give(7, TimerFired("view.blocked"))
    told = [(output.address, output.unit) for output in outputs if isinstance(output, SendOutside)]
    [welcome] = [unit for address, unit in told if address == "address 1" and isinstance(unit, Welcome)]
    hand.give(1, ReceiveOutside(welcome, "address 7"))
    assert hand.view_of(1) == "0,1,7"
    assert sent(hand.last, Entered) == [(None, Entered(1, 1, True))], "whoever repeats the view to it need not"
    hand.check_one_view()
    hand.reports(7, 1)
    for _ in range(2):
        hand.choose(7)
    hand.accept(7, 1)
    assert hand.view_of(7) == "1,7"


def test_a_view_that_does_not_follow_the_own_one_is_not_entered() -> None:
    """Neither of another history, nor twice, nor for somebody else."""
    hand = joiner_alone_knows_the_view()
    member = hand.members[7]
    welcome = member.applicants.welcome_for(member.current.view.members[1])
    before = hand.members[1].snapshot()
    for wrong in (
        replace(welcome, incarnation=7),
        replace(welcome, view=replace(welcome.view, tag=b"12345678")),
        replace(welcome, view=replace(welcome.view, number=3), value=replace(welcome.value, number=3)),
    ):
        assert [type(output) for output in hand.give(1, ReceiveOutside(wrong, "x"))] == [Discard]
        assert hand.members[1].snapshot() == before
    fresh = Hand(2)
    assert [type(output) for output in fresh.give(1, ReceiveOutside(welcome, "x"))] == [Discard], "it has not reported"
    hand.give(1, ReceiveOutside(welcome, "address 7"))
    entered = hand.members[1].snapshot()
    assert [type(output) for output in hand.give(1, ReceiveOutside(welcome, "address 7"))] == [Discard]
    assert hand.members[1].snapshot() == entered


def test_who_was_reached_once_is_not_reached_for_ever() -> None:
    """The coordinator has had the report, and crashed, and so has 1: who waits for them is blocked, and says so."""
    hand = Hand(3)
    hand.flush(0, 2)
    assert not any(isinstance(output, Blocked) for output in hand.give(2, TimerFired("view.blocked")))
    assert Blocked(0b011) in hand.give(2, TimerFired("view.blocked"))
    assert not any(isinstance(output, Blocked) for output in hand.give(2, TimerFired("view.blocked"))), "said once"


def test_who_may_not_leave_yet_causes_no_views() -> None:
    """0 alone has the state: while it waits for 7 to load it, a ballot would make the same view again and again."""
    hand = Hand(1)
    hand.apply(7, 0)
    hand.give(0, TimerFired("view.gather"))
    hand.welcome(7)
    hand.passes(Entered, 7, 0)
    hand.leave(0)
    for _ in range(3):
        outputs = hand.give(0, TimerFired("view.leave"))
        assert [type(output.unit) for output in outputs if isinstance(output, SendControl)] == [Leave]
    hand.passes(Leave, 0, 7)
    assert hand.view_of(0) == "0,7"
    assert not hand.members[7].stopped
    hand.give(7, StateLoaded())
    hand.passes(Entered, 7, 0)
    hand.passes(Leave, 0, 7)
    assert hand.find(Flush, 7, 0) is not None, "now a view without it can be chosen"


def test_with_a_static_quorum_leaving_does_not_stop_the_group() -> None:
    """The third of at least three waits until another has joined; meanwhile the group goes on."""
    hand = Hand(3, least=3, has_state=False)
    hand.leave(2)
    for other in (0, 1):
        hand.passes(Leave, 2, other)
        assert not hand.members[other].stopped
    hand.apply(7, 0)
    hand.give(0, TimerFired("view.gather"))
    hand.reports(0, 1, 2)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1,2,7", "too few would go on without it"
    hand.install(0, 1, 2)
    hand.passes(Leave, 2, 0)
    hand.welcome(7)
    hand.reports(0, 1, 2, 7)
    hand.accept(0, 1, 2)
    assert hand.view_of(0) == "0,1,7"


def test_all_may_leave_a_static_quorum() -> None:
    hand = Hand(2, least=2)
    hand.leave(0)
    assert not hand.members[0].stopped
    hand.leave(1)
    hand.passes(Leave, 1, 0)
    assert hand.members[0].stopped


def test_one_that_got_the_state_itself_can_take_others_in() -> None:
    """What it knows of the others is not enough: it is one of those with state."""
    hand = Hand(1)
    hand.apply(7, 0)
    hand.give(0, TimerFired("view.gather"))
    hand.welcome(7)
    member = hand.members[7]
    assert member.applicants.without_state() == 0b10
    hand.give(7, StateLoaded())
    assert member.applicants.without_state() == 0
