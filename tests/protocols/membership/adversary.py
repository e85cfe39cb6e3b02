"""A group that is attacked: coordinators crash in the middle of a step, processes pause and come back, names are taken
twice, links work one way only, and views are asked for in the midst of others."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.machine import Suspect
from ordercast.protocols.membership.events import ChangeView, LeaveGroup, SendControl
from ordercast.protocols.membership.joiner import Refused
from ordercast.protocols.membership.units import Accepted, Flush, Install, Propose, Report
from tests.protocols.membership.group import Group, Process, make_peace

STEPS: tuple[type[Any], ...] = (Flush, Report, Propose, Accepted, Install)


class Attacked(Group):
    """Processes of which some crash when they have said a certain thing to some of the others."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.paused: dict[str, list[Callable[[], object]]] = {}
        """By address: what is done when the process goes on."""
        self.broken: set[tuple[str, str]] = set()
        """(from, to): nothing arrives."""
        self.crashes_at: dict[str, tuple[type[Any], int]] = {}
        """By address: after which step, said to how many."""
        self.number = 0
        super().__init__(*given, **options)

    # --- processes ---

    def carry_out(self, process: Process, outputs: list[Any]) -> None:
        for at, output in enumerate(outputs):
            planned = self.crashes_at.get(process.me.address)
            if planned and isinstance(output, SendControl) and isinstance(output.unit, planned[0]):
                del self.crashes_at[process.me.address]
                super().carry_out(process, outputs[:at])
                self._say_to_some(process, output, planned[1])
                self.crash(process)
                return
        if any(isinstance(output, Refused) and "in use" in output.why for output in outputs):
            process.alive = False
            return
        super().carry_out(process, outputs)

    def _say_to_some(self, process: Process, output: SendControl, count: int) -> None:
        member = process.member
        assert member is not None
        current = member.current
        view = current.view if output.view == current.view.number else current.previous
        assert view is not None
        places = [output.to] if output.to is not None else list(range(len(view.members)))
        self.chance.shuffle(places)
        for place in places[:count]:
            if view.members[place].address != process.me.address:
                self.send_control(process, output.unit, place, output.view)

    def pause(self, process: Process) -> None:
        self.paused.setdefault(process.me.address, [])

    def resume(self, address: str) -> None:
        for action in self.paused.pop(address, ()):
            action()

    def fire(self, process: Process, name: str, stamp: int) -> None:
        if process.me.address in self.paused:
            self.paused[process.me.address].append(partial(self.fire, process, name, stamp))
        else:
            super().fire(process, name, stamp)

    def give(self, process: Process, event: Any) -> None:
        if process.me.address in self.paused:
            self.paused[process.me.address].append(partial(self.give, process, event))
        else:
            super().give(process, event)

    def submit_some(self) -> None:
        for process in list(self.members()):
            for _ in range(self.chance.randrange(3)):
                if process.me.address not in self.paused:
                    self.number += 1
                    self.submit(process, f"{process.me.address}:{self.number}")

    # --- the network ---

    def reaches(self, one: str, other: str) -> bool:
        return (one, other) not in self.broken and super().reaches(one, other)

    def arrives(self, process: Process, address: str, arrive: Callable[[Process], None]) -> None:
        queue = self.paused.get(address)
        if queue is None:
            super().arrives(process, address, arrive)
        elif len(queue) < 200:  # what does not fit into the buffer is lost
            queue.append(partial(self.arrives, process, address, arrive))

    def detect(self, *, wrong: float = 0.0) -> None:
        """Also who is paused, or is not heard, is suspected."""
        super().detect(wrong=wrong)
        for process in self.members():
            if process.member is None or process.me.address in self.paused:
                continue
            suspects = 0
            for place, other in enumerate(process.member.current.view.members):
                if other.address in self.paused or (other.address, process.me.address) in self.broken:
                    suspects |= 1 << place
            if suspects:
                self.give(process, Suspect(suspects))


def attack(group: Attacked, *, rounds: int, joiners: int) -> None:
    """Whatever may go wrong, in short order."""
    chance = group.chance
    group.loss = chance.choice([0.0, 0.0, 0.05, 0.3])
    for _ in range(rounds):
        group.run(group.now + chance.choice([1, 2, 3, 5, 10, 40, 120]) * MILLISECOND)
        group.submit_some()
        living = [process for process in group.members() if process.me.address not in group.paused]
        if not living:
            for address in sorted(group.paused):
                group.resume(address)
            continue
        _strike(group, chance.randrange(12), living, joiners)
    group.crashes_at = {}


def _strike(group: Attacked, what: int, living: list[Process], joiners: int) -> None:  # noqa: C901, PLR0912
    chance = group.chance
    victim = chance.choice(living)
    if what < 3 and 2 * len(living) <= largest_view(group):
        return  # too many of them would be gone
    if what == 0 and len(living) > 1:
        group.crashes_at[victim.me.address] = (chance.choice(STEPS), chance.randrange(4))
        group.give(victim, ChangeView("attacked"))
    elif what == 1 and len(living) > 1:
        lowest = min(living, key=lambda process: process.me.number)
        group.crashes_at[lowest.me.address] = (chance.choice(STEPS), chance.randrange(4))
        group.detect(wrong=0.3)
    elif what == 2 and len(living) > 1:
        group.crash(victim)
        if chance.random() < 0.7:
            group.returns(victim)
    elif what == 3 and len(living) > 1:
        group.give(victim, LeaveGroup(drain=chance.random() < 0.7))
        if chance.random() < 0.4:
            group.later(chance.randrange(1, 30) * MILLISECOND, partial(group.crash, victim))
    elif what == 4 and joiners:
        name = f"j{chance.randrange(joiners)}"
        for _ in range(chance.choice([1, 1, 2, 3])):
            group.join(name if chance.random() < 0.5 else f"j{chance.randrange(joiners)}")
    elif what == 5:
        group.pause(victim)
        if chance.random() < 0.6:
            group.join(victim.me.name)
    elif what == 6 and group.paused:
        group.resume(chance.choice(sorted(group.paused)))
    elif what == 7:
        other = chance.choice(living)
        group.broken.add((victim.me.address, other.me.address))
        if chance.random() < 0.5:
            group.broken.add((other.me.address, victim.me.address))
    elif what == 8:
        group.broken = set()
    elif what == 9:
        group.sides = {address: chance.randrange(2) for address in sorted(group.processes)}
    elif what == 10:
        group.sides = {}
    else:
        for process in chance.sample(living, min(len(living), 2)):
            group.give(process, ChangeView("again"))
        group.detect(wrong=0.2)


def largest_view(group: Group) -> int:
    """How many members the largest view of a living one has."""
    return max(len(process.view.members) for process in group.members() if process.view)


def end_attack(group: Attacked, limit: int = 60 * SECOND) -> str:
    """Nothing is lost any more, and all that live go on; how it ended, as of `make_peace`."""
    group.broken = set()
    group.loss = 0.0
    for address in sorted(group.paused):
        group.resume(address)
    return make_peace(group, limit)
