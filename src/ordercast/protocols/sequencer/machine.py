"""Fixed-sequencer atomic broadcast: every message to all nodes in one total order, over an unreliable network.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989). A node offers a
packet to the sequencer, which gives it the next sequence number and broadcasts it: two units for each broadcast. A node
that sees a gap in the numbers requests what is missing. These are the `sound` rules; the printed ones are in
`sequencer.paper`, and docs/protocols/sequencer.md says why they do not suffice.

The machine dispatches to its parts, each with a state of its own. A part uses those listed above it:

    view             the current view
    timers           running timers and back-off
    window           own packets, flow control
    loss_detection   gaps, and when to request what is missing               (timers)
    reception        numbers in order, history buffer, delivery              (view, timers, window, loss_detection)
    sender           offers, acknowledgments, requests to the sequencer      (view, timers, window, reception)
    orderer          the sequencer's part: numbering, table, synchronising   (view, timers, reception)
    view_agreement   suspicion, and the next view when a node fails          (view, timers, reception as `OrderedLog`)

Departures from the paper:
 1. All bounds are exclusive and begin at 0, so that "nothing yet" has a value, and the table means what Figure 5 counts
    (S1, S2).
 2. An offer is a duplicate if its id is lower than the next one (not only equal to the last); a duplicate is answered
    with the whole broadcast (S3, S4). The sequencer keeps offers that it cannot number yet.
 3. A number is old, the next one, or ahead; what is ahead is kept, and a gap is requested once, then by timer (S5).
 4. A node that has something which may not be stable asks for the status, and the sequencer asks members that have not
    acknowledged everything: the loss of a last broadcast is noticed (S6). An idle group sends nothing.
 5. Synchronisations are counted, by view; the first phase ends when the table says that all have everything (S7).
 6. With resilience degree r, a broadcast is delivered when r nodes besides the sequencer hold it (the later Amoeba
    papers).
 7. A large packet is broadcast by its sender, and the sequencer broadcasts only its number (likewise).
 8. Views: when a node fails, the others agree to go on without it (S8); every unit names its sender's view. In a group
    with `GroupConfig.views` that is done from outside (`protocols.membership`), and this machine runs within one view.

Not here: nodes that join or return, fragmentation of large messages, the network.
"""

from typing import ClassVar, Final, TypeGuard

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Discard,
    Echo,
    GiveUp,
    Input,
    LogSizes,
    Numbered,
    Output,
    Receive,
    Resumed,
    Submit,
    Suspect,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.nodes import name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.units import Unit
from ordercast.protocols.sequencer.orderer import Orderer
from ordercast.protocols.sequencer.reception import Reception
from ordercast.protocols.sequencer.sender import Sender
from ordercast.protocols.sequencer.timers import Timers
from ordercast.protocols.sequencer.units import (
    Acknowledgment,
    Broadcast,
    Install,
    NextView,
    NumberAnnouncement,
    Offer,
    SequencerStatus,
    Synchronise,
    Synchronised,
)
from ordercast.protocols.sequencer.view import CurrentView
from ordercast.protocols.sequencer.view_agreement import AGREEMENT_UNITS, ViewAgreement
from ordercast.protocols.sequencer.window import SendWindow
from ordercast.protocols.shared.destinations import check_broadcast


