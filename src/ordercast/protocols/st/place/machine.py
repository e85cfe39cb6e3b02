"""ST with recovery by placing: nobody stops when a unit is lost.

Normal operation is that of `st.normal_operation`: Tachikawa and Takizawa, sections 3.1 to 3.4, with pre-acknowledgment
by all nodes. There are no epochs. What is lost is repaired one by one, while everything else goes on:

    requests         what is missing here: a copy is put at the place that the packet had on the channel
    positions        what a source knows of the places of its own packets, which it says with each copy
    generations      if a place cannot be told, the source sends the packet, and all later ones, once more
    acknowledgments  RRL with its gaps, and the levels above it
    transmission     numbers, statuses, the flow condition

Two facts carry it. Whoever misses a packet is a veto: pre-acknowledgment needs all nodes, so neither the packet nor
anything later of its source is pre-acknowledged anywhere, and the source may still give all of them new places. And
what was received in some order was sent in that order: what different nodes have seen of it can be put together, and
never contradicts itself. docs/protocols/st.md has the proof.
"""

from typing import ClassVar, Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import (
    Abort,
    Deliver,
    Discard,
    Echo,
    GiveUp,
    Input,
    LogSizes,
    Output,
    Receive,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import name_of
from ordercast.model.runs import Channel
from ordercast.model.units import Unit
from ordercast.protocols.shared.backoff import Backoff, next_factor
from ordercast.protocols.shared.jitter import spread
from ordercast.protocols.shared.reasons import INFERRED_LOSS
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.place.acknowledgments import Acknowledgments
from ordercast.protocols.st.place.copies import Copies
from ordercast.protocols.st.place.generations import Generations
from ordercast.protocols.st.place.positions import OwnPositions
from ordercast.protocols.st.place.requests import Requests
from ordercast.protocols.st.place.transmission import Transmission
from ordercast.protocols.st.units import PacketPosition, PlacedCopy, PlacedData, PlacedReady, PlacedStatus

_PATIENCE = 32
"""Multiple of the status timer for which acknowledgments of what is delivered wait for something to carry them."""


class StPlace(DeclaredState):
    """The protocol at one node."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    me: Final[int]
    my_bit: Final[int]
    config: Final[GroupConfig]
    status_after: Final[int]
    """Packets of one source accepted without a transmission of ours after which a status is sent at once."""

    backoff: Backoff
    generations: Generations
    positions: OwnPositions
    logs: Acknowledgments
    transmission: Transmission
    requests: Requests
    repairs: Copies
    heard: list[int]  # by source: the stamp of its newest unit, accepted or not
    count: int  # units heard: the places of packets in RRL are counted by it
    status_timer: bool  # runs while something that I know waits to be told: then a status is sent alone
    patient: bool  # the status timer is a long one: all that is missing are acknowledgments of what is delivered
    inferred_loss_timer: bool  # runs since units of others showed a loss: then I ask the source
    aborted: bool  # it has given the group up

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.my_bit, self.config = me, 1 << me, config
        self.status_after = max(1, config.window // 2)
        self.backoff = Backoff(config.nodes, config.polls_limit(), config.timing.reset)
        self.generations = Generations(me, config.nodes)
        self.positions = OwnPositions(me, config.first_seqs())
        self.logs = Acknowledgments(me, config, self.generations, self.positions, self.backoff)
        self.transmission = Transmission(me, config, self.generations, self.logs)
        self.requests = Requests(config, self.generations, self.logs, self.transmission)
        self.repairs = Copies(me, self.generations, self.logs, self.transmission)
        self.heard, self.count = [0] * config.nodes, 0
        self.status_timer = self.patient = self.inferred_loss_timer = self.aborted = False

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all outputs that follow from it."""
        out: list[Output] = []
        if self.aborted:
            return out
        transmission = self.transmission
        if type(event) is GiveUp:
            self.abort(event.why, out)
            return out
        if type(event) is Receive:
            self.receive(event.unit, out)
        elif type(event) is Submit:
            transmission.submit(event)
        elif type(event) is TimerFired:
            self.fire(event.name, out)
        elif (
            self.logs.acknowledgment_pending and not transmission.is_out()
        ):  # Drained; polls answered at once would cause more
            self.send_status(out)
        if self.logs.contradicted and not self.aborted:
            self.abort("the channel did not keep one order", out)
        if not self.aborted:
            self.send_waiting(out)
            self.start_timers(out)
        return out

    # --- transmission ---

    def free_buffers(self) -> int:
        """Receive buffers left, for all sources together."""
        return max(0, self.config.quota * self.config.nodes - self.logs.buffers_in_use())

    def send_waiting(self, out: list[Output]) -> None:
        """Sends what the window allows."""
        transmission = self.transmission
        while transmission.waiting and transmission.can_send(self.free_buffers()):
            transmission.send(transmission.waiting.popleft(), self.free_buffers(), out)

    def send_status(self, out: list[Output], *, polls: bool = False) -> None:
        """A status without data; it polls everybody as long as I wait for anything (see `polls_late`)."""
        polls = polls or (not self.config.polls_late and self.unfinished())
        self.transmission.send_ready(self.free_buffers(), out, polls=polls)

    def send_request(self, out: list[Output]) -> None:
        """Asks for everything that is missing. A packet of mine of which nobody tells the place gets a new one."""
        requests, witness = self.requests, -1
        requests.due = False
        if requests.missing[self.me] and self.generations.known[self.me] == self.generations.own:
            chosen = requests.next_witness()
            if chosen is None:
                packet = self.transmission.own_packet(min(requests.missing[self.me]))
                if packet is not None:
                    self.send_again(packet.seq, out)
            else:
                witness = chosen
        self.transmission.send_ready(self.free_buffers(), out, polls=True, missing=requests.wanted(), witness=witness)

    def send_again(self, first: int, out: list[Output]) -> None:
        """A new generation of mine."""
        self.transmission.send_again(first, self.free_buffers(), out)

    # --- reception ---

    def receive(self, unit: Unit, out: list[Output]) -> None:
        """Units of other protocols are discarded."""
        if type(unit) is PlacedData:
            if self.hear(unit.packet.source, unit.status, unit.packet.seq, unit.packet.seq + 1, unit, out):
                self.receive_data(unit, out)
        elif type(unit) is PlacedReady:
            if self.hear(unit.source, unit.status, unit.next_seq, unit.next_seq, unit, out):
                self.receive_ready(unit, out)
        elif type(unit) is PlacedCopy:
            self.receive_copy(unit, out)
        elif type(unit) is PacketPosition:
            self.receive_position(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def hear(
        self,
        source: int,
        status: PlacedStatus,
        number: int,
        below: int,
        unit: PlacedData | PlacedReady,
        out: list[Output],
    ) -> bool:
        """Whatever a unit is, it has a place on the channel, and a generation; False: it is of no use."""
        self.backoff.unanswered[source] = 0
        if status.stamp <= self.heard[source]:
            out.append(Discard(unit, "duplicate"))
            return False
        self.heard[source] = status.stamp
        if source == self.me:
            self.transmission.came_back = status.stamp
        known = self.generations.known[source]
        if status.generation != known:
            if status.generation < known:
                out.append(Discard(unit, "old"))
                return False
            first = self.generations.first_moved(source, status)
            if first is None or first < self.logs.stable_below[source]:
                out.append(Discard(unit, "impossible"))
                return False
            self.enter_generation(source, status.generation, first, out)
        self.generations.note(source, status)
        self.count += 1
        self.positions.heard(source, number, below)
        return True

    def enter_generation(self, source: int, generation: int, first: int, out: list[Output]) -> None:
        """GENUP: what the source sends again has lost its places here, and nobody is known to have accepted it."""
        expected = self.transmission.expected
        moved = self.logs.remove_from(source, first)
        self.generations.enter(source, generation)
        expected[source] = min(expected[source], first)
        if moved:
            self.transmission.expected_to_me[source] = moved[0].seq_to[self.me]
        self.requests.forget(source)
        self.positions.moved(source, first)
        self.logs.lower(source, first, out)

    def receive_data(self, unit: PlacedData, out: list[Output]) -> None:
        """ACC action: accepted at its place, or held there behind a gap."""
        packet, transmission, logs = unit.packet, self.transmission, self.logs
        source, seq, number = packet.source, packet.seq, packet.seq_to[self.me]
        expected = transmission.expected_to_me[source]
        if source == self.me:
            self.note_return(unit)
        if seq < transmission.expected[source] or number < expected or (source, seq) in logs.places:
            out.append(Discard(unit, "duplicate"))
            return
        to_me = bool(packet.destinations & self.my_bit)
        if to_me and (source, seq) not in logs.kept and not self.free_buffers():
            out.append(Discard(unit, "full"))
        elif number != expected:
            self.receive_behind_gap(unit, number, out)
        elif number in self.requests.missing[source]:
            out.append(Discard(unit, "impossible"))  # it was shown to be before what has come
        else:
            transmission.expected[source] = seq + 1
            self.requests.last_accepted[source] = self.count
            transmission.status_due = logs.acknowledgment_pending = True
            if to_me:
                transmission.expected_to_me[source] = number + 1
                transmission.unreported[source] += 1
                logs.append(packet, self.count, out)
            else:
                out.append(Discard(unit, "foreign"))
            logs.take_status(source, unit.status, out)
            self.infer_loss(out)
            if transmission.unreported[source] >= self.status_after and not transmission.is_out():
                self.send_status(out)

    def note_return(self, unit: PlacedData) -> None:
        """My packet came back: others can be told where its place is, unless it has got another one since."""
        seq = unit.packet.seq
        if seq < self.generations.own_moved_from(unit.status.generation, seq + 1):
            self.positions.came_back(seq)

    def receive_behind_gap(self, unit: PlacedData, number: int, out: list[Output]) -> None:
        """Something of its source is missing before it."""
        packet, source = unit.packet, unit.packet.source
        if source == self.me and unit.status.generation != self.generations.own:
            out.append(Discard(unit, "old"))  # it will come at a new place
        elif not self.requests.show(source, number, self.count):
            out.append(Discard(unit, "impossible"))
        elif not packet.destinations & self.my_bit:
            out.append(Discard(unit, "gap"))
        else:
            self.requests.shown[source] = number + 1
            self.logs.hold(packet, self.count, unit.status, out)
        self.ask_soon(out)

    def receive_ready(self, unit: PlacedReady, out: list[Output]) -> None:
        """The same for a status without data, which shows what was sent before it, and may ask for copies."""
        source, number, transmission = unit.source, unit.next_seq_to[self.me], self.transmission
        expected = transmission.expected_to_me[source]
        if unit.next_seq >= transmission.expected[source]:
            if number > expected:
                is_old = source == self.me and unit.status.generation != self.generations.own
                if is_old or not self.requests.show(source, number, self.count):
                    out.append(Discard(unit, "impossible"))
            elif number == expected:
                transmission.expected[source] = unit.next_seq
                self.requests.last_accepted[source] = self.count
                if unit.wants:
                    transmission.status_due = True
                self.logs.take_status(source, unit.status, out)
                self.infer_loss(out)
        if source != self.me:
            for wanted in unit.missing:
                if wanted[0] == source:
                    if unit.witness == self.me:
                        self.repairs.testify(wanted, out)
                elif wanted[0] == self.me:
                    self.repairs.answer(source, wanted, self.free_buffers(), out)
        if self.repairs.sent and not self.repairs.timer:
            self.repairs.timer = True
            self.set_timer("answer", self.config.timing.reset, out)
        self.ask_soon(out)

    def receive_copy(self, unit: PlacedCopy, out: list[Output]) -> None:
        """REP: it has no place of its own."""
        packet, source = unit.packet, unit.packet.source
        self.backoff.unanswered[source] = 0
        if unit.stamp <= self.heard[source]:
            out.append(Discard(unit, "duplicate"))
            return
        self.heard[source] = unit.stamp
        if source == self.me:
            self.transmission.came_back = unit.stamp
            out.append(Discard(unit, "duplicate"))
        elif packet.destinations & self.my_bit and self.requests.keep(unit, packet.seq_to[self.me]):
            self.place_copies(source, out)
        else:
            out.append(Discard(unit, "duplicate"))

    def receive_position(self, unit: PacketPosition, out: list[Output]) -> None:
        """Where a packet of mine is that did not come back: then I have it, as if a copy had come that says it."""
        self.backoff.unanswered[unit.source] = 0
        if unit.stamp <= self.heard[unit.source]:
            out.append(Discard(unit, "duplicate"))
            return
        self.heard[unit.source] = unit.stamp
        if unit.source == self.me:
            self.transmission.came_back = unit.stamp
        owner, seq = unit.of
        own = self.generations.own
        if owner != self.me or unit.generations[owner] != own:
            return
        for packet in self.logs.accepted.logs[OWN]:
            if packet.seq == seq:
                copy = PlacedCopy(packet, unit.stamp, own, unit.generations, unit.low, unit.high)
                if self.requests.keep(copy, packet.seq_to[self.me]):
                    self.place_copies(self.me, out)
                break

    def place_copies(self, source: int, out: list[Output]) -> None:
        """Puts copies of a source at their places, one after the other, as far as these are determined."""
        requests, expected = self.requests, self.transmission.expected_to_me
        while (number := expected[source]) in requests.copies[source]:
            unit = requests.copies[source][number]
            place = requests.place_of(unit, number)
            if place.first > place.last:
                self.logs.contradicted = True
                return
            if place.first < place.last:
                if place.final and source == self.me:
                    self.send_again(unit.packet.seq, out)
                elif place.final:
                    requests.vetoes[source], requests.due = True, True
                    requests.copies[source].clear()
                    self.ask_soon(out)
                return
            self.accept_copy(unit, number, place.first, out)

    def accept_copy(self, unit: PlacedCopy, number: int, at: int, out: list[Output]) -> None:
        """The first missing packet of its source gets its place; what is held behind it may be accepted now."""
        packet, source, requests, logs = unit.packet, unit.packet.source, self.requests, self.logs
        place = requests.bounds(at, source, number)
        requests.found(source, number)
        requests.last_accepted[source] = place[0]
        self.note_accepted(source, packet.seq, number)
        logs.insert(at, packet, place, out)
        if source == self.me:
            same = [told == mine for told, mine in zip(unit.generations, self.generations.known, strict=True)]
            self.positions.learn(packet.seq, unit.low, unit.high, same)
        for held in [held for held in logs.accepted.logs[RECEIVED] if (held.source, held.seq) in logs.held]:
            if held.source == source and held.seq_to[self.me] == self.transmission.expected_to_me[source]:
                status = logs.held.pop((source, held.seq))
                requests.last_accepted[source] = logs.places[source, held.seq][0]
                self.note_accepted(source, held.seq, held.seq_to[self.me])
                logs.accept(held, out)
                logs.take_status(source, status, out)

    def note_accepted(self, source: int, seq: int, number: int) -> None:
        """The numbers that are expected next."""
        transmission = self.transmission
        transmission.expected[source], transmission.expected_to_me[source] = seq + 1, number + 1
        transmission.unreported[source] += 1
        transmission.status_due = True

    # --- losses that others show ---

    def infer_loss(self, out: list[Output]) -> None:
        """Condition (2) of 4.1: after its waiting time the source is asked, whose status shows what I lost."""
        if self.config.infer_losses and not self.inferred_loss_timer and self.loss_inferred_from_peers():
            self.inferred_loss_timer = True
            self.set_timer(INFERRED_LOSS, self.config.timing.inferred_loss, out)

    def loss_inferred_from_peers(self) -> bool:
        """Others have accepted a packet of some source that I have not, whether it is to me or not."""
        peers = self.logs.accepted.acknowledged_below
        return any(
            below[source] > expected
            for source, expected in enumerate(self.transmission.expected)
            for node, below in enumerate(peers)
            if node != source
        )

    # --- timers ---

    def set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        """Sets a timer, spread over [T, 2T); it changes with every transmission and every step of back-off."""
        out.append(SetTimer(name, spread(duration, self.me, self.transmission.stamp + (self.backoff.factor << 16))))

    def start_timers(self, out: list[Output]) -> None:
        """Something is missing; a status is due; or I wait for something."""
        if not self.requests.timer and self.requests.anything():
            self.requests.timer, self.requests.factor, self.requests.progress = True, 1, False
            self.set_timer("request", self.config.timing.reset, out)
        if self.status_timer:
            if self.patient and not self.is_in_no_hurry():
                self.start_status_timer(out)
        elif self.transmission.status_due or self.unfinished():
            self.start_status_timer(out)

    def start_status_timer(self, out: list[Output]) -> None:
        """One status is sent soon."""
        self.status_timer, self.patient = True, self.is_in_no_hurry()
        self.transmission.transmitted = False
        self.backoff.restart()
        self.set_timer("status", self.status_time(), out)

    def status_time(self) -> int:
        """How long a status waits for something that carries it."""
        return self.config.timing.status * (_PATIENCE if self.patient else self.backoff.factor)

    def ask_soon(self, out: list[Output]) -> None:
        """Requests what was not requested, unless a request of mine is still out: then when it comes back."""
        if self.requests.due and not self.transmission.is_out():
            self.send_request(out)

    def fire(self, name: str, out: list[Output]) -> None:
        """A timer fired."""
        if name == "status":
            self.status_timer_fired(out)
        elif name == "request":
            self.request_timer_fired(out)
        elif name == "answer":
            if self.repairs.wait_for_return():
                self.set_timer("answer", self.config.timing.reset, out)
        elif name == INFERRED_LOSS:
            self.inferred_loss_timer = False
            if self.loss_inferred_from_peers():
                self.send_status(out, polls=True)

    def status_timer_fired(self, out: list[Output]) -> None:
        """Sends a status unless something was transmitted since, or nobody needs it soon; goes on while I wait."""
        transmission = self.transmission
        self.status_timer = False
        if not (transmission.status_due or self.unfinished()):
            return
        if transmission.transmitted or (self.is_in_no_hurry() and not self.patient):
            self.backoff.factor = 1
        elif self.backoff.advance() and self.abort_if_unanswered(out):
            return
        elif transmission.is_out():
            transmission.silent_periods += 1
        else:
            only_answers = transmission.status_due and self.has_delivered_all()
            self.send_status(out, polls=self.unfinished() and not only_answers)
        if transmission.status_due or self.unfinished():
            self.status_timer, self.patient = True, self.is_in_no_hurry()
            transmission.transmitted = False
            self.set_timer("status", self.status_time(), out)

    def request_timer_fired(self, out: list[Output]) -> None:
        """Requests again what is missing."""
        requests, transmission = self.requests, self.transmission
        requests.timer = False
        if not requests.anything():
            return
        if transmission.is_out():
            transmission.silent_periods += 1
        else:
            self.send_request(out)
        requests.factor = next_factor(requests.factor, progress=requests.progress)
        requests.timer, requests.progress = True, False
        self.set_timer("request", self.config.timing.reset * requests.factor, out)

    # --- giving up ---

    def abort(self, why: str, out: list[Output]) -> None:
        """Delivers what is pre-acknowledged, in the order of the channel: an exact prefix of it."""
        if not self.config.delivers_stable:
            out += [Deliver(packet) for packet in self.logs.preacknowledged.logs[RECEIVED]]
        self.aborted = True
        out.append(Abort(why))

    def abort_if_unanswered(self, out: list[Output]) -> bool:
        """Counts an unanswered question to those that I wait for; True: one of them has left too many."""
        silent = self.backoff.count_unanswered(self.blockers())
        if silent is None:
            return False
        self.abort(f"{name_of(silent)} left {self.backoff.limit} questions in a row unanswered", out)
        return True

    # --- inspection ---

    def unfinished(self) -> bool:
        """True if I wait for anything from others."""
        return bool(self.transmission.waiting) or self.logs.has_unacknowledged() or self.requests.anything()

    def has_delivered_all(self) -> bool:
        """True if this node waits for nothing but acknowledgments of what is delivered (`delivers_stable`)."""
        idle = not (self.transmission.waiting or self.logs.has_unaccepted() or self.requests.anything())
        return self.config.delivers_stable and idle

    def is_in_no_hurry(self) -> bool:
        """The same, and nobody waits for this node."""
        return not self.transmission.status_due and self.has_delivered_all()

    def blockers(self) -> int:
        """The nodes from which something is missing here, as a bit mask."""
        return (self.logs.missing_acknowledgments() | self.requests.sources()) & ~self.my_bit

    def log_sizes(self) -> LogSizes:
        """The number of packets in each log."""
        logs, held = self.logs, len(self.logs.held)
        return LogSizes(
            waiting=len(self.transmission.waiting),
            sent=len(logs.accepted.logs[OWN]),
            held=held + len(logs.kept),
            accepted=len(logs.accepted.logs[RECEIVED]) - held,
            preacknowledged=len(logs.preacknowledged.logs[RECEIVED]),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text."""
        lines = []
        if self.transmission.waiting:
            lines.append(f"{len(self.transmission.waiting)} submissions wait for the window")
        for source, missing in enumerate(self.requests.missing):
            if missing:
                lines.append(f"{len(missing)} packets of {name_of(source)} are missing")
        return (*lines, *self.logs.waits_for_acknowledgments())

    # --- vectors that never decrease, which the explorer checks ---

    @property
    def stamps(self) -> list[int]:
        """The stamp of each node's newest status."""
        return self.logs.stamps

    @property
    def known_generations(self) -> tuple[int, ...]:
        """The generation of each source."""
        return self.generations.known

    @property
    def stable_below(self) -> list[int]:
        """What is pre-acknowledged of each source."""
        return self.logs.stable_below
