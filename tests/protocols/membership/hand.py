"""Members driven by hand: every unit waits until a test has it received, and may be received again and again."""

from typing import Any, TypeVar

from ordercast.model.config import MILLISECOND, GroupConfig, SequencerConfig
from ordercast.model.machine import Deliver, Numbered, Receive, Send, Submit, TimerFired
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.events import (
    Begin,
    Blocked,
    ChangeView,
    Excluded,
    InstallView,
    LeaveGroup,
    LeftGroup,
    ReceiveControl,
    ReceiveOutside,
    Retired,
    SendControl,
    SendOutside,
    Unblocked,
    Withdrawn,
)
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.order import Order
from ordercast.protocols.membership.units import Accepted, Apply, Flush, Install, Propose, Report, Welcome
from ordercast.protocols.membership.view import (
    GroupView,
    Incarnation,
    MembershipConfig,
    NextView,
    Reason,
    founding_view,
)
from tests.protocols.membership.orders import ONE_STREAM, ChannelData

SETTINGS = MembershipConfig(
    repeat=MILLISECOND, failure_timeout=100 * MILLISECOND, patience=1, suspected_patience=1, gather=MILLISECOND
)
T = TypeVar("T")


def person(number: int) -> Incarnation:
    return Incarnation(f"n{number}", number, f"address {number}")


VIEW = founding_view(tuple(map(person, range(4))), b"founding")
"""A view of four."""
VALUE = NextView(1, 0b1101, (person(7),), 0b1101, ((1, Reason.SILENT),), Cut((0, 0, 0, 0)), 0b1000, (2, 1), 5, "why")
"""What may follow it: 1 is gone, and 7 joins."""


def sent(outputs: list[Any], kind: type) -> list[Any]:
    """The control units of a kind, each with its receiver."""
    return [
        (output.to, output.unit) for output in outputs if isinstance(output, SendControl) and type(output.unit) is kind
    ]


def apply_of(applicant: int | Incarnation, to: MembershipMachine, **fields: Any) -> Apply:
    """An application of one that has reached everybody."""
    me = person(applicant) if isinstance(applicant, int) else applicant
    values: dict[str, Any] = {
        "view": to.current.view.number,
        "terms": (),
        "old": None,
        "reached": (1 << 64) - 1,
        "nonce": 7,
    }
    values.update(fields)
    return Apply(me, to.current.me.number, **values)