class Sequencer(DeclaredState):
    """The protocol at one node."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.ANY
    has_views: ClassVar[bool] = True

    me: Final[int]
    config: Final[GroupConfig]

    view: CurrentView
    timers: Timers
    window: SendWindow
    reception: Reception
    sender: Sender
    orderer: Orderer
    agreement: ViewAgreement

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.config = me, config
        self.view = CurrentView(me, config)
        self.timers = Timers(me)
        self.window = SendWindow(me, config)
        self.reception = Reception(me, config, self.view, self.window, self.timers)
        self.sender = Sender(me, config, self.view, self.window, self.reception, self.timers)
        self.orderer = Orderer(me, config, self.view, self.reception, self.timers)
        self.agreement = ViewAgreement(me, config, self.view, self.reception, self.timers)

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.view.closed:
            return out
        view = self.view
        if type(event) is Receive:
            self._receive(event.unit, out)
        elif type(event) is Submit:
            self._submit(event)
        elif type(event) is TimerFired:
            self._fire(event.name, out)
        elif type(event) is Suspect:
            self.agreement.suspected_by_host(event.members, out)
        elif type(event) is GiveUp:
            view.abort(event.why, out)
        if self.agreement.promised is None and not view.closed:
            if self.window.waiting:
                self._send_waiting(out)
            if view.is_sequencer:
                self.orderer.publish_commit(out)
                self.orderer.start_status_timer(out)
            else:
                self.sender.settle(out)
        return _until_abort(out) if view.closed else out

    # --- sending ---

    def _submit(self, event: Submit) -> None:
        check_broadcast(event.destinations, self.config.nodes)
        self.window.waiting.append(event)

    def _send_waiting(self, out: list[Output]) -> None:
        """As many as the window takes; none while the group synchronises."""
        if self.sender.is_paused():
            return
        view, window = self.view, self.window
        while window.waiting and window.has_room() and not view.closed:
            packet = window.next_packet()
            out.append(Numbered(packet))
            if view.is_sequencer:
                self.orderer.take_offer(packet, out, direct=False)
            else:
                self.sender.offer(packet, out)

    # --- dispatch ---

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        view, agreement = self.view, self.agreement
        number: int | None = getattr(unit, "view", None)
        source = unit.source
        stopped = agreement.promised is not None
        if type(unit) is Broadcast and number == view.number and source == view.sequencer and not stopped:
            self.sender.answered, agreement.suspects = True, 0
            self.reception.receive_broadcast(unit, out)  # the usual case
        elif number is None or source == self.me or (self.config.views and not _is_of_epoch(unit, number)):
            out.append(Discard(unit, "stray"))
        elif number != view.number:
            self._receive_from_other_view(unit, number, out)
        elif not view.members >> source & 1:
            out.append(Discard(unit, "stray"))
        elif type(unit) in AGREEMENT_UNITS:
            value = agreement.receive(unit, out)
            if value is not None:
                self._take_view(value, out)
        elif stopped:
            out.append(Discard(unit, "frozen"))
        elif view.is_sequencer:
            agreement.suspects &= ~(1 << source)
            self._receive_as_sequencer(unit, out)
        elif type(unit) is Offer:
            self.reception.keep_unnumbered(unit, out)
        elif source == view.sequencer:
            self.sender.answered, agreement.suspects = True, 0
            self._receive_from_sequencer(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def _receive_as_sequencer(self, unit: Unit, out: list[Output]) -> None:
        if getattr(unit, "received_below", 0) > self.reception.received_below:
            out.append(Discard(unit, "impossible"))  # no node can have what is not numbered
        elif type(unit) is Offer:
            self.orderer.receive_offer(unit, out)
        elif type(unit) is Acknowledgment:
            self.orderer.receive_acknowledgment(unit, out)
        elif type(unit) is Synchronised:
            self.orderer.receive_synchronised(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def _receive_from_sequencer(self, unit: Unit, out: list[Output]) -> None:
        if type(unit) is NumberAnnouncement:
            self.reception.receive_announcement(unit, out)
        elif type(unit) is SequencerStatus:
            self.sender.receive_status(unit, out)
        elif type(unit) is Synchronise:
            self.sender.receive_synchronise(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def _receive_from_other_view(self, unit: Unit, number: int, out: list[Output]) -> None:
        if type(unit) is Install:
            if number > self.view.number:
                self._take_view(unit.value, out)
            else:
                out.append(Discard(unit, "old"))
        elif self._may_be_numbered_yet(unit):
            self.reception.keep_unnumbered(unit, out)
        else:
            self.agreement.receive_from_other_view(unit, number, out)

    def _may_be_numbered_yet(self, unit: Unit) -> TypeGuard[Offer]:
        """True if its sender broadcast it in another view, and a sequencer may still number it."""
        if type(unit) is not Offer or not unit.direct or self.view.is_sequencer or self.agreement.promised is not None:
            return False
        return bool(self.view.members >> unit.source & 1)

    def _fire(self, name: str, out: list[Output]) -> None:
        if name == "need":
            if self.sender.need_timer_fired(out):
                self.agreement.suspect(1 << self.view.sequencer, out)
        elif name == "gap":
            self.sender.gap_timer_fired(out)
        elif name == "status":
            self.agreement.suspect(self.orderer.status_timer_fired(out), out)
        elif name == "view":
            self.agreement.view_timer_fired(out)
        elif name == "answer":
            self.agreement.answer_timer_fired()

    # --- view change ---

    def _take_view(self, value: NextView, out: list[Output]) -> None:
        """Only members are sent a view that follows theirs: a node that learns of a later one is excluded."""
        if value.number == self.view.number + 1 and value.members & self.view.my_bit:
            self._install(value, out)
        else:
            self.view.closed = True
            out.append(ViewInstalled(value.number, value.members & ~self.view.my_bit, value.why))

    def _install(self, value: NextView, out: list[Output]) -> None:
        """Ends the current view at the cut, and starts every part of the machine in the new one."""
        reception = self.reception
        reception.end_view(value, self.agreement.supplied, out)
        if self.view.closed:
            return
        self.view.enter(value)
        self.timers.start_view()
        reception.start_view(value)
        self.sender.start_view()
        self.orderer.start_view()
        self.agreement.start_view()
        out += (CancelTimer("view"), Resumed(0, 0, 0))
        reception.deliver(out)
        if not self.view.is_sequencer:
            self.sender.resume(out)
        elif reception.received_below < reception.known_below:
            name, number = name_of(self.me), value.number
            self.view.abort(f"{name} must number the broadcasts of view {number}, but lacks some", out)
        else:
            for packet in list(self.window.outstanding):
                self.orderer.take_offer(packet, out, direct=False)

    # --- inspection ---

    @property
    def ordered_below(self) -> list[int]:
        """By source: its packets below were received with a number. Never falls."""
        return self.reception.ordered_below

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        reception = self.reception
        held = len(reception.ahead) + len(reception.unnumbered) + len(self.agreement.supplied)
        return LogSizes(
            waiting=len(self.window.waiting),
            sent=len(self.window.outstanding),
            held=held + sum(map(len, self.orderer.offers)),
            accepted=reception.received_below - reception.stable_below,
            preacknowledged=0,
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text."""
        if self.view.closed:
            return ()
        window, reception, orderer, agreement = self.window, self.reception, self.orderer, self.agreement
        lines = []
        if window.waiting:
            lines.append(f"{len(window.waiting)} submissions wait for the window")
        if window.outstanding:
            lines.append(f"{len(window.outstanding)} packets sent wait to come back with a number")
        if reception.received_below < reception.known_below:
            lines.append(f"broadcasts from {reception.received_below} to {reception.known_below - 1} are missing")
        unstable = reception.received_below - reception.stable_below
        if unstable:
            what = f"{unstable} broadcasts wait to be known as received by everybody"
            lagging = f"{what}: {names_of(orderer.lagging())} may lack some"
            lines.append(lagging if self.view.is_sequencer else what)
        if orderer.sync_phase:
            lines.append(f"phase {orderer.sync_phase} of synchronisation {orderer.sync_round} waits for answers")
        if agreement.promised is not None:
            leader = "I lead" if agreement.coordinates else f"{name_of(agreement.promised[1])} leads"
            lines.append(f"the view after {self.view.number} is being agreed on; {leader}")
        return tuple(lines)


def _is_of_epoch(unit: Unit, number: int) -> bool:
    """False for what this protocol's own agreement on views sends: another one ends this view, which has number 0."""
    return number == 0 and type(unit) not in AGREEMENT_UNITS


def _until_abort(out: list[Output]) -> list[Output]:
    """Nothing follows an abort, whatever the rule that was under way still did."""
    ends = [place for place, output in enumerate(out, start=1) if type(output) is Abort]
    return out[: ends[0]] if ends else out
