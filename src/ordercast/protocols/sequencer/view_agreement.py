"""View agreement: when a node fails, the others agree on the next view by ballots, as in Paxos.

The paper only sketches this: elect the node with the highest number. As sketched it splits the group (S8). Here the
members of a view run one agreement on the view that follows. A node that suspects another asks all members to stop and
to report what they have received (Flush). With the reports of a quorum it chooses the next view: its members, its
sequencer, and the cut, which is where the old view's broadcasts end. It fetches what it lacks below the cut, proposes
the view, and installs it when enough nodes hold everything below the cut and have accepted it. A later ballot that
finds an accepted view proposes that view.

 - A node that has promised processes no broadcasts and delivers nothing, so that its report stays true.
 - Quorum of reports: a majority, and with resilience r >= 1 all but r (W3): it holds all that any node has delivered.
 - A view is decided when a majority of the old members and half of the new ones have accepted it (W1): every majority
   of the new members then has a node that holds all that the old view left.
 - Fetched broadcasts are set aside until the view is installed, and only those below its cut are then taken (W2).
 - The sequencer stays if it reported and is not suspected; otherwise the coordinator, which has fetched everything,
   takes over.

The seam, for another membership protocol to take its place: it reads the current view and an `OrderedLog`; while
`promised` is set the node is stopped; `receive` returns the view to install once it is decided; the machine installs
it and calls `start_view`.
"""

from collections.abc import Collection
from typing import Final, Protocol

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard, Output, Send, Stopped
from ordercast.model.nodes import mask_of, members, name_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.sequencer.loss_detection import MAX_COPIES, Ranges
from ordercast.protocols.sequencer.timers import Timers
from ordercast.protocols.sequencer.units import (
    ANSWERED_FROM_OLD_VIEWS,
    Accepted,
    Ballot,
    Fetch,
    Flush,
    Flushed,
    Install,
    NextView,
    Propose,
    Refused,
    Supply,
    ViewRequest,
)
from ordercast.protocols.sequencer.view import CurrentView

GATHER_ROUNDS = 2
"""Rounds that a coordinator waits for suspected members when all others have reported."""
TAKEOVER_ROUNDS = 4
"""Rounds without a unit from the coordinator after which another node takes over, the first time."""
MAX_DOUBLINGS = 6
"""How often that doubles while ballots fail: with heavy loss an agreement takes long."""
AGREEMENT_UNITS = frozenset({Flush, Flushed, Propose, Accepted, Refused, Fetch, Supply, Install, ViewRequest})


class OrderedLog(Protocol):
    """What the agreement asks about the broadcasts of the view that it ends."""

    @property
    def received_below(self) -> int:
        """Everything below has been received; does not change while the node is stopped."""
        ...

    def lacking(self, cut_below: int, supplied: Collection[int]) -> Ranges:
        """What is missing below a cut, besides what was supplied; no more than one request asks for."""
        ...

    def packet(self, number: int) -> Packet | None:
        """The broadcast with this number, if it is here."""
        ...


