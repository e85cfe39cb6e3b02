"""The handshake: how members agree that they are a group, over a network that loses messages.

Each sends again and again what it begins with and what it has received (`Join`). A member that has a join of all
computes the session, a hash over these joins, and sends it: it agrees. A member that has received from everybody that
they agree to its own session opens it; so does one that receives anything *in* the session, since whoever sent it had
received everybody's agreement.

Replay protection: joins of an earlier handshake may arrive again, since somebody may have recorded them. So a join
counts, for us or against us, only if it names our own incarnation, a random number that nobody knew before this process
started; any other is answered with a join that names its sender's incarnation, which a process that is alive will then
name in turn. Nothing else is required of an incarnation that is the first that we accept, or of one whose parameters
differ: then the group does not open, and all are told why.

A process may fail and be restarted meanwhile, under a new incarnation, and what its former one sent may still be in
flight. Incarnations are not ordered. So a new one replaces one that we have accepted only if it proves that it is
alive now: it has received a join that we sent after that. What a member knows of the others therefore only moves to
later incarnations, and two members never open different sessions with each other: each would have agreed to both, in
opposite orders, and one of them would have gone back.
"""

from hashlib import blake2b
from typing import Final

from msgspec.structs import replace

from ordercast.live.session.events import Opened, Output, SendControl, SessionConfig
from ordercast.live.session.parameter_comparison import advice, difference, name_at
from ordercast.model.config import ConfigValue, require
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import SetTimer
from ordercast.protocols.shared.jitter import spread
from ordercast.wire.control import Join, LastJoin, Refuse, truncated

MAX_INCARNATIONS = 16
"""Incarnations of one member that are accepted before two processes are taken to use its name."""
_NOTHING = LastJoin()


class Identity(ConfigValue, frozen=True, kw_only=True):
    """What a member takes part with."""

    incarnation: int
    """A random number of 64 bits, not 0, drawn each time that a process starts."""
    first_seq: int = 0

    def __post_init__(self) -> None:
        require(0 < self.incarnation < 1 << 64, f"an incarnation is 1 to 2**64 - 1, not {self.incarnation}")
        require(0 <= self.first_seq < 1 << 60, f"the first sequence number is 0 to 2**60 - 1, not {self.first_seq}")


def session_of(parameters: str, names: tuple[str, ...], joins: list[Join]) -> int:
    """The session's tag: the same at all that have the same joins, another one if anything differs."""
    text = blake2b(parameters.encode(), digest_size=8)
    for name, join in zip(names, joins, strict=True):
        text.update(f"\0{name}\0{join.incarnation} {join.first_seq}".encode())
    return int.from_bytes(text.digest(), "big") or 1


