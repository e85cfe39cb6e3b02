"""One member's part in the life of a group: opening, keeping alive, abort and close.

A session is a machine like a protocol's: one input in, a list of outputs out; no clock, socket, chance or log. It ends
with `Left`, whatever happens, and says before how: `Refused`, `Aborted` or `Closed`.

    IDLE ──Begin──► OPENING ──all agree──► OPEN ──all are done──► CLOSED ──► GONE
                       │                     │                                ▲
                       ├──► REFUSED ─────────┼────────────────────────────────┤
                       └─────────────────────┴──► ABORTED ────────────────────┘

How members open is told in `opening`, whom they take for dead in `liveness`, when all may leave in `closing`. Every
`Heartbeat` carries the stage of its sender, so that nothing that closes a group can be lost for long.
"""

from collections.abc import Callable
from enum import Enum

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
    TimerExpired,
    TrafficReceived,
)
from ordercast.live.session.failure_detector import FailureDetector
from ordercast.live.session.handshake import Handshake, Identity
from ordercast.live.session.whole_state import WholeState
from ordercast.model.config import SECOND, require
from ordercast.model.machine import CancelTimer, SetTimer
from ordercast.model.nodes import everybody, members
from ordercast.protocols.shared.timers import spread
from ordercast.wire.control import IN_SESSION, AbortNotice, Control, Heartbeat, Join, Refuse, Stage, truncated

TIMES_REPEATED = 3
"""How often an abort or a refusal is said without being asked, and how often a last farewell."""


class Phase(Enum):
    """Where a session is."""

    IDLE = "idle"
    OPENING = "opening"
    OPEN = "open"
    CLOSED = "closed"
    REFUSED = "refused"
    ABORTED = "aborted"
    GONE = "gone"