class ViewAgreement(DeclaredState):
    """The agreement on the view after the current one, at one member."""

    me: Final[int]
    config: Final[GroupConfig]
    view: Final[CurrentView]
    log: Final[OrderedLog]
    timers: Final[Timers]

    suspects: int  # members taken for failed, one bit each
    promised: Ballot | None  # the highest ballot promised to; a node that has promised has stopped
    highest_round: int  # of the ballots seen
    accepted: tuple[Ballot, NextView] | None  # the last proposal that this node accepted, with its ballot
    proposal: tuple[Ballot, NextView] | None  # accepted as soon as everything below its cut is here
    holder: int  # the node to fetch that from
    fetched_below: int  # requested so far
    supplied: dict[int, Packet]  # fetched broadcasts, taken over when the view is installed
    coordinates: bool  # the promised ballot is this node's own
    reports: dict[int, Flushed]  # to the coordinator, by node
    accepts: int  # members that have accepted the proposal, one bit each
    rounds: int  # of repetition in the coordinator's current step
    coordinator_active: bool  # received from the coordinator since the view timer was set
    answered: int  # nodes of other views that were answered since the answer timer was set, one bit each

    def __init__(self, me: int, config: GroupConfig, view: CurrentView, log: OrderedLog, timers: Timers) -> None:
        self.me, self.config, self.view, self.log, self.timers = me, config, view, log, timers
        self.answered = 0
        self.start_view()

    def start_view(self) -> None:
        """Suspicions, promises and ballots are about one next view."""
        self.suspects = 0
        self.promised, self.highest_round = None, 0
        self.accepted = self.proposal = None
        self.holder = self.fetched_below = 0
        self.supplied = {}
        self.coordinates = False
        self.reports = {}
        self.accepts = self.rounds = 0
        self.coordinator_active = False

    # --- suspicion ---

    def suspect(self, nodes: int, out: list[Output]) -> None:
        """The lowest member that is not suspected begins a ballot at once, the others later if it is still needed.

        Not if the whole group is a view of a changing group: then it is not for this agreement to end it.
        """
        if self.config.views or nodes & ~self.suspects == 0:
            return
        self.suspects |= nodes
        rank = (self.view.members & ~self.suspects & (self.view.my_bit - 1)).bit_count()
        if rank:
            self._set_timer("view", rank * TAKEOVER_ROUNDS * self.config.timing.repeat, out)
        else:
            self._begin_ballot(out)

    def suspected_by_host(self, nodes: int, out: list[Output]) -> None:
        """The same from a failure detector: the coordinator of a running agreement does not wait for these members."""
        nodes &= self.view.members & ~self.view.my_bit
        if self.config.views:
            return
        if self.promised is None:
            self.suspect(nodes, out)
        else:
            self.suspects |= nodes

    def _quorum(self) -> int:
        """How many members must report."""
        size = self.view.members.bit_count()
        return max(size // 2 + 1, size - self.view.resilience if self.view.resilience else 0)

    def view_timer_fired(self, out: list[Output]) -> None:
        """The view timer has expired: the coordinator repeats its step, another member may take over."""
        if self.promised is None:
            if self.suspects:
                self._begin_ballot(out)
            return
        self.timers.unresolved += 1
        if self.timers.unresolved > self.config.polls_to_abort:
            self._give_up(out)
        elif not self.coordinates and not self.coordinator_active:
            self._begin_ballot(out)
        else:
            if self.coordinates:
                self.rounds += 1
                self._continue(out)
            self._set_view_timer(self.promised, out)

    def _set_view_timer(self, ballot: Ballot, out: list[Output]) -> None:
        """A member waits for the coordinator the longer the more ballots have failed, and the higher its rank."""
        self.coordinator_active = False
        if self.coordinates:
            rounds = min(1 + self.rounds // 4, TAKEOVER_ROUNDS)
        else:
            rank = (self.view.members & (self.view.my_bit - 1)).bit_count()
            rounds = (TAKEOVER_ROUNDS + rank) << min(max(ballot[0] - 1, 0), MAX_DOUBLINGS)
        self._set_timer("view", rounds * self.config.timing.repeat, out)

    def _set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        self.timers.set(name, duration, self.log.received_below, out)

    def _give_up(self, out: list[Output]) -> None:
        size = self.view.members.bit_count()
        if self.coordinates and len(self.reports) < self._quorum():
            silent = size - len(self.reports)
            why = f"{silent} of {size} members cannot be reached: no majority; what was sent may be lost"
        else:
            why = f"the {size} members did not agree on the view after {self.view.number}; what was sent may be lost"
        self.view.abort(why, out, without_quorum=True)

    # --- units ---

    def receive(self, unit: Unit, out: list[Output]) -> NextView | None:
        """One of AGREEMENT_UNITS, from a member of the current view; returns the next view once it is decided."""
        if type(unit) is Flush:
            self._receive_flush(unit, out)
        elif type(unit) is Flushed:
            self._receive_flushed(unit, out)
        elif type(unit) is Propose:
            self._receive_propose(unit, out)
        elif type(unit) is Accepted:
            return self._receive_accepted(unit, out)
        elif type(unit) is Refused:
            self._receive_refused(unit, out)
        elif type(unit) is Fetch:
            self._receive_fetch(unit, out)
        elif type(unit) is Supply:
            self._receive_supply(unit, out)
        else:  # Install and ViewRequest of the current view
            out.append(Discard(unit, "duplicate"))
        return None

    # --- the coordinator ---

    def _begin_ballot(self, out: list[Output]) -> None:
        ballot = (max(self.highest_round, self.promised[0] if self.promised else 0) + 1, self.me)
        self._promise(ballot, out)
        self.coordinates, self.rounds, self.accepts = True, 0, 0
        self.reports = {self.me: self._report(ballot)}
        self._continue(out)
        self._set_view_timer(ballot, out)

    def _report(self, ballot: Ballot) -> Flushed:
        return Flushed(self.view.number, self.me, ballot, self.log.received_below, self.accepted)

    def _continue(self, out: list[Output]) -> None:
        """Repeats what is not answered yet, or takes the next step if it is time."""
        ballot, number = self.promised, self.view.number
        assert ballot is not None
        if self.proposal is None:
            if self._has_gathered():
                self.rounds = 0
                self._choose(ballot, out)
            else:
                out.append(Send(Flush(number, self.me, ballot, mask_of(self.reports))))
        elif self.rounds > TAKEOVER_ROUNDS * self.config.sequencer.suspect_after:
            self._begin_ballot(out)  # the holder of what is lacking, or members that must accept, have failed
        elif self.accepted != self.proposal:
            out.append(Send(Flush(number, self.me, ballot, self.view.members)))  # so that no other node takes over
            self._obtain(self.proposal, out)
        else:
            out.append(Send(Propose(number, self.me, ballot, self.proposal[1], self.accepts)))

    def _has_gathered(self) -> bool:
        """A quorum has reported and the others had their time; when all have, `_receive_flushed` goes on at once."""
        silent = self.view.members & ~mask_of(self.reports)
        rounds = self.config.sequencer.suspect_after if silent & ~self.suspects else GATHER_ROUNDS
        return len(self.reports) >= self._quorum() and self.rounds >= rounds

    def _receive_flushed(self, unit: Flushed, out: list[Output]) -> None:
        if not self.coordinates or unit.ballot != self.promised or self.proposal is not None:
            out.append(Discard(unit, "old"))
            return
        self.reports[unit.source] = unit
        if len(self.reports) == self.view.members.bit_count():
            self._choose(unit.ballot, out)

    def _choose(self, ballot: Ballot, out: list[Output]) -> None:
        """What an earlier ballot may have decided; otherwise the nodes that reported, and all that any of them has."""
        reports = self.reports.values()
        accepted = [(report.accepted, report.source) for report in reports if report.accepted is not None]
        if accepted:
            (_, value), self.holder = max(accepted, key=lambda found: (found[0][0], -found[1]))
        else:
            longest = self._longest_report()
            remain, old = mask_of(self.reports), self.view.sequencer
            keeps = remain >> old & 1 and not self.suspects >> old & 1
            gone = self.view.members & ~remain
            names = ", ".join(map(name_of, members(gone or self.suspects)))
            why = f"{names} did not answer" if gone else f"{names} was suspected"
            sequencer = old if keeps else self.me
            value = NextView(self.view.number + 1, remain, sequencer, longest.received_below, why)
            self.holder = longest.source
        self.proposal = (ballot, value)
        self._obtain(self.proposal, out)

    def _longest_report(self) -> Flushed:
        """Of the member that has received most; of several, the first."""
        return max(self.reports.values(), key=lambda report: (report.received_below, -report.source))

    def _receive_accepted(self, unit: Accepted, out: list[Output]) -> NextView | None:
        if not self.coordinates or unit.ballot != self.promised or self.proposal is None:
            out.append(Discard(unit, "old"))
            return None
        self.accepts |= 1 << unit.source
        value = self.proposal[1]
        if not self._is_decided(value):
            return None
        out.append(Send(Install(value.number, self.me, value)))
        return value

    def _is_decided(self, value: NextView) -> bool:
        """By a majority of the old members and half of the new ones: these hold what the old view left."""
        of_new = (self.accepts & value.members).bit_count()
        has_majority = self.accepts.bit_count() > self.view.members.bit_count() // 2
        return has_majority and 2 * of_new >= value.members.bit_count()

    def _receive_refused(self, unit: Refused, out: list[Output]) -> None:
        """There is a later ballot. If its coordinator fails, this node tries again with a higher one."""
        if self.coordinates and unit.ballot == self.promised:
            self.highest_round = max(self.highest_round, unit.promised[0])
            self.coordinates, self.proposal = False, None
            self._set_view_timer(unit.ballot, out)
        else:
            out.append(Discard(unit, "old"))

    # --- every member ---

    def _promise(self, ballot: Ballot, out: list[Output]) -> None:
        if self.promised is None:
            out.append(Stopped("view"))
            self.timers.stop(out)
        self.promised = ballot
        self.coordinates, self.proposal = False, None

    def _receive_flush(self, unit: Flush, out: list[Output]) -> None:
        if self._follow(unit, unit.ballot, out) and not unit.answered & self.view.my_bit:
            out.append(Send(self._report(unit.ballot), to=unit.source))

    def _receive_propose(self, unit: Propose, out: list[Output]) -> None:
        if self._follow(unit, unit.ballot, out) and not unit.answered & self.view.my_bit:
            self.proposal, self.holder = (unit.ballot, unit.value), unit.source
            self._obtain(self.proposal, out)

    def _follow(self, unit: Unit, ballot: Ballot, out: list[Output]) -> bool:
        """Promises to a ballot; False if a later one was promised to: the coordinator is sent a refusal."""
        if self.promised is not None and ballot < self.promised:
            out.append(Discard(unit, "old"))
            out.append(Send(Refused(self.view.number, self.me, ballot, self.promised), to=unit.source))
            return False
        if self.promised != ballot:
            self._promise(ballot, out)
            self._set_view_timer(ballot, out)
        self.coordinator_active = True
        return True

    def _obtain(self, proposal: tuple[Ballot, NextView], out: list[Output]) -> None:
        """Fetches what is missing below the cut; if nothing is, the view is accepted, or proposed."""
        ballot, value = proposal
        lacking = self.log.lacking(value.cut_below, self.supplied)
        if lacking:
            self.fetched_below = lacking[-1][1]
            out.append(Send(Fetch(self.view.number, self.me, ballot, lacking), to=self.holder))
            return
        self.accepted = proposal
        if self.coordinates:
            self.rounds = 0
            self.accepts |= self.view.my_bit
            out.append(Send(Propose(self.view.number, self.me, ballot, value, self.accepts)))
        else:
            out.append(Send(Accepted(self.view.number, self.me, ballot), to=ballot[1]))

    def _receive_fetch(self, unit: Fetch, out: list[Output]) -> None:
        copies = 0
        for start, stop in unit.missing:
            for number in range(start, min(stop, start + MAX_COPIES - copies)):
                packet = self.log.packet(number) or self.supplied.get(number)
                if packet is not None:
                    copies += 1
                    supply = Supply(packet, self.view.number, self.me, number)
                    out.append(Send(supply, again=True, to=unit.source))

    def _receive_supply(self, unit: Supply, out: list[Output]) -> None:
        proposal = self.proposal
        if proposal is None or not self.log.received_below <= unit.number < proposal[1].cut_below:
            out.append(Discard(unit, "old"))
            return
        self.supplied[unit.number] = unit.packet
        self.coordinator_active = True
        is_last = unit.number + 1 == self.fetched_below
        if self.accepted != proposal and (is_last or not self.log.lacking(proposal[1].cut_below, self.supplied)):
            self._obtain(proposal, out)

    # --- nodes of other views ---

    def receive_from_other_view(self, unit: Unit, view: int, out: list[Output]) -> None:
        """Sends the current view to a node of an older one that waits for a reply; asks a later one for it."""
        bit, number = 1 << unit.source, self.view.number
        if self.answered & bit or (view < number and type(unit) not in ANSWERED_FROM_OLD_VIEWS):
            out.append(Discard(unit, "old"))
            return
        if not self.answered:
            self._set_timer("answer", self.config.timing.guard, out)
        self.answered |= bit
        answer = ViewRequest(number, self.me) if view > number else Install(number, self.me, self.view.installed)
        out.append(Send(answer, to=unit.source))

    def answer_timer_fired(self) -> None:
        """The answer timer has expired: every node may be answered again."""
        self.answered = 0
