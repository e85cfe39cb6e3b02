"""The sequencer's broadcast: everything to everybody in one order, on a network that loses, doubles and reorders units.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989). A node offers a
packet to the sequencer, which gives it the next number and broadcasts it: two units for each broadcast. Who sees a gap
in the numbers asks for what is missing. These are the `sound` rules; the printed ones are in `sequencer_paper`, and why
they do not do is told in docs/protocols/sequencer.md. Sending is in `sequencer_sending`, the sequencer's part in
`sequencer_ordering`, receiving in `sequencer_receiving`, and what happens when a node fails in `sequencer_views`.

Departures from the paper:
 1. All bounds are exclusive and begin at 0, so that "nothing yet" has a value, and the table says what Figure 5 counts
    (S1, S2).
 2. An offer is old if its id is lower than the next one (not only equal to the last), and an old one is answered with
    the whole broadcast (S3, S4). The sequencer keeps offers that it cannot number yet.
 3. A number is old, the next one, or ahead; what is ahead is kept, and a gap is asked for once, then by timer (S5).
 4. Whoever has what is not known to be everywhere asks how things stand, and the sequencer asks who is not known to
    have everything: no last broadcast is lost in silence (S6). When nobody waits, nobody speaks.
 5. Synchronisations are counted, by view; the first phase ends when the table says that all have everything (S7).
 6. With resilience r, a broadcast is delivered when r nodes besides the sequencer hold it (the later Amoeba papers).
 7. A large packet is broadcast by its sender, and the sequencer broadcasts only its number (likewise).
 8. Views: when a node is silent, the others agree to go on without it (S8); every unit names its sender's view.
"""

from typing import TypeGuard

from ordercast.model.machine import Abort, Discard, GiveUp, Input, Output, Receive, Submit, Suspect, TimerFired
from ordercast.model.units import Unit
from ordercast.protocols.sequencer.units import (
    Accept,
    Broadcast,
    Bulletin,
    Fetch,
    Flush,
    Flushed,
    Have,
    Install,
    Offer,
    Order,
    Propose,
    Refused,
    Supply,
    Synchronise,
    Synchronised,
    ViewRequest,
)
from ordercast.protocols.sequencer.views import SequencerViews


class Sequencer(SequencerViews):
    """The protocol at one node."""

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.closed:
            return out
        if type(event) is Receive:
            self._receive(event.unit, out)
        elif type(event) is Submit:
            self._submit(event)
        elif type(event) is TimerFired:
            self._fire(event.name, out)
        elif type(event) is Suspect:
            self._be_told_of(event.members & self.members & ~self._my_bit, out)
        elif type(event) is GiveUp:
            self.abort(event.why, out)
        if self.promised is None and not self.closed:
            if self.waiting:
                self._send_waiting(out)
            if not self.is_sequencer:
                self._pay(out)
            else:
                if self.resilience and self.commit_below > self.announced_commit:
                    self._publish(out)
                self._watch(out)
        return self._until_the_end(out)

    def _until_the_end(self, out: list[Output]) -> list[Output]:
        """Nothing follows when the group has been given up, whatever a rule does that was under way."""
        if self.closed:
            ends = [place for place, output in enumerate(out, start=1) if type(output) is Abort]
            return out[: ends[0]] if ends else out
        return out

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        view: int | None = getattr(unit, "view", None)
        if type(unit) is Broadcast and view == self.view and unit.source == self.sequencer and self.promised is None:
            self.heard, self.suspects = True, 0
            self._receive_broadcast(unit, out)  # as most are
        elif view is None or unit.source == self.me:
            out.append(Discard(unit, "stray"))
        elif view != self.view:
            self._receive_of_other_view(unit, view, out)
        elif not self.members >> unit.source & 1:
            out.append(Discard(unit, "stray"))
        elif self._receive_agreement(unit, out):
            pass
        elif self.promised is not None:
            out.append(Discard(unit, "frozen"))
        elif self.is_sequencer:
            self.suspects &= ~(1 << unit.source)
            self._receive_as_sequencer(unit, out)
        elif type(unit) is Offer:
            self._keep_unordered(unit, out)
        elif unit.source == self.sequencer:
            self.heard, self.suspects = True, 0
            self._receive_from_sequencer(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def _receive_as_sequencer(self, unit: Unit, out: list[Output]) -> None:
        if getattr(unit, "received_below", 0) > self.received_below:
            out.append(Discard(unit, "impossible"))  # nobody has what I have not numbered
        elif type(unit) is Offer:
            self._receive_offer(unit, out)
        elif type(unit) is Have:
            self._receive_have(unit, out)
        elif type(unit) is Synchronised:
            self._receive_synchronised(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def _receive_from_sequencer(self, unit: Unit, out: list[Output]) -> None:
        if type(unit) is Order:
            self._receive_order(unit, out)
        elif type(unit) is Bulletin:
            self._receive_bulletin(unit, out)
        elif type(unit) is Synchronise:
            self._receive_synchronise(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def _receive_agreement(self, unit: Unit, out: list[Output]) -> bool:
        """What passes a node that has stopped; False: it is something else."""
        if type(unit) is Flush:
            self._receive_flush(unit, out)
        elif type(unit) is Flushed:
            self._receive_flushed(unit, out)
        elif type(unit) is Propose:
            self._receive_propose(unit, out)
        elif type(unit) is Accept:
            self._receive_accept(unit, out)
        elif type(unit) is Refused:
            self._receive_refused(unit, out)
        elif type(unit) is Fetch:
            self._receive_fetch(unit, out)
        elif type(unit) is Supply:
            self._receive_supply(unit, out)
        elif type(unit) is Install or type(unit) is ViewRequest:
            out.append(Discard(unit, "duplicate"))
        else:
            return False
        return True

    def _receive_of_other_view(self, unit: Unit, view: int, out: list[Output]) -> None:
        if type(unit) is Install:
            if view > self.view:
                self._take_view(unit.value, out)
            else:
                out.append(Discard(unit, "old"))
        elif self._may_be_numbered_yet(unit):
            self._keep_unordered(unit, out)
        else:
            self._hear_other(unit, view, out)

    def _may_be_numbered_yet(self, unit: Unit) -> TypeGuard[Offer]:
        """Whether it is data, broadcast by its sender in another view, that a sequencer may still number."""
        if type(unit) is not Offer or not unit.direct or self.is_sequencer or self.promised is not None:
            return False
        return bool(self.members >> unit.source & 1)

    def _fire(self, name: str, out: list[Output]) -> None:
        if name == "need":
            if self._need_due(out):
                self._suspect(1 << self.sequencer, out)
        elif name == "gap":
            self._gap_due(out)
        elif name == "status":
            self._suspect(self._status_due(out), out)
        elif name == "view":
            self._view_due(out)
        elif name == "answer":
            self.answered = 0