class Handshake(DeclaredState):
    """What one member has received from the others, and what it sends. It answers as long as the session lives."""

    me: Final[int]
    names: Final[tuple[str, ...]]
    mine: Final[Identity]
    parameters: Final[str]
    config: Final[SessionConfig]
    joins: list[Join | None]
    """The newest of each member's accepted incarnation; our own place stays empty."""
    accepted_at: list[int]
    """Our round when that incarnation was accepted: whoever has received a later one is alive after that."""
    incarnations: list[int]
    """How many were accepted, by member."""
    unproven: list[Join | None]
    """The last join of each that was not accepted: it did not name us, or has other parameters."""
    round: int
    quiet_rounds: int
    session: int
    """What we agree to; 0: a join is missing."""
    opened_at: int | None
    """Our round when the session was opened."""

    def __init__(self, me: int, names: tuple[str, ...], mine: Identity, parameters: str, config: SessionConfig) -> None:
        self.me, self.names, self.mine, self.parameters, self.config = me, names, mine, parameters, config
        self.joins = [None] * len(names)
        self.accepted_at = [0] * len(names)
        self.incarnations = [0] * len(names)
        self.unproven = [None] * len(names)
        self.round = self.quiet_rounds = self.session = 0
        self.opened_at = None

    # --- sending ---

    def begin(self, out: list[Output]) -> None:
        """Sends the first join."""
        self.repeat(out)
        self._agree(out)  # at once, if we are alone

    def join(self, answered: int | None = None) -> Join:
        """The next join; if it answers a member that is not accepted, it names what that one sent."""
        self.round += 1
        heard = tuple(self._heard(member, answered) for member in range(len(self.names)))
        mine = self.mine
        return Join(mine.incarnation, self.round, mine.first_seq, self.session, heard, self.parameters)

    def _heard(self, member: int, answered: int | None) -> LastJoin:
        accepted, unproven = self.joins[member], self.unproven[member]
        if unproven is not None and (accepted is None or member == answered):
            return LastJoin(unproven.incarnation)
        return LastJoin(accepted.incarnation, accepted.round, accepted.session) if accepted is not None else _NOTHING

    def repeat(self, out: list[Output]) -> None:
        """Sends a join to all, less often while nothing changes: whoever comes gets an answer anyway."""
        out.append(SendControl(self.join()))
        self.quiet_rounds += 1
        wait = self.config.repeat * min(1 + self.quiet_rounds // 8, 4)
        out.append(SetTimer("join", spread(wait, self.me, self.round)))

    def refusals(self, why: str) -> list[Output]:
        """Tells all members that the group does not open: the incarnation that sent last, and the accepted one."""
        return [
            self.refusal(member, incarnation, why)
            for member, joins in enumerate(zip(self.joins, self.unproven, strict=True))
            for incarnation in dict.fromkeys(join.incarnation for join in joins if join is not None)
        ]

    def refusal(self, member: int, incarnation: int, why: str) -> SendControl:
        """Tells one incarnation of a member that the group does not open with it."""
        return SendControl(Refuse(self.mine.incarnation, incarnation, truncated(why)), member)

    # --- receiving ---

    def receive(self, member: int, join: Join, out: list[Output]) -> str | None:
        """Takes a join during the handshake; a sentence if the group cannot open with its sender."""
        alike, known = join.parameters == self.parameters, self.joins[member]
        if join.incarnation in (0, self.mine.incarnation) or (alike and len(join.heard) != len(self.names)):
            return None
        if known is not None and known.incarnation == join.incarnation:
            if alike and join.round > known.round:
                self._accept(member, join, out)
            return None
        self.unproven[member] = join
        if not alike and known is None and self._names_us(join):
            # With another incarnation known, the new one has to notice.
            return f"{self._difference(member, join)}; {advice(self.parameters, join.parameters)}"
        if not alike or not self._is_alive(member, join):
            out.append(SendControl(self.join(member), member))  # by having received this it can prove that it is alive
            return None
        self.incarnations[member] += 1
        if self.incarnations[member] > MAX_INCARNATIONS:
            return f"two processes use the name {self.names[member]}, or it is restarted again and again"
        self.accepted_at[member], self.unproven[member] = self.round, None
        self._accept(member, join, out)
        return None

    def _names_us(self, join: Join) -> bool:
        """True if it was sent to this incarnation of us; in a group of other members our place may be another."""
        return any(last.incarnation == self.mine.incarnation for last in join.heard)

    def _is_alive(self, member: int, join: Join) -> bool:
        """True if its sender has received from us; after we accepted another incarnation, if we did."""
        if self.joins[member] is None:
            return self._names_us(join)
        return self._proves_alive(join.heard[self.me], self.accepted_at[member])

    def _difference(self, member: int, join: Join) -> str:
        return difference(self.parameters, self.names[self.me], join.parameters, self._sender(member, join))

    def _sender(self, member: int, join: Join) -> str:
        """The name of the one that sent this, at its place in its own list of members."""
        return name_at(join.parameters, member, self.names[member])

    def _accept(self, member: int, join: Join, out: list[Output]) -> None:
        self.joins[member] = join
        if not self._agree(out) and self._lacks(join.heard[self.me]):
            out.append(SendControl(self.join(), member))

    def receive_late(self, member: int, join: Join, out: list[Output]) -> None:
        """Takes a join when the session is open, and answers the process that is in it, if that lacks our join.

        Another one with its name is not answered: it finds the open group, and joins that.
        """
        assert self.opened_at is not None
        if not self.has(member, join.incarnation) or len(join.heard) != len(self.names):
            return
        mine = join.heard[self.me]
        if self._lacks(mine) and not (self._proves_alive(mine, self.opened_at) and self._accepts_another(join)):
            out.append(SendControl(self.join(), member))

    def has(self, member: int, incarnation: int) -> bool:
        """True if this is the incarnation of that member that is accepted."""
        known = self.joins[member]
        return known is not None and known.incarnation == incarnation

    def _proves_alive(self, mine: LastJoin, since: int) -> bool:
        """True if it has received a join that we sent after that round."""
        return mine.incarnation == self.mine.incarnation and mine.round > since

    def _lacks(self, mine: LastJoin) -> bool:
        """True if it has not received what we could send."""
        return mine.incarnation != self.mine.incarnation or not mine.round or mine.session != self.session

    def _accepts_another(self, join: Join) -> bool:
        """True if its sender accepted an incarnation of a member that is not in the session: it can never open it."""
        return any(
            known is not None and heard.round and heard.incarnation != known.incarnation
            for heard, known in zip(join.heard, self.joins, strict=True)
        )

    def _agree(self, out: list[Output]) -> bool:
        """Phase two begins when all joins are there, and begins again when a member comes with a new incarnation.

        True if it begins now: then all were sent our join.
        """
        joins = self._all_joins()
        session = session_of(self.parameters, self.names, joins) if joins else 0
        if session == self.session:
            return False
        self.session = session
        self.quiet_rounds = 0
        self.repeat(out)
        return True

    def _all_joins(self) -> list[Join]:
        """The joins of all in their order, with ours; empty if one is missing."""
        joins = [join for join in self.joins if join is not None]
        if len(joins) < len(self.names) - 1:
            return []
        mine = self.mine
        own = Join(mine.incarnation, 0, mine.first_seq, self.session, (), self.parameters)
        return [*joins[: self.me], own, *joins[self.me :]]

    # --- opening ---

    def all_agree(self) -> bool:
        """True if everybody agrees to our session."""
        return self.session != 0 and all(join.session == self.session for join in self.joins if join is not None)

    def open(self) -> Opened:
        """Opens the session: from now on nothing changes."""
        self.opened_at = self.round
        # All have agreed, though we may have learned it from one of them only; a join without it would be answered.
        self.joins = [join and replace(join, session=self.session) for join in self.joins]
        self.unproven = [None] * len(self.names)
        joins = self._all_joins()
        return Opened(
            self.session,
            tuple(join.incarnation for join in joins),
            tuple(join.first_seq for join in joins),
        )

    def silent(self) -> list[str]:
        """The members from which nothing was accepted in this handshake."""
        others = zip(self.names, self.joins, strict=True)
        return [name for place, (name, join) in enumerate(others) if join is None and place != self.me]

    def awaited(self) -> str:
        """What is missing, in words."""
        silent, reasons, behind = [], [], []
        for member, (name, join, unproven) in enumerate(zip(self.names, self.joins, self.unproven, strict=True)):
            if member == self.me:
                continue
            if join is not None:
                behind += [name] if join.session != self.session else []
            elif unproven is None:
                silent.append(name)
            else:
                differs = unproven.parameters != self.parameters
                sender = self._sender(member, unproven)
                reasons.append(f"{sender} sends to {self.names[self.me]}, but does not receive from it")
                reasons += [self._difference(member, unproven)] if differs else []
        if silent:
            reasons.insert(0, f"nothing received from {', '.join(silent)}")
        return "; ".join(reasons) or f"{', '.join(behind)} did not agree"