class Session(WholeState):
    """The session of the member `me`; all members have the same names, in the same order, and equal terms."""

    def __init__(
        self,
        me: int,
        names: tuple[str, ...],
        mine: Identity,
        terms: str,
        *,
        has_views: bool = False,
        config: SessionConfig = SessionConfig(),  # noqa: B008 (it is frozen)
    ) -> None:
        """`has_views`: the protocol goes on without members that are suspected; else the group is given up."""
        require(0 <= me < len(names), "a member is one of the names")
        require(len(set(names)) == len(names), "every member has a name of its own")
        self.me, self.names, self.has_views, self.config = me, names, has_views, config
        self.opening = Handshake(me, names, mine, terms, config)
        self.liveness = FailureDetector(len(names), config)
        self.phase = Phase.IDLE
        self.closing = Closing(len(names), others=everybody(len(names)) & ~(1 << me))
        self.half_a_beat = False
        """Of the two ticks in a beat, one has passed."""
        self.close_within = 0
        self.why = ""
        """Why the group did not open, or was given up."""
        self.suspect: int | None = None
        self.times_said = 0
        self.told = 0
        """Members that know as well that it is over."""
        self.answered = 0
        """Members that were answered since we last said so ourselves: nobody gets more than one answer in a while."""
        self.stamp = 0

    @property
    def session(self) -> int:
        """The tag of the session that we agree to or are in; 0 if there is none yet."""
        return self.opening.session

    def handle(self, event: Input) -> list[Output]:
        """Takes one input and returns all that follows from it."""
        out: list[Output] = []
        if self.phase is Phase.GONE:
            return out
        match event:
            case TrafficReceived(member):
                if self._is_other(member):
                    self._sign(member, out)
            case ControlReceived(member, message):
                if self._is_other(member):
                    self._hear(member, message, out)
            case TimerExpired(name, now):
                self._fire(name, now, out)
            case Begin():
                self._begin(out)
            case Close(within):
                self._close(within, out)
            case AtRest(resting):
                self.closing.resting = resting
                self._advance(out)
            case Remaining(remaining):
                self._remain(remaining, out)
            case GiveUp(why):
                self._give_up(why, out)
        return out

    def waits_for(self) -> tuple[str, ...]:
        """What this member waits for, in words; empty when it waits for nothing."""
        if self.phase is Phase.OPENING:
            return (self.opening.awaited(),)
        return self.closing.waits_for(self.me, self.names)

    def _is_other(self, member: int) -> bool:
        return 0 <= member < len(self.names) and member != self.me

    def _wait(self, name: str, out: list[Output]) -> None:
        """A timer of one round."""
        self.stamp += 1
        out.append(SetTimer(name, spread(self.config.repeat, self.me, self.stamp)))

    # --- hearing ---

    def _sign(self, member: int, out: list[Output]) -> None:
        """Something came in the session: its sender is alive, and knows that the session is open."""
        if self.phase is Phase.OPENING and self.session:
            self._open(out)
        if self.phase is Phase.OPEN:
            self.liveness.heard |= 1 << member
        elif self.phase is Phase.ABORTED:
            self._answer_late(member, SendControl(AbortNotice(self.why, self.suspect), member), out)

    def _answer_late(self, member: int, answer: SendControl, out: list[Output]) -> None:
        if not self.answered >> member & 1:
            self.answered |= 1 << member
            out.append(answer)

    def _hear(self, member: int, message: Control, out: list[Output]) -> None:
        if isinstance(message, IN_SESSION) and self.phase is Phase.OPENING and self.session:
            self._open(out)
        match message:
            case Join():
                self._hear_join(member, message, out)
            case Refuse():
                self._hear_refuse(member, message, out)
            case Heartbeat():
                self._hear_beat(member, message, out)
            case AbortNotice():
                self._hear_abort(member, message, out)

    def _hear_join(self, member: int, join: Join, out: list[Output]) -> None:
        if self.phase is Phase.OPENING:
            why = self.opening.hear(member, join, out)
            if why is not None:
                self._refuse(why, out)
            elif self.opening.all_agree():
                self._open(out)
        elif self.phase in (Phase.OPEN, Phase.CLOSED):
            if self.opening.hear_late(member, join, out):
                self._sign(member, out)
        elif self.phase is Phase.ABORTED and self.opening.has(member, join.incarnation):
            self._sign(member, out)
        elif self.phase in (Phase.REFUSED, Phase.ABORTED) and join.incarnation:
            out.append(self.opening.refusal(member, join.incarnation, self.why))

    def _hear_refuse(self, member: int, refuse: Refuse, out: list[Output]) -> None:
        if refuse.refused != self.opening.mine.incarnation:
            return
        self.told |= 1 << member
        if self.phase is Phase.OPENING:
            self._refuse(refuse.why, out)
        elif self.phase is Phase.OPEN and self.opening.has(member, refuse.incarnation):
            self._miss(member, f"{self.names[member]} did not come in: {refuse.why}", out)

    def _hear_beat(self, member: int, beat: Heartbeat, out: list[Output]) -> None:
        self._sign(member, out)
        if self.phase in (Phase.OPEN, Phase.CLOSED):
            self.closing.hear(member, beat.stage)
            if beat.asks:
                out.append(SendControl(Heartbeat(self.closing.stage), member))
            self._advance(out)

    def _hear_abort(self, member: int, abort: AbortNotice, out: list[Output]) -> None:
        self.told |= 1 << member
        if self.phase is Phase.OPEN and self.closing.others >> member & 1:  # else we went on without it
            known = range(len(self.names))
            self._abort(abort.why, abort.suspect if abort.suspect in known else None, out)
        elif self.phase is Phase.ABORTED:
            self._leave_if_all_know(out)

    # --- opening ---

    def _begin(self, out: list[Output]) -> None:
        if self.phase is not Phase.IDLE:
            return
        self.phase = Phase.OPENING
        out.append(SetTimer("opening", self.config.opening))
        self.opening.begin(out)
        if self.opening.all_agree():
            self._open(out)  # we are alone

    def _open(self, out: list[Output]) -> None:
        self.phase = Phase.OPEN
        out += [CancelTimer("join"), CancelTimer("opening"), self.opening.open()]
        out.append(SendControl(Heartbeat(self.closing.stage)))  # whoever did not hear that all agree knows it by this
        out.append(SetTimer("beat", self.liveness.tick_every))

    def _refuse(self, why: str, out: list[Output]) -> None:
        """The group does not open, and everybody that we know is told why."""
        self.phase, self.why = Phase.REFUSED, truncated(why)
        out += [CancelTimer("join"), CancelTimer("opening"), Refused(self.why)]
        self._say_over(out)

    # --- keeping alive ---

    def _fire(self, name: str, now: int, out: list[Output]) -> None:
        handlers: dict[tuple[str, Phase], Callable[[list[Output]], None]] = {
            ("join", Phase.OPENING): self.opening.repeat,
            ("opening", Phase.OPENING): self._opening_due,
            ("closing", Phase.OPEN): self._closing_due,
            ("round", Phase.OPEN): self._repeat_stage,
            ("round", Phase.CLOSED): self._repeat_stage,
            ("over", Phase.REFUSED): self._repeat_over,
            ("over", Phase.ABORTED): self._repeat_over,
            ("linger", self.phase): self._leave,
        }
        handler = handlers.get((name, self.phase))
        if handler is not None:
            handler(out)
        elif name == "beat" and self.phase in (Phase.OPEN, Phase.CLOSED):
            self._tick(now, out)

    def _opening_due(self, out: list[Output]) -> None:
        self._refuse(f"the group did not open within {_seconds(self.config.opening)}: {self.opening.awaited()}", out)

    def _tick(self, now: int, out: list[Output]) -> None:
        out.append(SetTimer("beat", self.liveness.tick_every))
        asked, suspected = self.liveness.tick(now, self.closing.watched())
        self.half_a_beat = not self.half_a_beat
        if not self.half_a_beat:
            out.append(SendControl(Heartbeat(self.closing.stage)))
        out += [SendControl(Heartbeat(self.closing.stage, asks=True), member) for member in members(asked)]
        for member in members(suspected):
            if self.phase is Phase.OPEN:
                self._miss(member, self._silence_of(self.names[member]), out)
        if suspected and self.has_views and self.phase is Phase.OPEN:
            self._count_majority(out)

    def _count_majority(self, out: list[Output]) -> None:
        """Who hears only a minority stops, as the protocol would when it has waited for all of them."""
        silent = self.closing.others & self.liveness.suspected
        if 2 * silent.bit_count() > self.closing.others.bit_count():  # at least half of all, with us
            names = ", ".join(self.names[member] for member in members(silent))
            self._drop_out(f"{self._silence_of(names)}: no majority is left", out)

    def _silence_of(self, names: str) -> str:
        """Others may hear them: so it is told who does not."""
        return f"nothing came from {names} to {self.names[self.me]} for {_seconds(self.config.silence)}"

    def _miss(self, member: int, why: str, out: list[Output]) -> None:
        """A member is lost: the protocol goes on without it, or nobody goes on."""
        if not self.closing.others >> member & 1:
            return
        if self.has_views:
            out.append(Suspected(member))
        else:
            self._abort(why, member, out)

    def _remain(self, remaining: int, out: list[Output]) -> None:
        """The protocol goes on with these. If we are not among them it is over for us."""
        self.closing.others &= remaining
        if remaining >> self.me & 1:
            self._advance(out)
        elif self.phase is Phase.OPEN:
            self._drop_out(f"the group goes on without {self.names[self.me]}", out)

    def _drop_out(self, why: str, out: list[Output]) -> None:
        """It is over for us alone: the others, who may go on, must not hear us say that it is over."""
        self.phase, self.why = Phase.ABORTED, truncated(why)
        out.append(Aborted(self.why))
        self._leave(out)

    # --- abort ---

    def _give_up(self, why: str, out: list[Output]) -> None:
        match self.phase:
            case Phase.OPEN:
                self._abort(why, None, out)
            case Phase.OPENING:
                self._refuse(f"{self.names[self.me]} gave up: {why}", out)
            case Phase.IDLE | Phase.CLOSED:
                self._leave(out)

    def _abort(self, why: str, suspect: int | None, out: list[Output]) -> None:
        """The group is given up: everybody who hears of it says so too, since whoever said it first may be gone."""
        self.phase, self.why, self.suspect = Phase.ABORTED, truncated(why), suspect
        out += [CancelTimer(name) for name in ("beat", "closing", "round")]
        out.append(Aborted(self.why))
        self._say_over(out)

    def _say_over(self, out: list[Output]) -> None:
        out.append(SetTimer("linger", self.config.farewell))
        self._repeat_over(out)

    def _repeat_over(self, out: list[Output]) -> None:
        """Says it three times, and answers whoever has not heard it until nobody needs an answer."""
        self.answered = 0
        if self.times_said < TIMES_REPEATED:
            self.times_said += 1
            out += (
                self.opening.refusals(self.why)
                if self.phase is Phase.REFUSED
                else [SendControl(AbortNotice(self.why, self.suspect))]
            )
        self._wait("over", out)
        self._leave_if_all_know(out)

    def _leave_if_all_know(self, out: list[Output]) -> None:
        suspects = 0 if self.suspect is None else 1 << self.suspect
        if self.times_said >= TIMES_REPEATED and not self.closing.others & ~self.told & ~suspects:
            self._leave(out)

    def _leave(self, out: list[Output]) -> None:
        self.phase = Phase.GONE
        out += [CancelTimer(name) for name in ("beat", "closing", "round", "over", "linger")]
        out.append(Left())

    # --- close ---

    def _close(self, within: int, out: list[Output]) -> None:
        if self.phase in (Phase.IDLE, Phase.OPENING):
            self._give_up("it closed before the group was open", out)
        elif self.phase is Phase.OPEN and not self.closing.wanted:
            self.closing.wanted, self.close_within = True, within
            self.closing.resting = False  # until the host has looked once more: this is the wrong moment for old news
            if within:
                out.append(SetTimer("closing", within))

    def _advance(self, out: list[Output]) -> None:
        """Takes every step towards the end that may be taken now."""
        before = self.closing.stage
        if self.phase is not Phase.OPEN or not self.closing.advance():
            return
        if self.closing.stage is Stage.BYE:
            self.phase = Phase.CLOSED
            out += [CancelTimer("closing"), Closed(), SetTimer("linger", self.config.linger)]
        out.append(SendControl(Heartbeat(self.closing.stage)))
        if before < Stage.DONE <= self.closing.stage:
            self._wait("round", out)

    def _repeat_stage(self, out: list[Output]) -> None:
        """Asks those who are behind; when nobody is, says good-bye a few times more, and leaves."""
        behind = self.closing.below(self.closing.stage)
        if behind:
            out += [SendControl(Heartbeat(self.closing.stage, asks=True), member) for member in members(behind)]
        elif self.phase is Phase.CLOSED:
            self.times_said += 1
            if self.times_said > TIMES_REPEATED:
                self._leave(out)
                return
            out.append(SendControl(Heartbeat(self.closing.stage)))
        self._wait("round", out)

    def _closing_due(self, out: list[Output]) -> None:
        why = "; ".join(self.waits_for()) or "the others did not say that they are done"
        self._abort(f"{self.names[self.me]} waited for {_seconds(self.close_within)} to close: {why}", None, out)


def _seconds(duration: int) -> str:
    return f"{round(duration / SECOND, 3):g} s"
