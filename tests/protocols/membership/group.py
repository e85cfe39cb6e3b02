"""A group of members on a network that loses, delays and reorders, with processes that crash, leave, join and return.

Everything is drawn from one generator of random numbers: the same seed makes the same run. The failure detector sees
crashed and unreachable members after a while, and is wrong at times. State is handed from donor to joiner as a value.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any

from ordercast.model.config import MILLISECOND, SECOND, GroupConfig, SequencerConfig, Timing
from ordercast.model.machine import (
    CancelTimer,
    Deliver,
    Discard,
    Echo,
    Numbered,
    Receive,
    Send,
    SetTimer,
    Submit,
    Suspect,
    TimerFired,
)
from ordercast.model.nodes import members
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.membership.events import (
    Begin,
    Blocked,
    Excluded,
    InstallView,
    LeaveGroup,
    LeftGroup,
    OtherView,
    ReceiveControl,
    ReceiveOutside,
    SendControl,
    SendOutside,
    StateLoaded,
    Unblocked,
)
from ordercast.protocols.membership.joiner import Joined, Joiner, Refused
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.order import Order
from ordercast.protocols.membership.units import CONTROL_UNITS, OUTSIDE_UNITS
from ordercast.protocols.membership.view import GroupView, Incarnation, MembershipConfig, NextView, founding_view

SETTINGS = MembershipConfig(
    repeat=5 * MILLISECOND,
    failure_timeout=100 * MILLISECOND,
    gather=5 * MILLISECOND,
    guard=5 * MILLISECOND,
    blocked_repeat=40 * MILLISECOND,
)
TAG = b"founding"
MULTICAST = "*"
"""An address that everybody hears: whoever knows nobody any more asks there."""
HARMLESS = frozenset({"old", "stray", "of another view", "own", "stopped"})
"""Why units of the membership protocol may be discarded among members that keep to the protocol."""
Log = list[tuple[Any, ...]]
"""What a process told its application: ("view", number, names), ("deliver", message)."""


@dataclass
class Process:
    """One incarnation of a name."""

    me: Incarnation
    member: MembershipMachine | None = None
    joiner: Joiner | None = None
    timers: dict[str, int] = field(default_factory=dict)
    log: Log = field(default_factory=list)
    state: tuple[str, ...] | None = ()
    """The messages that its application got with the state; None: it has not got it yet."""
    submitted: list[str] = field(default_factory=list)
    alive: bool = True
    ended: str = ""
    """Why it is no member any more."""
    drained: bool = True
    unsubmitted: int = 0

    @property
    def view(self) -> GroupView | None:
        return self.member.current.view if self.member else None

    @property
    def is_member(self) -> bool:
        return self.alive and self.member is not None and not self.ended


class Group:
    """All processes, and what is under way between them."""

    def __init__(
        self,
        order: Order,
        founders: int,
        seed: object,
        *,
        settings: MembershipConfig = SETTINGS,
        member: type[MembershipMachine] = MembershipMachine,
        is_total: bool = True,
        resilience: int = 8,
        config: GroupConfig | None = None,
    ) -> None:
        self.order, self.settings, self.kind = order, settings, member
        self.chance = Random(f"views/{seed}")
        timing = Timing.for_round_trip(4 * MILLISECOND)
        self.config = config or GroupConfig(
            nodes=founders,
            window=4,
            quota=64,
            views=True,
            timing=timing,
            sequencer=SequencerConfig(history=64, resilience=resilience),
        )
        self.now, self.is_total = 0, is_total
        self.events: list[tuple[int, int, Callable[[], object]]] = []
        self.counter = 0
        self.loss = 0.0
        self.delay = 3 * MILLISECOND
        self.sides: dict[str, int] = {}
        """By address: the side of the partition."""
        self.processes: dict[str, Process] = {}
        """By address."""
        self.decided: dict[int, NextView] = {}
        self.views: dict[int, GroupView] = {}
        self.states: dict[tuple[int, str], tuple[str, ...]] = {}
        self.destinations: dict[str, frozenset[str] | None] = {}
        self.to_all: set[str] = set()
        """By message: addresses; None: all."""
        self.last_delivery: dict[object, int] = {}
        self.counts = dict.fromkeys(("views", "crashes", "joined", "left", "deliveries", "excluded", "blocked"), 0)
        chosen = tuple(Incarnation(f"n{number}", number, f"n{number}.{number}") for number in range(founders))
        view = founding_view(chosen, TAG)
        for me in chosen:
            self.processes[me.address] = Process(
                me, member(me, view, order, self.config, settings, group="g", contacts=(MULTICAST,))
            )
        self.incarnations = founders
        self.returning = 0  # excluded ones that are about to join again
        for process in list(self.processes.values()):
            self.give(process, Begin())

    # --- time ---

    def later(self, after: int, action: Callable[[], object]) -> None:
        self.counter += 1
        heappush(self.events, (self.now + after, self.counter, action))

    def run(self, until: int) -> None:
        while self.events and self.events[0][0] <= until:
            self.now, _, action = heappop(self.events)
            action()
        self.now = until

    # --- the host of a process ---

    def give(self, process: Process, event: Any) -> None:
        if not process.alive:
            return
        machine: Any = process.member or process.joiner
        self.carry_out(process, machine.handle(event))

    def carry_out(self, process: Process, outputs: list[Any]) -> None:  # noqa: C901, PLR0912 (one case for each output)
        for output in outputs:
            match output:
                case Send():
                    self.send_unit(process, output)
                case SendControl(unit=unit, to=to, view=number):
                    self.send_control(process, unit, to, number)
                case SendOutside(unit=unit, address=address):
                    self.transmit(process, address, partial(self.outside, unit, process.me.address))
                case SetTimer(name=name, after=after):
                    self.counter += 1
                    process.timers[name] = stamp = self.counter
                    self.later(after, partial(self.fire, process, name, stamp))
                case CancelTimer(name=name):
                    process.timers.pop(name, None)
                case Deliver(packet=packet):
                    self.counts["deliveries"] += 1
                    process.log.append(("deliver", packet.payload.decode()))
                case InstallView():
                    self.installed(process, output)
                case Excluded():
                    self.counts["excluded"] += 1
                    process.ended = "excluded"
                    process.log.append(("excluded", output.number))
                    self.returns(process)
                case LeftGroup():
                    self.counts["left"] += 1
                    process.ended = "left"
                    process.log.append(("left",))
                case Blocked():
                    self.counts["blocked"] += 1
                case Joined(welcome=welcome):
                    self.joined(process, welcome)
                case Refused():
                    process.alive = False
                    self.returns(process)
                case Discard(unit=unit, why=why):
                    believed = why in HARMLESS or not isinstance(unit, CONTROL_UNITS + OUTSIDE_UNITS)
                    assert believed, f"{process.me.address} does not believe {unit}: {why}"
                case Numbered(packet=packet):
                    self.numbered(process, packet)
                case Unblocked():
                    pass

    def numbered(self, process: Process, packet: Packet) -> None:
        """What is to all is bound to the members of the view in which it is given its number, the last time."""
        text = packet.payload.decode()
        if not self.order.to_all and text in self.to_all:
            assert process.member
            view = process.member.current.view
            assert packet.destinations == view.everybody
            self.destinations[text] = frozenset(member.address for member in view.members)

    def fire(self, process: Process, name: str, stamp: int) -> None:
        if process.timers.get(name) == stamp:
            del process.timers[name]
            self.give(process, TimerFired(name))

    def installed(self, process: Process, output: InstallView) -> None:
        process.timers = {name: stamp for name, stamp in process.timers.items() if name.startswith("view.")}
        view, value = output.view, output.value
        self.counts["views"] += 1
        addresses = tuple(member.address for member in view.members)
        process.log.append(("view", view.number, addresses))
        assert self.views.setdefault(view.number, view) == view, "one view for each number"
        if value is not None:
            assert self.decided.setdefault(view.number, value) == value, "one value for each number"
        if output.gives_state:
            self.states[view.number, process.me.address] = self.history(process)

    def history(self, process: Process) -> tuple[str, ...]:
        return (*(process.state or ()), *(row[1] for row in process.log if row[0] == "deliver"))

    def joined(self, process: Process, welcome: Any) -> None:
        self.counts["joined"] += 1
        process.timers, process.joiner = {}, None
        process.member = self.kind.joins(
            process.me, welcome, self.order, self.config, self.settings, group="g", contacts=(MULTICAST,)
        )
        if self.settings.has_state:
            process.state = None
            self.later(self.chance.randrange(1, 60) * MILLISECOND, lambda: self.loads(process, welcome, 20))
        self.carry_out(process, process.member.handle(Begin()))

    def loads(self, process: Process, welcome: Any, tries: int) -> None:
        """The state of the view in which it joined; if no donor is left, it returns as another incarnation."""
        if not process.is_member or process.state is not None:
            return
        for place in welcome.value.donors:
            donor = welcome.view.members[place].address
            if (welcome.view.number, donor) in self.states and self.processes[donor].alive:
                process.state = self.states[welcome.view.number, donor]
                self.give(process, StateLoaded())
                return
        if tries:
            self.later(20 * MILLISECOND, lambda: self.loads(process, welcome, tries - 1))
        else:
            process.alive = False
            self.returns(process)

    def returns(self, process: Process) -> None:
        self.returning += 1
        self.later(30 * MILLISECOND, partial(self._return, process.me.name))

    def _return(self, name: str) -> None:
        self.returning -= 1
        self.join(name)

    def join(self, name: str) -> Process:
        number = self.incarnations
        self.incarnations += 1
        me = Incarnation(name, number, f"{name}.{number}")
        process = Process(me, joiner=Joiner(me, "g", (MULTICAST,), number * 1000, self.settings))
        self.processes[me.address] = process
        self.sides[me.address] = self.chance.choice([0, *self.sides.values()])
        assert process.joiner
        self.carry_out(process, process.joiner.begin())
        return process

    def crash(self, process: Process) -> None:
        self.counts["crashes"] += 1
        process.alive = False

    # --- the network ---

    def reaches(self, one: str, other: str) -> bool:
        return self.sides.get(one, 0) == self.sides.get(other, 0)

    def transmit(self, process: Process, address: str, arrive: Callable[[Process], None]) -> None:
        if address == MULTICAST:
            for other in list(self.processes):
                self.transmit(process, other, arrive)
            return
        if self.reaches(process.me.address, address) and self.chance.random() >= self.loss:
            self.later(self.chance.randrange(1, self.delay), lambda: self.arrives(process, address, arrive))

    def arrives(self, process: Process, address: str, arrive: Callable[[Process], None]) -> None:
        to = self.processes.get(address)
        if to is not None and to.alive and self.reaches(process.me.address, address):
            arrive(to)

    def outside(self, unit: Any, address: str, to: Process) -> None:
        self.give(to, ReceiveOutside(unit, address))

    def send_control(self, process: Process, unit: Any, to: int | None, number: int) -> None:
        assert process.member
        current = process.member.current
        view = current.view if number == current.view.number else current.previous
        assert view is not None
        assert view.number == number
        own = view.place_of(process.me)
        for place in range(len(view.members)) if to is None else [to]:
            if place != own:
                address = view.members[place].address
                self.transmit(process, address, partial(self.control, view.tag, unit))

    def control(self, tag: bytes, unit: Any, to: Process) -> None:
        member = to.member
        if member is None:
            return
        previous = member.current.previous
        if member.current.view.tag == tag or (previous is not None and previous.tag == tag):
            self.give(to, ReceiveControl(unit))

    def send_unit(self, process: Process, output: Send) -> None:
        """In the order that the protocol needs: of one channel, of each sender, or none."""
        member = process.member
        assert member
        kind: Any = type(member.machine)
        view, place = member.current.view, member.current.place
        receivers = range(len(view.members)) if output.to is None else [output.to]
        wait = self.chance.randrange(1, self.delay)
        for to in receivers:
            if to == place and output.to is None and kind.echo is Echo.NONE:
                continue
            address = view.members[to].address
            if not self.reaches(process.me.address, address) or self.chance.random() < self.loss * (to != place):
                continue
            if kind.needs is Channel.ANY:
                at = self.now + self.chance.randrange(1, self.delay)
            else:
                key = view.tag if kind.needs is Channel.ONE else (view.tag, place, to)
                at = max(self.now + wait, self.last_delivery.get(key, 0) + (kind.needs is not Channel.ONE or to == 0))
                self.last_delivery[key] = at
            arrive = partial(self.unit, view.tag, place, output.unit)
            self.later(at - self.now, partial(self.arrives, process, address, arrive))

    def unit(self, tag: bytes, place: int, unit: Any, to: Process) -> None:
        member = to.member
        if member is None:
            return
        assert not isinstance(unit, CONTROL_UNITS)
        if member.current.view.tag == tag:
            self.give(to, Receive(unit))
        elif member.current.previous is not None and member.current.previous.tag == tag:
            self.give(to, OtherView(place))

    # --- applications ---

    def submit(self, process: Process, text: str) -> None:
        member = process.member
        if not process.is_member or member is None or member.leaves or process.state is None:
            return
        everybody = member.current.view.everybody
        to_all = self.order.to_all or self.chance.random() < 0.3
        to = everybody if to_all else self.chance.randrange(1, everybody + 1)
        if to_all:
            self.destinations[text] = None
            self.to_all.add(text)
        else:
            self.destinations[text] = frozenset(member.current.view.members[place].address for place in members(to))
        process.submitted.append(text)
        self.give(process, Submit(to, (len(text),), text.encode(), self.chance.randrange(3), to_all=to_all))

    # --- failure detectors ---

    def detect(self, *, wrong: float = 0.0) -> None:
        """Every member suspects those of its view that are gone or cannot be reached; sometimes others."""
        for process in self.members():
            assert process.member
            view, suspects = process.member.current.view, 0
            for place, other in enumerate(view.members):
                there = self.processes[other.address]
                gone = not there.is_member or not self.reaches(process.me.address, other.address)
                gone = gone or there.view != view  # it says nothing in this view
                if gone or self.chance.random() < wrong:
                    suspects |= 1 << place
            if suspects and self.chance.random() < 0.5:
                self.give(process, Suspect(suspects))

    def members(self) -> Iterator[Process]:
        yield from [process for process in self.processes.values() if process.is_member]

    # --- how it ends ---

    def has_quorum(self) -> bool:
        """Whether the highest view that a living process has entered can be followed by another."""
        numbers = [process.view.number for process in self.processes.values() if process.is_member and process.view]
        if not numbers:
            return False
        view = self.views[max(numbers)]
        there = [place for place, member in enumerate(view.members) if self.processes[member.address].is_member]
        count = len(there)
        enough = 2 * count > len(view.members) or (2 * count == len(view.members) and 0 in there)
        enough = enough and count >= self.settings.least
        any_member = next(process.member for process in self.members() if process.member)
        return enough and count >= any_member.epoch.reports_needed(len(view.members))

    def is_settled(self) -> bool:
        """All living processes are members of one view, nobody returns, nothing is stopped, all was delivered."""
        living = [process for process in self.processes.values() if process.alive and not process.ended]
        if self.returning or any(process.member is None or process.state is None for process in living):
            return False
        views = {process.view for process in living}
        if len(views) != 1:
            return False
        [view] = views
        assert view is not None
        if {member.address for member in view.members} != {process.me.address for process in living}:
            return False
        for process in living:
            assert process.member
            if process.member.stopped or (process.member.leaves and self.settings.least == 1):
                return False  # with a static quorum one that leaves may have to wait until others have joined
            sizes = process.member.machine.log_sizes()
            if any((sizes.waiting, sizes.sent, sizes.held, sizes.accepted, sizes.preacknowledged)):
                return False
        return True


def disturb(group: Group, *, rounds: int, joiners: int, leave: bool = True, losses: float = 0.3) -> None:
    """Partitions, crashes, joins, leaves, wrong suspicions, and messages all the while."""
    chance, number = group.chance, 0
    group.loss = chance.choice([0.0, 0.05, losses])
    for _ in range(rounds):
        group.run(group.now + chance.randrange(5, 120) * MILLISECOND)
        living = list(group.members())
        for process in living:
            for _ in range(chance.randrange(3)):
                number += 1
                group.submit(process, f"{process.me.address}:{number}")
        what = chance.random()
        if what < 0.15 and len(living) > 1 and chance.random() < 0.6:
            group.crash(chance.choice(living))
        elif what < 0.35 and joiners:
            joiners -= 1
            group.join(f"j{joiners}")
        elif what < 0.45 and leave and len(living) > 1:
            group.give(chance.choice(living), LeaveGroup(drain=True))
        elif what < 0.6:
            for address in sorted(group.processes):
                group.sides[address] = chance.randrange(2)
        elif what < 0.75:
            group.sides = dict.fromkeys(group.sides, 0)
        elif what < 0.9:
            group.detect(wrong=0.1)


def make_peace(group: Group, limit: int = 60 * SECOND) -> str:
    """Nothing is lost any more; how it ended: "settled", "no quorum", "nobody", or "stuck"."""
    group.loss = 0.0
    group.sides = {}
    end = group.now + limit
    while group.now < end:
        group.run(group.now + 50 * MILLISECOND)
        group.detect()
        if not any(process.is_member for process in group.processes.values()):
            return "nobody"
        if group.is_settled():
            return "settled"
        if group.now > end - limit + 5 * SECOND and not group.has_quorum():
            return "no quorum"
    return "stuck"
