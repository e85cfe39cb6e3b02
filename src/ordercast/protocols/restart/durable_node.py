"""A node with a durable log: it may be killed and started again, alone or with all others.

It does what a live member with a log does: what it is delivered is written in order; what it promises for the next
view is on the disk before it is said; who joins a running group is sent what its log lacks, and counts only when that
is on its disk; and those that were started again when nobody goes on begin anew (`machine`).
"""

from functools import cache
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from ordercast.model.config import MILLISECOND, GroupConfig
from ordercast.model.machine import (
    Deliver,
    Discard,
    Input,
    MembershipInput,
    Output,
    Send,
    SetTimer,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.nodes import mask_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership.by_node import SETTINGS, ByNode, by_node
from ordercast.protocols.membership.events import Begin, StateLoaded
from ordercast.protocols.membership.joiner import Joined
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.silence import BEATS
from ordercast.protocols.membership.units import Accepted, Install, Propose, Report, Welcome
from ordercast.protocols.membership.view import MembershipConfig, founding_view
from ordercast.protocols.membership.wrapped_units import OutsideView, ViewUnit
from ordercast.protocols.restart.assessment import Here
from ordercast.protocols.restart.machine import (
    BeginAnew,
    FetchLog,
    NotePlan,
    Offer,
    Patience,
    RestartMachine,
    RestartOutput,
    Say,
)
from ordercast.protocols.restart.node_log import DropLog, NodeLog, Recovered, Synced
from ordercast.protocols.restart.node_units import AskLog, LogPart, Restarting
from ordercast.protocols.restart.standing import Plan, Standing, decode_standing, encode_standing

PROMISES = (Report, Accepted, Propose)
"""Units that say what a member has promised or accepted."""
DECISIONS = (Install, Welcome)
"""Units by which others enter a view that this member has seen decided, perhaps by itself alone."""
TICK = 5 * MILLISECOND
ANEW = "begun anew from the logs of its members"
"""Why a view was installed that no earlier one led to."""
DurableInput = Input | MembershipInput | Synced | Recovered


class DurableNode(ByNode):
    """A `ByNode` with a log. `durable_node` makes the class for an order."""

    patience: ClassVar[Patience]
    """While it looks for those with whom it begins anew."""

    tick: Final[int]

    log: NodeLog
    restart: RestartMachine
    restarting: bool  # it was started again, and is in no view yet
    standing: Standing | None  # what it has noted last
    behind: int | None  # it joined with this view, and its log has not what was before it
    waiting: list[Packet]  # delivered meanwhile
    positions: dict[int, int]  # by view: where it begins in the log
    plan: Plan | None  # the one that its view began with

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.tick = TICK * (self.settings.repeat // SETTINGS.repeat)
        self.log, self.waiting, self.positions = NodeLog(), [], {}
        self.restarting, self.standing, self.behind, self.plan = False, None, None, None
        self.restart = self._restarts(Standing(founding_view((self.person,), b"")))

    def _restarts(self, standing: Standing) -> RestartMachine:
        return RestartMachine(self.person, "", standing, patience=self.patience)

    # --- inputs ---

    def handle(self, event: DurableInput) -> list[Output]:
        """Takes one input and returns all outputs that follow from it."""
        found: list[Output] = []
        out: list[Output] = []
        if isinstance(event, Recovered):
            self._recover(event, found)
        elif isinstance(event, Synced):
            for kind, what in self.log.sync(event.writes):
                if kind == "send":
                    out.append(what)
                else:
                    self.perform(kind, what, found)
        else:
            found = super().handle(event)
        for output in sorted(found, key=self.tells_of_own_view):
            self.log_output(output, out)
        return out

    def tells_of_own_view(self, output: Output) -> bool:
        """By it others may enter the view that this node has perhaps just entered: said after that is noted."""
        unit: Any = getattr(output.unit, "unit", None) if isinstance(output, Send) else None
        before = isinstance(unit, (*PROMISES, Install)) and unit.view < self.member.current.view.number
        return before or isinstance(unit, Welcome)

    def _recover(self, event: Recovered, out: list[Output]) -> None:
        self.log.recover(event.packets)
        self.standing = decode_standing(event.note)
        if self.standing is None:
            return  # it never was a member
        self.begun = self.restarting = True
        self.restart = self._restarts(self.standing)
        self._carry_out(self.joiner.begin(), out)
        self._tick(out)

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        inner = unit.unit if isinstance(unit, OutsideView) else None
        if isinstance(inner, Restarting):
            self._hear(inner.here, out)
        elif isinstance(inner, AskLog):
            self._answer(inner, out)
        elif isinstance(inner, LogPart):
            self._take(inner, out)
        else:
            super()._receive(unit, out)

    def _fire(self, event: TimerFired, out: list[Output]) -> None:
        if event.name == "log.tick":
            self._tick(out)
        elif event.name == "log.ask":
            self._ask(out)
        else:
            super()._fire(event, out)

    # --- what is written ---

    def log_output(self, output: Output, out: list[Output]) -> None:
        """Writes what an output promises, and lets it go when that is on the disk."""
        if isinstance(output, Deliver):
            out.append(output)
            if self.behind is None:
                out.append(self.log.write(output.packet))  # type: ignore[arg-type] # an output of nodes with logs
            else:
                self.waiting.append(output.packet)
        elif isinstance(output, ViewInstalled) and output.number == self.member.current.view.number:
            out.append(self._told(output))
            self._enter_view(out)
        elif isinstance(output, Send) and isinstance(output.unit, ViewUnit) and isinstance(output.unit.unit, PROMISES):
            self.promise(output, output.unit.unit.view, out)
        elif isinstance(output, Send) and isinstance(getattr(output.unit, "unit", None), DECISIONS):
            self._say_when_synced(output, out)
        else:
            out.append(output)

    def _say_when_synced(self, output: Send, out: list[Output]) -> None:
        if not self.log.hold("send", output):
            out.append(output)

    def _note(self, standing: Standing, out: list[Output]) -> None:
        self.standing = standing
        out.append(self.log.write_note(encode_standing(standing)))  # type: ignore[arg-type]

    def promise(self, output: Send, view: int, out: list[Output]) -> None:
        """What it says of a promise is said when the promise is on the disk: after a restart it still holds."""
        standing, acceptor = self.standing, self.member.acceptor
        if standing is not None and standing.view.number == view:  # else a later view is noted already
            value = None if acceptor.accepted is None else acceptor.accepted[1]
            noted = replace(standing, promised=acceptor.promised, accepted=value)
            if noted != standing:
                self._note(noted, out)
        self._say_when_synced(output, out)

    def _enter_view(self, out: list[Output]) -> None:
        view = self.member.current.view
        if self.behind is None:
            self.positions[view.number] = self.log.end[0]
        self._note(Standing(view, complete=self.behind is None), out)
        if self.behind is not None:
            self._ask(out)

    def _when_synced(self, kind: str, what: Any, out: list[Output]) -> None:
        if not self.log.hold(kind, what):
            self.perform(kind, what, out)

    def perform(self, kind: str, what: Any, out: list[Output]) -> None:
        """Does what waited for the disk, or for another node."""
        if kind == "loaded":
            self.note_loaded(out)
        elif self.restarting:
            found = self.restart.noted(what) if kind == "noted" else self.restart.log_is(*self.log.durable_end)
            self._carry_out_restart(found, out)

    # --- joining a running group ---

    def _join(self, output: Joined, out: list[Output]) -> None:
        self.restarting, self.behind = False, output.welcome.view.number
        super()._join(output, out)

    def _ask(self, out: list[Output]) -> None:
        """All that were in the view before have what it lacks."""
        if self.behind is not None and not self._has_ended():
            ask = AskLog(self.me, self.behind, None, self.log.places())
            out += [Send(OutsideView(self.me, ask)), SetTimer("log.ask", self.settings.repeat * 2)]

    def _answer(self, ask: AskLog, out: list[Output]) -> None:
        """Nothing, if the log does not reach there; they ask again."""
        log, end = self.log, ask.end
        if end is None:
            position = self.positions.get(ask.view)
            end = next((each for each in log.places() if each[0] == position), None)
        if end is None or not log.has(end):
            return
        start = log.common(ask.places, end[0])
        part = LogPart(self.me, ask.view, end, start, log.between(start, end))
        out.append(Send(OutsideView(self.me, part), to=ask.source))

    def _take(self, part: LogPart, out: list[Output]) -> None:
        plan = self.restart.plan if self.restarting else None
        if part.start not in self.log.places():  # of an earlier question
            out.append(Discard(OutsideView(part.source, part), "old"))
        elif self.behind is not None and part.view == self.behind:
            self.write_part(part, out)
            self.behind = None
            self.positions[part.view] = part.end[0]
            out += [self.log.write(packet) for packet in self.waiting]  # type: ignore[misc]
            self.waiting = []
            self._when_synced("loaded", None, out)
        elif plan is not None and part.end == (plan.position, plan.hash) and self.log.end != part.end:
            self.write_part(part, out)
            self._when_synced("fetched", None, out)
        else:
            out.append(Discard(OutsideView(part.source, part), "old"))

    def write_part(self, part: LogPart, out: list[Output]) -> None:
        """Drops what was never agreed on, and writes what follows."""
        if self.log.end != part.start:
            self.log.drop_above(part.start)
            out.append(DropLog(part.start[0]))  # type: ignore[arg-type]
        out += [self.log.write(packet) for packet in part.packets]  # type: ignore[misc]

    def note_loaded(self, out: list[Output]) -> None:
        """What it lacked is on its disk: it counts from now on."""
        if self.standing is not None and not self._has_ended():
            self._note(self.standing.with_complete(), out)
            self._give(StateLoaded(), out)

    # --- beginning anew ---

    def _tick(self, out: list[Output]) -> None:
        if self.restarting:
            self.restart.place(*self.log.durable_end)
            self._carry_out_restart(self.restart.tick(), out)
            self._tick_again(out)

    def _tick_again(self, out: list[Output]) -> None:
        if self.restarting:
            plan = self.restart.plan
            if plan is not None and self.log.end != (plan.position, plan.hash):
                self._fetch(plan, out)
            out.append(SetTimer("log.tick", self.tick))

    def _hear(self, here: Here, out: list[Output]) -> None:
        if self.restarting:
            self._carry_out_restart(self.restart.hear(here), out)
            return
        mine = self._here_for(here)
        if mine is not None:
            out.append(Send(OutsideView(self.me, Restarting(self.me, mine)), to=here.me.number))

    def _here_for(self, here: Here) -> Here | None:
        """What a member says to one that was started again: they have begun, or what its log has if it is blocked."""
        heard = ((here.me.name, here.me.number),)
        if here.begins or here.is_member:
            return None  # it is in a view
        if self.plan is not None and here.plan is not None and here.plan.tag == self.plan.tag:
            return replace(self.restart.here(), begins=True, heard=heard)
        if not self.is_member or not self.member.blocked or self.standing is None or self._has_ended():
            return None
        note, end = encode_standing(self.standing), self.log.end
        if not self.log.has(end):
            return None
        return Here("", self.person, note, *end, is_member=True, heard=heard)

    def _carry_out_restart(self, outputs: list[RestartOutput], out: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Say):
                out.append(Send(OutsideView(self.me, Restarting(self.me, output.here))))
            elif isinstance(output, NotePlan):
                assert self.standing is not None, "it was a member"
                self._note(replace(self.standing, plan=output.plan), out)
                self._when_synced("noted", output.plan.tag, out)
            elif isinstance(output, FetchLog):
                if self.log.end == (output.plan.position, output.plan.hash):
                    self._when_synced("fetched", None, out)
                else:
                    self._fetch(output.plan, out)
            elif isinstance(output, BeginAnew) and self.restarting:
                self._begin_anew(output.plan, out)
            else:
                assert not isinstance(output, Offer) or self.log.durable_end[0] >= output.plan.position

    def _fetch(self, plan: Plan, out: list[Output]) -> None:
        ask = AskLog(self.me, plan.number, (plan.position, plan.hash), self.log.places())
        out.append(Send(OutsideView(self.me, ask), to=plan.holder.number))

    def _begin_anew(self, plan: Plan, out: list[Output]) -> None:
        self.restarting, self.plan = False, plan
        self.joiner.ended = True
        view = replace(founding_view(plan.members, plan.tag), number=plan.number)
        self.member = MembershipMachine(
            *(self.person, view, self.order, self.config, self.settings), contacts=self._contacts()
        )
        self.is_member = True
        self._give(Begin(), out)
        early, self.early = self.early, type(self.early)()
        for event in early:
            self._submit(event, out)

    def _told(self, output: ViewInstalled) -> ViewInstalled:
        """A view that begins anew follows from the logs of nodes of the last one."""
        plan = self.plan
        if plan is None or output.number != plan.number:
            return output
        names = {one.name for one in plan.members}
        heard = mask_of(one.number for one in self.restart.last_view().members if one.name in names)
        return replace(output, heard=heard, why=ANEW)

    def _contacts(self) -> tuple[str, ...]:
        return tuple(str(node) for node in range(self.config.nodes) if node != self.me)

    # --- what a host asks ---

    def waits_for(self) -> tuple[str, ...]:
        """What it waits for."""
        if self.aborted:
            return ()
        if self.restarting:
            return (self.restart.waits_for or "it looks for the others, to begin anew",)
        if self.behind is not None and not self._has_ended():
            return ("its log lacks what was before its first view",)
        return super().waits_for()


@cache
def durable_node(
    protocol: str,
    founders: int | tuple[int, ...] | None = None,
    settings: MembershipConfig = SETTINGS,
    returns: tuple[tuple[int, int], ...] = (),
    *,
    beats: int = BEATS,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> type[DurableNode]:
    """The class for the order of a protocol, as of `by_node`."""
    plain = by_node(protocol, founders, replace(settings, has_state=True), returns, beats=beats)
    return type(f"Durable{plain.__name__}", (DurableNode, plain), {"patience": patience, "__module__": __name__})
