"""Units of real runs with something changed, given to members at any moment: what no honest member would send."""

from random import Random
from typing import Any

import msgspec

from ordercast.model.machine import TimerFired
from ordercast.model.nodes import members
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.events import ReceiveControl, ReceiveOutside
from ordercast.protocols.membership.joiner import Joiner
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.units import (
    Accepted,
    Answer,
    Apply,
    Entered,
    Fetch,
    Find,
    Flush,
    Found,
    Install,
    Leave,
    Overruled,
    Probe,
    Propose,
    Report,
    Supply,
    Suspicion,
    Welcome,
)
from ordercast.protocols.membership.view import NextView, Reason
from tests.protocols.membership.group import Group, Process

Control: Any = (
    Flush | Report | Propose | Accepted | Overruled | Install | Entered | Fetch | Supply | Leave | Suspicion | Probe
)
Outside: Any = Find | Found | Apply | Answer | Welcome
TIMERS = ("round", "fetch", "blocked", "install", "applicants", "gather", "leave", "answer")
_LEAVES: tuple[Any, ...] = (0, 1, -1, 2, 3, 7, 63, 64, 1 << 40, (1 << 60) - 1, True, None, "", "n1", "x" * 500, b"x")
_BRANCHES: tuple[Any, ...] = ([], [0], [0, 0, 0], [[0, 1]])


def changed_somewhere(value: Any, chance: Random) -> Any:
    """A value with one leaf changed: a number a little, or to something else altogether."""
    if isinstance(value, list) and value and chance.random() < 0.95:
        place = chance.randrange(len(value))
        return [*value[:place], changed_somewhere(value[place], chance), *value[place + 1 :]]
    if isinstance(value, int) and chance.random() < 0.7:
        return value + chance.choice([-2, -1, 1, 2])
    return chance.choice(_LEAVES) if chance.random() < 0.8 else chance.choice(_BRANCHES)


class Strange:
    """Records the units of a group, and gives changed ones to its members, which are then restored."""

    def __init__(self, group: Group, chance: Random, *, often: float = 0.2) -> None:
        self.group, self.chance, self.often = group, chance, often
        self.control: list[Any] = []
        self.outside: list[Any] = []
        self.given = 0
        self._receive, self._receive_outside = group.control, group.outside
        group.control, group.outside = self._on_control, self._on_outside  # type: ignore[method-assign]

    def _on_control(self, tag: bytes, unit: Any, to: Process) -> None:
        self.control.append(unit)
        self.disturb(to)
        self._receive(tag, unit, to)

    def _on_outside(self, unit: Any, address: str, to: Process) -> None:
        self.outside.append(unit)
        self.disturb(to)
        self._receive_outside(unit, address, to)

    def disturb(self, process: Process) -> None:
        """Some strange units in a row, and timers between them; whatever follows must not fail."""
        if self.chance.random() >= self.often or not process.alive:
            return
        machine: Any = process.member or process.joiner
        before = machine.snapshot()
        for _ in range(self.chance.randrange(1, 5)):
            event = self.event_for(machine)
            if event is not None:
                self.given += 1
                machine.handle(event)
            if isinstance(machine, MembershipMachine) and self.chance.random() < 0.5:
                machine.handle(TimerFired(f"view.{self.chance.choice(TIMERS)}"))
        machine.restore(before)

    def event_for(self, machine: MembershipMachine | Joiner) -> Any:
        """What the host of this machine would hand to it, if it can be decoded."""
        if isinstance(machine, Joiner) or (self.outside and self.chance.random() < 0.2):
            unit = self.changed(self.chance.choice(self.outside), Outside)
            return None if unit is None else ReceiveOutside(unit, "x")
        if self.chance.random() < 0.4:
            return ReceiveControl(self.lie_to(machine))
        if not self.control:
            return None
        recent = self.control[-40:] if self.chance.random() < 0.8 else self.control
        unit = self.changed(self.chance.choice(recent), Control)
        if unit is None:
            return None
        if self.chance.random() < 0.7:
            unit = msgspec.structs.replace(unit, view=machine.current.view.number)
        return ReceiveControl(unit)

    def lie_to(self, member: MembershipMachine) -> Any:
        """A unit that is well made, with a cut or a report that cannot be, or lists that lie."""
        chance, current = self.chance, member.current
        number, size = current.view.number, current.size
        ballot = (member.acceptor.highest_round + chance.randrange(3), chance.randrange(size))
        report = member.epoch.flush.report()
        value = self.value_for(member, member.epoch.flush.cut({current.place: report}, size))
        kind = chance.randrange(4)
        if kind == 0:
            return Propose(number, ballot[1], ballot, value, chance.getrandbits(size))
        source = chance.randrange(size)
        if kind == 1:
            return Install(number, source, value)
        asked = member.coordinator.ballot or ballot
        accepted = (ballot, value) if kind == 2 else None
        flags = chance.random() < 0.3, chance.random() < 0.7
        return Report(number, source, asked, accepted, *flags, self.perturbed(report))

    def value_for(self, member: MembershipMachine, cut: Cut) -> NextView:
        chance, view = self.chance, member.current.view
        heard = chance.getrandbits(len(view.members)) | chance.getrandbits(len(view.members))
        stay = heard & (chance.getrandbits(len(view.members)) | 1 << member.current.place)
        reported = chance.choice([Reason.LEFT, Reason.STATELESS])
        gone = [(place, reported if heard >> place & 1 else Reason.SILENT) for place in members(view.everybody & ~stay)]
        made = self.perturbed(cut)
        return NextView(view.number + 1, stay, (), heard, tuple(gone), made, 0, (), view.next_node, "")

    def perturbed(self, found: Any) -> Any:
        """A cut or a report with some numbers changed."""
        changes: dict[str, Any] = {}
        for name in found.__struct_fields__:
            old, what = getattr(found, name), self.chance.random()
            if what < 0.6:
                continue
            if isinstance(old, int):
                changes[name] = max(0, old + self.chance.choice([-1, 1, 1, 2, 1 << 59]))
            elif what < 0.7:
                changes[name] = () if name not in {"ends", "expected"} else (0,) * len(old)
            else:
                numbers = old or (0,) * len(getattr(found, found.__struct_fields__[0]))
                changes[name] = tuple(max(0, each + self.chance.choice([-1, 0, 0, 1, 1 << 59])) for each in numbers)
        return msgspec.structs.replace(found, **changes)

    def changed(self, unit: Any, kinds: Any) -> Any:
        """None if nothing was found that can be decoded."""
        raw = msgspec.msgpack.decode(msgspec.msgpack.encode(unit))
        for _ in range(self.chance.randrange(1, 4)):
            for _ in range(20):
                changed = changed_somewhere(raw, self.chance)
                try:
                    found = msgspec.msgpack.decode(msgspec.msgpack.encode(changed), type=kinds)
                except (msgspec.DecodeError, OverflowError):
                    continue
                raw = changed
                break
            else:
                return None
        return found
