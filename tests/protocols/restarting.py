"""Processes that were started again and look for the others, by hand: no clock, no disk, no network."""

from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.protocols.restart.assessment import Here
from ordercast.protocols.restart.machine import (
    Abandon,
    BeginAnew,
    FetchLog,
    NotePlan,
    Offer,
    RestartMachine,
    RestartOutput,
    Say,
)
from ordercast.protocols.restart.standing import Plan, Standing

NAMES = "ABC"
HASHES = {position: bytes([position] * 16) for position in range(20)}


def life(name: str, number: int) -> Incarnation:
    return Incarnation(name, number, f"127.0.0.1:{7000 + ord(name)}")


LAST = Standing(GroupView(4, tuple(life(name, 1) for name in NAMES), (0, 1, 2), bytes(8), 3))


class Process:
    """One that was started again, whose disk is quick."""

    def __init__(self, name: str, position: int, standing: Standing = LAST, *, force: bool = False) -> None:
        self.machine = RestartMachine(life(name, 2), "g", standing, force=force)
        self.machine.place(position, HASHES[position])
        self.notes: list[Plan] = []
        self.fetched = 0
        self.begun: Plan | None = None
        self.said: list[Here] = []
        self.gave_up = 0
        self.offered: list[Plan] = []
        self.disk_is_slow = False

    @property
    def plan(self) -> Plan | None:
        return self.machine.plan

    def carry_out(self, outputs: list[RestartOutput]) -> None:
        for output in outputs:
            if isinstance(output, Say):
                self.said.append(output.here)
            elif isinstance(output, NotePlan):
                self.notes.append(output.plan)
                if not self.disk_is_slow:
                    self.carry_out(self.machine.noted(output.plan.tag))
            elif isinstance(output, FetchLog):
                self.fetched += 1
                self.carry_out(self.machine.log_is(output.plan.position, output.plan.hash))
            elif isinstance(output, BeginAnew):
                self.begun = self.begun or output.plan
            elif isinstance(output, Abandon):
                self.gave_up += 1
            elif isinstance(output, Offer):
                self.offered.append(output.plan)

    def tick(self) -> None:
        self.carry_out(self.machine.tick())


def talk(*processes: Process, rounds: int = 30) -> None:
    """Each says what it has, and all others hear it."""
    for _ in range(rounds):
        for one in processes:
            one.tick()
        for one in processes:
            said, one.said = one.said, []
            for other in processes:
                if other is not one and other.begun is None:
                    for here in said:
                        other.carry_out(other.machine.hear(here))
