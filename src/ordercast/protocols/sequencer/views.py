"""The sequencer's broadcast when a node fails: the others agree on the next view, and go on.

The paper has this as an idea: elect the node with the highest number. As printed it splits the group (S8); here is one
agreement for each view, by ballots. Whoever suspects asks all members to stop and to say what they have (Flush). With
the answers of a quorum it knows a next view: who goes on, who is the sequencer, and which broadcasts the old view takes
to its grave. It fetches what it lacks of these, proposes the view, and installs it when enough nodes hold all of them
and have accepted it. A later ballot that finds an accepted view proposes that one.

 - A node that has promised takes nothing of the old view any more, and delivers nothing: its report stays true.
 - Quorum of answers: a majority, and with resilience r >= 1 all but r (W3): so it holds whatever anybody delivered.
 - A view is decided when a majority of the old members and half of the new ones have accepted it (W1): so every
   majority of the new ones has a node that holds all that the old view left.
 - What is fetched is put aside until the view is installed, and then only what lies below its cut is taken (W2).
 - The sequencer stays, if it answered and is not suspected; else it is the coordinator, which has fetched everything.
"""

from ordercast.model.machine import CancelTimer, Discard, Output, Resumed, Send, Stopped, View
from ordercast.model.nodes import mask_of, members, name_of
from ordercast.model.units import Unit
from ordercast.protocols.sequencer.sending import SequencerSending
from ordercast.protocols.sequencer.state import MOST_COPIES
from ordercast.protocols.sequencer.units import (
    OLD_VIEW,
    Accept,
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

GATHER = 2
"""Rounds that a coordinator waits for those who are suspected, when all others have answered."""
LEAD = 4
"""Rounds without a word from the coordinator after which another one takes over, the first time."""
MOST_DOUBLINGS = 6
"""How often that doubles, while ballots fail: where most units are lost, an agreement takes its time."""


class SequencerViews(SequencerSending):
    """How views end and begin."""

    # --- suspicion ---

    def _suspect(self, nodes: int, out: list[Output]) -> None:
        """The lowest of those not suspected begins at once, the others in their turn, if they still have to."""
        if nodes & ~self.suspects == 0:
            return
        self.suspects |= nodes
        rank = (self.members & ~self.suspects & (self._my_bit - 1)).bit_count()
        if rank:
            self.set_timer("view", rank * LEAD * self.config.timing.repeat, out)
        else:
            self._begin_ballot(out)

    def _be_told_of(self, nodes: int, out: list[Output]) -> None:
        """The host suspects them: whoever leads an agreement that is under way does not wait for them."""
        if self.promised is None:
            self._suspect(nodes, out)
        else:
            self.suspects |= nodes

    def _quorum(self) -> int:
        """How many must answer a flush."""
        size = self.members.bit_count()
        return max(size // 2 + 1, size - self.resilience if self.resilience else 0)

    def _view_due(self, out: list[Output]) -> None:
        """The timer of the agreement: the coordinator says it again, another one may take its place."""
        if self.promised is None:
            if self.suspects:
                self._begin_ballot(out)
            return
        self.unresolved += 1
        if self.unresolved > self.config.polls_to_abort:
            self._give_up(out)
        elif not self.coordinates and not self.guided:
            self._begin_ballot(out)
        else:
            if self.coordinates:
                self.rounds += 1
                self._go_on(out)
            self._set_view_timer(out)

    def _set_view_timer(self, out: list[Output]) -> None:
        """Who waits for the coordinator is the more patient the more ballots have failed, and the higher its rank."""
        assert self.promised is not None
        self.guided = False
        if self.coordinates:
            rounds = min(1 + self.rounds // 4, LEAD)
        else:
            rank = (self.members & (self._my_bit - 1)).bit_count()
            rounds = (LEAD + rank) << min(max(self.promised[0] - 1, 0), MOST_DOUBLINGS)
        self.set_timer("view", rounds * self.config.timing.repeat, out)

    def _give_up(self, out: list[Output]) -> None:
        size, silent = self.members.bit_count(), self.members.bit_count() - len(self.reports)
        if self.coordinates and len(self.reports) < self._quorum():
            why = f"{silent} of {size} members cannot be reached: no majority; what was sent may be lost"
        else:
            why = f"the {size} members did not agree on the view after {self.view}; what was sent may be lost"
        self.abort(why, out)

    # --- the coordinator ---

    def _begin_ballot(self, out: list[Output]) -> None:
        ballot = (max(self.highest_round, self.promised[0] if self.promised else 0) + 1, self.me)
        self._promise(ballot, out)
        self.coordinates, self.rounds, self.accepts = True, 0, 0
        self.reports = {self.me: Flushed(self.view, self.me, ballot, self.received_below, self.accepted)}
        self._go_on(out)
        self._set_view_timer(out)

    def _go_on(self, out: list[Output]) -> None:
        """Says again what is not answered yet, or takes the next step if it is time."""
        ballot = self.promised
        assert ballot is not None
        if self.proposal is None:
            if self._has_gathered():
                self.rounds = 0
                self._choose(ballot, out)
            else:
                out.append(Send(Flush(self.view, self.me, ballot, mask_of(self.reports))))
        elif self.rounds > LEAD * self.config.sequencer.suspect_after:
            self._begin_ballot(out)  # the holder of what is lacking, or those who must accept, are gone
        elif self.accepted != self.proposal:
            out.append(Send(Flush(self.view, self.me, ballot, self.members)))  # so that nobody takes my place
            self._obtain(out)
        else:
            out.append(Send(Propose(self.view, self.me, ballot, self.proposal[1], self.accepts)))

    def _has_gathered(self) -> bool:
        """A quorum has answered, and the rest had its time; as soon as everybody has, `_receive_flushed` goes on."""
        silent = self.members & ~mask_of(self.reports)
        patience = self.config.sequencer.suspect_after if silent & ~self.suspects else GATHER
        return len(self.reports) >= self._quorum() and self.rounds >= patience

    def _receive_flushed(self, unit: Flushed, out: list[Output]) -> None:
        if not self.coordinates or unit.ballot != self.promised or self.proposal is not None:
            out.append(Discard(unit, "old"))
            return
        self.reports[unit.source] = unit
        if len(self.reports) == self.members.bit_count():
            self._choose(unit.ballot, out)

    def _choose(self, ballot: Ballot, out: list[Output]) -> None:
        """What a ballot before may have decided; else all that anybody has who answered, and those go on."""
        reports = self.reports.values()
        accepted = [(report.accepted, report.source) for report in reports if report.accepted is not None]
        if accepted:
            (_, value), self.holder = max(accepted, key=lambda found: (found[0][0], -found[1]))
        else:
            longest = max(reports, key=lambda report: (report.received_below, -report.source))
            remain, old = mask_of(self.reports), self.sequencer
            keeps = remain >> old & 1 and not self.suspects >> old & 1
            gone = self.members & ~remain
            names = ", ".join(map(name_of, members(gone or self.suspects)))
            why = f"{names} did not answer" if gone else f"{names} was suspected"
            sequencer = old if keeps else self.me
            value = NextView(self.view + 1, remain, sequencer, longest.received_below, why)
            self.holder = longest.source
        self.proposal = (ballot, value)
        self._obtain(out)

    def _receive_accept(self, unit: Accept, out: list[Output]) -> None:
        if not self.coordinates or unit.ballot != self.promised or self.proposal is None:
            out.append(Discard(unit, "old"))
            return
        self.accepts |= 1 << unit.source
        self._decide(out)

    def _decide(self, out: list[Output]) -> None:
        """Decided by a majority of the old members, and half of the new ones: they hold what the old view left."""
        assert self.proposal is not None
        value = self.proposal[1]
        of_new = (self.accepts & value.members).bit_count()
        if self.accepts.bit_count() > self.members.bit_count() // 2 and 2 * of_new >= value.members.bit_count():
            out.append(Send(Install(value.number, self.me, value)))
            self._take_view(value, out)

    def _receive_refused(self, unit: Refused, out: list[Output]) -> None:
        """Somebody is ahead of me: it leads, and if it does not, I try again with a higher ballot."""
        if self.coordinates and unit.ballot == self.promised:
            self.highest_round = max(self.highest_round, unit.promised[0])
            self.coordinates, self.proposal = False, None
            self._set_view_timer(out)
        else:
            out.append(Discard(unit, "old"))

    # --- every member ---

    def _promise(self, ballot: Ballot, out: list[Output]) -> None:
        if self.promised is None:
            out.append(Stopped("view"))
            self.stop_timers(out)
        self.promised = ballot
        self.coordinates, self.proposal = False, None

    def _receive_flush(self, unit: Flush, out: list[Output]) -> None:
        if self._is_late(unit, unit.ballot, out):
            return
        if self.promised != unit.ballot:
            self._promise(unit.ballot, out)
            self._set_view_timer(out)
        self.guided = True
        if not unit.heard & self._my_bit:
            reply = Flushed(self.view, self.me, unit.ballot, self.received_below, self.accepted)
            out.append(Send(reply, to=unit.source))

    def _receive_propose(self, unit: Propose, out: list[Output]) -> None:
        if self._is_late(unit, unit.ballot, out):
            return
        if self.promised != unit.ballot:
            self._promise(unit.ballot, out)
            self._set_view_timer(out)
        self.guided = True
        if not unit.heard & self._my_bit:
            self.proposal, self.holder = (unit.ballot, unit.value), unit.source
            self._obtain(out)

    def _is_late(self, unit: Unit, ballot: Ballot, out: list[Output]) -> bool:
        """Whether I have promised myself to a later ballot; its coordinator is told so."""
        if self.promised is None or ballot >= self.promised:
            return False
        out.append(Discard(unit, "old"))
        out.append(Send(Refused(self.view, self.me, ballot, self.promised), to=unit.source))
        return True

    def _obtain(self, out: list[Output]) -> None:
        """Asks for what I lack of a proposal; when I lack nothing, it is accepted, or proposed."""
        assert self.proposal is not None
        ballot, value = self.proposal
        lacking = self.lacking(value.cut_below)
        if lacking:
            self.fetched_below = lacking[-1][1]
            out.append(Send(Fetch(self.view, self.me, ballot, lacking), to=self.holder))
            return
        self.accepted = self.proposal
        if self.coordinates:
            self.rounds = 0
            self.accepts |= self._my_bit
            out.append(Send(Propose(self.view, self.me, ballot, value, self.accepts)))
        else:
            out.append(Send(Accept(self.view, self.me, ballot), to=ballot[1]))

    def _receive_fetch(self, unit: Fetch, out: list[Output]) -> None:
        copies = 0
        for start, stop in unit.missing:
            for number in range(start, min(stop, start + MOST_COPIES - copies)):
                packet = self.history.get(number) or self.ahead.get(number) or self.supplied.get(number)
                if packet is not None:
                    copies += 1
                    out.append(Send(Supply(packet, self.view, self.me, number), again=True, to=unit.source))

    def _receive_supply(self, unit: Supply, out: list[Output]) -> None:
        """Put aside: it is mine when the view that takes it over is installed, if that one does."""
        if self.proposal is None or not self.received_below <= unit.number < self.proposal[1].cut_below:
            out.append(Discard(unit, "old"))
            return
        self.supplied[unit.number] = unit.packet
        self.guided = True
        is_last = unit.number + 1 == self.fetched_below
        if self.accepted != self.proposal and (is_last or not self.lacking(self.proposal[1].cut_below)):
            self._obtain(out)

    # --- the next view ---

    def _take_view(self, value: NextView, out: list[Output]) -> None:
        """Members of a view were asked for it: whoever hears of a later one than the next is not among them."""
        if value.number == self.view + 1 and value.members & self._my_bit:
            self._install(value, out)
        else:
            self.closed = True
            out.append(View(value.number, value.members & ~self._my_bit, value.why))

    def _install(self, value: NextView, out: list[Output]) -> None:
        """The old view ends at the cut; what I lack below it I ask for in the new one."""
        found = {**self.supplied, **self.ahead}
        self.ahead = {number: packet for number, packet in found.items() if number < value.cut_below}
        self.known_below, self.asked_below, self.overdue_below = value.cut_below, 0, 0
        self.awaited.clear()
        self.unordered = {name: packet for name, packet in self.unordered.items() if value.members >> name[0] & 1}
        if self.received_below > value.cut_below:
            self.abort(f"view {value.number} takes back what {name_of(self.me)} has of the one before", out)
            return
        while self.received_below in self.ahead and not self.closed:
            self._store(self.ahead.pop(self.received_below), out)
        self.enter(value)
        self.start_ordering()
        self.start_agreement()
        self.said_below, self.wanted_below, self.gap_below = 0, 0, 0
        self.heard = self.asked = self.moved = False
        self.silent, self.patience = 0, 1
        self.commit_below = max(self.commit_below, value.cut_below)
        self.markers.append(value)
        out += (CancelTimer("view"), Resumed(0, 0, 0))
        self._deliver(out)
        self._begin(out)

    def _begin(self, out: list[Output]) -> None:
        """Own packets that the old view did not number are offered anew; the sequencer is told what I have."""
        mine = list(self.outstanding)
        if self.is_sequencer:
            if self.received_below < self.known_below:
                self.abort(f"{name_of(self.me)} must number the broadcasts of view {self.view}, but lacks some", out)
                return
            self.rows[self.me] = self.received_below
            self.number_of = {(packet.source, packet.seq): number for number, packet in self.history.items()}
            for packet in mine:
                self._offer(packet, out)
            return
        missing = self.missing()
        if missing or not mine:
            self._say(missing, out)
        self._offer_again(mine, out)
        self.asked |= bool(mine)

    # --- nodes of other views ---

    def _hear_other(self, unit: Unit, view: int, out: list[Output]) -> None:
        """Whoever is behind is told the present view, if it wants an answer; whoever is ahead is asked for theirs."""
        bit = 1 << unit.source
        if self.answered & bit or (view < self.view and type(unit) not in OLD_VIEW):
            out.append(Discard(unit, "old"))
            return
        if not self.answered:
            self.set_timer("answer", self.config.timing.guard, out)
        self.answered |= bit
        answer = ViewRequest(self.view, self.me) if view > self.view else Install(self.view, self.me, self.installed)
        out.append(Send(answer, to=unit.source))
