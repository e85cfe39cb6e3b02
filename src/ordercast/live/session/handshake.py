"""How members agree that they are a group, over a network that loses what they say.

Each says again and again what it begins with and what it has heard (`Join`). A member that has heard all computes the
session, a hash over the joins of all, and says it: it agrees. A member that has heard everybody agree to its own
session opens it; so does one that hears anything said *in* the session, since whoever says it had heard everybody.

What was said in an earlier opening may come again: somebody may have kept it. So a join counts, for us or against us,
only if it names our own incarnation, a random number that nobody knew before this life of ours; any other is answered
with a join that names its sender's, which a process that is alive will then say back. Nothing else is needed of a
life that is the first that we take, or of one whose terms differ: then the group does not open, and all are told why.

A process may die and come again meanwhile, under a new incarnation, and what its former life said may still be under
way. Incarnations do not tell which came first. So a new one takes the place of one that we have taken only if it shows
that it is alive now: it has heard a join that we said after that. What a member knows of the others therefore only
moves to later lives, and two members never open different sessions with each other: each would have agreed to both, in
opposite orders, and one of them would have gone back.
"""

from hashlib import blake2b

from msgspec.structs import replace

from ordercast.live.session.events import Opened, Output, SendControl, SessionConfig
from ordercast.live.session.parameters import difference
from ordercast.live.session.whole_state import WholeState
from ordercast.model.config import ConfigValue, require
from ordercast.model.machine import SetTimer
from ordercast.protocols.shared.timers import spread
from ordercast.wire.control import Join, LastJoin, Refuse, truncated

MAX_INCARNATIONS = 16
"""How often a member may come anew before we say that two processes use its name."""
_NOTHING = LastJoin()


class Identity(ConfigValue, frozen=True, kw_only=True):
    """What a member takes part with."""

    incarnation: int
    """A random number of 64 bits, not 0, drawn for each life of a process."""
    first_seq: int = 0

    def __post_init__(self) -> None:
        require(0 < self.incarnation < 1 << 64, "an incarnation is a number of 64 bits, and not 0")
        require(0 <= self.first_seq < 1 << 60, "the first number must be below 2**60, and not negative")


def session_of(terms: str, names: tuple[str, ...], joins: list[Join]) -> int:
    """The session's tag: the same at all who have heard the same, another one if anything differs."""
    text = blake2b(terms.encode(), digest_size=8)
    for name, join in zip(names, joins, strict=True):
        text.update(f"\0{name}\0{join.incarnation} {join.first_seq}".encode())
    return int.from_bytes(text.digest(), "big") or 1


