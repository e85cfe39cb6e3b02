"""The acceptor: it stops, reports the same in every ballot, and votes as long as it may be needed."""

from typing import Any

from ordercast.model.machine import Discard, Drained, GiveUp, Receive, SetTimer, TimerFired
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.events import ReceiveControl, ReceiveOutside, SendControl
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.units import Accepted, Find, Flush, Found, Overruled, Propose, Report
from ordercast.protocols.membership.view import NextView, founding_view
from tests.protocols.membership.group import Group, disturb
from tests.protocols.membership.hand import Hand, person, sent
from tests.protocols.membership.orders import ONE_STREAM, STREAMS


def test_a_report_stays_the_same_in_every_ballot() -> None:
    hand = Hand(3)
    hand.submit(0, "x")
    hand.takes(2, "x")
    hand.flush(0, 2)
    hand.give(2, Receive(hand.sent[0][3]))
    hand.flush(1, 2)
    reports = [unit.report for _, by, _, unit in hand.sent if isinstance(unit, Report) and by == 2]
    assert reports == [EpochReport((1, 0, 0))] * 2


def test_who_stops_looks_later_whether_it_is_blocked() -> None:
    hand = Hand(3)
    hand.flush(0, 1)
    for number in (0, 1):
        assert hand.members[number].acceptor.has_stopped
    outputs = hand.give(2, ReceiveControl(Flush(0, 0, (1, 0), 0, "")))
    assert "view.blocked" in [output.name for output in outputs if isinstance(output, SetTimer)]


def test_an_earlier_ballot_is_discarded_and_does_not_guide() -> None:
    """Its coordinator is told of the later one."""
    hand = Hand(3)
    hand.flush(1, 2)
    member = hand.members[2]
    member.coordinator.guided = False
    old = (Flush(0, 0, (1, 0), 0, ""), Propose(0, 0, (1, 0), unchanged(hand), 0))
    for unit in old:
        outputs = hand.give(2, ReceiveControl(unit))
        assert outputs == [Discard(unit, "old"), SendControl(Overruled(0, 2, (1, 0), (1, 1)), 0, 0)]
        assert not member.coordinator.guided
        assert member.acceptor.promised == (1, 1)
    hand.give(2, ReceiveControl(Propose(0, 1, (1, 1), unchanged(hand), 0)))
    assert member.coordinator.guided
    assert member.acceptor.accepted is not None


def unchanged(hand: Hand) -> NextView:
    """A view with the same members."""
    everybody = hand.view.everybody
    return NextView(1, everybody, (), everybody, (), Cut((0,) * 3), 0, (), 3, "")


def test_while_stopped_nothing_reaches_the_epoch_and_submissions_wait() -> None:
    hand = Hand(3)
    hand.flush(0, 1)
    before = hand.members[1].machine.snapshot()
    hand.submit(1, "x")
    for event in (Drained(), TimerFired("status"), GiveUp("why")):
        assert hand.give(1, event) == []
    assert hand.members[1].machine.snapshot() == before
    assert len(hand.members[1].waiting) == 1


def test_who_is_excluded_without_knowing_the_view_still_votes() -> None:
    hand = Hand(3)
    hand.flush(2)
    hand.give(2, TimerFired("view.blocked"))
    find = next(unit for _, unit in hand.outside if isinstance(unit, Find))
    found = Found(
        *(find.group, find.name, find.incarnation, find.nonce, person(0), 5, 0, False, False, ("address 0",), 0, 0)
    )
    hand.give(2, ReceiveOutside(found, "address 0"))
    hand.members[0].acceptor.highest_round = 5
    hand.flush(0)
    hand.passes(Flush, 0, 2)
    assert len(sent(hand.last, Report)) == 1
    hand.passes(Report, 2, 0)
    hand.choose(0)
    hand.passes(Propose, 0, 2)
    assert [(to, vote.ballot) for to, vote in sent(hand.last, Accepted)] == [(0, (6, 0))]
    hand.passes(Accepted, 2, 0)
    assert hand.members[0].current.view.number == 1


class Restored(MembershipMachine):
    """Each input is also given to a twin that is restored before it; the twin knows nothing else."""

    def handle(self, event: Any) -> list[Any]:
        before, me = self.snapshot(), self.current.me
        twin = MembershipMachine(
            *(me, founding_view((me,), b"founding"), self.epoch.order, self.epoch.config, self.current.settings),
            group="g",
            contacts=self.blocking.contacts,
        )
        twin.restore(before)
        assert twin.snapshot() == before
        expected, found = twin.handle(event), super().handle(event)
        assert found == expected
        assert twin.snapshot() == self.snapshot()
        return found


def test_a_member_that_is_restored_before_every_input_does_the_same() -> None:
    views = 0
    for seed in range(6):
        group = Group((ONE_STREAM, STREAMS)[seed % 2], 3, f"restored/{seed}", member=Restored)
        disturb(group, rounds=8, joiners=2)
        views += group.counts["views"]
    assert views > 40
