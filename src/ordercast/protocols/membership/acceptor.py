"""A member as an acceptor of ballots on the next view: promises, the one report of the view, what was accepted.

- R1: who has promised a ballot gives its epoch no more inputs.
- R2: the report is made at the first promise in a view, and never changes; of two ballots the higher one counts.
- R3: a value is accepted when all below its cut is here. What is fetched for that is put aside: the epoch does not
  receive it, and no report names it.
- R5: only the incarnations of the view's list promise and accept in it: a new one of the same name has no place.
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard, Stopped
from ordercast.model.units import Packet
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.events import MemberOutput, SendControl
from ordercast.protocols.membership.order import Epoch
from ordercast.protocols.membership.units import (
    MAX_COPIES,
    Accepted,
    AcceptedValue,
    ControlUnit,
    Fetch,
    Flush,
    Install,
    Overruled,
    Propose,
    Report,
    Supply,
)
from ordercast.protocols.membership.view import Ballot, NextView, Reason

MAX_BALLOTS_AHEAD = 1 << 20
"""Rounds by which a ballot may be ahead of all that a member has seen: more cannot have been held meanwhile, and a
member that followed would use up the rounds that there are."""


class Acceptor(DeclaredState):
    """The acceptor's part of a member, for the view after the current one."""

    current: Final[Current]
    epoch: Final[Epoch]

    promised: Ballot | None  # the highest ballot promised; a member that has promised has stopped
    highest_round: int  # of the ballots seen
    report: EpochReport | None  # made once, at the first promise
    accepted: AcceptedValue | None  # the last proposal that this member accepted, with its ballot
    proposal: AcceptedValue | None  # accepted as soon as everything below its cut is here
    decided: NextView | None  # known to be decided; entered as soon as everything below its cut is here
    holder: int  # the place to fetch from
    fetched_below: int  # the last number asked for, and one
    supplied: dict[int, Packet]  # fetched and put aside
    leaving: bool  # this member has said that it leaves
    reached: int  # places that something was heard of since this member stopped
    kept: dict[int, Packet]  # packets of the previous view that others may have to fetch (sequencer)

    def __init__(self, current: Current, epoch: Epoch) -> None:
        self.current, self.epoch = current, epoch
        self.leaving = False
        self.kept = {}
        self.start_view()

    def start_view(self) -> None:
        """Promises are about one next view."""
        self.promised = self.report = None
        self.highest_round = 0
        self.accepted = self.proposal = None
        self.decided = None
        self.holder = self.fetched_below = 0
        self.supplied = {}
        self.reached = 0

    @property
    def has_stopped(self) -> bool:
        """The epoch is given no inputs: the next view is being agreed on."""
        return self.report is not None

    # --- promises ---

    def promise(self, ballot: Ballot, out: list[MemberOutput]) -> None:
        """Stops the epoch, the first time."""
        self.highest_round = max(self.highest_round, ballot[0])
        self.stop(out)
        self.promised, self.proposal = ballot, None

    def stop(self, out: list[MemberOutput]) -> None:
        """From here on nothing rises that a report says."""
        if not self.has_stopped:
            self.report = self.epoch.flush.report()
            self.reached = 1 << self.current.place
            out.append(Stopped("view"))
            self.current.set_timer("blocked", self.current.settings.failure_timeout, out)

    def follows(self, unit: Flush | Propose, out: list[MemberOutput]) -> bool:
        """Promises the ballot of a coordinator, unless a later one was promised: then it is told so."""
        if self.promised is not None and unit.ballot < self.promised:
            out.append(Discard(unit, "old"))
            current = self.current
            current.send(Overruled(current.view.number, current.place, unit.ballot, self.promised), unit.source, out)
            return False
        if self.promised != unit.ballot:
            self.promise(unit.ballot, out)
        return True

    def objection(self, unit: ControlUnit) -> str | None:
        """Why this member does not believe a unit that could be true for others; None: it does.

        Nothing of this comes from members that keep to the protocol, and a member that believed it could not finish
        its epoch.
        """
        if isinstance(unit, Propose | Install):
            value: NextView | None = unit.value
        else:
            value = unit.accepted[1] if isinstance(unit, Report) and unit.accepted else None
        if value is not None and (contradiction := self._contradiction(value)):
            return contradiction
        if isinstance(unit, Flush | Propose | Overruled):
            ballot = unit.promised if isinstance(unit, Overruled) else unit.ballot
            if ballot[0] > self.highest_round + MAX_BALLOTS_AHEAD:
                return "its ballot is too far ahead"
        return None

    def _contradiction(self, value: NextView) -> str | None:
        """What a value says of this member that is not so."""
        place = self.current.place
        if not value.heard >> place & 1:
            return None
        if self.report is None:
            return "it names a report that was not made"
        if (place, Reason.LEFT) in value.left and not self.leaving:
            return "it names one as leaving that stays"
        return self.epoch.flush.problem(value.cut)

    def report_for(self, ballot: Ballot) -> Report:
        """The same in every ballot, but for what was accepted."""
        current = self.current
        assert self.report is not None, "a member reports when it has stopped"
        return Report(
            current.view.number, current.place, ballot, self.accepted, self.leaving, current.has_state, self.report
        )

    def receive_flush(self, unit: Flush, out: list[MemberOutput]) -> bool:
        """Reports; whether this member follows the ballot."""
        if not self.follows(unit, out):
            return False
        if not unit.heard >> self.current.place & 1:
            self.current.send(self.report_for(unit.ballot), unit.source, out)
        return True

    # --- acceptance ---

    def receive_propose(self, unit: Propose, out: list[MemberOutput]) -> bool:
        """Accepts, at once or when all is here; whether this member follows the ballot."""
        if not self.follows(unit, out):
            return False
        if not unit.heard >> self.current.place & 1:
            self.proposal, self.holder = (unit.ballot, unit.value), unit.source
            if self.obtain(unit.value, out):
                self.accept(out)
        return True

    def obtain(self, value: NextView, out: list[MemberOutput]) -> bool:
        """Whether everything below the cut is here; otherwise some of it is asked for."""
        missing = self.missing(value)
        if not missing:
            return True
        self.fetched_below = missing[-1][1]
        self.current.send(Fetch(self.current.view.number, self.current.place, missing), self.holder, out)
        return False

    def missing(self, value: NextView) -> tuple[tuple[int, int], ...]:
        """Numbers below the cut to ask for: none of one that does not finish this epoch, and has more than the cut."""
        return self.epoch.lacks(value.cut, self.supplied)

    def accept(self, out: list[MemberOutput]) -> None:
        """Accepts the proposal of the promised ballot, and says so to its coordinator, unless that is this member."""
        assert self.proposal is not None, "there is a proposal to accept"
        self.accepted = self.proposal
        current, ballot = self.current, self.proposal[0]
        if ballot[1] != current.place:
            current.send(Accepted(current.view.number, current.place, ballot), ballot[1], out)

    # --- what is fetched (sequencer) ---

    def keep(self, cut: Cut) -> None:
        """The epoch ends at this cut: keeps what others may have to fetch. What is older than this is with all."""
        self.kept = dict(self.supplied)
        if cut.numbered_below:
            oldest = max(0, cut.numbered_below - 2 * self.epoch.config.sequencer.history)
            self.kept |= dict(self.epoch.flush.supply(((oldest, cut.numbered_below),)))

    def receive_fetch(self, unit: Fetch, out: list[MemberOutput]) -> None:
        """Sends copies: of the current epoch, or, if the unit is of the previous view, of what was kept of that."""
        current = self.current
        if unit.view == current.view.number:
            found = {**self.supplied, **dict(self.epoch.flush.supply(_first(unit.ranges)))}
            source: int | None = current.place
        else:
            found, source = self.kept, current.previous_place
        if source is None:
            return
        for first, stop in _first(unit.ranges):
            for number in range(first, stop):
                if number in found:
                    supply = Supply(found[number], unit.view, source, number)
                    out.append(SendControl(supply, unit.source, unit.view))

    def receive_supply(self, unit: Supply, out: list[MemberOutput]) -> bool:
        """Puts a packet aside; whether it is time to look whether something is still missing."""
        value = self.decided or (self.proposal[1] if self.proposal else None)
        if value is None or not any(first <= unit.number < stop for first, stop in self.missing(value)):
            out.append(Discard(unit, "old"))
            return False
        self.put_aside(unit)
        return unit.number + 1 == self.fetched_below or not self.missing(value)

    def put_aside(self, unit: Supply) -> None:
        """Neither the epoch nor a report knows of it."""
        self.supplied[unit.number] = unit.packet


def _first(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """As much of some ranges as is answered at once."""
    found, left = [], MAX_COPIES
    for first, stop in ranges:
        if left > 0:
            found.append((first, min(stop, first + left)))
            left -= found[-1][1] - first
    return tuple(found)