class Handshake(WholeState):
    """What one member has heard of the others, and what it says. It answers as long as the session lives."""

    def __init__(self, me: int, names: tuple[str, ...], mine: Identity, terms: str, config: SessionConfig) -> None:
        self.me, self.names, self.mine, self.terms, self.config = me, names, mine, terms, config
        self.joins: list[Join | None] = [None] * len(names)
        """The newest of each member's latest life; our own place is filled when it is asked for."""
        self.taken_at = [0] * len(names)
        """Our round when that life was taken: whoever has heard a later one is alive after that."""
        self.lives = [0] * len(names)
        self.unproven: list[Join | None] = [None] * len(names)
        """The last join of each that we did not take: of a life that did not name us, or with other terms."""
        self.round = 0
        self.quiet_rounds = 0
        self.session = 0
        """What we agree to; 0: somebody's join is missing."""
        self.opened_at: int | None = None
        """Our round when the session was opened."""

    # --- speaking ---

    def begin(self, out: list[Output]) -> None:
        """Says it for the first time."""
        self.repeat(out)
        self._agree(out)  # at once, if we are alone

    def join(self, answered: int | None = None) -> Join:
        """The next join; if it answers a member that we have not taken, it names what that one said."""
        self.round += 1
        heard = tuple(self._heard(member, answered) for member in range(len(self.names)))
        mine = self.mine
        return Join(mine.incarnation, self.round, mine.first_seq, self.session, heard, self.terms)

    def _heard(self, member: int, answered: int | None) -> LastJoin:
        taken, unproven = self.joins[member], self.unproven[member]
        if unproven is not None and (taken is None or member == answered):
            return LastJoin(unproven.incarnation)
        return LastJoin(taken.incarnation, taken.round, taken.session) if taken is not None else _NOTHING

    def repeat(self, out: list[Output]) -> None:
        """Says it to all, and more rarely while nothing changes: whoever comes gets an answer anyway."""
        out.append(SendControl(self.join()))
        self.quiet_rounds += 1
        wait = self.config.repeat * min(1 + self.quiet_rounds // 8, 4)
        out.append(SetTimer("join", spread(wait, self.me, self.round)))

    def refusals(self, why: str) -> list[Output]:
        """Tells everybody who takes part that the group does not open: whatever life spoke last, or was taken."""
        return [
            self.refusal(member, incarnation, why)
            for member, joins in enumerate(zip(self.joins, self.unproven, strict=True))
            for incarnation in dict.fromkeys(join.incarnation for join in joins if join is not None)
        ]

    def refusal(self, member: int, incarnation: int, why: str) -> SendControl:
        """Tells one."""
        return SendControl(Refuse(self.mine.incarnation, incarnation, truncated(why)), member)

    # --- hearing ---

    def hear(self, member: int, join: Join, out: list[Output]) -> str | None:
        """Takes a join while the group opens; a sentence if it cannot open with that one."""
        alike, known = join.terms == self.terms, self.joins[member]
        if join.incarnation in (0, self.mine.incarnation) or (alike and len(join.heard) != len(self.names)):
            return None
        if known is not None and known.incarnation == join.incarnation:
            if alike and join.round > known.round:
                self._take(member, join, out)
            return None
        self.unproven[member] = join
        if not alike and known is None and self._names_us(join):
            return self._difference(member, join)  # if we know another life of it, it is for the new one to notice
        if not alike or not self._is_alive(member, join):
            out.append(SendControl(self.join(member), member))  # it can show that it is alive by having heard this
            return None
        self.lives[member] += 1
        if self.lives[member] > MAX_INCARNATIONS:
            return f"two processes call themselves {self.names[member]}, or it starts again and again"
        self.taken_at[member], self.unproven[member] = self.round, None
        self._take(member, join, out)
        return None

    def _names_us(self, join: Join) -> bool:
        """Whether it was said in our life; in a group of other members our place may be another."""
        return any(last.incarnation == self.mine.incarnation for last in join.heard)

    def _is_alive(self, member: int, join: Join) -> bool:
        """Whether its sender has heard us; after we took another life, if we did."""
        if self.joins[member] is None:
            return self._names_us(join)
        return self._shows_life(join.heard[self.me], self.taken_at[member])

    def _difference(self, member: int, join: Join) -> str:
        return difference(self.terms, self.names[self.me], join.terms, self.names[member])

    def _take(self, member: int, join: Join, out: list[Output]) -> None:
        self.joins[member] = join
        if not self._agree(out) and self._wants(join.heard[self.me]):
            out.append(SendControl(self.join(), member))

    def hear_late(self, member: int, join: Join, out: list[Output]) -> bool:
        """Takes a join when the session is open; whether it came from the process that is in it."""
        assert self.opened_at is not None
        if join.incarnation in (0, self.mine.incarnation):
            return False
        if not self.has(member, join.incarnation):
            why = f"the group is already open, with another life of {self.names[member]}; start all members anew"
            out.append(self.refusal(member, join.incarnation, why))
            return False
        if len(join.heard) != len(self.names):
            return False
        mine = join.heard[self.me]
        if self._shows_life(mine, self.opened_at) and (other := self._other_life(join)) is not None:
            why = f"the group opened with a life of {self.names[other]} that has ended; start all members anew"
            out.append(self.refusal(member, join.incarnation, why))
        elif self._wants(mine):
            out.append(SendControl(self.join(), member))
        return True

    def has(self, member: int, incarnation: int) -> bool:
        """Whether this is the life of that member that we know."""
        known = self.joins[member]
        return known is not None and known.incarnation == incarnation

    def _shows_life(self, mine: LastJoin, since: int) -> bool:
        """Whether it has heard us after that round."""
        return mine.incarnation == self.mine.incarnation and mine.round > since

    def _wants(self, mine: LastJoin) -> bool:
        """Whether it lacks what we could tell."""
        return mine.incarnation != self.mine.incarnation or not mine.round or mine.session != self.session

    def _other_life(self, join: Join) -> int | None:
        """A member of which the sender has taken another life than the one in the session: it can never come in."""
        for member, (heard, known) in enumerate(zip(join.heard, self.joins, strict=True)):
            if known is not None and heard.round and heard.incarnation != known.incarnation:
                return member
        return None

    def _agree(self, out: list[Output]) -> bool:
        """Phase two begins when everybody was heard, and begins anew when somebody comes with a new life.

        Whether it begins now: then all were told.
        """
        joins = self._all_joins()
        session = session_of(self.terms, self.names, joins) if joins else 0
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
        own = Join(mine.incarnation, 0, mine.first_seq, self.session, (), self.terms)
        return [*joins[: self.me], own, *joins[self.me :]]

    # --- opening ---

    def all_agree(self) -> bool:
        """Whether everybody agrees to our session."""
        return self.session != 0 and all(join.session == self.session for join in self.joins if join is not None)

    def open(self) -> Opened:
        """From now on nothing changes."""
        self.opened_at = self.round
        # All have agreed, though we may have learned it from one of them only; who says otherwise would be answered.
        self.joins = [join and replace(join, session=self.session) for join in self.joins]
        self.unproven = [None] * len(self.names)
        joins = self._all_joins()
        return Opened(
            self.session,
            tuple(join.incarnation for join in joins),
            tuple(join.first_seq for join in joins),
        )

    def silent(self) -> list[str]:
        """Of whom nothing was heard that was said in this opening."""
        others = zip(self.names, self.joins, strict=True)
        return [name for place, (name, join) in enumerate(others) if join is None and place != self.me]

    def awaited(self) -> str:
        """For whom we wait, in words."""
        silent, told, behind = [], [], []
        for member, (name, join, unproven) in enumerate(zip(self.names, self.joins, self.unproven, strict=True)):
            if member == self.me:
                continue
            if join is not None:
                behind += [name] if join.session != self.session else []
            elif unproven is None:
                silent.append(name)
            else:
                differs = unproven.terms != self.terms
                told.append(f"{name} was heard, but does not hear us")
                told += [self._difference(member, unproven)] if differs else []
        if silent:
            told.insert(0, f"nothing was heard from {', '.join(silent)}")
        return "; ".join(told) or f"{', '.join(behind)} did not agree"
