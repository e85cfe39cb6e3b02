"""Members that break one promise of views or logs each, as the simulator and the explorer run them."""

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from ordercast.explorer.membership import MemberMachine
from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    Deliver,
    Depart,
    Input,
    Machine,
    NotSent,
    Output,
    Reached,
    Submit,
    Suspect,
    ViewInstalled,
)
from ordercast.model.runs import WITH_LOGS, RunConfig
from ordercast.model.services import BROADCASTS
from ordercast.protocols.restart.node_log import Recovered, WriteNote, WritePacket
from ordercast.simulator.machines import machine_of
from tests.blind.machines import AUDIT, EVERY, SEARCH, SOAK, SWARM, Spoiler, in_front_of

VIEWS, LOGS = "views", "logs"
ALL_JUDGES = (SEARCH, AUDIT, SWARM, SOAK)
NOT_BY_TRACES = (SEARCH, SWARM, SOAK)
BY_LOGS = tuple(sorted(WITH_LOGS))
SELECTIVE = tuple(protocol for protocol in EVERY if protocol not in BROADCASTS)
_PATIENCE = 20
_ONE, _SENDER = 0, 1
"""The node that does it, and the one whose messages it is about: in the searches E2 is the one that sends."""


class _ForgetsOneAfterView(Spoiler):
    entered: bool

    def remember(self) -> None:
        self.entered = False

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        kept: list[Output] = []
        for output in outputs:
            self.entered = self.entered or (isinstance(output, ViewInstalled) and output.number > 0)
            forgotten = isinstance(output, Deliver) and self.entered and output.packet.source == _SENDER
            if not (forgotten and self.at_node == _ONE):
                kept.append(output)
        return kept


def _view_in(outputs: list[Output]) -> int | None:
    found = (at for at, output in enumerate(outputs) if isinstance(output, ViewInstalled) and output.number > 0)
    return next(found, None)


class _EntersBeforeFlush(Spoiler):
    """What it lacked of the view before is delivered in the next one."""

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        at = _view_in(outputs)
        if at is None or self.at_node != _ONE:
            return outputs
        late = [output for output in outputs[:at] if isinstance(output, Deliver)]
        before = [output for output in outputs[:at] if not isinstance(output, Deliver)]
        return [*before, outputs[at], *late, *outputs[at + 1 :]]


class _DropsTheFlush(Spoiler):
    """What it lacked of the view before is never delivered."""

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        at = _view_in(outputs)
        if at is None or self.at_node != _ONE:
            return outputs
        return [*(output for output in outputs[:at] if not isinstance(output, Deliver)), *outputs[at:]]


