"""One member's part in the life of a group: handshake, abort and close.

A session is a machine like a protocol's: one input in, a list of outputs out; no clock, socket, chance or log. It
always ends with `Left`, and reports before how: `Refused`, `Aborted` or `Closed`.

    IDLE ──Begin──► HANDSHAKE ──all agree──► OPEN ──all are done──► CLOSED ──► LEFT
                       │                       │                                ▲
                       ├──► REFUSED ───────────┼────────────────────────────────┤
                       └───────────────────────┴──► ABORTED ────────────────────┘

How members agree is in `handshake`, when all may leave in `closing`. Who has failed is found out by the detector of the
current view, not here: `Remaining` tells with whom the group continues. While this member closes it sends a `Heartbeat`
to all, which carries its stage, so that no step of closing can be lost for long.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from ordercast.live.session.closing import Closing
from ordercast.live.session.events import (
    Aborted,
    AtRest,
    Begin,
    Close,
    Closed,
    ControlReceived,
    GiveUp,
    Input,
    Left,
    Output,
    Refused,
    Remaining,
    SendControl,
    SessionConfig,
    Suspected,
    TrafficReceived,
)
from ordercast.live.session.handshake import Handshake, Identity
from ordercast.model.config import SECOND, require
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.model.nodes import mask_of, members
from ordercast.protocols.shared.jitter import spread
from ordercast.wire.control import IN_SESSION, AbortNotice, Control, Heartbeat, Join, Refuse, Stage, truncated

TIMES_REPEATED = 3
"""How often an abort or a refusal is sent without being asked for, and the last stage of closing."""


class Phase(Enum):
    """Where a session is."""

    IDLE = "idle"
    HANDSHAKE = "handshake"
    OPEN = "open"
    CLOSED = "closed"
    REFUSED = "refused"
    ABORTED = "aborted"
    LEFT = "left"


class Session(DeclaredState):
    """The session of the member `me`; all members have the same names, in the same order, and equal parameters."""

    me: Final[int]
    founders: Final[tuple[str, ...]]
    names: dict[int, str]
    """Of the founders, and of all members with which the protocol continues."""
    is_joined: Final[bool]
    """This member joined a group that was open: it has no part in a handshake."""
    config: Final[SessionConfig]
    handshake: Handshake
    closing: Closing
    phase: Phase
    close_within: int
    why: str
    """Why the group did not open, or was aborted."""
    suspect: int | None
    times_sent: int
    """How often that was sent."""
    informed: int
    """Members that know, too, that the group is over."""
    answered: int
    """Members that were answered since we last sent it ourselves: nobody gets more than one answer in a round."""
    stamp: int

    def __init__(
        self,
        me: int,
        names: tuple[str, ...],
        mine: Identity,
        parameters: str,
        *,
        joined: Mapping[int, str] | None = None,
        config: SessionConfig = SessionConfig(),  # noqa: B008 (it is frozen)
    ) -> None:
        """`joined`: the members of an open group that this member, which is one of them, has joined.

        `names` has only its own name then.
        """
        require(joined is not None or 0 <= me < len(names), f"a member is 0 to {len(names) - 1}, not {me}")
        require(len(set(names)) == len(names), "every member needs a name of its own")
        self.me, self.founders, self.config = me, names, config
        self.names = dict(enumerate(names)) if joined is None else dict(joined)
        self.is_joined = joined is not None
        self.handshake = Handshake(me if joined is None else 0, names, mine, parameters, config)
        self.closing = Closing(mask_of(self.names) & ~(1 << me))
        self.phase = Phase.IDLE
        self.close_within = 0
        self.why = ""
        self.suspect = None
        self.times_sent = self.informed = self.answered = self.stamp = 0

    @property
    def session(self) -> int:
        """The tag of the session that we agree to or are in; 0 if there is none yet."""
        return self.handshake.session

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.phase is Phase.LEFT:
            return out
        match event:
            case TrafficReceived(member):
                if self._is_other(member):
                    self._receive_traffic(member, out)
            case ControlReceived(member, message):
                if self._is_other(member):
                    self._receive(member, message, out)
            case TimerFired(name):
                self._fire(name, out)
            case Begin():
                self._begin(out)
            case Close(within):
                self._close(within, out)
            case AtRest(at_rest):
                self.closing.at_rest = at_rest
                self._advance(out)
            case Remaining(remaining, joined):
                self._remain(remaining, joined, out)
            case GiveUp(why):
                self._give_up(why, out)
        return out

    def waits_for(self) -> tuple[str, ...]:
        """What this member waits for, in words; empty when it waits for nothing."""
        if self.phase is Phase.HANDSHAKE:
            return (self.handshake.awaited(),)
        return self.closing.waits_for(self.me, self.names)

    def _is_other(self, member: int) -> bool:
        return member in self.names and member != self.me

    def _set_round_timer(self, name: str, out: list[Output]) -> None:
        self.stamp += 1
        out.append(SetTimer(name, spread(self.config.repeat, self.me, self.stamp)))

    # --- receiving ---

    def _receive_traffic(self, member: int, out: list[Output]) -> None:
        """Something arrived in the session: its sender knows that the session is open, but not that it is aborted."""
        if self.phase is Phase.HANDSHAKE and self.session:
            self._open(out)
        elif self.phase is Phase.ABORTED and not self.answered >> member & 1:
            self.answered |= 1 << member
            out.append(SendControl(AbortNotice(self.why, self.suspect), member))

    def _receive(self, member: int, message: Control, out: list[Output]) -> None:
        if isinstance(message, IN_SESSION) and self.phase is Phase.HANDSHAKE and self.session:
            self._open(out)
        match message:
            case Join():
                self._receive_join(member, message, out)
            case Refuse():
                self._receive_refuse(member, message, out)
            case Heartbeat():
                self._receive_heartbeat(member, message, out)
            case AbortNotice():
                self._receive_abort(member, message, out)

    def _receive_join(self, member: int, join: Join, out: list[Output]) -> None:
        if member >= len(self.founders) or self.is_joined:
            return
        if self.phase is Phase.HANDSHAKE:
            why = self.handshake.receive(member, join, out)
            if why is not None:
                self._refuse(why, out)
            elif self.handshake.all_agree():
                self._open(out)
        elif self.phase in (Phase.OPEN, Phase.CLOSED):
            self.handshake.receive_late(member, join, out)
        elif self.phase is Phase.ABORTED and self.handshake.has(member, join.incarnation):
            self._receive_traffic(member, out)
        elif self.phase in (Phase.REFUSED, Phase.ABORTED) and join.incarnation:
            out.append(self.handshake.refusal(member, join.incarnation, self.why))

    def _receive_refuse(self, member: int, refuse: Refuse, out: list[Output]) -> None:
        if refuse.refused != self.handshake.mine.incarnation or member >= len(self.founders) or self.is_joined:
            return
        self.informed |= 1 << member
        if self.phase is Phase.HANDSHAKE:
            self._refuse(refuse.why, out)
        elif (
            self.phase is Phase.OPEN
            and self.handshake.has(member, refuse.incarnation)
            and self.closing.others >> member & 1  # else the group continues without it already
        ):
            out.append(Suspected(member))

    def _receive_heartbeat(self, member: int, heartbeat: Heartbeat, out: list[Output]) -> None:
        self._receive_traffic(member, out)
        if self.phase in (Phase.OPEN, Phase.CLOSED):
            self.closing.received(member, heartbeat.stage)
            if heartbeat.asks:
                out.append(SendControl(Heartbeat(self.closing.stage), member))
            self._advance(out)
            if self.phase is Phase.CLOSED and not self.closing.below(Stage.ALL_DONE):
                self._leave_together(out)

    def _receive_abort(self, member: int, abort: AbortNotice, out: list[Output]) -> None:
        self.informed |= 1 << member
        if self.phase is Phase.OPEN and self.closing.others >> member & 1:  # else we continued without it
            self._abort(abort.why, abort.suspect if abort.suspect in self.names else None, out)
        elif self.phase is Phase.ABORTED:
            self._leave_if_all_know(out)

    # --- handshake ---

    def _begin(self, out: list[Output]) -> None:
        if self.phase is not Phase.IDLE:
            return
        if self.is_joined:
            self.phase = Phase.OPEN
            out.append(SetTimer("heartbeat", self.config.heartbeat))
            return
        self.phase = Phase.HANDSHAKE
        out.append(SetTimer("handshake", self.config.handshake_timeout))
        self.handshake.begin(out)
        if self.handshake.all_agree():
            self._open(out)  # we are alone

    def _open(self, out: list[Output]) -> None:
        self.phase = Phase.OPEN
        out += [CancelTimer("join"), CancelTimer("handshake"), self.handshake.open()]
        out.append(SendControl(Heartbeat(self.closing.stage)))  # who does not know that all agree learns it by this
        out.append(SetTimer("heartbeat", self.config.heartbeat))

    def _refuse(self, why: str, out: list[Output]) -> None:
        """The group does not open, and everybody that we know is told why."""
        self.phase, self.why = Phase.REFUSED, truncated(why)
        out += [CancelTimer("join"), CancelTimer("handshake"), Refused(self.why)]
        self._send_end(out)

    # --- timers ---

    def _fire(self, name: str, out: list[Output]) -> None:
        handlers: dict[tuple[str, Phase], Callable[[list[Output]], None]] = {
            ("join", Phase.HANDSHAKE): self.handshake.repeat,
            ("handshake", Phase.HANDSHAKE): self._handshake_timed_out,
            ("heartbeat", Phase.OPEN): self._send_heartbeat,
            ("heartbeat", Phase.CLOSED): self._send_heartbeat,
            ("closing", Phase.OPEN): self._closing_timed_out,
            ("round", Phase.OPEN): self._repeat_stage,
            ("round", Phase.CLOSED): self._repeat_stage,
            ("over", Phase.REFUSED): self._repeat_end,
            ("over", Phase.ABORTED): self._repeat_end,
            ("linger", self.phase): self._leave,
        }
        handler = handlers.get((name, self.phase))
        if handler is not None:
            handler(out)

    def _handshake_timed_out(self, out: list[Output]) -> None:
        within = _seconds(self.config.handshake_timeout)
        self._refuse(f"the group did not open within {within}: {self.handshake.awaited()}", out)

    def _send_heartbeat(self, out: list[Output]) -> None:
        """To all, while this member closes; before, those that watch it get heartbeats from the failure detector."""
        out.append(SetTimer("heartbeat", self.config.heartbeat))
        if self.closing.stage is not Stage.OPEN:
            out.append(SendControl(Heartbeat(self.closing.stage)))

    # --- views ---

    def _remain(self, remaining: int, joined: tuple[tuple[int, str], ...], out: list[Output]) -> None:
        """The protocol continues with these. If we are not among them it is over for us."""
        kept = {member: name for member, name in self.names.items() if self._is_kept(member, remaining)}
        self.names = {**kept, **dict(joined)}
        self.closing.remain(remaining & mask_of(self.names) & ~(1 << self.me))
        if remaining >> self.me & 1:
            self._advance(out)
        elif self.phase is Phase.OPEN:
            self._drop_out(f"the group continues without {self.names[self.me]}", out)

    def _is_kept(self, member: int, remaining: int) -> bool:
        return (
            bool(remaining >> member & 1) or member == self.me or (member < len(self.founders) and not self.is_joined)
        )

    def _drop_out(self, why: str, out: list[Output]) -> None:
        """It is over for us alone: the others, who may continue, must not be told that it is over."""
        self.phase, self.why = Phase.ABORTED, truncated(why)
        out.append(Aborted(self.why))
        self._leave(out)

    # --- abort ---

    def _give_up(self, why: str, out: list[Output]) -> None:
        match self.phase:
            case Phase.OPEN:
                self._abort(why, None, out)
            case Phase.HANDSHAKE:
                self._refuse(why, out)
            case Phase.IDLE | Phase.CLOSED:
                self._leave(out)

    def _abort(self, why: str, suspect: int | None, out: list[Output]) -> None:
        """The group is aborted: everybody who learns of it sends it too, since whoever sent it first may be gone."""
        self.phase, self.why, self.suspect = Phase.ABORTED, truncated(why), suspect
        out += [CancelTimer(name) for name in ("heartbeat", "closing", "round")]
        out.append(Aborted(self.why))
        self._send_end(out)

    def _send_end(self, out: list[Output]) -> None:
        out.append(SetTimer("linger", self.config.notice_period))
        self._repeat_end(out)

    def _repeat_end(self, out: list[Output]) -> None:
        """Sends it three times, and answers whoever does not know yet until nobody needs an answer."""
        self.answered = 0
        if self.times_sent < TIMES_REPEATED:
            self.times_sent += 1
            if self.phase is Phase.REFUSED:
                out += self.handshake.refusals(self.why)
            else:
                out.append(SendControl(AbortNotice(self.why, self.suspect)))
        self._set_round_timer("over", out)
        self._leave_if_all_know(out)

    def _leave_if_all_know(self, out: list[Output]) -> None:
        suspects = 0 if self.suspect is None else 1 << self.suspect
        if self.times_sent >= TIMES_REPEATED and not self.closing.others & ~self.informed & ~suspects:
            self._leave(out)

    def _leave(self, out: list[Output]) -> None:
        self.phase = Phase.LEFT
        out += [CancelTimer(name) for name in ("heartbeat", "closing", "round", "over", "linger")]
        out.append(Left())

    # --- close ---

    def _close(self, within: int, out: list[Output]) -> None:
        if self.phase in (Phase.IDLE, Phase.HANDSHAKE):
            self._give_up(f"{self.names[self.me]} closed before the group was open", out)
        elif self.phase is Phase.OPEN and not self.closing.wanted:
            self.closing.wanted, self.close_within = True, within
            self.closing.at_rest = False  # until the host reports anew: what it reported before may be outdated
            if within:
                out.append(SetTimer("closing", within))
        elif self.phase is Phase.OPEN and within:
            self.close_within = within
            out.append(SetTimer("closing", within))

    def _advance(self, out: list[Output]) -> None:
        """Takes every step towards the end that may be taken now."""
        before = self.closing.stage
        if self.phase is not Phase.OPEN or not self.closing.advance():
            return
        if self.closing.stage is Stage.ALL_DONE:
            self.phase = Phase.CLOSED
            out += [CancelTimer("closing"), Closed(), SetTimer("linger", self.config.linger)]
        out.append(SendControl(Heartbeat(self.closing.stage)))
        if before < Stage.DONE <= self.closing.stage:
            self._set_round_timer("round", out)

    def _repeat_stage(self, out: list[Output]) -> None:
        """Asks those who are behind; when nobody is, sends the last stage a few times more, and leaves."""
        behind = self.closing.below(self.closing.stage)
        if behind:
            out += [SendControl(Heartbeat(self.closing.stage, asks=True), member) for member in members(behind)]
        elif self.phase is Phase.CLOSED:
            self.times_sent += 1
            if self.times_sent > TIMES_REPEATED:
                self._leave(out)
                return
            out.append(SendControl(Heartbeat(self.closing.stage)))
        self._set_round_timer("round", out)

    def _leave_together(self, out: list[Output]) -> None:
        """All know that all are done: nobody waits for anything but our last stage, which is sent as often as ever."""
        while self.times_sent < TIMES_REPEATED:
            self.times_sent += 1
            out.append(SendControl(Heartbeat(self.closing.stage)))
        self._leave(out)

    def _closing_timed_out(self, out: list[Output]) -> None:
        why = "; ".join(self.waits_for()) or "the others did not confirm that they are done"
        name, within = self.names[self.me], _seconds(self.close_within)
        self._abort(f"{name} could not close within {within}: {why}", None, out)


def _seconds(duration: int) -> str:
    return f"{round(duration / SECOND, 3):g} s"
