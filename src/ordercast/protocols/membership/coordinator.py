"""Ballots: who coordinates, what it proposes, and when a view is decided.

- R4: a coordinator holds everything below the cut, and has accepted its value before it proposes it. The owner of a
  ballot therefore counts as having accepted what it proposed, also when it is dead.
- R6: it chooses when all have reported; otherwise when a quorum has, and the others had their time.
- R7: it proposes what an earlier ballot may have decided; otherwise it chooses (`choice`).
- R8: a view is decided when a quorum of the old one has accepted it in one ballot; whoever sees that installs it.
- R15: the lowest place that is neither suspected nor leaving begins; the others later, if it is still needed.
- P5: of two members that do not hear each other one is left out.
- R16: a suspicion that is answered costs a view with the same members, and excludes nobody.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard
from ordercast.model.nodes import mask_of, members
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.choice import accepted_before, choose
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.epoch import EpochReport
from ordercast.protocols.membership.events import MemberOutput
from ordercast.protocols.membership.order import Epoch
from ordercast.protocols.membership.units import Accepted, AcceptedValue, Flush, Overruled, Propose, Report
from ordercast.protocols.membership.view import MAX_WHY, Ballot, Incarnation, NextView, is_quorum

TAKEOVER_ROUNDS = 4
"""Rounds without a word from the coordinator after which another member takes over, the first time."""
MAX_DOUBLINGS = 6
"""How often that doubles while ballots fail: with heavy loss an agreement takes long."""
FETCH_ROUNDS = 32
"""Rounds after which what is lacking is looked for in a new ballot: its holder has failed."""
MAX_ROUNDS = 64
CONTRADICTS = "contradicts another report"
"""Why a report is discarded that nobody sends who keeps to the protocol."""


class Coordinator(DeclaredState):
    """The coordinator's part of a member, for the view after the current one."""

    current: Final[Current]
    epoch: Final[Epoch]
    acceptor: Final[Acceptor]
    applicants: Final[Callable[[], Sequence[Incarnation]]]
    stateless: Final[Callable[[], int]]

    suspects: int  # places taken for failed
    leavers: int  # places that have said that they leave
    broken: set[tuple[int, int]]  # pairs of places, the lower one first, of which one does not hear the other
    why: str  # of the last reason to begin a ballot
    waits_for_turn: bool  # there is a reason, and a lower place is to begin
    ballot: Ballot | None  # the last one of this member
    yielded: bool  # it was overruled: this member waits for the coordinator of a later ballot
    reports: dict[int, Report]  # in that ballot, by place
    proposed: NextView | None  # in that ballot
    accepts: int  # places that have accepted it
    learned: dict[Ballot, tuple[int, NextView]]  # by ballot: places that reported to have accepted, and what
    rounds: int  # of repetition in the current step
    guided: bool  # something came from the coordinator since the round timer was set
    blocked: bool  # too few members can be reached: everything is repeated seldom

    def __init__(
        self,
        current: Current,
        epoch: Epoch,
        acceptor: Acceptor,
        applicants: Callable[[], Sequence[Incarnation]],
        stateless: Callable[[], int],
    ) -> None:
        """`applicants`: those that are ready to join, the oldest application first.

        `stateless`: places that are not known to have the state.
        """
        self.current, self.epoch, self.acceptor = current, epoch, acceptor
        self.applicants, self.stateless = applicants, stateless
        self.start_view()

    def start_view(self) -> None:
        """Suspicions and ballots are about one next view."""
        self.suspects = self.leavers = 0
        self.broken = set()
        self.why = ""
        self.waits_for_turn = False
        self.ballot = self.proposed = None
        self.yielded = self.guided = self.blocked = False
        self.reports = {}
        self.learned = {}
        self.accepts = self.rounds = 0

    # --- who begins, and when ---

    def eligible(self) -> int:
        """Places that may coordinate: neither suspected nor leaving; if all that are not suspected leave, these."""
        remaining = self.current.view.everybody & ~self.suspects
        return remaining & ~self.leavers or remaining

    def rank(self) -> int:
        """How many would coordinate before this member; those that leave come last."""
        eligible = self.eligible()
        rank = self.current.ranked(eligible)
        return rank if eligible >> self.current.place & 1 else rank + self.current.size

    def consider(self, why: str, out: list[MemberOutput]) -> NextView | None:
        """There is a reason to change the view: begins a ballot, or waits for its turn."""
        self.why = why[:MAX_WHY]
        if self.acceptor.promised is not None:
            return None
        rank = self.rank()
        if rank == 0:
            return self.begin(out)
        if not self.waits_for_turn:
            self.waits_for_turn = True
            self._set_timer(rank * TAKEOVER_ROUNDS, out)
        return None

    def suspect(self, places: int, why: str, out: list[MemberOutput]) -> NextView | None:
        """These members are taken for failed."""
        if not places & self.current.others & ~self.suspects:
            return None
        self.suspects |= places & self.current.others
        self._shorten_patience(out)
        return self.consider(why, out)

    def leaves(self, place: int, out: list[MemberOutput]) -> NextView | None:
        """A member, perhaps this one, has said that it leaves."""
        self.leavers |= 1 << place
        if not self._can_leave():
            return None
        return self.consider(f"{self.current.view.members[place].name} leaves", out)

    def unheard(self, place: int, others: int, why: str, out: list[MemberOutput]) -> NextView | None:
        """A member does not hear others that live: the order waits for ever, until one of them is left out (P5)."""
        pairs = {(min(place, other), max(place, other)) for other in members(others) if other != place}
        if pairs <= self.broken:
            return None
        self.broken |= pairs
        return self.consider(why, out)

    def _can_leave(self) -> bool:
        """Whether a view without those that leave would be proposed now, as far as this member knows.

        Otherwise they stay for now: a ballot would only make the same view again, and another one after that.
        """
        staying = self.current.view.everybody & ~self.leavers
        if not staying:
            return True
        staying &= ~self.suspects
        return bool(staying & ~self.stateless()) and staying.bit_count() >= self.current.settings.least

    # --- the own ballot ---

    @property
    def is_active(self) -> bool:
        """Whether this member coordinates: the ballot that it has promised is its own."""
        return self.ballot is not None and self.ballot == self.acceptor.promised and not self.yielded

    def begin(self, out: list[MemberOutput]) -> NextView | None:
        """A new ballot; the value, if it is decided at once: by one member alone."""
        ballot = (self.acceptor.highest_round + 1, self.current.place)
        self.acceptor.promise(ballot, out)
        self.ballot, self.yielded, self.waits_for_turn = ballot, False, False
        self.proposed, self.accepts, self.rounds = None, 0, 0
        self.reports = {self.current.place: self.acceptor.report_for(ballot)}
        self._set_timer(1, out)
        self._flush(out)
        return self._propose_if_gathered(out)

    def receive_report(self, unit: Report, out: list[MemberOutput]) -> NextView | None:
        """A member has stopped."""
        if unit.accepted is not None and self._learns(unit.accepted, unit.source):
            self.acceptor.holder = unit.source
            return unit.accepted[1]
        if unit.ballot != self.ballot or not self.is_active or self._has_proposal():
            out.append(Discard(unit, "old"))
            return None
        if not self._can_be_true(
            {self.current.place: self.reports[self.current.place].report, unit.source: unit.report}
        ):
            out.append(Discard(unit, CONTRADICTS))
            return None
        were_enough = self._are_enough()
        self.reports[unit.source] = unit
        if self.rounds and not were_enough and self._are_enough():
            self._hear_the_rest(out)
        decided = self._propose_if_gathered(out)
        self._shorten_patience(out)
        return decided

    def _are_enough(self) -> bool:
        """Whether those that have reported are enough for a proposal."""
        size, settings = self.current.size, self.current.settings
        needed = max(self.epoch.reports_needed(size), settings.least)
        return is_quorum(mask_of(self.reports), size) and len(self.reports) >= needed

    def _hear_the_rest(self, out: list[MemberOutput]) -> None:
        """Too few could be reached until now. Whoever can be reached again, as they can, has its time from here on."""
        if self.blocked:
            self.suspects, self.blocked = 0, False
        self.rounds = 0
        self._set_timer(1, out)
        self._flush(out)

    def _can_be_true(self, reports: Mapping[int, EpochReport]) -> bool:
        """Whether some reports agree with each other and with what this member has: otherwise one of them is wrong."""
        flush, size = self.epoch.flush, self.current.size
        return (
            all(flush.is_report(report, size) for report in reports.values())
            and flush.agree(reports)
            and flush.problem(flush.cut(reports, size)) is None
        )

    def _drop_contradictions(self, out: list[MemberOutput]) -> bool:
        """If the reports cannot all be true, asks for all of them again; whether they were dropped."""
        if self._can_be_true({place: report.report for place, report in self.reports.items()}):
            return False
        place = self.current.place
        out.extend(Discard(report, CONTRADICTS) for other, report in self.reports.items() if other != place)
        self.reports = {place: self.reports[place]}
        return True

    def _learns(self, accepted: AcceptedValue, place: int) -> bool:
        """Whether reports, of whatever ballots, show that this value is decided."""
        ballot, value = accepted
        places = self.learned.get(ballot, (0, value))[0] | 1 << place
        own = self.acceptor.accepted
        if own is not None and own[0] == ballot:
            places |= 1 << self.current.place
        self.learned[ballot] = (places, value)
        return self.is_decided(value, places, ballot)

    def _has_proposal(self) -> bool:
        return self.proposed is not None or self.acceptor.proposal is not None

    def has_gathered(self) -> bool:
        """R6: whether it is time to propose."""
        silent = self.current.view.everybody & ~mask_of(self.reports)
        if not silent:
            return True
        if not self._are_enough():
            return False
        settings = self.current.settings
        return self.rounds >= (settings.patience if silent & ~self.suspects else settings.suspected_patience)

    def _shorten_patience(self, out: list[MemberOutput]) -> None:
        """Only suspected members have not reported: these are asked once more, and waited for a little."""
        settings = self.current.settings
        last = settings.suspected_patience - 1
        silent = self.current.view.everybody & ~mask_of(self.reports)
        is_due = settings.grace and self.is_active and not self._has_proposal() and self.rounds < last
        if is_due and silent and not silent & ~self.suspects and self._are_enough():
            self.rounds = last
            self._flush(out)
            self.current.set_timer("round", settings.grace, out, self.acceptor.highest_round)

    def _propose_if_gathered(self, out: list[MemberOutput]) -> NextView | None:
        if not self.has_gathered() or self._drop_contradictions(out):
            return None
        found = self.value_to_propose()
        if found is None:
            return None
        value, holder = found
        assert self.ballot is not None, "a coordinator has a ballot"
        self.acceptor.proposal, self.acceptor.holder, self.rounds = (self.ballot, value), holder, 0
        return self.propose(out)

    def value_to_propose(self) -> tuple[NextView, int] | None:
        """R7: what is to be proposed, and who holds all below its cut; None if too few members would go on."""
        before = accepted_before(self.reports)
        if before is not None:
            (_, value), holder = before
            return value, holder
        current = self.current
        found = choose(
            *(current.view, self.reports, self.applicants(), current.settings, self.epoch.flush.cut, self.why),
            broken=self.broken,
        )
        if found is None:
            return None
        return found, max(self.reports, key=lambda place: (self.reports[place].report.numbered_below, -place))

    def propose(self, out: list[MemberOutput]) -> NextView | None:
        """R4: accepts the own proposal as soon as all is here, and then proposes it."""
        proposal = self.acceptor.proposal
        assert proposal is not None, "there is a value to propose"
        if not self.acceptor.obtain(proposal[1], out):
            return None
        self.acceptor.accept(out)
        self.proposed, self.accepts, self.rounds = proposal[1], 1 << self.current.place, 0
        self._repeat_proposal(out)
        return self._value_if_decided()

    def receive_accepted(self, unit: Accepted, out: list[MemberOutput]) -> NextView | None:
        """Also when another ballot was promised meanwhile: what a quorum has accepted is decided."""
        if unit.ballot != self.ballot or self.proposed is None:
            out.append(Discard(unit, "old"))
            return None
        self.accepts |= 1 << unit.source
        return self._value_if_decided()

    def _value_if_decided(self) -> NextView | None:
        value, ballot = self.proposed, self.ballot
        return value if value and ballot and self.is_decided(value, self.accepts, ballot) else None

    def is_decided(self, value: NextView, accepts: int, ballot: Ballot) -> bool:
        """R8: accepted by a quorum of the old view, the ballot's owner counted."""
        del value  # of the new view nobody is asked: who enters it holds all that the old one left
        return is_quorum(accepts | 1 << ballot[1], self.current.size)

    def receive_overruled(self, unit: Overruled, out: list[MemberOutput]) -> None:
        """There is a later ballot. If its coordinator fails, this member tries again with a higher one."""
        self.acceptor.highest_round = max(self.acceptor.highest_round, unit.promised[0])
        if unit.ballot == self.ballot and self.is_active:
            self.yielded = True
            self.wait_for_coordinator(out)
        else:
            out.append(Discard(unit, "old"))

    # --- rounds ---

    def wait_for_coordinator(self, out: list[MemberOutput]) -> None:
        """The longer the more ballots have failed, and the more members would take over before this one."""
        self.guided = self.waits_for_turn = False
        doublings = min(max(self.acceptor.highest_round - 1, 0), MAX_DOUBLINGS)
        self._set_timer((TAKEOVER_ROUNDS + self.rank()) << doublings, out)

    def round_due(self, out: list[MemberOutput]) -> NextView | None:
        """The round timer has fired: a coordinator repeats its step; another member may begin or take over."""
        if self.acceptor.promised is None:
            if self.waits_for_turn:
                return self.begin(out)
        elif self.is_active:
            return self._next_round(out)
        elif not self.guided:
            return self.begin(out)
        else:
            self.wait_for_coordinator(out)
        return None

    def _next_round(self, out: list[MemberOutput]) -> NextView | None:
        self.rounds = min(self.rounds + 1, MAX_ROUNDS)
        self._set_timer(min(1 + self.rounds // 4, TAKEOVER_ROUNDS), out)
        if self.proposed is not None:
            self._repeat_proposal(out)
        elif self.acceptor.proposal is None:
            decided = self._propose_if_gathered(out)
            if not self._has_proposal():
                self._flush(out)
            return decided
        elif self.rounds > FETCH_ROUNDS:
            return self.begin(out)
        else:
            self._flush(out, self.current.view.everybody)  # so that no other member takes over
            return self.propose(out)
        return None

    def _flush(self, out: list[MemberOutput], heard: int | None = None) -> None:
        assert self.ballot is not None, "a coordinator has a ballot"
        current = self.current
        heard = mask_of(self.reports) if heard is None else heard
        current.send(Flush(current.view.number, current.place, self.ballot, heard, self.why), None, out)

    def _repeat_proposal(self, out: list[MemberOutput]) -> None:
        assert self.ballot is not None, "a coordinator has a ballot"
        assert self.proposed is not None, "a value was proposed"
        current = self.current
        unit = Propose(current.view.number, current.place, self.ballot, self.proposed, self.accepts)
        current.send(unit, None, out)

    def _set_timer(self, rounds: int, out: list[MemberOutput]) -> None:
        settings = self.current.settings
        duration = max(rounds * settings.repeat, settings.blocked_repeat if self.blocked else 0)
        self.current.set_timer("round", duration, out, self.acceptor.highest_round)