class _TellsNoView(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        told = self.at_node != _ONE
        return [output for output in outputs if told or not (isinstance(output, ViewInstalled) and output.number > 0)]


class _TellsOthersThanDecided(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return [self._told(output) for output in outputs]

    def _told(self, output: Output) -> Output:
        if self.at_node != _ONE or not isinstance(output, ViewInstalled) or not output.number:
            return output
        others = output.members & ~(1 << self.at_node)
        highest = 1 << others.bit_length() - 1 if others else 0
        places = tuple(place for place in output.places if not highest >> place & 1)
        return replace(output, members=output.members & ~highest, places=places)


class _NeverLeaves(Spoiler):
    def takes(self, event: Input) -> bool:
        return not isinstance(event, Depart)


class _IgnoresFailures(Spoiler):
    """Neither by its host nor by silence does it learn that anybody has failed."""

    def takes(self, event: Input) -> bool:
        return not isinstance(event, Suspect) and getattr(event, "name", "") != "view.beat"


class _SaysNotSent(Spoiler):
    """It says of one submission of three that its destinations are gone, and forgets it."""

    submitted: int

    def remember(self) -> None:
        self.submitted = 0

    def takes(self, event: Input) -> bool:
        self.submitted += isinstance(event, Submit)
        return not self._refuses(event)

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        return [NotSent(len(event.lengths))] if isinstance(event, Submit) and self._refuses(event) else outputs

    def _refuses(self, event: Input) -> bool:
        return isinstance(event, Submit) and not self.submitted % 3


class _SendsToFewer(Spoiler):
    """One of the members that it is asked to send to is left out."""

    def given(self, event: Input) -> Input:
        fewer = event.destinations & ~1 if isinstance(event, Submit) and self.at_node else 0
        return replace(event, destinations=fewer) if isinstance(event, Submit) and fewer else event


class _TellsNoLevel(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        return [output for output in outputs if not isinstance(output, Reached)]


class _GivesUpForNothing(Spoiler):
    """It says that too few answer, though all do, and is silent from then on."""

    delivered: int

    def remember(self) -> None:
        self.delivered = 0

    def takes(self, event: Input) -> bool:
        del event
        return self.delivered <= _PATIENCE

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        before = self.delivered
        self.delivered += sum(isinstance(output, Deliver) for output in outputs) if self._may() else 0
        gives_up = before <= _PATIENCE < self.delivered
        return [*outputs, Abort("nobody answers", without_quorum=True)] if gives_up else outputs

    def waits_for(self) -> tuple[str, ...]:
        """Nothing, when it has given up."""
        waits: tuple[str, ...] = () if self.delivered > _PATIENCE else cast("Any", super()).waits_for()
        return waits

    def _may(self) -> bool:
        return self.at_node == _SENDER


class _AllGiveUp(_GivesUpForNothing):
    """All of them do."""

    def _may(self) -> bool:
        return True


class _LogsAnotherOrder(Spoiler):
    held: tuple[Output, ...]

    def remember(self) -> None:
        self.held = ()

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        if self.at_node != _ONE:
            return outputs
        spoiled: list[Output] = []
        for output in outputs:
            written: Any = output
            if isinstance(written, WritePacket) and not self.held:
                self.held = (output,)
            else:
                spoiled.append(output)
                if isinstance(written, WritePacket):
                    spoiled += self.held
                    self.held = ()
        return spoiled


class _LogsOneNever(Spoiler):
    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        found: list[Any] = list(outputs)
        return [
            output
            for output in found
            if not (isinstance(output, WritePacket) and self.at_node == _ONE and output.packet.source == _SENDER)
        ]


class _ForgetsItsLog(Spoiler):
    """When it is started again it begins without what is on its disk."""

    def given(self, event: Any) -> Any:
        return Recovered((), event.note) if isinstance(event, Recovered) else event


class _NotesNothing(Spoiler):
    """Neither its views nor what it promises for the next one is on its disk."""

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        found: list[Any] = list(outputs)
        return [output for output in found if not isinstance(output, WriteNote)]


class _TellsDurableAtOnce(Spoiler):
    """Takes for durable whatever it has written, and acts on it."""

    def spoil(self, event: Input, outputs: list[Output]) -> list[Output]:
        del event
        this: Any = self
        log = this.log
        log.synced, log.durable, log.unsynced = log.written, len(log.packets), []
        return outputs


class BlindMember(NamedTuple):
    """A way to break one promise of views or logs."""

    name: str
    spoiler: type[Spoiler]
    about: str = VIEWS
    protocols: tuple[str, ...] = EVERY
    noticed_by: tuple[str, ...] = ALL_JUDGES
    scenario: str = "leave"
    """The search in which its promise matters."""

    def member(self, protocol: str, founders: int, returns: tuple[tuple[int, int], ...]) -> "BlindMaker":
        """Makes the members of a search."""
        return BlindMaker(protocol, founders, returns, self.about == LOGS, spoiler=self.spoiler)

    def of(self, config: RunConfig) -> type[Machine]:
        """The members of a simulated run."""
        return in_front_of(machine_of(config), self.spoiler)


@dataclass(frozen=True)
class BlindMaker(MemberMachine):
    """Makes members with a spoiler in front."""

    spoiler: type[Spoiler] = Spoiler

    def __call__(self, node: int, group: GroupConfig) -> Machine:
        """The member at a node."""
        return in_front_of(type(super().__call__(node, group)), self.spoiler)(node, group)


MEMBERS = (
    BlindMember("forgets one sender after a view", _ForgetsOneAfterView),
    BlindMember("enters a view before the flush", _EntersBeforeFlush),
    BlindMember("drops what it lacked when a view ends", _DropsTheFlush),
    BlindMember("does not tell its application of views", _TellsNoView),
    BlindMember("tells of other members than were agreed on", _TellsOthersThanDecided),
    BlindMember("says that messages have no destination any more", _SaysNotSent, noticed_by=(SWARM, SOAK)),
    BlindMember("sends to fewer members than asked", _SendsToFewer, VIEWS, SELECTIVE, (SWARM, SOAK)),
    BlindMember("tells no level in a group with views", _TellsNoLevel, noticed_by=NOT_BY_TRACES),
    BlindMember("gives a healthy group up", _GivesUpForNothing, noticed_by=(SWARM, SOAK)),
    BlindMember("gives a healthy group up, as all do", _AllGiveUp, noticed_by=(SWARM, SOAK)),
    BlindMember("never leaves", _NeverLeaves, noticed_by=(SEARCH,)),
    BlindMember("never learns that somebody has failed", _IgnoresFailures, noticed_by=NOT_BY_TRACES, scenario="crash"),
    BlindMember(
        "writes messages to its log in another order", _LogsAnotherOrder, LOGS, BY_LOGS, scenario="restart-all-logged"
    ),
    BlindMember(
        "writes no message of one sender to its log", _LogsOneNever, LOGS, BY_LOGS, scenario="restart-all-logged"
    ),
    BlindMember(
        "forgets its log when it is started again", _ForgetsItsLog, LOGS, BY_LOGS, scenario="restart-all-logged"
    ),
    BlindMember("notes no view and no promise", _NotesNothing, LOGS, BY_LOGS, NOT_BY_TRACES, "restart-all"),
    BlindMember("takes for durable what it has written", _TellsDurableAtOnce, LOGS, BY_LOGS, (SEARCH,), "restart-all"),
)