class Hand:
    """Some members, by number."""

    def __init__(self, count: int, order: Order = ONE_STREAM, resilience: int = 0, **settings: Any) -> None:
        self.order = order
        self.config = GroupConfig(nodes=count, views=True, sequencer=SequencerConfig(resilience=resilience))
        fields = {name: getattr(SETTINGS, name) for name in SETTINGS.__struct_fields__}
        self.settings = MembershipConfig(**{**fields, **settings})
        self.view = founding_view(tuple(map(person, range(count))), b"founding")
        self.members: dict[int, MembershipMachine] = {}
        self.sent: list[tuple[bytes, int, int | None, Any]] = []
        """Tag, number of the sender, place of the receiver, unit."""
        self.outside: list[tuple[str, Any]] = []
        self.told: dict[int, list[str]] = {}
        self.views: dict[int, list[GroupView]] = {}
        self.last: list[Any] = []
        self.channel: dict[bytes, int] = {}
        for number in range(count):
            self.add(number, MembershipMachine(person(number), self.view, order, self.config, self.settings, group="g"))

    def add(self, number: int, member: MembershipMachine) -> None:
        self.members[number], self.told[number], self.views[number] = member, [], []
        self.give(number, Begin())

    def welcome(self, number: int) -> None:
        """The last welcome of a joiner arrives."""
        unit = next(
            unit for _, unit in reversed(self.outside) if isinstance(unit, Welcome) and unit.incarnation == number
        )
        self.add(
            number, MembershipMachine.joins(person(number), unit, self.order, self.config, self.settings, group="g")
        )

    def give(self, number: int, event: Any) -> list[Any]:
        member = self.members[number]
        tag = member.current.view.tag
        self.last = member.handle(event)
        for output in self.last:
            match output:
                case Send(unit=unit, to=to):
                    self.sent.append((tag, number, to, self._positioned(tag, unit)))
                case SendControl(unit=unit, to=to, view=view):
                    previous = member.current.previous
                    known = {member.current.view.number: member.current.view.tag}
                    if previous is not None:
                        known[previous.number] = previous.tag
                    self.sent.append((known[view], number, to, unit))
                case SendOutside(unit=unit, address=address):
                    self.outside.append((address, unit))
                case InstallView(view=view):
                    tag = view.tag
                    self.views[number].append(view)
                    self.told[number].append(f"view {view.number}: {self.names(view)}")
                case Deliver(packet=packet):
                    self.told[number].append(packet.payload.decode())
                case Numbered(packet=packet):
                    self.told[number].append(f"({packet.payload.decode()})")
                case Excluded() | LeftGroup() | Blocked() | Unblocked() | Withdrawn() | Retired():
                    self.told[number].append(type(output).__name__)
        return self.last

    def _positioned(self, tag: bytes, unit: Any) -> Any:
        if not isinstance(unit, ChannelData):
            return unit
        position = self.channel.get(tag, 0)
        self.channel[tag] = position + 1
        return ChannelData(unit.packet, position)

    @staticmethod
    def names(view: GroupView) -> str:
        return ",".join(member.name.removeprefix("n") for member in view.members)

    # --- what happens ---

    def submit(self, number: int, text: str) -> None:
        self.give(number, Submit(0, (len(text),), text.encode(), to_all=True))

    def passes(self, kind: type[Any], sender: int, receiver: int) -> list[Any]:
        """The last unit of a kind from one to the other arrives."""
        found: Any = self.find(kind, sender, receiver)
        assert found is not None, f"{sender} has sent no {kind.__name__} to {receiver}"
        return self.give(receiver, self._event(found))

    def passes_if_sent(self, kind: type[Any], sender: int, receiver: int) -> None:
        found: Any = self.find(kind, sender, receiver)
        if found is not None:
            self.give(receiver, self._event(found))

    @staticmethod
    def _event(unit: Any) -> Any:
        return ReceiveControl(unit) if 60 <= type(unit).__struct_config__.tag < 75 else Receive(unit)

    def find(self, kind: type[T], sender: int, receiver: int) -> T | None:
        """In a view that the receiver knows."""
        current = self.members[receiver].current
        known = {current.view.tag: current.place}
        if current.previous is not None and current.previous_place is not None:
            known[current.previous.tag] = current.previous_place
        for tag, by, to, unit in reversed(self.sent):
            if isinstance(unit, kind) and by == sender and tag in known and to in {None, known[tag]}:
                return unit
        return None

    def takes(self, number: int, *texts: str) -> None:
        """Data of the channel arrive."""
        tag = self.members[number].current.view.tag
        for text in texts:
            unit = next(
                unit
                for at, _, _, unit in self.sent
                if at == tag and isinstance(unit, ChannelData) and unit.packet.payload.decode() == text
            )
            self.give(number, Receive(unit))

    def sees(self, number: int, *others: int) -> None:
        """The status of others arrives."""
        for other in others:
            machine: Any = self.members[other].machine
            self.give(number, Receive(machine.status()))

    def flush(self, coordinator: int, *others: int) -> None:
        """A ballot begins, and these report."""
        self.give(coordinator, ChangeView("asked for"))
        self.reports(coordinator, *others)

    def reports(self, coordinator: int, *others: int) -> None:
        for other in others:
            self.passes(Flush, coordinator, other)
            self.passes(Report, other, coordinator)

    def choose(self, coordinator: int) -> None:
        """The others had their time."""
        self.give(coordinator, TimerFired("view.round"))

    def accept(self, coordinator: int, *others: int) -> None:
        for other in others:
            self.passes(Propose, coordinator, other)
            self.passes(Accepted, other, coordinator)

    def install(self, by: int, *others: int) -> None:
        for other in others:
            self.passes(Install, by, other)

    def apply(self, applicant: int | Incarnation, at: int, **fields: Any) -> list[Any]:
        unit = apply_of(applicant, self.members[at], **fields)
        return self.give(at, ReceiveOutside(unit, unit.applicant.address))

    def leave(self, number: int, *, drain: bool = True) -> None:
        self.give(number, LeaveGroup(drain))

    def settle(self, *numbers: int) -> None:
        """All data of the view are taken and seen by these, until nothing changes."""
        before = None
        while before != (now := [self.members[number].snapshot() for number in numbers]):
            before = now
            for number in numbers:
                tag = self.members[number].current.view.tag
                for at, _, _, unit in list(self.sent):
                    if at == tag and isinstance(unit, ChannelData):
                        self.give(number, Receive(unit))
                self.sees(number, *(other for other in numbers if other != number))

    # --- what was told ---

    def in_view(self, number: int, view: int) -> list[str]:
        """What was delivered in one view."""
        found: list[str] = []
        inside = False
        for row in self.told[number]:
            if row.startswith("view "):
                inside = row.startswith(f"view {view}:")
            elif inside and not row.startswith("(") and row[0].islower():
                found.append(row)
        return found

    def view_of(self, number: int) -> str:
        return self.names(self.members[number].current.view)

    def check_one_view(self) -> None:
        """For each number, all that were told a view were told the same."""
        found: dict[int, GroupView] = {}
        for views in self.views.values():
            for view in views:
                assert found.setdefault(view.number, view) == view, f"two views {view.number}"
